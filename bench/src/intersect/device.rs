//! The device sweep: the device without a throttle, and an emulated hard disk.

use super::measure::{SweepPoint, point};
use super::results::Results;
use super::runner::IntersectionRunner;
use super::settings::{Settings, Sweep};
use super::sweep::small;
use super::work_dir::WorkDir;
use crate::Result;
use crate::intersection::{Algorithm, CostModel};
use crate::throttle::{DeviceRates, HDD, Throttle};

/// Measures both devices with lists of a tenth of the size, in one round.
pub(super) fn run(work: &WorkDir, settings: &Settings, results: &mut Results) -> Result<()> {
    let query = small(work, settings)?;
    let sweep = Sweep::Device.name();
    for (x, label) in [(0.0, "as it is"), (1.0, "hdd, emulated")] {
        let throttle = (x > 0.0).then(|| Throttle::new(work.path(), HDD)?.join()).transpose()?;
        // On a slow device the reads of direct are as long as those of bl.
        let (read_bytes, depth) = match &throttle {
            Some(_) => (1 << 20, settings.depth.min(16)),
            None => (settings.read_bytes, settings.depth),
        };
        let settings = Settings { read_bytes, ..settings.clone() };
        // After joining the group, so that the threads are members too.
        let mut runner = IntersectionRunner::new(work, &settings, (settings.threads, depth))?;
        match &throttle {
            Some(_) => runner.set_cost(cost(HDD)),
            None => drop(runner.calibrate(&query.0)?),
        }
        let queries = std::slice::from_ref(&query);
        let at = SweepPoint { sweep, x, label: label.to_string(), algorithms: &Algorithm::ALL, queries };
        results.add(point(&mut runner, &at, 1)?);
    }
    Ok(())
}

/// The cost model of a device with these rates.
fn cost(rates: DeviceRates) -> CostModel {
    let default = CostModel::default();
    CostModel {
        read_seconds: rates.reads.map_or(default.read_seconds, |reads| 1.0 / reads as f64),
        bytes_per_second: rates.bytes.map_or(default.bytes_per_second, |bytes| bytes as f64),
        ..default
    }
}
