//! The best of one term: only blocks that can hold them.
//!
//! They are known before any block is read, nearly: most blocks have a posting that scores as much as their bound, but for what
//! that was rounded by; so the `k`-th of the best scores no less than the `k`-th largest bound, and blocks whose bounds are less
//! hold none of them. Bounds of coarser fronts may lie above; then the way of evaluation goes on to blocks that were not named.

use super::{BLOCK, ListSource, ListSources, REST, Want};
use crate::cursor::record;
use crate::error::Result;
use crate::eval::{Scratch, blocks_of_best, open_leaf};
use crate::intersect::CostModel;
use crate::query::plan::PlanNode;
use crate::segment::read::{Record, Segment};
use tierdex_cache::{Job, Part};
use tierdex_io::PAGE;

impl ListSources {
    /// Whether it looks for the best of one term, of which some blocks may be enough.
    pub fn is_of_one_term(&self) -> bool {
        matches!(&self.plan.root, PlanNode::Term(_))
    }

    /// Wants the records of the one term only.
    pub fn want_records(&mut self) {
        self.lists.iter_mut().for_each(|leaf| leaf.wants.fill(Want::Record));
    }

    /// The blocks of the one term that can hold the best `k`, in the order in which
    /// [`ListSources::attach_blocks`] takes them. Its records are resident, or attached. Where its lists had
    /// better be read whole, as reads cost so much, it is all blocks; or none if the records are resident,
    /// and the lists are wanted instead.
    pub fn block_jobs(
        &mut self,
        segments: &[Segment],
        (k, cost): (usize, &CostModel),
        scratch: &mut Scratch,
    ) -> Result<Option<Vec<Job>>> {
        let (mut jobs, mut whole_bytes) = (Vec::new(), 0);
        self.lists.iter_mut().try_for_each(|leaf| {
            let mut segments = segments.iter().enumerate();
            segments.try_for_each(|(number, segment)| {
                leaf.name_best(number, segment, k, scratch, &mut jobs).map(|bytes| whole_bytes += bytes)
            })
        })?;
        let parts = || jobs.iter().flat_map(Job::parts).map(Part::range);
        let bytes: u64 = parts().map(|range| range.end - range.start + PAGE).sum();
        let some = cost.seconds(parts().count() as u64, bytes);
        if whole_bytes == 0 || some < cost.seconds(2 * segments.len() as u64, whole_bytes) {
            return Ok(Some(jobs));
        }
        if self.wants_whole() {
            self.want_whole();
            return Ok(None);
        }
        // Its records are near: the rest of the lists.
        jobs.clear();
        self.lists.iter_mut().try_for_each(|leaf| {
            let mut segments = segments.iter().enumerate();
            segments.try_for_each(|(number, segment)| leaf.name_all(number, segment, &mut jobs))
        })?;
        Ok(Some(jobs))
    }

    /// Whether nothing less is wanted.
    fn wants_whole(&self) -> bool {
        matches!(&self.plan.root, PlanNode::Term(leaf) if self.lists[*leaf].wants.iter().all(|want| *want == Want::Whole))
    }
}

impl ListSource {
    /// Names the blocks that can hold the best `k` of the segment, and adds their jobs. Returns the bytes of the whole list.
    fn name_best(
        &mut self,
        number: usize,
        segment: &Segment,
        k: usize,
        scratch: &mut Scratch,
        jobs: &mut Vec<Job>,
    ) -> Result<u64> {
        let Some(info) = self.infos[number].as_ref() else { return Ok(0) };
        let Some(whole) = &info.blocks else { return Ok(0) };
        let whole_bytes = whole.iter().map(|range| range.end - range.start + 2 * PAGE).sum();
        let named = {
            let Some(list) = open_leaf(self, (number, segment), scratch)? else { return Ok(0) };
            let blocks = blocks_of_best(&list, k, scratch)?;
            let ranges = blocks.into_iter().map(|block| block..block + 1);
            let named = match list.skips() {
                Some(skips) => self.name((number, segment), (skips, BLOCK), ranges, jobs),
                None => Ok(Vec::new()),
            };
            list.close(scratch);
            named?
        };
        self.bring(number, named);
        Ok(whole_bytes)
    }

    /// Names all blocks, together.
    pub(super) fn name_all(&mut self, number: usize, segment: &Segment, jobs: &mut Vec<Job>) -> Result<()> {
        let field = segment.field(self.field);
        let Some(info) = self.infos[number].as_ref() else { return Ok(()) };
        let Record::Blocks(list) = record(field, info, self.reading(number))? else { return Ok(()) };
        let named = self.name((number, segment), (&list, REST), std::iter::once(0..list.blocks()), jobs)?;
        self.bring(number, named);
        Ok(())
    }
}
