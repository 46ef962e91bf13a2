//! Indexing: engines alternate, one thread each, and their resource usage is stored next to their indexes.

use crate::engine::{Contender, Kind};
use crate::{flags::Flags, mean::median, usage::Usage};
use crate::tokens::{Corpus, Parts};
use crate::tools::{self, say};
use std::fs;
use std::path::{Path, PathBuf};
use tierdex_bench::Result;

/// What indexing took.
pub struct IndexingRow {
    /// Which engine.
    pub kind: Kind,
    /// What its index is called.
    pub name: String,
    /// The part of that name that is the same for all engines.
    pub tail: String,
    /// Its release.
    pub version: String,
    /// Medians over the rounds.
    pub usage: Usage,
    /// Rounds that were measured.
    pub rounds: usize,
    /// Bytes of all files of the index.
    pub index_bytes: u64,
}

/// Indexes the corpus by each engine in each variant, as often as the flags say, or if an index is missing
/// or too old.
///
/// # Errors
/// If an engine fails.
pub fn run(flags: &Flags, corpus: &Corpus, contenders: &[Contender]) -> Result<Vec<IndexingRow>> {
    tools::make_folder(&flags.data_dir().join("indexes"))?;
    let mut wanted: Vec<&Contender> = Vec::new();
    for contender in contenders {
        let dir = contender.dir(flags);
        if wanted.iter().all(|other| other.dir(flags) != dir) {
            wanted.push(contender);
        }
    }
    let plan: Vec<usize> = wanted.iter().map(|contender| rounds(flags, contender)).collect();
    let mut usages: Vec<Vec<Usage>> = wanted.iter().map(|_| Vec::new()).collect();
    for round in 0..plan.iter().copied().max().unwrap_or_default() {
        for (place, contender) in wanted.iter().enumerate().filter(|&(place, _)| round < plan[place]) {
            let name = contender.engine.index_name(flags, &contender.variant);
            say(&format!("indexing, {name}, round {} of {}", round + 1, plan[place]));
            let dir = contender.dir(flags);
            let _ = fs::remove_file(mark(&dir));
            tools::remove_folder(&dir)?;
            usages[place].push(index(flags, corpus, contender)?);
            if round + 1 == plan[place] {
                tools::write(&mark(&dir), &lines(&usages[place]))?;
            }
        }
    }
    wanted.iter().map(|contender| row(flags, contender)).collect()
}

/// Indexes once.
fn index(flags: &Flags, corpus: &Corpus, contender: &Contender) -> Result<Usage> {
    let (engine, variant, dir) = (&contender.engine, &contender.variant, contender.dir(flags));
    let parts = match engine.kind {
        Kind::Tierdex => Parts::of(corpus, variant.segments, &flags.data_dir())?,
        _ => Parts::unwritten(corpus, variant.segments),
    };
    let mut usage = Usage::default();
    for words in engine.index_words(flags, variant, &parts, &dir) {
        usage = usage + Usage::of(&words)?;
    }
    Ok(usage)
}

/// The file that says that an index is whole, and what it took.
fn mark(dir: &Path) -> PathBuf {
    dir.with_extension("usage")
}

fn rounds(flags: &Flags, contender: &Contender) -> usize {
    let fresh = fs::metadata(mark(&contender.dir(flags))).and_then(|data| data.modified());
    let needed = fresh.map_or(true, |time| contender.engine.built_after(time));
    flags.index_rounds.unwrap_or_default().max(usize::from(needed))
}

fn lines(usages: &[Usage]) -> String {
    usages.iter().map(|one| format!("{} {} {}\n", one.cpu_s, one.wall_s, one.peak_bytes)).collect()
}

fn row(flags: &Flags, contender: &Contender) -> Result<IndexingRow> {
    let (engine, dir) = (&contender.engine, contender.dir(flags));
    let usages: Vec<Usage> = tools::read(&mark(&dir))?.lines().filter_map(crate::usage::parse).collect();
    let middle = |of: &dyn Fn(&Usage) -> f64| median(usages.iter().map(of).collect());
    Ok(IndexingRow {
        kind: engine.kind,
        name: engine.index_name(flags, &contender.variant),
        tail: contender.variant.index_tail(),
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
