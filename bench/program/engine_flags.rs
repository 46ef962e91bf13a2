//! Flags of an engine, for experiments.

use clap::{Args, builder::RangedU64ValueParser};
use tierdex::internal::{cache::PolicyKind, engine::MetaTier};
use tierdex::{EngineOptions, io::ReadKind, io::ReadOptions};
use tierdex_cli::{memory_flags::MemoryFlags, values::one_of};

/// Names of [`PolicyKind`].
const POLICY_NAMES: &[&str] = &["lru", "s3-fifo", "sieve"];

/// Names of [`ReadKind`].
const READ_KIND_NAMES: &[&str] = &["auto", "uring", "pread"];

/// Default of `--depth`.
const DEFAULT_DEPTH: usize = 32;

#[derive(Args)]
pub struct EngineFlags {
    #[command(flatten)]
    memory: MemoryFlags,
    /// Memory tier of dictionary, skip data and norms: disk (norms in DRAM), terms (dictionary and norms in
    /// DRAM, skip data on disk), dram, or a region as in --cache [default: the first of dram, terms and disk
    /// that fits into --dram]
    #[arg(long, value_name = "TIER")]
    meta_tier: Option<MetaTier>,
    /// I/O engine [default: auto, the fastest that is available]
    #[arg(long, value_parser = one_of::<ReadKind>(READ_KIND_NAMES))]
    io: Option<ReadKind>,
    /// Maximum number of reads in flight [default: 32]
    #[arg(long, value_parser = RangedU64ValueParser::<usize>::new().range(1..=ReadOptions::DEPTH_MAX as u64))]
    depth: Option<usize>,
    /// Eviction policy [default: s3-fifo]
    #[arg(long, value_parser = one_of::<PolicyKind>(POLICY_NAMES))]
    policy: Option<PolicyKind>,
}

impl EngineFlags {
    /// Whether no flag is given.
    pub fn is_default(&self) -> bool {
        let EngineFlags { memory, meta_tier, io, depth, policy } = self;
        let reads = meta_tier.is_none() && io.is_none() && depth.is_none() && policy.is_none();
        reads && memory.is_default()
    }

    /// `defaults` with the flags.
    pub fn options(&self, defaults: EngineOptions) -> EngineOptions {
        let mut options = self.memory.options(defaults.previews(false));
        options = options.reads(self.io.unwrap_or(ReadKind::Auto), self.depth.unwrap_or(DEFAULT_DEPTH));
        if let Some(tier) = &self.meta_tier {
            options = options.meta_tier(tier.clone());
        }
        match self.policy {
            Some(policy) => options.policy(policy),
            None => options,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_contain_all_names_and_every_name_parses() {
        assert_eq!(PolicyKind::ALL.map(|policy| policy.to_string()), *POLICY_NAMES);
        for name in READ_KIND_NAMES {
            assert_eq!(name.parse::<ReadKind>().unwrap().to_string(), *name);
        }
    }
}
