//! What to measure, and where things are put.

use crate::engine::Kind;
use crate::sets::{Group, LIMITED, Recipe};
use clap::{Parser, ValueEnum};
use std::path::{Path, PathBuf};
use tierdex_bench::{Error, Result};

/// Queries a second of tierdex beside Tantivy, Lucene and PISA.
#[derive(Parser, Clone, Debug)]
#[command(version, max_term_width = 110)]
pub struct Flags {
    /// Documents: JSON lines with members title and text, plain or packed by zstd
    #[arg(long, value_name = "FILE")]
    pub input: PathBuf,
    /// Directory for tokens, indexes and whatever else is used again by the next run
    #[arg(long, value_name = "DIR")]
    pub work: PathBuf,
    /// Write report.md and data.json into this directory
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Take the text so many times: further copies join halves of different documents, so that a larger index has like
    /// statistics
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub copies: u32,
    /// Directory of real queries: search-benchmark-game.jsonl, terabyte05.efficiency.tsv,
    /// msmarco-passage.dev-subset.tsv; sets whose file is missing are left out
    #[arg(long, value_name = "DIR")]
    pub queries: Option<PathBuf>,
    /// Few queries and few rounds, for a look
    #[arg(long)]
    pub quick: bool,
    /// Engines [default: all]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub engines: Vec<Kind>,
    /// Query sets by name or by group: all, or those that are compared among flat, mixed, phrases [default:
    /// these three, without phrases under a limit]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub sets: Vec<String>,
    /// Commands of the protocol [default: TOP_10,TOP_1024,TOP_1024_COUNT,COUNT; without TOP_1024 for phrases;
    /// TOP_10,TOP_1024_COUNT under a limit]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub commands: Vec<String>,
    /// Segments of each index, of equally many documents
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with = "limit",
          value_parser = clap::value_parser!(u32).range(1..=64))]
    pub segments: u32,
    /// BM25: how slowly further occurrences lose weight [default: 1.2]
    #[arg(long, conflicts_with = "limit")]
    pub k1: Option<f64>,
    /// BM25: how much a document's length matters [default: 0.75]
    #[arg(long, conflicts_with = "limit")]
    pub b: Option<f64>,
    /// Measure tierdex also with eight segments, and with k1 0.9 and b 0.4; with 1 and the defaults if flags
    /// say otherwise
    #[arg(long, conflicts_with = "limit")]
    pub own_variants: bool,
    /// Numbers of threads that ask
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', default_value = "1",
          value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub threads: Vec<u32>,
    /// Rounds that count [default: 7; 3 if quick or under a limit]
    #[arg(long, value_name = "N")]
    pub rounds: Option<usize>,
    /// Rounds before those, which do not count [default: 4; 2 if quick]; under a limit the passes by which Lucene's virtual
    /// machine warms up [default: 2]
    #[arg(long, value_name = "N")]
    pub warm: Option<usize>,
    /// Queries in a set [default: 500; 100 if quick]
    #[arg(long, value_name = "N")]
    pub count: Option<usize>,
    /// Milliseconds that a batch of the fastest engine takes at least: queries are repeated [default: 100; 20 if quick]
    #[arg(long, value_name = "N")]
    pub batch: Option<u64>,
    /// Probabilities in percent that a term is one of the last hundred; with several the sets are made for each
    #[arg(long, value_name = "PERCENTS", value_delimiter = ',', default_value = "0",
          value_parser = clap::value_parser!(u32).range(0..=100))]
    pub repeat: Vec<u32>,
    /// Seed of the query sets
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Measure under a limit of memory, such as 50M, instead of in memory: each engine in a control group of its own with so
    /// many bytes for the process and its page cache, which is dropped before each batch
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    pub limit: Option<u64>,
    /// The limit is for the index alone: what a process takes of its own is found out, and added
    #[arg(long, requires = "limit")]
    pub beyond_own: bool,
    /// Bytes of the limit that are not in tierdex's budget: page cache [default: a tenth]
    #[arg(long, value_name = "BYTES", value_parser = bytes, requires = "limit")]
    pub tierdex_spare: Option<u64>,
    /// Flags for `tierdex-bench serve` instead of those that follow from the limit, with blanks between
    #[arg(long, value_name = "FLAGS", requires = "limit", allow_hyphen_values = true)]
    pub tierdex_flags: Option<String>,
    /// Kilobytes that the device of WORK reads ahead, for this run; an interrupted run leaves it so
    #[arg(long, value_name = "N", requires = "limit")]
    pub read_ahead_kb: Option<u64>,
    /// How tierdex keeps lengths; the peers always take one byte, in codes of their own
    #[arg(long, default_value = "byte")]
    pub norms: Norms,
    /// Measure indexing so many times [default: once if an index is missing or older than its engine]
    #[arg(long, value_name = "N")]
    pub index_rounds: Option<usize>,
    /// Megabytes of postings that may wait to be written while indexing
    #[arg(long, value_name = "MB", default_value_t = 256)]
    pub memory: usize,
}

/// How a document's length is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Norms {
    /// One byte
    Byte,
    /// Four bytes, exact
    Exact,
}

impl Flags {
    /// Whether the flags name only what there is.
    ///
    /// # Errors
    /// If not.
    pub fn check(&self) -> Result<()> {
        let commands = self.commands();
        let wrong = commands.iter().find(|command| !is_command(command));
        if let Some(command) = wrong {
            return Err(Error::Usage(format!(
                "`{command}` is no command to measure; there are COUNT, TOP_k and TOP_k_COUNT"
            )));
        }
        if self.limit.is_some() && self.threads != [1] {
            return Err(Error::Usage("under a limit one thread asks; leave --threads out".to_string()));
        }
        let recipes = self.recipes()?;
        if self.limit.is_some() && recipes.iter().any(|recipe| recipe.group() == Group::Phrases) {
            return Err(Error::Usage("phrases are not measured under a limit".to_string()));
        }
        Ok(())
    }

    /// k1 and b of BM25 if the flags name one.
    pub fn bm25(&self) -> Option<(f64, f64)> {
        let named = self.k1.is_some() || self.b.is_some();
        named.then(|| (self.k1.unwrap_or(1.2), self.b.unwrap_or(0.75)))
    }

    /// The commands that are wanted of a set.
    pub fn commands_of(&self, group: Group) -> Vec<String> {
        let mut commands = self.commands();
        if self.commands.is_empty() && group == Group::Phrases {
            commands.retain(|command| command != "TOP_1024");
        }
        commands
    }

    /// The commands that are wanted.
    pub fn commands(&self) -> Vec<String> {
        let names: &[&str] = match (self.commands.as_slice(), self.limit) {
            ([], None) => &["TOP_10", "TOP_1024", "TOP_1024_COUNT", "COUNT"],
            ([], Some(_)) => &["TOP_10", "TOP_1024_COUNT"],
            (named, _) => return named.to_vec(),
        };
        names.iter().map(ToString::to_string).collect()
    }

    /// The query sets that are wanted.
    ///
    /// # Errors
    /// If one has no such name.
    pub fn recipes(&self) -> Result<Vec<Recipe>> {
        let known = Recipe::all();
        if self.sets.is_empty() {
            let wanted = |recipe: &Recipe| match self.limit {
                Some(_) => LIMITED.contains(&recipe.name().as_str()),
                None => recipe.is_judged(),
            };
            return Ok(known.into_iter().filter(wanted).collect());
        }
        let mut recipes = Vec::new();
        for name in &self.sets {
            let group = Group::ALL.into_iter().find(|group| group.name() == name);
            let phrases = |recipe: &Recipe| recipe.group() == Group::Phrases;
            let named = |recipe: &&Recipe| match (name.as_str(), group) {
                ("all", _) => self.limit.is_none() || !phrases(recipe),
                (_, Some(group)) => recipe.group() == group && recipe.is_judged(),
                (name, None) => recipe.name() == name,
            };
            let found: Vec<Recipe> = known.iter().filter(named).copied().collect();
            if found.is_empty() {
                let names: Vec<String> = known.iter().map(Recipe::name).collect();
                return Err(Error::Usage(format!(
                    "no query set is called `{name}`; there are all, flat, mixed, phrases, {}",
                    names.join(", ")
                )));
            }
            recipes.extend(found.into_iter().filter(|one| !recipes.contains(one)).collect::<Vec<_>>());
        }
        Ok(recipes)
    }

    /// Whether an engine is wanted. PISA and SeekStorm keep their indexes in memory, and know no limit.
    pub fn wants(&self, kind: Kind) -> bool {
        let named = self.engines.is_empty() || self.engines.contains(&kind);
        named && (self.limit.is_none() || !matches!(kind, Kind::Pisa | Kind::Seekstorm))
    }

    /// Directory for tokens, sets and indexes of so many copies.
    pub fn place(&self) -> PathBuf {
        match self.copies {
            1 => self.work.clone(),
            copies => self.work.join(format!("copies-{copies}")),
        }
    }

    /// Rounds that count.
    pub fn rounds(&self) -> usize {
        self.rounds.unwrap_or(if self.quick || self.limit.is_some() { 3 } else { 7 }).max(1)
    }

    /// Rounds that do not count; one at least, for it says how often queries must be repeated.
    pub fn warm(&self) -> usize {
        self.warm.unwrap_or(if self.quick || self.limit.is_some() { 2 } else { 4 }).max(1)
    }

    /// Queries in a set.
    pub fn count(&self) -> usize {
        self.count.unwrap_or(if self.quick { 100 } else { 500 }).max(1)
    }

    /// Nanoseconds that a batch takes at least.
    pub fn batch_ns(&self) -> u64 {
        self.batch.unwrap_or(if self.quick { 20 } else { 100 }) * 1_000_000
    }

    /// The flags as one types them. Of an absolute path only the last part is shown, for a report goes to others.
    pub fn command(&self) -> String {
        let path = |path: &Path| match path.file_name() {
            Some(name) if path.is_absolute() => name.to_string_lossy().into_owned(),
            _ => path.to_string_lossy().into_owned(),
        };
        let number = |name: &str, value: Option<String>| value.map(|value| format!("--{name} {value}"));
        let list = |name: &str, values: Vec<String>| {
            (!values.is_empty()).then(|| format!("--{name} {}", values.join(",")))
        };
        let numbers = |values: &[u32]| values.iter().map(ToString::to_string).collect::<Vec<_>>();
        let engines = self.engines.iter().map(|kind| kind.name().to_string()).collect();
        let words = [
            Some(format!("--input {} --work {}", path(&self.input), path(&self.work))),
            number("copies", (self.copies > 1).then(|| self.copies.to_string())),
            number("queries", self.queries.as_deref().map(path)),
            self.quick.then(|| "--quick".to_string()),
            list("engines", engines),
            list("sets", self.sets.clone()),
            list("commands", self.commands.clone()),
            number("segments", (self.segments > 1).then(|| self.segments.to_string())),
            number("k1", self.k1.map(|value| value.to_string())),
            number("b", self.b.map(|value| value.to_string())),
            self.own_variants.then(|| "--own-variants".to_string()),
            list("threads", numbers(&self.threads)),
            number("rounds", self.rounds.map(|n| n.to_string())),
            number("warm", self.warm.map(|n| n.to_string())),
            number("count", self.count.map(|n| n.to_string())),
            number("batch", self.batch.map(|n| n.to_string())),
            list("repeat", numbers(&self.repeat)),
            number("seed", Some(self.seed.to_string())),
            number("limit", self.limit.map(|n| n.to_string())),
            self.beyond_own.then(|| "--beyond-own".to_string()),
            number("tierdex-spare", self.tierdex_spare.map(|n| n.to_string())),
            number("tierdex-flags", self.tierdex_flags.as_ref().map(|flags| format!("\"{flags}\""))),
            number("read-ahead-kb", self.read_ahead_kb.map(|n| n.to_string())),
            (self.norms == Norms::Exact).then(|| "--norms exact".to_string()),
            number("index-rounds", self.index_rounds.map(|n| n.to_string())),
            number("memory", Some(self.memory.to_string())),
            number("out", self.out.as_deref().map(path)),
        ];
        words.into_iter().flatten().collect::<Vec<_>>().join(" ")
    }
}

/// A size: bytes, or a number with K, M or G behind it (powers of 1,024).
fn bytes(text: &str) -> std::result::Result<u64, String> {
    let (digits, shift) = match text.as_bytes().last() {
        Some(b'K') => (&text[..text.len() - 1], 10),
        Some(b'M') => (&text[..text.len() - 1], 20),
        Some(b'G') => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    let number = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(1 << shift));
    number
        .filter(|&bytes| bytes > 0)
        .ok_or_else(|| format!("`{text}` is not a size; write bytes, or a number with K, M or G behind it"))
}

fn is_command(word: &str) -> bool {
    let number = |k: &str| k.parse::<u32>().is_ok_and(|k| k > 0);
    let top = word.strip_prefix("TOP_").is_some_and(|k| number(k.strip_suffix("_COUNT").unwrap_or(k)));
    word == "COUNT" || top
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(words: &[&str]) -> Flags {
        let head = ["tierdex-peers-search", "--input", "/a/docs.jsonl", "--work", "work"];
        Flags::try_parse_from(head.iter().chain(words)).unwrap()
    }

    #[test]
    fn a_command_shows_no_absolute_path() {
        let command = flags(&["--out", "/b/out", "--engines", "tierdex,lucene"]).command();
        assert!(command.starts_with("--input docs.jsonl --work work --engines tierdex,lucene"), "{command}");
        assert!(command.ends_with("--out out"), "{command}");
    }

    #[test]
    fn a_limit_has_defaults_of_its_own() {
        let limited = flags(&["--limit", "50M"]);
        assert_eq!((limited.limit, limited.rounds(), limited.commands().len()), (Some(50 << 20), 3, 2));
        assert!(limited.check().is_ok() && !limited.wants(Kind::Pisa) && flags(&[]).wants(Kind::Pisa));
        assert!(flags(&["--limit", "50M", "--threads", "2"]).check().is_err());
        assert_eq!(
            ["4096", "2K", "0", "x", "M"].map(|text| bytes(text).ok()),
            [Some(4096), Some(2048), None, None, None]
        );
    }

    #[test]
    fn sets_are_named_one_by_one_or_by_group() {
        let names = |words: &[&str]| -> Vec<String> {
            flags(words).recipes().unwrap().iter().map(Recipe::name).collect()
        };
        assert_eq!(
            names(&["--sets", "phrases,phrase-2,or-hh"]),
            ["phrase-2", "phrase-3", "phrase-4", "or-hh"]
        );
        assert_eq!(names(&["--sets", "mixed"]).len(), 8);
        assert_eq!(names(&[]), names(&["--sets", "flat,mixed,phrases"]));
        assert_eq!(names(&["--limit", "50M"]), LIMITED);
        assert!(!names(&["--limit", "50M", "--sets", "all"]).contains(&"phrase-2".to_string()));
        assert_eq!(flags(&[]).commands_of(Group::Phrases), ["TOP_10", "TOP_1024_COUNT", "COUNT"]);
        assert_eq!(flags(&["--commands", "TOP_1024"]).commands_of(Group::Phrases), ["TOP_1024"]);
    }

    #[test]
    fn constants_have_their_defaults() {
        assert_eq!(flags(&[]).bm25(), None);
        assert_eq!(flags(&["--b", "0.4"]).bm25(), Some((1.2, 0.4)));
    }

    #[test]
    fn what_is_not_there_is_wrong_usage() {
        assert!(flags(&[]).check().is_ok());
        assert!(flags(&["--sets", "all"]).check().is_ok());
        assert!(flags(&["--limit", "50M", "--sets", "phrase-2"]).check().is_err());
        for wrong in [["--sets", "and-xx"], ["--commands", "TOP_0"], ["--commands", "TOP_1,DOCS_3"]] {
            assert!(matches!(flags(&wrong).check(), Err(Error::Usage(_))), "{wrong:?}");
        }
    }
}
