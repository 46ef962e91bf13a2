//! A slow device, emulated: the block layer is told to let no more through (blkio of control groups v1). Figures of it are
//! called emulated.

use super::flags::Settings;
use super::measure::{Point, point};
use super::results::Results;
use super::room::Room;
use super::sweep::{Sweep, small};
use super::work::Work;
use crate::{Error, Result};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use tierdex::intersect::{Algorithm, CostModel};

/// Reads and bytes a second of a disk that turns.
const HDD: (u64, u64) = (120, 181_000_000);

const GROUPS: &str = "/sys/fs/cgroup/blkio";

/// The device as it is, and as a disk that turns, both by lists of a tenth, in one round.
pub(super) fn run(work: &Work, settings: &Settings, results: &mut Results) -> Result<()> {
    let query = small(work, settings)?;
    let sweep = Sweep::Device.name();
    for (x, label) in [(0.0, "as it is"), (1.0, "hdd, emulated")] {
        let throttle = (x > 0.0).then(|| Throttle::new(work.path(), HDD)).transpose()?;
        // Where reads are dear, those of direct are as long as those of bl.
        let (read_bytes, depth) = match &throttle {
            Some(_) => (1 << 20, settings.depth.min(16)),
            None => (settings.read_bytes, settings.depth),
        };
        let settings = Settings { read_bytes, ..settings.clone() };
        // Threads are started within the group.
        let mut room = Room::new(work, &settings, (settings.threads, depth))?;
        match &throttle {
            Some(_) => room.set_cost(CostModel {
                read_seconds: 1.0 / HDD.0 as f64,
                bytes_per_second: HDD.1 as f64,
                ..CostModel::default()
            }),
            None => drop(room.calibrate(&query.0)?),
        }
        let queries = std::slice::from_ref(&query);
        let at = Point { sweep, x, label: label.to_string(), algorithms: &Algorithm::ALL, queries };
        results.add(point(&mut room, &at, 1)?);
    }
    Ok(())
}

/// A control group that this process is in until it is dropped.
struct Throttle {
    group: PathBuf,
}

impl Throttle {
    /// Lets `reads` reads and `bytes` bytes a second through from the device that `path` is on.
    fn new(path: &Path, (reads, bytes): (u64, u64)) -> Result<Throttle> {
        let group = Path::new(GROUPS).join(format!("tierdex-{}", std::process::id()));
        let failed = |error: std::io::Error| {
            let name = group.display();
            Error::Failed(format!("reads cannot be throttled by the control group {name}: {error}"))
        };
        let device = fs::metadata(path).map_err(failed)?.dev();
        // As glibc and Linux have it.
        let (major, minor) = ((device >> 8) & 0xfff, (device & 0xff) | ((device >> 12) & 0xfff00));
        fs::create_dir(&group).map_err(failed)?;
        let throttle = Throttle { group: group.clone() };
        for (file, most) in [("read_iops_device", reads), ("read_bps_device", bytes)] {
            let line = format!("{major}:{minor} {most}");
            fs::write(group.join(format!("blkio.throttle.{file}")), line).map_err(failed)?;
        }
        fs::write(group.join("cgroup.procs"), std::process::id().to_string()).map_err(failed)?;
        Ok(throttle)
    }
}

impl Drop for Throttle {
    fn drop(&mut self) {
        // Nothing can be done about either but to leave an empty group behind.
        let _ = fs::write(Path::new(GROUPS).join("cgroup.procs"), std::process::id().to_string());
        let _ = fs::remove_dir(&self.group);
    }
}
