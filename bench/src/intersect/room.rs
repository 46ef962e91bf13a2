//! Threads, engines and memory that the algorithms run in.

use super::flags::Settings;
use super::work::Work;
use crate::Result;
use crate::intersection::{
    Algorithm, Bl, CostModel, Crew, Direct, DirectOptions, Found, PagedList, bf, sl, zz,
};
use tierdex::io::{Disk, EngineKind, EngineOptions};

/// Reads that a cost model is measured by.
const COST_READS: usize = 2_000;

/// What every algorithm needs.
pub(super) struct Room {
    crew: Crew,
    bl: Bl,
    direct: Direct,
    pub(super) threads: usize,
}

impl Room {
    /// Past the page cache where that can be.
    pub(super) fn new(work: &Work, settings: &Settings, (threads, depth): (usize, usize)) -> Result<Room> {
        let past = work.disk.check_direct().is_ok();
        let engine = |depth| EngineOptions { kind: EngineKind::Auto, depth, direct: past };
        let options = DirectOptions {
            engine: engine(depth),
            read_bytes_max: settings.read_bytes,
            region: settings.region.clone(),
        };
        Ok(Room {
            crew: Crew::new(&work.disk, engine(settings.bl_depth), threads)?,
            bl: Bl::new(),
            direct: Direct::new(&work.disk, &options)?,
            threads,
        })
    }

    /// Measures what reads cost, on the longest of the lists.
    pub(super) fn calibrate(&mut self, lists: &[PagedList]) -> Result<CostModel> {
        let longest = lists.iter().max_by_key(|list| list.pages());
        Ok(longest.map_or(Ok(self.direct.cost()), |list| self.direct.measure(list, COST_READS))?)
    }

    pub(super) fn set_cost(&mut self, cost: CostModel) {
        self.direct.set_cost(cost);
    }

    pub(super) fn description(&self) -> &str {
        self.direct.description()
    }

    pub(super) fn run(&mut self, algorithm: Algorithm, lists: &[PagedList]) -> Result<Found> {
        Ok(match algorithm {
            Algorithm::Bl => self.bl.intersect(&self.crew, lists),
            Algorithm::Sl => sl::intersect(&self.crew, lists),
            Algorithm::Zz => zz::intersect(&self.crew, lists),
            Algorithm::Bf => bf::intersect(&self.crew, lists),
            Algorithm::Direct => self.direct.intersect(lists),
        }?)
    }
}
