//! The flags of the experiment, for whichever program runs it.

use super::sweep::Sweep;
use crate::intersection::Crew;
use crate::{Error, Result};
use clap::Args;
use std::path::{Path, PathBuf};
use tierdex::io::{EngineOptions, RegionKind, Size};

/// What to measure, and where the report goes.
#[derive(Args, Clone, Debug)]
pub struct Flags {
    /// Lists of a hundredth and one round: a second or two
    #[arg(long)]
    pub quick: bool,
    /// Write report.md, data.json and a plot a sweep into this directory
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Make the files of lists in this directory, and remove them at the end [default: that of --out, else the system's for temporary files]
    #[arg(long, value_name = "DIR")]
    pub work: Option<PathBuf>,
    /// Measure also the lists of this index, by --queries
    #[arg(long, value_name = "DIR", requires = "queries")]
    pub index: Option<PathBuf>,
    /// Queries, a line each: an id, a tab and words, or words; all terms are required
    #[arg(long, value_name = "FILE", requires = "index")]
    pub queries: Option<PathBuf>,
    /// At most so many queries, taken evenly from the file
    #[arg(long, value_name = "N", default_value_t = 300)]
    pub limit: usize,
    /// threads, ratio, intersection, lists, codec, depth, memory, device or none; may be given several times [default: all but device, which needs the right to throttle reads by a control group]
    #[arg(long, value_name = "NAME")]
    pub sweep: Vec<String>,
    /// Rounds, of which the medians are taken [default: 3]
    #[arg(long, value_name = "N")]
    pub rounds: Option<usize>,
    /// Threads of bl, sl, zz and bf
    #[arg(long, value_name = "N", default_value_t = 32)]
    pub threads: usize,
    /// Ids of the shorter list [default: 10000]
    #[arg(long, value_name = "N")]
    pub short: Option<u32>,
    /// Ids of the longer list [default: 10000000]
    #[arg(long, value_name = "N")]
    pub long: Option<u32>,
    /// Ids that stand in both lists, in percent of the shorter one
    #[arg(long, value_name = "P", default_value_t = 1.0)]
    pub common: f64,
    /// Bits of Bloom filter an id
    #[arg(long, value_name = "N", default_value_t = 4)]
    pub filter: u32,
    /// Reads that direct has in flight
    #[arg(long, value_name = "N", default_value_t = 128)]
    pub depth: usize,
    /// Reads of 1 MiB that a thread of bl has in flight; the paper's has one
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub bl_depth: usize,
    /// The most bytes of a read of direct
    #[arg(long, value_name = "SIZE", default_value = "128K")]
    pub read: String,
    /// Memory that direct reads into
    #[arg(long, value_name = "REGION", default_value = "dram")]
    pub region: String,
    /// Seed of the lists
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
}

/// The flags, looked through.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) sweeps: Vec<Sweep>,
    pub(super) rounds: usize,
    pub(super) threads: usize,
    pub(super) short: u32,
    pub(super) long: u32,
    pub(super) common: f64,
    pub(super) filter: u32,
    pub(super) depth: usize,
    pub(super) bl_depth: usize,
    pub(super) read_bytes: usize,
    pub(super) region: RegionKind,
    pub(super) limit: usize,
    pub(super) seed: u64,
}

impl Flags {
    /// What is to be measured.
    ///
    /// # Errors
    /// If something cannot be.
    pub(super) fn settings(&self) -> Result<Settings> {
        let wrong = |what: String| Err(Error::Usage(what));
        let named = |name: &String| match Sweep::from_name(name) {
            Some(sweep) => Ok(sweep),
            None => Err(Error::Usage(format!("--sweep {name}: there are {}", Sweep::names()))),
        };
        let mut sweeps =
            self.sweep.iter().filter(|name| *name != "none").map(named).collect::<Result<Vec<_>>>()?;
        if self.sweep.is_empty() {
            sweeps = Sweep::ALL.iter().copied().filter(|sweep| *sweep != Sweep::Device).collect();
        }
        let (short, long) = if self.quick { (100, 100_000) } else { (10_000, 10_000_000) };
        let (short, long) = (self.short.unwrap_or(short), self.long.unwrap_or(long));
        if short == 0 || short > long || long > 1 << 30 {
            return wrong(format!("--short {short} --long {long}: lists have 1 to {} ids", 1 << 30));
        }
        if !(0.0..=100.0).contains(&self.common) {
            return wrong(format!("--common {}: a share is 0 to 100 percent", self.common));
        }
        for (flag, number, most) in [
            ("--threads", self.threads, Crew::THREADS_MAX),
            ("--depth", self.depth, EngineOptions::DEPTH_MAX),
            ("--bl-depth", self.bl_depth, 64),
            ("--rounds", self.rounds.unwrap_or(1), 1000),
            ("--limit", self.limit, 1 << 20),
        ] {
            if !(1..=most).contains(&number) {
                return wrong(format!("{flag} {number}: it is 1 to {most}"));
            }
        }
        let size = self.read.parse::<Size>().map_err(|error| Error::Usage(format!("--read: {error}")))?;
        let Size::Bytes(bytes) = size else {
            return wrong(format!("--read {}: it is a number of bytes", self.read));
        };
        if !bytes.is_power_of_two() || !(4096..=1 << 20).contains(&bytes) {
            return wrong(format!("--read {}: a read is a power of two from 4K to 1M", self.read));
        }
        Ok(Settings {
            sweeps,
            rounds: self.rounds.unwrap_or(if self.quick { 1 } else { 3 }),
            threads: self.threads,
            short,
            long,
            common: self.common / 100.0,
            filter: self.filter,
            depth: self.depth,
            bl_depth: self.bl_depth,
            read_bytes: bytes as usize,
            region: self.region.parse().map_err(|error| Error::Usage(format!("--region: {error}")))?,
            limit: self.limit,
            seed: self.seed,
        })
    }

    /// The flags as one types them. Of an absolute path only the last part is shown, for a report goes to others.
    pub(super) fn command(&self) -> String {
        let path = |path: &Path| match path.file_name() {
            Some(name) if path.is_absolute() => name.to_string_lossy().into_owned(),
            _ => path.to_string_lossy().into_owned(),
        };
        let mut words = vec!["tierdex-bench intersect".to_string()];
        words.extend(self.quick.then(|| "--quick".to_string()));
        for (flag, value) in [("--index", &self.index), ("--queries", &self.queries), ("--work", &self.work)]
        {
            words.extend(value.as_deref().map(|value| format!("{flag} {}", path(value))));
        }
        words.extend(self.index.as_ref().map(|_| format!("--limit {}", self.limit)));
        words.extend(self.sweep.iter().map(|name| format!("--sweep {name}")));
        words.extend(self.rounds.map(|rounds| format!("--rounds {rounds}")));
        words.push(format!("--threads {}", self.threads));
        words.extend(self.short.map(|short| format!("--short {short}")));
        words.extend(self.long.map(|long| format!("--long {long}")));
        words.push(format!("--common {} --filter {} --depth {}", self.common, self.filter, self.depth));
        words.push(format!("--bl-depth {} --read {} --region {}", self.bl_depth, self.read, self.region));
        words.push(format!("--seed {}", self.seed));
        words.extend(self.out.as_deref().map(|dir| format!("--out {}", path(dir))));
        words.join(" ")
    }
}
