//! The best of one term: only blocks that can hold them.
//!
//! They are known before any block is read, nearly: most blocks have a posting that scores as much as their bound, but for what
//! that was rounded by; so the `k`-th of the best scores no less than the `k`-th largest bound, and blocks whose bounds are less
//! hold none of them. Bounds of coarser fronts may lie above; then the way of evaluation goes on to blocks that were not named.

use super::{BLOCK, REST, Want};
use crate::cursor::record;
use crate::error::Result;
use crate::intersect::CostModel;
use crate::query::plan::{Leaf, Node, Plan};
use crate::query::prune::{Scored, Scratch, blocks_of_best};
use crate::segment::read::{Record, Segment};
use tierdex_cache::{Job, Part};
use tierdex_io::PAGE;

impl Plan<'_> {
    /// Whether it looks for the best of one term, of which some blocks may be enough.
    pub fn is_of_one_term(&self) -> bool {
        matches!(&self.root, Node::Term(leaf) if leaf.scorer.has_bounds())
    }

    /// Wants the records of the one term only.
    pub fn want_records(&mut self) -> Result<()> {
        self.root.for_each_leaf(&mut |leaf| {
            leaf.wants.fill(Want::Record);
            Ok(())
        })
    }

    /// The blocks of the one term that can hold the best `k`, in the order in which [`Plan::attach_blocks`] takes them. Its
    /// records are resident, or attached. Where its lists had better be read whole, as reads cost so much, it is all blocks; or
    /// none if the records are resident, and the lists are wanted instead.
    pub fn block_jobs(
        &mut self,
        segments: &[Segment],
        (k, cost): (usize, &CostModel),
        scratch: &mut Scratch,
    ) -> Result<Option<Vec<Job>>> {
        let (mut jobs, mut whole_bytes) = (Vec::new(), 0);
        self.root.for_each_leaf(&mut |leaf| {
            for (number, segment) in segments.iter().enumerate() {
                whole_bytes += leaf.name_best(number, segment, k, scratch, &mut jobs)?;
            }
            Ok(())
        })?;
        let parts = || jobs.iter().flat_map(Job::parts).map(Part::range);
        let bytes: u64 = parts().map(|range| range.end - range.start + PAGE).sum();
        let some = cost.seconds(parts().count() as u64, bytes);
        if whole_bytes == 0 || some < cost.seconds(2 * segments.len() as u64, whole_bytes) {
            return Ok(Some(jobs));
        }
        if self.wants_whole() {
            self.want_whole()?;
            return Ok(None);
        }
        // Its records are near: the rest of the lists.
        jobs.clear();
        self.root.for_each_leaf(&mut |leaf| {
            let mut segments = segments.iter().enumerate();
            segments.try_for_each(|(number, segment)| leaf.name_all(number, segment, &mut jobs))
        })?;
        Ok(Some(jobs))
    }

    /// Whether nothing less is wanted.
    fn wants_whole(&self) -> bool {
        matches!(&self.root, Node::Term(leaf) if leaf.wants.iter().all(|want| *want == Want::Whole))
    }
}

impl Leaf<'_> {
    /// Names the blocks that can hold the best `k` of the segment, and adds their jobs. Returns the bytes of the whole list.
    fn name_best(
        &mut self,
        number: usize,
        segment: &Segment,
        k: usize,
        scratch: &mut Scratch,
        jobs: &mut Vec<Job>,
    ) -> Result<u64> {
        let field = segment.field(self.field);
        let Some(info) = self.infos[number].as_ref() else { return Ok(0) };
        let Some(whole) = &info.blocks else { return Ok(0) };
        let whole_bytes = whole.iter().map(|range| range.end - range.start + 2 * PAGE).sum();
        let list = (&*self.scorer, self.reading(number));
        let list = Scored::open(field, info, list, Some(self.bounds(segment)), scratch)?;
        let blocks = blocks_of_best(&list, k, scratch);
        let ranges = blocks.into_iter().map(|block| block..block + 1);
        let named = match list.skips() {
            Some(skips) => self.name((number, segment), (skips, BLOCK), ranges, jobs)?,
            None => Vec::new(),
        };
        list.close(scratch);
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
