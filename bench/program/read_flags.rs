//! Flags of read modes and caches, for experiments with the designs of the APCache thesis.

use clap::Args;
use tierdex::cache::{Lookahead, PolicyKind};
use tierdex::engine::{ExecutorOptions, MetaTier, Mode};
use tierdex::io::{EngineKind, EngineOptions};
use tierdex_cli::failure::{Failure, Outcome};
use tierdex_cli::memory_flags::{MemoryFlags, bytes};
use tierdex_cli::values::{ENGINES, MODES, POLICIES, one_of};

/// Maximum number of queries that are prefetched.
const LOOKAHEAD_MAX: u64 = 1023;

#[derive(Args)]
pub struct ReadFlags {
    /// Read mode: base (through the page cache of the system), base-prefetch (the same, with a thread that
    /// reads ahead), hybrid (a cache of whole posting lists, filled after misses), hybrid-prefetch (the
    /// same, filled ahead of the queries), direct (a cache of pages that are read with direct I/O while
    /// other queries are evaluated) [default: direct]
    #[arg(long, value_parser = one_of::<Mode>(MODES))]
    mode: Option<Mode>,
    /// Memory tier of dictionary, skip data and norms: disk (norms in DRAM), terms (dictionary and norms in
    /// DRAM, skip data on disk), dram, or a region as in --cache [default: the first of dram, terms and disk
    /// that fits into --dram]
    #[arg(long, value_name = "TIER")]
    meta_tier: Option<MetaTier>,
    /// I/O engine [default: auto, the fastest that is available; mmap in base and base-prefetch, which accept
    /// mmap and pread]
    #[arg(long, value_parser = one_of::<EngineKind>(ENGINES))]
    io: Option<EngineKind>,
    /// Turn off the read-ahead of the system in base and base-prefetch; the other modes that prefetch have
    /// none
    #[arg(long)]
    no_readahead: bool,
    /// Maximum number of reads in flight [default: 32]
    #[arg(long)]
    depth: Option<usize>,
    /// Eviction policy; window spares posting lists that queued queries need [default: s3-fifo]
    #[arg(long, value_parser = one_of::<PolicyKind>(POLICIES))]
    policy: Option<PolicyKind>,
    /// Lookahead: number of queries that are prefetched, 1 to 1023, or adaptive: as many as fit into the
    /// cache (16 in base-prefetch) [default: adaptive]
    #[arg(long, value_parser = lookahead)]
    lookahead: Option<Lookahead>,
    /// Size of a cell of the cache in the modes hybrid and hybrid-prefetch, in bytes: a power of two from 4K
    /// to 1M [default: 32K]
    #[arg(long, value_parser = bytes)]
    segment: Option<u64>,
}

impl ReadFlags {
    /// Whether no flag is given.
    pub fn is_default(&self) -> bool {
        let ReadFlags { mode, meta_tier, io, no_readahead, depth, policy, lookahead, segment } = self;
        let cache_flags = depth.is_some() || policy.is_some() || lookahead.is_some() || segment.is_some();
        !(mode.is_some() || meta_tier.is_some() || io.is_some() || *no_readahead || cache_flags)
    }

    /// The memory tier of dictionary, skip data and norms, if one is given.
    pub fn meta_tier(&self) -> Option<MetaTier> {
        self.meta_tier.clone()
    }

    /// Executor options from the flags, with `defaults` where no flag is given.
    pub fn options(&self, memory: &MemoryFlags, defaults: ExecutorOptions) -> Outcome<ExecutorOptions> {
        let mode = self.mode.unwrap_or(defaults.mode);
        let segment = self.segment.unwrap_or(defaults.list_cell_bytes as u64);
        let depth = self.depth.unwrap_or(defaults.engine.depth);
        self.check(memory, mode, (segment, depth), defaults.lookahead_samples > 0).map_err(Failure::Usage)?;
        let default = if mode.has_cache() { EngineKind::Auto } else { EngineKind::Mmap };
        let engine = EngineOptions { kind: self.io.unwrap_or(default), depth, direct: mode == Mode::Direct };
        Ok(ExecutorOptions {
            mode,
            list_cell_bytes: segment as usize,
            policy: self.policy.unwrap_or(defaults.policy),
            lookahead: self.lookahead.unwrap_or(defaults.lookahead),
            engine,
            kernel_readahead: !self.no_readahead,
            ..defaults
        })
    }

    fn check(
        &self,
        memory: &MemoryFlags,
        mode: Mode,
        (segment, depth): (u64, usize),
        logs_lookahead: bool,
    ) -> Result<(), String> {
        if !segment.is_power_of_two() || !(4 << 10..=1 << 20).contains(&segment) {
            return Err("--segment must be a power of two from 4K to 1M".to_string());
        }
        if !(1..=EngineOptions::DEPTH_MAX).contains(&depth) {
            return Err(format!("--depth must be from 1 to {}", EngineOptions::DEPTH_MAX));
        }
        if mode == Mode::Direct && self.io == Some(EngineKind::Mmap) {
            return Err(
                "--io mmap cannot bypass the page cache; use it with --mode hybrid-prefetch".to_string()
            );
        }
        if mode == Mode::Direct && self.segment.is_some() {
            return Err("--mode direct has cells of 4 KiB; omit --segment".to_string());
        }
        let needs_cache = [
            ("--cache", memory.cache.is_some()),
            ("--policy", self.policy.is_some()),
            ("--segment", self.segment.is_some()),
            ("--depth", self.depth.is_some()),
        ];
        if let Some((flag, _)) = needs_cache.iter().find(|(_, given)| *given && !mode.has_cache()) {
            return Err(format!(
                "--mode {mode} has no cache; omit {flag}, or use another mode, such as direct"
            ));
        }
        let needs_prefetch = [("--lookahead", self.lookahead.is_some()), ("--lookahead-log", logs_lookahead)];
        let prefetches = matches!(mode, Mode::BasePrefetch | Mode::HybridPrefetch);
        if let Some((flag, _)) = needs_prefetch.iter().find(|(_, given)| *given && !prefetches) {
            return Err(format!(
                "--mode {mode} does not prefetch; omit {flag}, or use another mode, such as hybrid-prefetch"
            ));
        }
        if mode.has_cache() && self.no_readahead {
            return Err(format!(
                "--mode {mode} does not use the read-ahead of the system; omit --no-readahead"
            ));
        }
        if !mode.has_cache() && self.io.is_some_and(|io| !matches!(io, EngineKind::Mmap | EngineKind::Pread))
        {
            return Err(format!(
                "--mode {mode} reads with mmap or pread through the page cache only; omit --io"
            ));
        }
        Ok(())
    }
}

/// The error for flags of a held index beside flags of a cache.
pub fn held_or_cached() -> Failure {
    let why = "--keep-in and --slow-tier hold the whole index in memory; omit them, or omit --dram, --cache and the \
               flags of read modes";
    Failure::Usage(why.to_string())
}

fn lookahead(text: &str) -> Result<Lookahead, String> {
    if text == "adaptive" {
        return Ok(Lookahead::Adaptive);
    }
    let queries = text.parse().ok().filter(|queries| (1..=LOOKAHEAD_MAX).contains(queries));
    queries
        .map(Lookahead::Queries)
        .ok_or_else(|| format!("expected adaptive, or a number of queries from 1 to {LOOKAHEAD_MAX}"))
}
