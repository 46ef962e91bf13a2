//! The flags of the experiment, for whichever program runs it.

use super::cell::{Contender, Device, read_lookahead, show_lookahead};
use super::queries::{Class, Shape};
use crate::{Error, Result};
use clap::{ArgAction, Args};
use std::fmt::Display;
use std::path::{Path, PathBuf};
use tierdex::cache::{Lookahead, PolicyKind};
use tierdex::engine::MetaTier;
use tierdex::io::{EngineKind, EngineOptions, RegionKind, Size};

/// What to measure, on which index, and where the report goes. Lists have commas between their members.
#[derive(Args, Clone, Debug)]
pub struct Flags {
    /// Directory of the index
    pub index: PathBuf,
    /// Write report.md, data.json and plots into this directory
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Who answers: memory (an index wholly in memory, under no limit), base, base-prefetch, hybrid, hybrid-prefetch, direct
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "memory,base,base-prefetch,hybrid,hybrid-prefetch,direct"
    )]
    pub modes: Vec<Contender>,
    /// Terms by document frequency: H, M, L
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "H")]
    pub classes: Vec<Class>,
    /// Queries: SINGLE, AND, OR; the latter of two terms
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "SINGLE,AND")]
    pub shapes: Vec<Shape>,
    /// Repetition probabilities of terms in percent
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "25", value_parser = clap::value_parser!(u32).range(..=99))]
    pub repeats: Vec<u32>,
    /// Memory for postings, in percent of all documents and frequencies of the index
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "5,10,20,30,50,100", value_parser = part)]
    pub sizes: Vec<Size>,
    /// Bytes of ordinary memory for all but postings and regions
    #[arg(long, value_name = "BYTES", default_value = "50M", value_parser = bytes)]
    pub dram: u64,
    /// The limit of the memory control group is so many percent more than that
    #[arg(long, value_name = "PERCENT", default_value_t = 20)]
    pub slack: u64,
    /// Memory of the cache: dram, hugetlb, numa:NODE, dax:PATH or file:PATH
    #[arg(long, value_name = "REGION", default_value = "hugetlb")]
    pub region: RegionKind,
    /// Where terms, skip data and lengths live: disk, terms (these in ordinary memory), dram, or a region [default: the region of the cache]
    #[arg(long, value_name = "TIER")]
    pub meta_tier: Option<MetaTier>,
    /// Bytes of a segment of the cache, 4K to 1M
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "32K", value_parser = bytes)]
    pub segments: Vec<u64>,
    /// Queries that are fetched ahead, or adaptive; base-prefetch takes the numbers only, and 16 if there is none
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "adaptive,16", value_parser = read_lookahead)]
    pub lookahead: Vec<Lookahead>,
    /// Which lists give way in the cache: lru, s3-fifo, sieve, window
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "lru")]
    pub policies: Vec<PolicyKind>,
    /// Where the index is: ssd (the device that it is on), and as slow as sas (793 MB/s) and hdd (120 reads and 181 MB/s) by
    /// a throttle
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "ssd")]
    pub devices: Vec<Device>,
    /// How files are read in modes with a cache: auto, uring, pread or mmap
    #[arg(long, default_value = "auto")]
    pub io: EngineKind,
    /// Reads on their way at a time
    #[arg(long, default_value_t = 32)]
    pub depth: usize,
    /// Threads that answer
    #[arg(long, default_value_t = 1)]
    pub threads: usize,
    /// Queries of a cell; each is answered twice, and measured the second time
    #[arg(long, value_name = "N", default_value_t = 300)]
    pub count: usize,
    /// Hits of a query
    #[arg(short, long, default_value_t = 1024)]
    pub k: usize,
    /// Score every matching document, as the thesis does; false: pass over those that cannot be among the best
    #[arg(long, value_name = "BOOL", default_value_t = true, action = ArgAction::Set)]
    pub exhaustive: bool,
    /// How often each cell is measured, all others in between; medians are reported
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub rounds: usize,
    /// Seed of the queries
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Note how many queries ahead lists were fetched, each time a query ended: the last so many
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub lookahead_samples: usize,
    /// Do without control groups: no limit of memory, and no peak of it
    #[arg(long)]
    pub no_group: bool,
    /// Leave the system's page cache as it is before a cell
    #[arg(long)]
    pub keep_caches: bool,
}

impl Flags {
    /// Where terms, skip data and lengths live.
    pub(super) fn meta(&self) -> MetaTier {
        self.meta_tier.clone().unwrap_or_else(|| match &self.region {
            RegionKind::Dram => MetaTier::Dram,
            // A path is of one file.
            RegionKind::Dax(path) => MetaTier::Region(RegionKind::Dax(path.with_added_extension("meta"))),
            RegionKind::File(path) => MetaTier::Region(RegionKind::File(path.with_added_extension("meta"))),
            other => MetaTier::Region(other.clone()),
        })
    }

    /// Refuses what cannot be measured.
    pub(super) fn check(&self) -> Result<()> {
        let wrong = |what: &str| Err(Error::Usage(what.to_string()));
        if self.segments.iter().any(|bytes| !bytes.is_power_of_two() || !(4 << 10..=1 << 20).contains(bytes))
        {
            return wrong("--segments must be powers of two from 4K to 1M");
        }
        if !(1..=EngineOptions::DEPTH_MAX).contains(&self.depth) {
            return Err(Error::Usage(format!("--depth must be 1 to {}", EngineOptions::DEPTH_MAX)));
        }
        if self.threads == 0 || self.count == 0 || self.rounds == 0 || self.k == 0 {
            return wrong("--threads, --count, --rounds and -k must be 1 or more");
        }
        if self.io == EngineKind::Mmap && self.modes.iter().any(|mode| mode.to_string() == "direct") {
            return wrong("--io mmap cannot read past the page cache; leave direct out of --modes");
        }
        if self.no_group && self.devices.iter().any(|device| *device != Device::Ssd) {
            return wrong("--devices sas and hdd are emulated by control groups; leave --no-group out");
        }
        Ok(())
    }

    /// The flags as one types them. Of an absolute path only the last part is shown, for a report goes to others.
    pub(super) fn command(&self) -> String {
        let path = |path: &Path| match path.file_name() {
            Some(name) if path.is_absolute() => name.to_string_lossy().into_owned(),
            _ => path.to_string_lossy().into_owned(),
        };
        let mut words = vec![
            path(&self.index),
            format!("--out {}", path(&self.out)),
            format!("--modes {}", list(&self.modes)),
            format!("--classes {}", list(&self.classes)),
            format!("--shapes {}", list(&self.shapes)),
            format!("--repeats {}", list(&self.repeats)),
            format!("--sizes {}", list(&self.sizes).replace('%', "")),
            format!("--dram {}", Size::Bytes(self.dram)),
            format!("--slack {}", self.slack),
            format!("--region {}", name(&self.region)),
            format!("--meta-tier {}", meta_name(&self.meta())),
            format!("--segments {}", list(self.segments.iter().map(|bytes| Size::Bytes(*bytes)))),
            format!("--lookahead {}", list(self.lookahead.iter().map(|some| show_lookahead(*some)))),
            format!("--policies {}", list(&self.policies)),
            format!("--devices {}", list(&self.devices)),
            format!("--io {} --depth {} --threads {}", self.io, self.depth, self.threads),
            format!("--count {} --k {} --exhaustive {}", self.count, self.k, self.exhaustive),
            format!("--rounds {} --seed {}", self.rounds, self.seed),
        ];
        words.extend(
            (self.lookahead_samples > 0).then(|| format!("--lookahead-samples {}", self.lookahead_samples)),
        );
        words.extend(self.no_group.then(|| "--no-group".to_string()));
        words.extend(self.keep_caches.then(|| "--keep-caches".to_string()));
        words.join(" ")
    }
}

/// A region without the folder of its file.
pub(super) fn name(region: &RegionKind) -> String {
    let last =
        |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    match region {
        RegionKind::Dax(path) => format!("dax:{}", last(path)),
        RegionKind::File(path) => format!("file:{}", last(path)),
        other => other.to_string(),
    }
}

/// The same of a place of terms and skip data.
pub(super) fn meta_name(tier: &MetaTier) -> String {
    match tier {
        MetaTier::Region(region) => name(region),
        other => other.to_string(),
    }
}

/// Members with commas between them.
fn list<T: Display>(members: impl IntoIterator<Item = T>) -> String {
    members.into_iter().map(|member| member.to_string()).collect::<Vec<_>>().join(",")
}

fn bytes(text: &str) -> std::result::Result<u64, String> {
    match text.parse() {
        Ok(Size::Bytes(bytes)) => Ok(bytes),
        _ => Err(format!("`{text}` is not a size; write bytes, or a number with K, M, G or T behind it")),
    }
}

/// A part in percent, `5` or `5%`.
fn part(text: &str) -> std::result::Result<Size, String> {
    let parsed = format!("{}%", text.trim_end_matches('%')).parse();
    parsed.map_err(|_| format!("`{text}` is no part of the index; write percent such as 5 or 0.5"))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        flags: Flags,
    }

    /// The flags of such a line, beside the index and the place of the output.
    pub(in crate::cache) fn flags(line: &str) -> Flags {
        let words = ["bench", "a/index", "--out", "out"].into_iter().chain(line.split_whitespace());
        Line::try_parse_from(words).unwrap().flags
    }

    #[test]
    fn lists_have_their_defaults() {
        let flags = flags("");
        assert_eq!(
            (flags.modes.len(), flags.sizes.len(), flags.lookahead.len(), flags.dram, flags.exhaustive),
            (6, 6, 2, 50 << 20, true)
        );
        assert_eq!((flags.meta().to_string(), flags.shapes.len()), ("hugetlb".to_string(), 2));
        assert!(flags.check().is_ok());
    }

    #[test]
    fn a_command_shows_no_absolute_path() {
        let mut flags = flags("--sizes 0.5,20% --region file:/dev/shm/cache --no-group");
        flags.index = "/a/b/index".into();
        let command = flags.command();
        assert!(command.starts_with("index --out out --modes memory,base,"), "{command}");
        assert!(command.contains(" --sizes 0.50,20 ") && command.ends_with(" --no-group"), "{command}");
        assert!(
            command.contains("--region file:cache --meta-tier file:cache.meta") && !command.contains('\n')
        );
    }

    #[test]
    fn what_cannot_be_measured_is_refused() {
        let wrong = [
            ("--segments 5000", "--segments"),
            ("--depth 0", "--depth"),
            ("--count 0", "--count"),
            ("--io mmap", "--io mmap"),
            ("--no-group --devices hdd", "emulated"),
        ];
        for (line, words) in wrong {
            let refused = flags(line).check();
            assert!(matches!(&refused, Err(Error::Usage(message)) if message.contains(words)), "{line}");
        }
        assert!(part("x").is_err() && part("0").is_err() && bytes("5%").is_err());
    }
}
