//! The devices that are compared.

use super::parse_name::parse_name;
use crate::throttle::{DeviceRates, HDD};
use crate::{Error, Result};
use std::fmt;
use std::str::FromStr;

/// The device that holds the index, or a slower device that is emulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Device {
    /// The device of the index, unthrottled.
    Ssd,
    /// The same device at the sequential read bandwidth of a SAS SSD.
    Sas,
    /// The same device at the rates of a hard disk.
    Hdd,
    /// A file system over the same device that delays reads by the seeks of a hard disk.
    HddSeek,
}

impl Device {
    /// Limits of the device's read rate. The bandwidths, 793 MB/s and 181 MB/s, are the sequential read
    /// bandwidths that the APCache thesis measured (section 8.2.3); for the reads per second of [`HDD`] see
    /// there.
    pub(super) fn rates(self) -> DeviceRates {
        match self {
            Device::Ssd | Device::HddSeek => DeviceRates::default(),
            Device::Sas => DeviceRates { reads: None, bytes: Some(793_000_000) },
            Device::Hdd => HDD,
        }
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
            Device::HddSeek => "hdd-seek",
        })
    }
}

impl FromStr for Device {
    type Err = Error;

    fn from_str(text: &str) -> Result<Device> {
        parse_name(&[Device::Ssd, Device::Sas, Device::Hdd, Device::HddSeek], text, "device")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for name in ["ssd", "sas", "hdd", "hdd-seek"] {
            assert_eq!(name.parse::<Device>().unwrap().to_string(), name);
        }
        assert!("nvme".parse::<Device>().is_err());
    }
}
