//! Who is measured under a limit, by which words, and what its limit is.

use crate::engine::{Advice, Engine, Kind, Variant};
use crate::flags::Flags;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Part of the limit that is not in tierdex's budget unless flags say otherwise.
const SPARE: u64 = 10;

/// An engine that reads its files in one way.
#[derive(Clone)]
pub struct Contender {
    /// Which engine.
    pub kind: Kind,
    /// Its name, with the advice if it is told any.
    pub name: String,
    /// Bytes of its group.
    pub limit: u64,
    /// Bytes of it that are its own memory, where these were found out and the limit is beyond them.
    pub own: Option<u64>,
    /// Its program.
    pub program: PathBuf,
    engine: Engine,
    advice: Option<Advice>,
}

impl Contender {
    /// All that take part: the peers in two ways.
    pub fn all(engines: &[Engine]) -> Vec<Contender> {
        let ways = |engine: &Engine| match engine.kind {
            Kind::Tierdex => vec![None],
            _ => vec![Some(Advice::Random), Some(Advice::Normal)],
        };
        let pairs = engines.iter().flat_map(|engine| ways(engine).into_iter().map(move |way| (engine, way)));
        pairs.map(|(engine, advice)| Contender::new(engine, advice)).collect()
    }

    fn new(engine: &Engine, advice: Option<Advice>) -> Contender {
        let tail = if advice == Some(Advice::Random) { " random" } else { "" };
        Contender {
            kind: engine.kind,
            name: format!("{}{tail}", engine.kind.name()),
            limit: 0,
            own: None,
            program: engine.file().to_path_buf(),
            engine: engine.clone(),
            advice,
        }
    }

    /// Directory of its index.
    pub fn dir(&self, flags: &Flags) -> PathBuf {
        self.engine.index_dir(flags, &Variant::of(flags, false))
    }

    /// The words that serve for a command, with `limit` bytes for all of it or for the index.
    pub fn words(&self, flags: &Flags, limit: u64, command: &str) -> Vec<OsString> {
        let dir = self.dir(flags);
        match self.advice {
            Some(advice) => self.engine.map_words(&dir, advice),
            None => self.near_words(flags, limit, command, &dir),
        }
    }

    /// tierdex: it scores all matches where the peers do.
    fn near_words(&self, flags: &Flags, limit: u64, command: &str, dir: &Path) -> Vec<OsString> {
        let mut words = self.engine.serve_words(&Variant::of(flags, false), dir);
        words.extend(near(flags, limit).split_whitespace().map(OsString::from));
        words.extend(command.ends_with("_COUNT").then(|| "--exhaustive".into()));
        words
    }

    /// How the tables call it: a star if the limit is beyond its own memory and others' limits are not.
    pub fn title(&self, flags: &Flags) -> String {
        let star = if self.own.is_some() && !flags.beyond_own { "*" } else { "" };
        format!("{}{star}", self.name)
    }
}

/// The flags by which tierdex reads near: its cache is a part of its budget, which is a part of the limit.
pub fn near(flags: &Flags, limit: u64) -> String {
    if let Some(named) = &flags.tierdex_flags {
        return named.clone();
    }
    let bytes = limit - spare(flags, limit);
    let memory = if flags.beyond_own { format!("--cache dram:{bytes}") } else { format!("--dram {bytes}") };
    format!("--mode direct --segment 8K {memory}")
}

/// Bytes of the limit that are for tierdex's pages in the page cache, and what else its budget does not know.
pub fn spare(flags: &Flags, limit: u64) -> u64 {
    flags.tierdex_spare.unwrap_or(limit / SPARE).min(limit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[test]
    fn the_budget_is_what_the_limit_leaves() {
        let flags = |more: &[&str]| {
            let head = ["x", "--input", "i", "--work", "w", "--limit", "50M"];
            Flags::try_parse_from(head.iter().chain(more)).unwrap()
        };
        let near = |more: &[&str]| super::near(&flags(more), 1000);
        assert!(near(&[]).ends_with("--segment 8K --dram 900"));
        assert!(near(&["--beyond-own"]).ends_with("--cache dram:900"));
        assert!(near(&["--tierdex-spare", "10"]).ends_with("--dram 990"));
        assert_eq!(near(&["--tierdex-flags", "--mode base"]), "--mode base");
    }
}
