//! The device as it is, and a slower one, emulated.

use super::flags::Settings;
use super::measure::{Point, point};
use super::results::Results;
use super::room::Room;
use super::sweep::{Sweep, small};
use super::work::Work;
use crate::Result;
use crate::intersection::{Algorithm, CostModel};
use crate::throttle::{HDD, Rates, Throttle};

/// The device as it is, and as a disk that turns, both by lists of a tenth, in one round.
pub(super) fn run(work: &Work, settings: &Settings, results: &mut Results) -> Result<()> {
    let query = small(work, settings)?;
    let sweep = Sweep::Device.name();
    for (x, label) in [(0.0, "as it is"), (1.0, "hdd, emulated")] {
        let slow = (x > 0.0).then(|| Throttle::new(work.path(), HDD)?.join()).transpose()?;
        // Where reads are dear, those of direct are as long as those of bl.
        let (read_bytes, depth) = match &slow {
            Some(_) => (1 << 20, settings.depth.min(16)),
            None => (settings.read_bytes, settings.depth),
        };
        let settings = Settings { read_bytes, ..settings.clone() };
        // Threads are started within the group.
        let mut room = Room::new(work, &settings, (settings.threads, depth))?;
        match &slow {
            Some(_) => room.set_cost(cost(HDD)),
            None => drop(room.calibrate(&query.0)?),
        }
        let queries = std::slice::from_ref(&query);
        let at = Point { sweep, x, label: label.to_string(), algorithms: &Algorithm::ALL, queries };
        results.add(point(&mut room, &at, 1)?);
    }
    Ok(())
}

/// What reads cost on a device of such rates.
fn cost(rates: Rates) -> CostModel {
    let usual = CostModel::default();
    CostModel {
        read_seconds: rates.reads.map_or(usual.read_seconds, |reads| 1.0 / reads as f64),
        bytes_per_second: rates.bytes.map_or(usual.bytes_per_second, |bytes| bytes as f64),
        ..usual
    }
}
