//! The flags of the experiment.

use crate::{Error, Result};
use clap::Args;
use std::path::PathBuf;
use tierdex::codec::Kernel;

/// Flags of the experiment.
#[derive(Args, Clone, Debug, Default)]
pub struct Flags {
    /// Less data and fewer rounds: less than a minute instead of several minutes
    #[arg(long)]
    pub quick: bool,
    /// Also measure the lists of this index: those of every term with at least 256 documents
    #[arg(long, value_name = "DIR")]
    pub index: Option<PathBuf>,
    /// Measure only this codec; can be repeated [default: all]
    #[arg(long, value_name = "NAME")]
    pub codec: Vec<String>,
    /// Measure only this kernel; can be repeated [default: that of TIERDEX_KERNEL, or all that the CPU
    /// supports]
    #[arg(long, value_name = "NAME")]
    pub kernel: Vec<String>,
    /// Measure only lists in which VByte encodes this percentage of differences in one byte and the others in
    /// two, in random order
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u32).range(0..=100), conflicts_with = "index")]
    pub one_byte: Option<u32>,
    /// A row for each dataset, in place of one for each length class of its lists
    #[arg(long)]
    pub sums: bool,
    /// Seed of the generated data
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
}

impl Flags {
    /// The selected kernels, slowest first.
    ///
    /// # Errors
    /// If a name is unknown or the CPU does not support the kernel.
    pub fn kernels(&self) -> Result<Vec<Kernel>> {
        for name in &self.kernel {
            Kernel::from_name(name).map_err(|error| Error::Usage(error.to_string()))?;
        }
        let forced = Kernel::forced().map_err(|error| Error::Usage(format!("TIERDEX_KERNEL: {error}")))?;
        let selected = |kernel: &Kernel| match forced {
            _ if !self.kernel.is_empty() => self.kernel.iter().any(|name| name == kernel.name()),
            Some(forced) => forced == *kernel,
            None => true,
        };
        Ok(Kernel::available().into_iter().filter(selected).collect())
    }

    /// Whether a codec is selected.
    pub(super) fn selects(&self, codec: &str) -> bool {
        self.codec.is_empty() || self.codec.iter().any(|name| name == codec)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_kernel_is_a_usage_error() {
        let flags = Flags { kernel: vec!["mmx".into()], ..Flags::default() };
        assert!(matches!(flags.kernels(), Err(Error::Usage(message)) if message.contains("mmx")));
        assert_eq!(Flags::default().kernels().unwrap().len(), Kernel::available().len());
    }
}
