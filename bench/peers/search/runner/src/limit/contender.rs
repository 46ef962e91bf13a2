//! The contenders under a memory limit: their command lines and limits.

use crate::engine::{Advice, Engine, Kind, Variant};
use crate::flags::Flags;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Divisor of the limit: the default share that is not in tierdex's memory budget.
const SPARE: u64 = 10;

/// An engine that reads its files in one way.
#[derive(Clone)]
pub struct LimitContender {
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

impl LimitContender {
    /// All that take part: the peers in two ways.
    pub fn all(engines: &[Engine]) -> Vec<LimitContender> {
        let modes = |engine: &Engine| match engine.kind {
            Kind::Tierdex => vec![None],
            _ => vec![Some(Advice::Random), Some(Advice::Normal)],
        };
        let pairs =
            engines.iter().flat_map(|engine| modes(engine).into_iter().map(move |mode| (engine, mode)));
        pairs.map(|(engine, advice)| LimitContender::new(engine, advice)).collect()
    }

    fn new(engine: &Engine, advice: Option<Advice>) -> LimitContender {
        let tail = if advice == Some(Advice::Random) { " random" } else { "" };
        LimitContender {
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
            None => self.tierdex_words(flags, limit, command, &dir),
        }
    }

    /// tierdex: it scores all matches where the peers do.
    fn tierdex_words(&self, flags: &Flags, limit: u64, command: &str, dir: &Path) -> Vec<OsString> {
        let mut words = self.engine.serve_words(&Variant::of(flags, false), dir);
        words.extend(cache_flags(flags, limit).split_whitespace().map(OsString::from));
        words.extend(["--threads", "1"].map(OsString::from));
        words.extend(command.ends_with("_COUNT").then(|| "--exhaustive".into()));
        words
    }

    /// How the tables call it: a star if the limit is beyond its own memory and others' limits are not.
    pub fn title(&self, flags: &Flags) -> String {
        let star = if self.own.is_some() && !flags.beyond_own { "*" } else { "" };
        format!("{}{star}", self.name)
    }
}

/// The flags of tierdex under a limit: its cache is a part of its memory budget, which is a part of the
/// limit.
pub fn cache_flags(flags: &Flags, limit: u64) -> String {
    if let Some(named) = &flags.tierdex_flags {
        return named.clone();
    }
    let bytes = limit - spare(flags, limit);
    if flags.beyond_own { format!("--cache dram:{bytes}") } else { format!("--dram {bytes}") }
}

/// Bytes of the limit for the page cache of tierdex, and for memory that its budget does not count.
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
        let words = |more: &[&str]| super::cache_flags(&flags(more), 1000);
        assert_eq!(words(&[]), "--dram 900");
        assert_eq!(words(&["--beyond-own"]), "--cache dram:900");
        assert_eq!(words(&["--tierdex-spare", "10"]), "--dram 990");
        assert_eq!(words(&["--tierdex-flags", "--mode base"]), "--mode base");
    }
}
