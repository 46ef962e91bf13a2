//! The flags of the experiment.

use crate::intersect::settings::{Settings, Sweep};
use crate::{Error, Result, intersection::ReaderThreads};
use clap::Args;
use std::path::PathBuf;
use tierdex::{StopSignal, io::ReadOptions, io::Size};

/// Flags of the experiment.
#[derive(Args, Clone, Debug)]
pub struct Flags {
    /// Lists of a hundredth of the size: one or two seconds
    #[arg(long)]
    pub quick: bool,
    /// Directory for the list files, which are removed at the end [default: the system's directory for
    /// temporary files]
    #[arg(long, value_name = "DIR")]
    pub work: Option<PathBuf>,
    /// Also measure the queries of --queries over the lists of this index
    #[arg(long, value_name = "DIR", requires = "queries")]
    pub index: Option<PathBuf>,
    /// File of queries, one per line: words, or an id, a tab and words; a query is the conjunction of its
    /// terms
    #[arg(long, value_name = "FILE", requires = "index")]
    pub queries: Option<PathBuf>,
    /// Largest number of queries, taken at even distances from the file
    #[arg(long, value_name = "N", default_value_t = 300)]
    pub limit: usize,
    /// Sweep: threads, ratio, intersection, lists, codec, depth, memory or none; can be repeated [default:
    /// all]
    #[arg(long, value_name = "NAME")]
    pub sweep: Vec<String>,
    /// Read as from a hard disk, which is emulated by a file system that delays reads by seeks (FUSE; needs
    /// root)
    #[arg(long)]
    pub hdd: bool,
    /// Threads of bl, sl, zz and bf
    #[arg(long, value_name = "N", default_value_t = 32)]
    pub threads: usize,
    /// Ids of the shorter list [default: 10000; 100 with --quick]
    #[arg(long, value_name = "N")]
    pub short: Option<u32>,
    /// Ids of the longer list [default: 10000000; 100000 with --quick]
    #[arg(long, value_name = "N")]
    pub long: Option<u32>,
    /// Ids that are in both lists, in percent of the shorter list
    #[arg(long, value_name = "P", default_value_t = 1.0)]
    pub common: f64,
    /// Bits of Bloom filter per id, 0 for no filters
    #[arg(long, value_name = "N", default_value_t = 4)]
    pub filter: u32,
    /// Reads in flight of direct [default: 128; 16 with --hdd]
    #[arg(long, value_name = "N")]
    pub depth: Option<usize>,
    /// Reads of 1 MiB in flight per thread of bl; the paper has one
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub bl_depth: usize,
    /// Largest read of direct in bytes, a power of two from 4K to 1M [default: 128K; 1M with --hdd]
    #[arg(long, value_name = "SIZE")]
    pub read: Option<String>,
    /// Memory region that direct reads into: dram, hugetlb, numa:NODE, dax:PATH or file:PATH
    #[arg(long, value_name = "REGION", default_value = "dram")]
    pub region: String,
    /// Seed of the generated lists
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
}

impl Flags {
    /// Parses and checks the flags.
    ///
    /// # Errors
    /// If a value is invalid.
    pub(super) fn settings(&self) -> Result<Settings> {
        let wrong = |message: String| Err(Error::Usage(message));
        let named = |name: &String| match Sweep::from_name(name) {
            Some(sweep) => Ok(sweep),
            None => Err(Error::Usage(format!("--sweep {name}: unknown sweep; there are {}", Sweep::names()))),
        };
        let mut sweeps =
            self.sweep.iter().filter(|name| *name != "none").map(named).collect::<Result<Vec<_>>>()?;
        if self.sweep.is_empty() {
            sweeps = Sweep::ALL.to_vec();
        }
        let (short, long) = if self.quick { (100, 100_000) } else { (10_000, 10_000_000) };
        let (short, long) = (self.short.unwrap_or(short), self.long.unwrap_or(long));
        if short == 0 || short > long || long > 1 << 30 {
            return wrong(format!("--short {short} --long {long}: lists have 1 to {} ids", 1 << 30));
        }
        if !(0.0..=100.0).contains(&self.common) {
            return wrong(format!("--common {}: must be 0 to 100 percent", self.common));
        }
        for (flag, number, most) in [
            ("--threads", self.threads, ReaderThreads::THREADS_MAX),
            ("--depth", self.depth(), ReadOptions::DEPTH_MAX),
            ("--bl-depth", self.bl_depth, 64),
            ("--limit", self.limit, 1 << 20),
        ] {
            if !(1..=most).contains(&number) {
                return wrong(format!("{flag} {number}: must be 1 to {most}"));
            }
        }
        let read = self.read();
        let size = read.parse::<Size>().map_err(|error| Error::Usage(format!("--read: {error}")))?;
        let Size::Bytes(bytes) = size else {
            return wrong(format!("--read {read}: must be a number of bytes"));
        };
        if !bytes.is_power_of_two() || !(4096..=1 << 20).contains(&bytes) {
            return wrong(format!("--read {read}: must be a power of two from 4K to 1M"));
        }
        Ok(Settings {
            sweeps,
            threads: self.threads,
            short,
            long,
            common: self.common / 100.0,
            filter: self.filter,
            hdd: self.hdd,
            depth: self.depth(),
            bl_depth: self.bl_depth,
            read_bytes: bytes as usize,
            region: self.region.parse().map_err(|error| Error::Usage(format!("--region: {error}")))?,
            limit: self.limit,
            seed: self.seed,
            stop: StopSignal::default(),
        })
    }

    /// Reads in flight of direct.
    fn depth(&self) -> usize {
        self.depth.unwrap_or(if self.hdd { 16 } else { 128 })
    }

    /// Largest read of direct, as the flag writes it. On a hard disk it is as large as a read of bl.
    fn read(&self) -> &str {
        self.read.as_deref().unwrap_or(if self.hdd { "1M" } else { "128K" })
    }
}
