//! `tierdex demo`: indexes text files of this machine and answers a few sample queries.

use super::index::output_disk;
use super::search::{OutputFormat, answer_query};
use crate::failure::{Failure, Outcome, output_error};
use crate::folder_update::FolderOptions;
use crate::index_job::{IndexJob, IndexSummary};
use crate::input::{InputOptions, InputSource};
use crate::memory_flags::one_query_options;
use crate::{index_size::ratio_against_raw, messages::make_printable, run_file::create_unique};
use crate::{open, size};
use clap::Args;
use std::io::{Write, stdout};
use std::path::{Path, PathBuf};
use tierdex::analysis::Analyzer;
use tierdex::{
    Engine, Index, Merge, OpenMode, Query, Schema, SearchOptions, SearchRequest, Snapshot, TermStats,
};

#[derive(Args)]
pub struct DemoCommandArguments {
    /// Folder of text files [default: sources of the crates that cargo has downloaded]
    folder: Option<PathBuf>,
    /// Directory of the new index [default: a new directory in the system's temporary directory]
    #[arg(long)]
    out: Option<PathBuf>,
}

/// Maximum length of a document, in bytes. Longer files are split.
const DOCUMENT_BYTES_MAX: usize = 4096;

/// Number of dictionary terms in each read.
const TERMS_PER_READ: usize = 10_000;

pub fn run_demo(arguments: &DemoCommandArguments) -> Outcome {
    let folder = match &arguments.folder {
        Some(folder) => folder.clone(),
        None => find_downloaded_crates()?,
    };
    let out = match &arguments.out {
        Some(out) => out.clone(),
        None => create_temporary_directory(&std::env::temp_dir())?,
    };
    let program = std::env::args().next().unwrap_or_else(|| "tierdex".to_string());
    print_to_stdout(&format!("Indexing {} into {}", folder.display(), out.display()))?;
    let done = build_index(&folder, &out)?;
    let index = open::index(&out)?;
    print_index_summary(&index, &done)?;
    let engine = Engine::new(&index, &one_query_options(3))?;
    let options = SearchOptions { k: 3, count: true, ..SearchOptions::default() };
    for query in sample_queries(&engine)? {
        print_to_stdout(&format!("\n$ {program} search {} '{query}' -k 3", out.display()))?;
        let query = Query::parse(&query, index.schema())?;
        answer_query(&engine, std::slice::from_ref(&out), &query, &options, OutputFormat::Table, &[])?;
    }
    print_to_stdout(&format!(
        "\nNext steps:\n  {program} search {0} 'your words'\n  {program} info {0}\n  {program} check {0}\n  \
         {program} index YOUR-FILES-OR-FOLDERS --positions --out DIR",
        out.display()
    ))
}

/// Creates a directory with a unique name; never uses an existing directory or link.
fn create_temporary_directory(parent: &Path) -> Outcome<PathBuf> {
    let created = create_unique(parent, "tierdex-demo", |path| std::fs::create_dir(path));
    let created = created.map_err(|error| {
        Failure::Failed(format!(
            "cannot create a directory in {}: {error}; name one with --out",
            parent.display()
        ))
    })?;
    Ok(created.0)
}

/// The folder into which cargo unpacks downloaded crates, such as the dependencies of this program.
fn find_downloaded_crates() -> Outcome<PathBuf> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(std::env::home_dir()?.join(".cargo")));
    let sources = home.map(|home| home.join("registry").join("src")).filter(|path| path.is_dir());
    sources.ok_or_else(|| {
        Failure::Usage(
            "cargo has downloaded no crates; name a folder of text files: tierdex demo FOLDER".to_string(),
        )
    })
}

fn build_index(folder: &Path, out: &Path) -> Outcome<IndexSummary> {
    let mut schema = Schema::default();
    schema.fields[0].positions = true;
    let output = Some(out.to_path_buf());
    let options = InputOptions { split: Some(DOCUMENT_BYTES_MAX), output, ..InputOptions::default() };
    let source = InputSource::open(&[folder.to_path_buf()], &options).map_err(Failure::Usage)?;
    let job = IndexJob {
        disk: output_disk(out)?,
        schema: open::WriterSchema { schema, existing: None },
        mode: OpenMode::New,
        updatable: false,
        options,
        threads: std::thread::available_parallelism().map_or(1, usize::from),
        memory: 1 << 30,
        merge: Merge::One,
        wait: None,
        stop_at_problem: false,
        problems: None,
        folders: FolderOptions::default(),
    };
    job.run_job(source)
}

fn print_index_summary(index: &Index, done: &IndexSummary) -> Outcome {
    let seconds = done.elapsed.as_secs_f64().max(1e-9);
    let clauses: String = done.tally.summary_clauses().iter().map(|clause| format!("; {clause}")).collect();
    print_to_stdout(&format!(
        "{} of text in {seconds:.1} s: {}, {} of at most {} bytes{clauses}\n\
         Index of {}, with stored text for snippets and positions for phrases; document numbers, frequencies and skip \
         data are {:.1} times smaller than uncompressed postings",
        size::show_bytes(done.tally.bytes),
        size::show_throughput(done.tally.bytes, seconds),
        size::show_count(done.tally.documents, "document", "documents"),
        size::show_number(DOCUMENT_BYTES_MAX as u64),
        size::show_bytes(done.index_bytes),
        ratio_against_raw(index.manifest(), 0)
    ))
}

/// Sample queries from words of medium document frequency that occur in one document.
fn sample_queries(engine: &Engine) -> Outcome<Vec<String>> {
    let words = distinctive_words(&engine.snapshot())?;
    for word in &words {
        let terms = terms_of_best_hit(engine, word)?;
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
    print_to_stdout("\nToo little text for sample queries; run your own.")?;
    Ok(Vec::new())
}

/// Words of at least six letters that occur in 0.5% to 3% of the documents, most frequent first.
fn distinctive_words(snapshot: &Snapshot) -> Outcome<Vec<String>> {
    let documents = snapshot.index().documents();
    let mut found: Vec<(u64, String)> = Vec::new();
    let mut after = None;
    loop {
        let terms = snapshot.terms(0, "", after.as_deref(), TERMS_PER_READ)?;
        let Some(last) = terms.last() else { break };
        after = Some(last.term.clone());
        for TermStats { term, documents: containing, .. } in terms {
            let is_word = term.len() >= 6 && term.bytes().all(|byte| byte.is_ascii_lowercase());
            if is_word && (5..=30).contains(&(containing * 1000 / documents.max(1))) {
                found.push((containing, term));
            }
        }
    }
    found.sort_by(|a, b| b.cmp(a));
    Ok(found.into_iter().map(|(_, word)| word).collect())
}

/// Terms of the best hit of a word, in the order of the text.
fn terms_of_best_hit(engine: &Engine, word: &str) -> Outcome<Vec<String>> {
    let snapshot = engine.snapshot();
    let query = Query::any_term(word, snapshot.schema())?;
    let found = engine.search(SearchRequest::new(query).k(1).count(true))?;
    let Some(hit) = found.hits.first() else { return Ok(Vec::new()) };
    let stored = snapshot.stored(hit.document)?.unwrap_or_default();
    Ok(Analyzer::new(&snapshot.schema().fields[0].analysis).terms(stored.value("text")))
}

fn print_to_stdout(text: &str) -> Outcome {
    text.lines().try_for_each(|line| writeln!(stdout(), "{}", make_printable(line))).map_err(output_error)
}
