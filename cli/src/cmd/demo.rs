//! `tierdex demo`: indexes text that this machine has, and asks it a few queries.

use super::index::{Done, Job};
use super::search::{Format, answer};
use super::info::ratio_against_raw;
use crate::failure::{Failure, Outcome, output};
use crate::input::{InputOptions, Source};
use crate::{open, size};
use clap::Args;
use std::io::{Write, stdout};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tierdex::index::{Index, Merge, OpenMode, SearchOptions};
use tierdex::io::PosixDisk;
use tierdex::query::Query;
use tierdex::schema::Schema;
use tierdex::text::Analyzer;

#[derive(Args)]
pub struct Arguments {
    /// Folder of text [default: the sources and documents of the crates that Rust has fetched]
    folder: Option<PathBuf>,
    /// Directory of the index [default: tierdex-demo in the system's temporary directory]
    #[arg(long)]
    out: Option<PathBuf>,
}

/// Pieces into which long files are cut, in bytes.
const PIECE: usize = 4096;

pub fn run(arguments: &Arguments) -> Outcome {
    let folder = match &arguments.folder {
        Some(folder) => folder.clone(),
        None => fetched_crates()?,
    };
    let out = arguments.out.clone().unwrap_or_else(|| std::env::temp_dir().join("tierdex-demo"));
    say(&format!("Indexing {} into {}", folder.display(), out.display()))?;
    let done = build(&folder, &out)?;
    let index = open::index(&out)?;
    describe(&index, &done)?;
    for query in queries(&index)? {
        say(&format!("\n$ tierdex search {} '{query}' -k 3", out.display()))?;
        answer(&index, &query, &SearchOptions { k: 3, ..SearchOptions::default() }, Format::Table)?;
    }
    say(&format!(
        "\nGo on: tierdex search {0} 'your words'   tierdex info {0}   tierdex check {0}\n\
         Your own text: tierdex index FOLDER-OR-FILES --positions --out DIR",
        out.display()
    ))
}

/// The folder in which cargo unpacks the crates that it fetched; this program was just built from some of them.
fn fetched_crates() -> Outcome<PathBuf> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(std::env::home_dir()?.join(".cargo")));
    let sources = home.map(|home| home.join("registry").join("src")).filter(|path| path.is_dir());
    sources.ok_or_else(|| {
        Failure::Usage("cargo has fetched no crates here; name a folder of text: tierdex demo FOLDER".to_string())
    })
}

fn build(folder: &Path, out: &Path) -> Outcome<Done> {
    let mut schema = Schema::default();
    schema.fields[0].positions = true;
    let options = InputOptions { split: Some(PIECE), ..InputOptions::default() };
    let source = Source::open(&[folder.to_path_buf()], &options).map_err(Failure::Usage)?;
    let job = Job {
        disk: Arc::new(PosixDisk::create(out)?),
        schema,
        mode: OpenMode::Replace,
        options,
        threads: std::thread::available_parallelism().map_or(1, usize::from),
        memory: 1 << 30,
        merge: Merge::One,
        stop_at_problem: false,
    };
    job.run(source)
}

fn describe(index: &Index, done: &Done) -> Outcome {
    let seconds = done.elapsed.as_secs_f64().max(1e-9);
    say(&format!(
        "{} pieces of {} files' text, {} in {seconds:.1} s: {:.1} MB/s\n\
         Index: {}, with text for snippets and positions for phrases; postings {:.1} times smaller than raw",
        size::group(done.documents),
        if done.skipped_binary > 0 { "all but binary" } else { "all" },
        size::show(done.bytes),
        done.bytes as f64 / 1e6 / seconds,
        size::show(done.index_bytes),
        ratio_against_raw(index.manifest(), 0)
    ))
}

/// Queries made of words that the index holds: not the most frequent ones, not rare ones.
fn queries(index: &Index) -> Outcome<Vec<String>> {
    let words = words(index)?;
    let [a, b, c, ..] = words.as_slice() else {
        say("\nToo little text for queries of its own; ask it yourself:")?;
        return Ok(Vec::new());
    };
    let mut queries = vec![format!("{a} {b}"), format!("{b} AND {c}"), format!("{a} -{c}")];
    queries.extend(phrase(index, a)?.map(|phrase| format!("\"{phrase}\"")));
    Ok(queries)
}

fn words(index: &Index) -> Outcome<Vec<String>> {
    let documents = index.documents();
    let mut found: Vec<(u32, String)> = Vec::new();
    for segment in index.segments().iter().take(1) {
        let mut terms = segment.field(0).terms().stream();
        while let Some((term, info)) = terms.next()? {
            let word = term.len() >= 6 && term.iter().all(u8::is_ascii_lowercase);
            let share = u64::from(info.documents) * 1000 / documents.max(1);
            if word && (2..=30).contains(&share) {
                found.push((info.documents, String::from_utf8_lossy(term).into_owned()));
            }
        }
    }
    found.sort_by(|a, b| b.cmp(a));
    let step = (found.len() / 3).max(1);
    Ok(found.into_iter().step_by(step).map(|(_, word)| word).collect())
}

/// Two words that stand side by side in the best document of a word.
fn phrase(index: &Index, word: &str) -> Outcome<Option<String>> {
    let searcher = index.searcher();
    let query = Query::any_term(word, index.schema());
    let found = searcher.search(&query, &SearchOptions { k: 1, ..SearchOptions::default() })?;
    let Some(hit) = found.hits.first() else { return Ok(None) };
    let Some(stored) = searcher.stored(hit.document)? else { return Ok(None) };
    let terms = Analyzer::new(&index.schema().fields[0].analysis).terms(&stored.text);
    let pair = terms.windows(2).find(|pair| pair[0] == word && pair[1].len() > 1);
    Ok(pair.map(|pair| pair.join(" ")))
}

fn say(line: &str) -> Outcome {
    writeln!(stdout(), "{line}").map_err(output)
}
