//! `tierdex demo`: indexes text that this machine has, and asks it a few queries.

use super::index::output_disk;
use super::info::ratio_against_raw;
use super::search::{Format, answer};
use crate::failure::{Failure, Outcome, output};
use crate::input::{InputOptions, Source};
use crate::job::{Done, Job};
use crate::messages::printable;
use crate::run_file::new_in;
use crate::{open, size};
use clap::Args;
use std::io::{Write, stdout};
use std::path::{Path, PathBuf};
use tierdex::index::{Index, Merge, OpenMode, SearchOptions};
use tierdex::query::Query;
use tierdex::schema::Schema;
use tierdex::text::Analyzer;

#[derive(Args)]
pub struct Arguments {
    /// Folder of text [default: the sources and documents of the crates that Rust has fetched]
    folder: Option<PathBuf>,
    /// Directory of a new index [default: a new one in the system's temporary directory]
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
    let out = match &arguments.out {
        Some(out) => out.clone(),
        None => new_folder(&std::env::temp_dir())?,
    };
    let program = std::env::args().next().unwrap_or_else(|| "tierdex".to_string());
    say(&format!("Indexing {} into {}", folder.display(), out.display()))?;
    let done = build(&folder, &out)?;
    let index = open::index(&out)?;
    describe(&index, &done)?;
    for query in queries(&index)? {
        say(&format!("\n$ {program} search {} '{query}' -k 3", out.display()))?;
        let read = Query::parse(&query, index.schema())?;
        answer(
            &index,
            &read,
            &SearchOptions { k: 3, count: true, ..SearchOptions::default() },
            Format::Table,
        )?;
    }
    say(&format!(
        "\nGo on:\n  {program} search {0} 'your words'\n  {program} info {0}\n  {program} check {0}\n  \
         {program} index YOUR-FILES-OR-FOLDERS --positions --out DIR",
        out.display()
    ))
}

/// A folder that nobody else has made, nor a link.
fn new_folder(within: &Path) -> Outcome<PathBuf> {
    let made = new_in(within, "tierdex-demo", |path| std::fs::create_dir(path));
    let made = made.map_err(|error| {
        Failure::Failed(format!("cannot make a folder in {}: {error}; name one by --out", within.display()))
    })?;
    Ok(made.0)
}

/// The folder in which cargo unpacks the crates that it fetched; this program was just built from some of them.
fn fetched_crates() -> Outcome<PathBuf> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(std::env::home_dir()?.join(".cargo")));
    let sources = home.map(|home| home.join("registry").join("src")).filter(|path| path.is_dir());
    sources.ok_or_else(|| {
        Failure::Usage(
            "cargo has fetched no crates here; name a folder of text: tierdex demo FOLDER".to_string(),
        )
    })
}

fn build(folder: &Path, out: &Path) -> Outcome<Done> {
    let mut schema = Schema::default();
    schema.fields[0].positions = true;
    let output = Some(out.to_path_buf());
    let options = InputOptions { split: Some(PIECE), output, ..InputOptions::default() };
    let source = Source::open(&[folder.to_path_buf()], &options).map_err(Failure::Usage)?;
    let job = Job {
        disk: output_disk(out)?,
        schema,
        mode: OpenMode::New,
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
    let clauses: String = done.tally.clauses().iter().map(|clause| format!("; {clause}")).collect();
    say(&format!(
        "{} of text in {seconds:.1} s: {:.1} MB/s, {} of up to {} bytes{clauses}\n\
         Index of {}, with the text for snippets and positions for phrases; ids, frequencies and skip data are {:.1} \
         times smaller than raw ids and frequencies",
        size::show(done.tally.bytes),
        done.tally.bytes as f64 / 1e6 / seconds,
        size::count(done.tally.documents, "piece", "pieces"),
        size::group(PIECE as u64),
        size::show(done.index_bytes),
        ratio_against_raw(index.manifest(), 0)
    ))
}

/// Queries made of words that stand together in a document: not the most frequent ones, not rare ones.
fn queries(index: &Index) -> Outcome<Vec<String>> {
    let words = words(index)?;
    for word in &words {
        let terms = best_document(index, word)?;
        let others = terms.iter().filter(|term| *term != word && words.contains(term));
        let Some(other) = others.max_by_key(|term| words.iter().position(|word| word == *term)) else {
            continue;
        };
        let mut queries =
            vec![format!("{word} {other}"), format!("{word} AND {other}"), format!("{other} -{word}")];
        let next = terms.windows(2).find(|pair| pair[0] == *word && pair[1].len() > 1);
        queries.extend(next.map(|pair| format!("\"{}\"", pair.join(" "))));
        return Ok(queries);
    }
    say("\nToo little text for queries of its own; ask it yourself.")?;
    Ok(Vec::new())
}

/// Words of letters that stand in 0.5% to 3% of the documents, most frequent first.
fn words(index: &Index) -> Outcome<Vec<String>> {
    let documents = index.documents();
    let mut found: Vec<(u32, String)> = Vec::new();
    for segment in index.segments().iter().take(1) {
        let mut terms = segment.field(0).terms().stream();
        while let Some((term, info)) = terms.next()? {
            let word = term.len() >= 6 && term.iter().all(u8::is_ascii_lowercase);
            let share = u64::from(info.documents) * 1000 / documents.max(1);
            if word && (5..=30).contains(&share) {
                found.push((info.documents, String::from_utf8_lossy(term).into_owned()));
            }
        }
    }
    found.sort_by(|a, b| b.cmp(a));
    Ok(found.into_iter().map(|(_, word)| word).collect())
}

/// Terms of the best document of a word, in their order.
fn best_document(index: &Index, word: &str) -> Outcome<Vec<String>> {
    let searcher = index.searcher();
    let query = Query::any_term(word, index.schema())?;
    let found = searcher.search(&query, &SearchOptions { k: 1, count: true, ..SearchOptions::default() })?;
    let Some(hit) = found.hits.first() else { return Ok(Vec::new()) };
    let text = searcher.stored(hit.document)?.map(|stored| stored.text).unwrap_or_default();
    Ok(Analyzer::new(&index.schema().fields[0].analysis).terms(&text))
}

fn say(text: &str) -> Outcome {
    text.lines().try_for_each(|line| writeln!(stdout(), "{}", printable(line))).map_err(output)
}
