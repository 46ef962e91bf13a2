//! The parameters of the experiment.

use crate::{Error, Result};
use serde::Deserialize;
use std::path::PathBuf;
use tierdex::codec::Kernel;

/// Parameters of the experiment.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct CodecsRequest {
    /// Less data and fewer rounds: less than a minute instead of several minutes.
    pub(super) quick: bool,
    /// Directory of an index whose lists are measured too: those of every term with at least 256 documents.
    pub(super) index: Option<PathBuf>,
    /// Name of the only codec that is measured.
    pub(super) codec: Option<String>,
    /// Name of the only kernel that is measured; without it that of `TIERDEX_KERNEL`, or all that the CPU
    /// supports.
    pub(super) kernel: Option<String>,
    /// Only lists in which `VByte` encodes this percentage of differences in one byte and the others in two,
    /// in random order.
    pub(super) one_byte: Option<u32>,
    /// Whether there is a row for each dataset, in place of one for each length class of its lists.
    pub(super) sums: bool,
}

impl CodecsRequest {
    /// The selected kernels, slowest first.
    ///
    /// # Errors
    /// If a name is unknown or the CPU does not support the kernel.
    pub(super) fn kernels(&self) -> Result<Vec<Kernel>> {
        let only = match &self.kernel {
            Some(name) => Some(Kernel::from_name(name).map_err(|error| Error::Usage(error.to_string()))?),
            None => Kernel::forced().map_err(|error| Error::Usage(format!("TIERDEX_KERNEL: {error}")))?,
        };
        let all = Kernel::available().into_iter();
        Ok(all.filter(|kernel| only.is_none_or(|only| only == *kernel)).collect())
    }
}
