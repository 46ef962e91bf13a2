//! The flags of the command.

use crate::{paper::scale::Scale, slow_tier::ReadDelay};
use clap::Args;
use std::path::PathBuf;
use tierdex::io::RegionKind;

/// Flags of the command.
#[derive(Args, Clone, Debug)]
pub struct Flags {
    /// Tables and figures: a name of --list such as apcache/fig-8.3, a paper such as apcache, or all
    #[arg(value_name = "NAME", required_unless_present = "list")]
    pub names: Vec<String>,
    /// List all tables and figures, and why some cannot be made
    #[arg(long)]
    pub list: bool,
    /// Amount of data and of measurements
    #[arg(long, value_enum, required_unless_present = "list")]
    pub scale: Option<Scale>,
    /// Directory for results: a directory for each scale, with summary.md, a directory for each figure, and
    /// the finished cells, from which an interrupted run continues
    #[arg(long, value_name = "DIR", default_value = "paper-results")]
    pub out: PathBuf,
    /// Directory for generated indexes, which later runs use again [default: data in the directory of --out]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Memory region of caches: dram, hugetlb, numa:NODE, dax:PATH or file:PATH
    #[arg(long, value_name = "REGION", default_value = "hugetlb")]
    pub region: RegionKind,
    /// Memory region of the second tier, for the figures that compare one with DRAM
    #[arg(long, value_name = "REGION")]
    pub tier: Option<RegionKind>,
    /// Simulate instructions and cache misses by valgrind in place of performance counters, in the figures
    /// that need these
    #[arg(long)]
    pub callgrind: bool,
    /// Emulate the second tier for indexes that are held in memory, in DRAM or in the region of --tier: lines
    /// of 256 bytes arrive NS nanoseconds later (four are in flight if they are read in order), and all reads
    /// together have at most GBPS GB/s
    #[arg(long, value_name = "NS[,GBPS]")]
    pub slow_tier: Option<ReadDelay>,
    /// Run without control groups, and keep the system's page cache: cells that need a memory limit or an
    /// emulated device are not measured
    #[arg(long)]
    pub no_group: bool,
}

impl Flags {
    /// The directory of the generated indexes.
    pub(super) fn data_dir(&self) -> PathBuf {
        self.data.clone().unwrap_or_else(|| self.out.join("data"))
    }
}
