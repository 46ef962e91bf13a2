//! The devices that are compared.

use crate::{throttle::SAS_BYTES_PER_SECOND, value_names::value_names};

/// The device that holds the index, or a slower device that is emulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Device {
    /// The device of the index, unthrottled.
    Ssd,
    /// The same device at the sequential read bandwidth of a SAS SSD.
    Sas,
    /// A file system over the same device that delays reads by the seeks of a hard disk.
    Hdd,
}

value_names!(Device, "device"; Ssd = "ssd", Sas = "sas", Hdd = "hdd");

impl Device {
    /// Limit of the read rate in bytes per second, if it is throttled: the sequential read bandwidth that the
    /// APCache thesis measured (section 8.2.3).
    pub(super) fn bytes_per_second(self) -> Option<u64> {
        (self == Device::Sas).then_some(SAS_BYTES_PER_SECOND)
    }

    /// The name in reports and plots.
    pub(super) fn title(self) -> String {
        if self == Device::Ssd { self.to_string() } else { format!("{self} emulated") }
    }
}
