//! Indexing: engines take turns, one thread each, and what they take is kept beside their indexes.

use crate::engine::{Engine, Kind};
use crate::flags::Flags;
use crate::results::median;
use crate::tokens::Corpus;
use crate::tools::{self, say};
use crate::usage::Usage;
use std::fs;
use std::path::{Path, PathBuf};
use tierdex_bench::Result;

/// What indexing took.
pub struct Row {
    /// Which engine.
    pub kind: Kind,
    /// Its release.
    pub version: String,
    /// Medians over the rounds.
    pub usage: Usage,
    /// Rounds that were measured.
    pub rounds: usize,
    /// Bytes of all files of the index.
    pub index_bytes: u64,
}

/// Indexes the corpus by each engine, as often as the flags say, or if its index is missing or too old.
///
/// # Errors
/// If an engine fails.
pub fn run(flags: &Flags, corpus: &Corpus, engines: &[Engine]) -> Result<Vec<Row>> {
    tools::make_folder(&flags.place().join("indexes"))?;
    let plan: Vec<usize> = engines.iter().map(|engine| rounds(flags, engine)).collect();
    let mut usages: Vec<Vec<Usage>> = engines.iter().map(|_| Vec::new()).collect();
    for round in 0..plan.iter().copied().max().unwrap_or_default() {
        for (place, engine) in engines.iter().enumerate().filter(|&(place, _)| round < plan[place]) {
            say(&format!("indexing by {}, round {} of {}", engine.kind.name(), round + 1, plan[place]));
            let dir = engine.index_dir(flags);
            let _ = fs::remove_file(mark(&dir));
            tools::remove_folder(&dir)?;
            usages[place].push(Usage::of(&engine.index_words(flags, &corpus.path, &dir))?);
            if round + 1 == plan[place] {
                tools::write(&mark(&dir), &lines(&usages[place]))?;
            }
        }
    }
    engines.iter().map(|engine| row(flags, engine)).collect()
}

/// The file that says that an index is whole, and what it took.
fn mark(dir: &Path) -> PathBuf {
    dir.with_extension("usage")
}

fn rounds(flags: &Flags, engine: &Engine) -> usize {
    let mark = mark(&engine.index_dir(flags));
    let fresh = fs::metadata(mark).and_then(|data| data.modified());
    let needed = fresh.map_or(true, |time| engine.built_after(time));
    flags.index_rounds.unwrap_or_default().max(usize::from(needed))
}

fn lines(usages: &[Usage]) -> String {
    usages.iter().map(|one| format!("{} {} {}\n", one.cpu_s, one.wall_s, one.peak_bytes)).collect()
}

fn row(flags: &Flags, engine: &Engine) -> Result<Row> {
    let dir = engine.index_dir(flags);
    let usages: Vec<Usage> = tools::read(&mark(&dir))?.lines().filter_map(crate::usage::parse).collect();
    let middle = |of: &dyn Fn(&Usage) -> f64| median(usages.iter().map(of).collect());
    Ok(Row {
        kind: engine.kind,
        version: engine.version.clone(),
        usage: Usage {
            cpu_s: middle(&|one| one.cpu_s),
            wall_s: middle(&|one| one.wall_s),
            peak_bytes: middle(&|one| one.peak_bytes as f64) as u64,
        },
        rounds: usages.len(),
        index_bytes: folder_bytes(&dir),
    })
}

fn folder_bytes(dir: &Path) -> u64 {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let sizes = entries.map(|entry| match entry.metadata() {
        Ok(data) if data.is_dir() => folder_bytes(&entry.path()),
        Ok(data) => data.len(),
        Err(_) => 0,
    });
    sizes.sum()
}
