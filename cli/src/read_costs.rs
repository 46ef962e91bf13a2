//! What reads of a device cost: given by a flag, or measured by an earlier command and stored by device in
//! `tierdex/read-costs` below `$XDG_CACHE_HOME`, or `.cache` of the home directory.
//!
//! A line of the file has the number of the device, the second of the measurement since 1970, and the costs:
//! `65024 1790000000 20000,21000,39000,131000`. Costs are measured again after a day. A file that cannot be
//! read or written is ignored, as are lines that have another form.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use std::{env, fs, io::Read};
use tierdex::ReadCosts;

/// Age from which on costs are measured again: disks of clouds change with time.
const AGE_MAX: Duration = Duration::from_hours(24);

/// Longer files are ignored.
const FILE_BYTES_MAX: u64 = 64 << 10;

/// Devices whose costs are kept, at most.
const DEVICES_MAX: usize = 64;

/// The stored costs of the device of an index, if they are recent.
pub fn stored(index: &Path) -> Option<ReadCosts> {
    let device = device_of(index)?;
    recent(&read_lines(&file()?), now())
        .into_iter()
        .find(|costs| costs.device == device)
        .map(|found| found.costs)
}

/// Stores the costs of the device of an index.
pub fn store(index: &Path, costs: ReadCosts) {
    let (Some(device), Some(file)) = (device_of(index), file()) else { return };
    let measured = now();
    let mut devices = recent(&read_lines(&file), measured);
    devices.retain(|other| other.device != device);
    devices.truncate(DEVICES_MAX - 1);
    devices.insert(0, DeviceCosts { device, measured, costs });
    let text: String = devices.iter().map(DeviceCosts::line).collect();
    // Renamed, so that another process never reads a part of it.
    let part = file.with_extension(format!("{}.part", std::process::id()));
    let folder = file.parent().map_or(Ok(()), fs::create_dir_all);
    let written = folder.and_then(|()| fs::write(&part, text)).and_then(|()| fs::rename(&part, &file));
    if written.is_err() {
        let _ = fs::remove_file(&part);
    }
}

#[derive(Debug, PartialEq)]
struct DeviceCosts {
    device: u64,
    /// Seconds since 1970.
    measured: u64,
    costs: ReadCosts,
}

impl DeviceCosts {
    fn line(&self) -> String {
        format!("{} {} {}\n", self.device, self.measured, self.costs)
    }

    fn parse(line: &str) -> Option<DeviceCosts> {
        let mut parts = line.split(' ');
        let (device, measured, costs) = (parts.next()?, parts.next()?, parts.next()?);
        let costs = DeviceCosts {
            device: device.parse().ok()?,
            measured: measured.parse().ok()?,
            costs: costs.parse().ok()?,
        };
        parts.next().is_none().then_some(costs)
    }
}

/// The costs in a file that were measured in the last day.
fn recent(lines: &str, now: u64) -> Vec<DeviceCosts> {
    let is_recent = |costs: &DeviceCosts| costs.measured <= now && now - costs.measured < AGE_MAX.as_secs();
    lines.lines().filter_map(DeviceCosts::parse).filter(is_recent).collect()
}

fn read_lines(file: &Path) -> String {
    let mut text = String::new();
    let opened = fs::File::open(file)
        .ok()
        .filter(|file| file.metadata().is_ok_and(|file| file.is_file() && file.len() <= FILE_BYTES_MAX));
    let read = opened.and_then(|file| file.take(FILE_BYTES_MAX).read_to_string(&mut text).ok());
    if read.is_some() { text } else { String::new() }
}

fn device_of(index: &Path) -> Option<u64> {
    fs::metadata(index).ok().map(|folder| folder.dev())
}

fn file() -> Option<PathBuf> {
    let folder = |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = folder("XDG_CACHE_HOME").or_else(|| Some(folder("HOME")?.join(".cache")))?;
    Some(cache.join("tierdex/read-costs"))
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_until_they_are_a_day_old() {
        let costs = DeviceCosts { device: 259, measured: 1000, costs: ReadCosts::default() };
        assert_eq!(costs.line(), "259 1000 20000,21000,39000,131000\n");
        let day = AGE_MAX.as_secs();
        for (now, found) in [(999, 0), (1000, 1), (999 + day, 1), (1000 + day, 0)] {
            assert_eq!(recent(&costs.line(), now).len(), found, "{now}");
        }
        let others = ["", "x", "1 3", "1 x 1,2,3,4", "1 1000 4,3,2,1", "1 1000 1,2,3,4 5"].join("\n");
        assert_eq!(recent(&format!("{others}\n{}", costs.line()), 1000), [costs]);
    }
}
