//! The flags of the experiment.

use crate::cache::{device::Device, mode::CellMode};
use crate::cell::{QueryShape, QueryWorkload, TermClass, lookahead_text, parse_lookahead};
use crate::{Error, HeldIndexFlags, Result, command_line::published_path, counters::CounterSet};
use clap::{ArgAction, Args};
use std::{fmt::Display, path::Path, path::PathBuf};
use tierdex::io::{ReadKind, ReadOptions, RegionKind, Size};
use tierdex::{Bm25, internal::engine::MetaTier, limits::DEFAULT_B, limits::DEFAULT_K1};
use tierdex_thesis::{ListPolicy, Lookahead};

/// Flags of the experiment. The members of a LIST are separated by commas.
#[derive(Args, Clone, Debug)]
pub struct Flags {
    /// Directory of the index
    pub index: PathBuf,
    /// Write report.md, data.json and plots into this directory
    #[arg(long, value_name = "DIR", required_unless_present = "print_cells")]
    pub out: Option<PathBuf>,
    /// Print the cells, one line of JSON each, and measure none
    #[arg(long, conflicts_with = "out")]
    pub print_cells: bool,
    /// Modes: memory (the whole index in the region of --keep-in [default: dram], without a memory limit),
    /// base, base-prefetch, hybrid, hybrid-prefetch, direct
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "memory,base,base-prefetch,hybrid,hybrid-prefetch,direct"
    )]
    pub modes: Vec<CellMode>,
    /// Classes of terms by document frequency: H, M, L
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "H")]
    pub classes: Vec<TermClass>,
    /// Forms of queries: SINGLE (one term), AND, OR (two terms)
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "SINGLE,AND")]
    pub shapes: Vec<QueryShape>,
    /// Probabilities that a term is repeated, in percent, 0 to 99
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "25", value_parser = clap::value_parser!(u32).range(..=99))]
    pub repeats: Vec<u32>,
    /// Memory for postings, in percent of the bytes of all documents and frequencies of the index
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "5,10,20,30,50,100", value_parser = parse_percent)]
    pub sizes: Vec<Size>,
    /// Memory budget in bytes for everything but postings and regions; for base and base-prefetch without
    /// metadata
    #[arg(long, value_name = "BYTES", default_value = "50M", value_parser = parse_bytes)]
    pub dram: u64,
    /// Margin of the control group's memory limit over --dram, in percent of --dram
    #[arg(long, value_name = "PERCENT", default_value_t = 20)]
    pub slack: u64,
    /// Memory region of the cache: dram, hugetlb, numa:NODE, dax:PATH or file:PATH
    #[arg(long, value_name = "REGION", default_value = "hugetlb")]
    pub region: RegionKind,
    /// Memory of the index in mode memory.
    #[command(flatten)]
    pub held: HeldIndexFlags,
    /// Memory tier of terms, skip data and lengths: disk, terms (only terms in DRAM), dram, or a region
    /// [default: the region of the cache]
    #[arg(long, value_name = "TIER")]
    pub meta_tier: Option<MetaTier>,
    /// Segment sizes of the cache in bytes, powers of two from 4K to 1M
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "32K", value_parser = parse_bytes)]
    pub segments: Vec<u64>,
    /// Lookaheads: a number of queries, 1 to 1023, or adaptive; base-prefetch uses only the numbers, or 16
    /// if there is none
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "adaptive,16", value_parser = parse_lookahead)]
    pub lookahead: Vec<Lookahead>,
    /// Eviction policies of the cache: lru, s3-fifo, sieve, and window, which direct does not have
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "lru")]
    pub policies: Vec<ListPolicy>,
    /// Devices: ssd (the device of the index); sas, emulated by a throttle (793 MB/s); and hdd, emulated by a
    /// file system that delays reads by the seeks of a disk (FUSE)
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "ssd")]
    pub devices: Vec<Device>,
    /// I/O engine of the modes with a cache: auto, uring or pread; base and base-prefetch read by pread if it
    /// is pread, else mapped files
    #[arg(long, default_value = "auto")]
    pub io: ReadKind,
    /// Turn off the read-ahead of the system in base and base-prefetch
    #[arg(long)]
    pub no_readahead: bool,
    /// Set the read-ahead of the device to KB kilobytes during the run [default: unchanged]
    #[arg(long, value_name = "KB", conflicts_with_all = ["no_group", "no_readahead"])]
    pub read_ahead_kb: Option<u32>,
    /// Reads in flight, at most
    #[arg(long, default_value_t = 32)]
    pub depth: usize,
    /// Query threads; in mode memory each is pinned to a processor
    #[arg(long, default_value_t = 1)]
    pub threads: usize,
    /// Queries per cell; all are answered twice, and the second repetition is measured, in mode memory for a
    /// quarter of a second or longer
    #[arg(long, value_name = "N", default_value_t = 300)]
    pub count: usize,
    /// Hits per query
    #[arg(short, long, default_value_t = 1024)]
    pub k: usize,
    /// BM25 k1: saturation of the term frequency
    #[arg(long, default_value_t = DEFAULT_K1, allow_negative_numbers = true)]
    pub k1: f64,
    /// BM25 b: weight of the document length, 0 to 1
    #[arg(long, default_value_t = DEFAULT_B, allow_negative_numbers = true)]
    pub b: f64,
    /// Score every matching document, as the thesis does; false: prune
    #[arg(long, value_name = "BOOL", default_value_t = true, action = ArgAction::Set)]
    pub exhaustive: bool,
    /// Rounds; each measures every cell once, and medians are reported
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub rounds: usize,
    /// Seed of the queries
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Lookahead samples that are kept, most recent last: one per completed query, 0 for none
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub lookahead_samples: usize,
    /// Count events of the processor during the second repetition, and add their metrics to data.json: cache
    /// (instructions and misses of the last cache) or top-down
    #[arg(long, value_name = "SET")]
    pub counters: Option<CounterSet>,
    /// Run without control groups: no memory limit, and no peak memory in the report
    #[arg(long)]
    pub no_group: bool,
    /// Do not drop the system's page cache before each cell
    #[arg(long)]
    pub keep_caches: bool,
}

impl Flags {
    /// All workloads that the flags select.
    pub(super) fn workloads(&self) -> Vec<QueryWorkload> {
        let mut all = Vec::new();
        for &class in &self.classes {
            for &shape in &self.shapes {
                all.extend(self.repeats.iter().map(|&repeats| QueryWorkload { class, shape, repeats }));
            }
        }
        all
    }

    /// The memory tier of terms, skip data and lengths.
    pub(super) fn metadata_tier(&self) -> MetaTier {
        self.meta_tier.clone().unwrap_or_else(|| match &self.region {
            RegionKind::Dram => MetaTier::Dram,
            // The path names the file of the cache, so this tier gets a file of its own.
            RegionKind::Dax(path) => MetaTier::Region(RegionKind::Dax(path.with_added_extension("meta"))),
            RegionKind::File(path) => MetaTier::Region(RegionKind::File(path.with_added_extension("meta"))),
            other => MetaTier::Region(other.clone()),
        })
    }

    /// The memory regions that the selected modes allocate: of caches, metadata and a whole index.
    pub(super) fn regions(&self) -> Vec<&RegionKind> {
        let meta = self.meta_tier.iter().filter_map(|tier| match tier {
            MetaTier::Region(region) => Some(region),
            _ => None,
        });
        let cached = self.modes.iter().any(|mode| mode.has_cache()).then_some(&self.region);
        cached.into_iter().chain(meta).chain(&self.held.keep_in).collect()
    }

    /// Rejects invalid values and combinations.
    pub(super) fn check(&self) -> Result<()> {
        Bm25::new(self.k1, self.b).map_err(|error| Error::Usage(error.to_string()))?;
        let wrong = |what: &str| Err(Error::Usage(what.to_string()));
        if self.segments.iter().any(|bytes| !bytes.is_power_of_two() || !(4 << 10..=1 << 20).contains(bytes))
        {
            return wrong("--segments must be powers of two from 4K to 1M");
        }
        if !(1..=ReadOptions::DEPTH_MAX).contains(&self.depth) {
            return Err(Error::Usage(format!("--depth must be 1 to {}", ReadOptions::DEPTH_MAX)));
        }
        if self.threads == 0 || self.count == 0 || self.rounds == 0 || self.k == 0 {
            return wrong("--threads, --count, --rounds and -k must be 1 or more");
        }
        let looks_back = |policy: &ListPolicy| policy.page_policy().is_some();
        if self.modes.contains(&CellMode::Direct) && !self.policies.iter().any(looks_back) {
            return wrong(
                "--policies window is no policy of direct; name another too, or leave direct out of --modes",
            );
        }
        if self.held.is_given() && !self.modes.contains(&CellMode::Memory) {
            return wrong("--keep-in and --slow-tier are for the mode memory; name it in --modes");
        }
        if self.no_group && self.devices.contains(&Device::Sas) {
            return wrong("--devices sas is emulated by a control group; leave --no-group out");
        }
        Ok(())
    }

    /// The command line for reports.
    pub(super) fn command(&self) -> String {
        let mut words = vec![published_path(&self.index)];
        words.extend(self.out.as_deref().map(|out| format!("--out {}", published_path(out))));
        words.extend([
            format!("--modes {}", comma_list(&self.modes)),
            format!("--classes {}", comma_list(&self.classes)),
            format!("--shapes {}", comma_list(&self.shapes)),
            format!("--repeats {}", comma_list(&self.repeats)),
            format!("--sizes {}", comma_list(&self.sizes).replace('%', "")),
            format!("--dram {}", Size::Bytes(self.dram)),
            format!("--slack {}", self.slack),
            format!("--region {}", region_name(&self.region)),
            format!("--meta-tier {}", metadata_tier_name(&self.metadata_tier())),
            format!("--segments {}", comma_list(self.segments.iter().map(|bytes| Size::Bytes(*bytes)))),
            format!(
                "--lookahead {}",
                comma_list(self.lookahead.iter().map(|lookahead| lookahead_text(*lookahead)))
            ),
            format!("--policies {}", comma_list(&self.policies)),
            format!("--devices {}", comma_list(&self.devices)),
            format!("--io {} --depth {} --threads {}", self.io, self.depth, self.threads),
            format!("--count {} --k {} --exhaustive {}", self.count, self.k, self.exhaustive),
            format!("--k1 {} --b {}", self.k1, self.b),
            format!("--rounds {} --seed {}", self.rounds, self.seed),
        ]);
        words.extend(self.held.keep_in.as_ref().map(|region| format!("--keep-in {}", region_name(region))));
        words.extend(self.held.slow_tier.map(|delay| format!("--slow-tier {delay}")));
        words.extend(
            (self.lookahead_samples > 0).then(|| format!("--lookahead-samples {}", self.lookahead_samples)),
        );
        words.extend(self.counters.map(|set| format!("--counters {set}")));
        words.extend(self.read_ahead_kb.map(|kb| format!("--read-ahead-kb {kb}")));
        words.extend(self.no_readahead.then(|| "--no-readahead".to_string()));
        words.extend(self.no_group.then(|| "--no-group".to_string()));
        words.extend(self.keep_caches.then(|| "--keep-caches".to_string()));
        words.join(" ")
    }
}

/// The name of a region, without the directory of its file.
pub(super) fn region_name(region: &RegionKind) -> String {
    let last =
        |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    match region {
        RegionKind::Dax(path) => format!("dax:{}", last(path)),
        RegionKind::File(path) => format!("file:{}", last(path)),
        other => other.to_string(),
    }
}

/// The name of a memory tier, without the directory of its file.
pub(super) fn metadata_tier_name(tier: &MetaTier) -> String {
    match tier {
        MetaTier::Region(region) => region_name(region),
        other => other.to_string(),
    }
}

/// The members as text, separated by commas.
fn comma_list<T: Display>(members: impl IntoIterator<Item = T>) -> String {
    members.into_iter().map(|member| member.to_string()).collect::<Vec<_>>().join(",")
}

fn parse_bytes(text: &str) -> std::result::Result<u64, String> {
    match text.parse() {
        Ok(Size::Bytes(bytes)) => Ok(bytes),
        _ => Err(format!(
            "`{text}` is not a size; write a number of bytes, or a number followed by K, M, G or T"
        )),
    }
}

/// Parses a share in percent: `5` or `5%`.
fn parse_percent(text: &str) -> std::result::Result<Size, String> {
    let parsed = format!("{}%", text.trim_end_matches('%')).parse();
    parsed.map_err(|_| format!("`{text}` is not a share of the index; write a percentage such as 5 or 0.5"))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::parse_flags;

    /// The flags of a command line, after the index and the output directory.
    pub(in crate::cache) fn parse_line(line: &str) -> Flags {
        let words = ["bench", "a/index", "--out", "out"].into_iter().chain(line.split_whitespace());
        parse_flags(words).unwrap()
    }

    #[test]
    fn lists_have_defaults() {
        let flags = parse_line("");
        assert_eq!(
            (flags.modes.len(), flags.sizes.len(), flags.lookahead.len(), flags.dram, flags.exhaustive),
            (6, 6, 2, 50 << 20, true)
        );
        assert_eq!((flags.metadata_tier().to_string(), flags.shapes.len()), ("hugetlb".to_string(), 2));
        assert!(flags.check().is_ok());
    }

    #[test]
    fn a_command_shows_no_absolute_path() {
        let mut flags = parse_line("--sizes 0.5,20% --region file:/dev/shm/cache --no-group");
        flags.index = "/a/b/index".into();
        let command = flags.command();
        assert!(command.starts_with("index --out out --modes memory,base,"), "{command}");
        assert!(command.contains(" --sizes 0.50,20 ") && command.contains(" --out out "), "{command}");
        assert!(command.ends_with(" --no-group"), "{command}");
        assert!(
            command.contains("--region file:cache --meta-tier file:cache.meta") && !command.contains('\n')
        );
    }

    #[test]
    fn invalid_flags_are_rejected() {
        let wrong = [
            ("--segments 5000", "--segments"),
            ("--depth 0", "--depth"),
            ("--count 0", "--count"),
            ("--b 1.5", "b is 1.5"),
            ("--modes direct,hybrid --policies window", "--policies window"),
            ("--modes base --slow-tier 300", "memory"),
            ("--no-group --devices sas", "emulated"),
        ];
        for (line, words) in wrong {
            let result = parse_line(line).check();
            assert!(matches!(&result, Err(Error::Usage(message)) if message.contains(words)), "{line}");
        }
        assert!(parse_percent("x").is_err() && parse_percent("0").is_err() && parse_bytes("5%").is_err());
    }
}
