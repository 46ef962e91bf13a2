//! The flags of the program.

use crate::engine::kind::Kind;
use crate::sets::recipe::{Group, LIMITED, Recipe};
use clap::{Parser, ValueEnum};
use std::path::{Path, PathBuf};
use tierdex_bench::{Error, Result};

/// Compare the query throughput of tierdex, Tantivy, Lucene, PISA and SeekStorm.
#[derive(Parser, Clone, Debug)]
#[command(version, max_term_width = 110)]
pub struct Flags {
    /// Documents: JSON lines with the members title and text, plain or compressed by zstd
    #[arg(long, value_name = "FILE")]
    pub input: PathBuf,
    /// Working directory for tokens, indexes and other files that the next run reuses
    #[arg(long, value_name = "DIR")]
    pub work: PathBuf,
    /// Write report.md and data.json into this directory
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Copies of the text, 1 to 1000; further copies join halves of different documents, so that a larger
    /// index has similar statistics
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub copies: u32,
    /// Directory of real queries: search-benchmark-game.jsonl, terabyte05.efficiency.tsv,
    /// msmarco-passage.dev-subset.tsv; sets whose file is missing are left out
    #[arg(long, value_name = "DIR")]
    pub queries: Option<PathBuf>,
    /// Fewer queries and rounds
    #[arg(long)]
    pub quick: bool,
    /// Engines [default: all]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub engines: Vec<Kind>,
    /// Query sets by name or by group: all, flat, mixed, phrases, shapes [default: flat,mixed,phrases;
    /// single-h,and-hh under a limit]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub sets: Vec<String>,
    /// Commands of the protocol [default: TOP_10,TOP_1024,TOP_1024_COUNT,COUNT; without TOP_1024 for
    /// phrases; TOP_10,COUNT for shapes, TOP_10 for fuzzy words; TOP_10,TOP_1024_COUNT under a limit]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub commands: Vec<String>,
    /// Segments of each index, 1 to 64, with the same number of documents each
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with = "limit",
          value_parser = clap::value_parser!(u32).range(1..=64))]
    pub segments: u32,
    /// BM25 k1: saturation of the term frequency [default: 1.2]
    #[arg(long, conflicts_with = "limit")]
    pub k1: Option<f64>,
    /// BM25 b: weight of the document length [default: 0.75]
    #[arg(long, conflicts_with = "limit")]
    pub b: Option<f64>,
    /// Also measure tierdex with eight segments, and with k1 0.9 and b 0.4; with one segment, and with the
    /// default constants, if the flags set these
    #[arg(long, conflicts_with = "limit")]
    pub own_variants: bool,
    /// Numbers of query threads, 1 to 1024
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', default_value = "1",
          value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub threads: Vec<u32>,
    /// Measured rounds [default: 7; 3 with --quick or --limit]
    #[arg(long, value_name = "N")]
    pub rounds: Option<usize>,
    /// Warm-up rounds [default: 4; 2 with --quick]; with --limit the warm-up passes of Lucene [default: 2]
    #[arg(long, value_name = "N")]
    pub warm: Option<usize>,
    /// Queries per set [default: 500; 100 with --quick]
    #[arg(long, value_name = "N")]
    pub count: Option<usize>,
    /// Shortest time of a batch of the fastest engine in milliseconds; queries are repeated [default: 100;
    /// 20 with --quick]
    #[arg(long, value_name = "N")]
    pub batch: Option<u64>,
    /// Probabilities in percent that a term is one of the last hundred; each gives sets of its own
    #[arg(long, value_name = "PERCENTS", value_delimiter = ',', default_value = "0",
          value_parser = clap::value_parser!(u32).range(0..=100))]
    pub repeat: Vec<u32>,
    /// Seed of the query sets
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Measure under a memory limit in bytes, such as 50M: each engine runs in a control group with this
    /// limit for the process and its page cache, which is dropped before each batch
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    pub limit: Option<u64>,
    /// Apply the limit to the index only: the memory of the process itself is measured and added
    #[arg(long, requires = "limit")]
    pub beyond_own: bool,
    /// Bytes of the limit that are not in tierdex's memory budget but left to the page cache [default: a
    /// tenth]
    #[arg(long, value_name = "BYTES", value_parser = bytes, requires = "limit")]
    pub tierdex_spare: Option<u64>,
    /// Flags for `tierdex-bench serve` instead of those derived from the limit, separated by spaces
    #[arg(long, value_name = "FLAGS", requires = "limit", allow_hyphen_values = true)]
    pub tierdex_flags: Option<String>,
    /// Read-ahead of the device of WORK in kilobytes during the run; an interrupted run does not restore it
    #[arg(long, value_name = "N", requires = "limit")]
    pub read_ahead_kb: Option<u64>,
    /// Encoding of document lengths in tierdex; the peers always use one byte, in encodings of their own
    #[arg(long, default_value = "byte")]
    pub norms: Norms,
    /// Rounds of indexing [default: one if an index is missing or older than its engine]
    #[arg(long, value_name = "N")]
    pub index_rounds: Option<usize>,
    /// Memory for buffered postings while indexing, in megabytes
    #[arg(long, value_name = "MB", default_value_t = 256)]
    pub memory: usize,
}

/// Encoding of document lengths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Norms {
    /// One byte
    Byte,
    /// Four bytes, exact
    Exact,
}

impl Flags {
    /// Checks the flags.
    ///
    /// # Errors
    /// If a value or a combination is invalid.
    pub fn check(&self) -> Result<()> {
        let commands = self.commands();
        let wrong = commands.iter().find(|command| !is_command(command));
        if let Some(command) = wrong {
            return Err(Error::Usage(format!(
                "`{command}` is no command to measure; there are COUNT, TOP_k and TOP_k_COUNT"
            )));
        }
        if self.limit.is_some() && self.threads != [1] {
            return Err(Error::Usage("--limit measures with one thread; remove --threads".to_string()));
        }
        let recipes = self.recipes()?;
        if self.limit.is_some() && recipes.iter().any(Recipe::has_positions) {
            return Err(Error::Usage("phrases are not measured under a limit".to_string()));
        }
        Ok(())
    }

    /// k1 and b of BM25, if the flags set one of them.
    pub fn bm25(&self) -> Option<(f64, f64)> {
        let named = self.k1.is_some() || self.b.is_some();
        named.then(|| (self.k1.unwrap_or(1.2), self.b.unwrap_or(0.75)))
    }

    /// The commands for the set of a recipe.
    pub fn commands_of(&self, recipe: Recipe) -> Vec<String> {
        let mut commands = self.commands();
        commands.retain(|command| !self.commands.is_empty() || recipe.has_command(command));
        commands
    }

    /// The selected commands.
    pub fn commands(&self) -> Vec<String> {
        let names: &[&str] = match (self.commands.as_slice(), self.limit) {
            ([], None) => &["TOP_10", "TOP_1024", "TOP_1024_COUNT", "COUNT"],
            ([], Some(_)) => &["TOP_10", "TOP_1024_COUNT"],
            (named, _) => return named.to_vec(),
        };
        names.iter().map(ToString::to_string).collect()
    }

    /// The selected query sets.
    ///
    /// # Errors
    /// If a name is unknown.
    pub fn recipes(&self) -> Result<Vec<Recipe>> {
        let known = Recipe::all();
        if self.sets.is_empty() {
            let wanted = |recipe: &Recipe| match self.limit {
                Some(_) => LIMITED.contains(&recipe.name().as_str()),
                None => recipe.is_judged() && recipe.group() != Group::Shapes,
            };
            return Ok(known.into_iter().filter(wanted).collect());
        }
        let mut recipes = Vec::new();
        for name in &self.sets {
            let group = Group::ALL.into_iter().find(|group| group.name() == name);
            let named = |recipe: &&Recipe| match (name.as_str(), group) {
                ("all", _) => self.limit.is_none() || !recipe.has_positions(),
                (_, Some(group)) => recipe.group() == group && recipe.is_judged(),
                (name, None) => recipe.name() == name,
            };
            let found: Vec<Recipe> = known.iter().filter(named).copied().collect();
            if found.is_empty() {
                let names: Vec<String> = known.iter().map(Recipe::name).collect();
                return Err(Error::Usage(format!(
                    "no query set is called `{name}`; there are all, flat, mixed, phrases, shapes, {}",
                    names.join(", ")
                )));
            }
            recipes.extend(found.into_iter().filter(|one| !recipes.contains(one)).collect::<Vec<_>>());
        }
        Ok(recipes)
    }

    /// Whether an engine is selected. PISA and SeekStorm have their indexes in memory and cannot run under a
    /// limit.
    pub fn wants(&self, kind: Kind) -> bool {
        let named = self.engines.is_empty() || self.engines.contains(&kind);
        named && (self.limit.is_none() || !matches!(kind, Kind::Pisa | Kind::Seekstorm))
    }

    /// Directory for tokens, sets and indexes of this number of copies.
    pub fn data_dir(&self) -> PathBuf {
        match self.copies {
            1 => self.work.clone(),
            copies => self.work.join(format!("copies-{copies}")),
        }
    }

    /// Measured rounds.
    pub fn rounds(&self) -> usize {
        self.rounds.unwrap_or(if self.quick || self.limit.is_some() { 3 } else { 7 }).max(1)
    }

    /// Warm-up rounds, at least one, which determines how often queries are repeated.
    pub fn warm(&self) -> usize {
        self.warm.unwrap_or(if self.quick || self.limit.is_some() { 2 } else { 4 }).max(1)
    }

    /// Queries per set.
    pub fn count(&self) -> usize {
        self.count.unwrap_or(if self.quick { 100 } else { 500 }).max(1)
    }

    /// Shortest time of a batch, in nanoseconds.
    pub fn batch_ns(&self) -> u64 {
        self.batch.unwrap_or(if self.quick { 20 } else { 100 }) * 1_000_000
    }

    /// The command line. Of an absolute path only the last component is shown, because reports are
    /// published.
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
    fn a_limit_changes_the_defaults() {
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
        assert!(!names(&[]).contains(&"nested-1".to_string()));
        assert_eq!(names(&["--sets", "shapes"]).len(), 28);
    }

    #[test]
    fn groups_have_commands_of_their_own() {
        let commands = |words: &[&str], name: &str| {
            let recipe = Recipe::all().into_iter().find(|recipe| recipe.name() == name).unwrap();
            flags(words).commands_of(recipe)
        };
        assert_eq!(commands(&[], "phrase-2"), ["TOP_10", "TOP_1024_COUNT", "COUNT"]);
        assert_eq!(commands(&["--commands", "TOP_1024"], "phrase-2"), ["TOP_1024"]);
        assert_eq!(commands(&[], "slop-2"), ["TOP_10", "COUNT"]);
        assert_eq!(commands(&[], "nested-1"), ["TOP_10", "COUNT"]);
        assert_eq!(commands(&[], "fuzzy-or"), ["TOP_10"]);
        assert_eq!(commands(&[], "or-hh").len(), 4);
    }

    #[test]
    fn constants_have_their_defaults() {
        assert_eq!(flags(&[]).bm25(), None);
        assert_eq!(flags(&["--b", "0.4"]).bm25(), Some((1.2, 0.4)));
    }

    #[test]
    fn unknown_names_are_usage_errors() {
        assert!(flags(&[]).check().is_ok());
        assert!(flags(&["--sets", "all"]).check().is_ok());
        assert!(flags(&["--limit", "50M", "--sets", "phrase-2"]).check().is_err());
        for wrong in [["--sets", "and-xx"], ["--commands", "TOP_0"], ["--commands", "TOP_1,DOCS_3"]] {
            assert!(matches!(flags(&wrong).check(), Err(Error::Usage(_))), "{wrong:?}");
        }
    }
}
