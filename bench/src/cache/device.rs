//! The devices that are compared.

use crate::{Error, Result, parse_name::parse_name, throttle::SAS_BYTES};
use std::{fmt, str::FromStr};

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

impl Device {
    /// Limit of the read rate in bytes per second, if it is throttled: the sequential read bandwidth that the
    /// APCache thesis measured (section 8.2.3).
    pub(super) fn bytes_per_second(self) -> Option<u64> {
        (self == Device::Sas).then_some(SAS_BYTES)
    }

    /// The name in reports and plots.
    pub(super) fn title(self) -> String {
        if self == Device::Ssd { self.to_string() } else { format!("{self} emulated") }
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Device::Ssd => "ssd",
            Device::Sas => "sas",
            Device::Hdd => "hdd",
        })
    }
}

impl FromStr for Device {
    type Err = Error;

    fn from_str(text: &str) -> Result<Device> {
        parse_name(&[Device::Ssd, Device::Sas, Device::Hdd], text, "device")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for name in ["ssd", "sas", "hdd"] {
            assert_eq!(name.parse::<Device>().unwrap().to_string(), name);
        }
        assert!("nvme".parse::<Device>().is_err());
    }
}
