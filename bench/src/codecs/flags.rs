//! The flags of the experiment, for whichever program runs it.

use crate::{Error, Result};
use clap::Args;
use std::path::{Path, PathBuf};
use tierdex::codec::Kernel;

/// What to measure, and where the report goes.
#[derive(Args, Clone, Debug, Default)]
pub struct Flags {
    /// Less data and fewer rounds: under a minute instead of several
    #[arg(long)]
    pub quick: bool,
    /// Measure also the lists of this index: every term in at least 256 documents
    #[arg(long, value_name = "DIR")]
    pub index: Option<PathBuf>,
    /// Write report.md, data.json and codecs.svg into this directory
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Measure only this codec; may be given several times [default: all]
    #[arg(long, value_name = "NAME")]
    pub codec: Vec<String>,
    /// Measure only this kernel; may be given several times [default: the one that TIERDEX_KERNEL names, or all that the CPU can run]
    #[arg(long, value_name = "NAME")]
    pub kernel: Vec<String>,
    /// Seed of the generated data
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
}

impl Flags {
    /// The kernels that are wanted, the slowest first.
    ///
    /// # Errors
    /// If one has no such name or the CPU cannot run it.
    pub fn kernels(&self) -> Result<Vec<Kernel>> {
        for name in &self.kernel {
            Kernel::from_name(name).map_err(|error| Error::Usage(error.to_string()))?;
        }
        let forced = Kernel::forced().map_err(|error| Error::Usage(format!("TIERDEX_KERNEL: {error}")))?;
        let wanted = |kernel: &Kernel| match forced {
            _ if !self.kernel.is_empty() => self.kernel.iter().any(|name| name == kernel.name()),
            Some(forced) => forced == *kernel,
            None => true,
        };
        Ok(Kernel::available().into_iter().filter(wanted).collect())
    }

    /// Whether a codec is wanted.
    pub(super) fn wants(&self, codec: &str) -> bool {
        self.codec.is_empty() || self.codec.iter().any(|name| name == codec)
    }

    /// The flags as one types them. Of an absolute path only the last part is shown, for a report goes to others.
    pub(super) fn command(&self) -> String {
        let path = |path: &Path| match path.file_name() {
            Some(name) if path.is_absolute() => name.to_string_lossy().into_owned(),
            _ => path.to_string_lossy().into_owned(),
        };
        let mut words = Vec::new();
        words.extend(self.quick.then(|| "--quick".to_string()));
        words.extend(self.index.as_deref().map(|dir| format!("--index {}", path(dir))));
        words.extend(self.codec.iter().map(|name| format!("--codec {name}")));
        words.extend(self.kernel.iter().map(|name| format!("--kernel {name}")));
        words.push(format!("--seed {}", self.seed));
        words.extend(self.out.as_deref().map(|dir| format!("--out {}", path(dir))));
        words.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_shows_no_absolute_path() {
        let flags = Flags {
            quick: true,
            index: Some("/a/b/index".into()),
            out: Some("out/codecs".into()),
            codec: vec!["pfor256".into()],
            ..Flags::default()
        };
        assert_eq!(flags.command(), "--quick --index index --codec pfor256 --seed 0 --out out/codecs");
    }

    #[test]
    fn an_unknown_kernel_is_a_wrong_flag() {
        let flags = Flags { kernel: vec!["mmx".into()], ..Flags::default() };
        assert!(matches!(flags.kernels(), Err(Error::Usage(message)) if message.contains("mmx")));
        assert_eq!(Flags::default().kernels().unwrap().len(), Kernel::available().len());
    }
}
