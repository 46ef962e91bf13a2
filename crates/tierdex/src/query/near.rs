//! What of its lists a query has brought near: the one place where queries and the cache meet.
//!
//! | query | jobs |
//! |---|---|
//! | any | its lists, whole: record, unless that is resident, documents, frequencies |
//! | the best of one term | the blocks that can hold them, each by itself: documents, frequencies |
//!
//! Of one term the blocks are known before any is read. Each block has a posting that scores as much as its bound, but for
//! what that was rounded by; so the `k`-th of the best scores no less than the `k`-th largest bound, and blocks whose bounds are
//! less hold none of them.

use super::plan::{Leaf, Node, Plan};
use super::prune::{Bounds, Scored, Scratch, blocks_of_best};
use crate::cursor::NearList;
use crate::error::Result;
use crate::segment::read::{FieldReader, Part as ListPart, Segment};
use std::ops::Range;
use std::sync::Arc;
use tierdex_cache::{Job, Key, List, Part};
use tierdex_io::{PAGE, SealedFile};

/// Keys have the number of the field above an offset: of the record, or of the block in `docs`.
const FIELD_SHIFT: u32 = 48;

/// Beside the number of the segment: what the key is of. Numbers of segments are counted, and never so large.
const RECORD: u64 = 1 << 62;
const BLOCK: u64 = 2 << 62;

impl Plan<'_> {
    /// Whole lists, in the order in which [`Plan::attach`] takes them.
    pub fn jobs(&mut self, segments: &[Segment]) -> Result<Vec<Job>> {
        let mut jobs = Vec::new();
        self.root.for_each_leaf(&mut |leaf| {
            for (number, segment) in segments.iter().enumerate() {
                jobs.extend(leaf.whole(number, segment)?);
            }
            Ok(())
        })?;
        Ok(jobs)
    }

    /// Reads those of the lists of [`Plan::jobs`] that `lists` gives from them from now on.
    pub fn attach(
        &mut self,
        segments: &[Segment],
        mut lists: impl FnMut() -> Result<Option<List>>,
    ) -> Result<()> {
        self.root.for_each_leaf(&mut |leaf| {
            for ((info, near), segment) in leaf.infos.iter().zip(&mut leaf.near).zip(segments) {
                let record = reads_record(segment.field(leaf.field));
                if info.as_ref().is_some_and(|info| record || info.blocks.is_some()) {
                    *near = lists()?.map(|list| NearList::Whole { list, record });
                }
            }
            Ok(())
        })
    }

    /// Whether it looks for the best of one term, of which some blocks may be enough.
    pub fn is_of_one_term(&self) -> bool {
        matches!(&self.root, Node::Term(leaf) if leaf.scorer.has_bounds())
    }

    /// The records of the one term that are not resident, in the order in which [`Plan::attach_records`] takes them.
    pub fn record_jobs(&mut self, segments: &[Segment]) -> Result<Vec<Job>> {
        let mut jobs = Vec::new();
        self.root.for_each_leaf(&mut |leaf| {
            for (number, segment) in segments.iter().enumerate() {
                jobs.extend(leaf.record(number, segment)?);
            }
            Ok(())
        })?;
        Ok(jobs)
    }

    /// Reads the records of [`Plan::record_jobs`] from `lists` from now on.
    pub fn attach_records(
        &mut self,
        segments: &[Segment],
        mut lists: impl FnMut() -> Result<Option<List>>,
    ) -> Result<()> {
        self.root.for_each_leaf(&mut |leaf| {
            for ((info, near), segment) in leaf.infos.iter().zip(&mut leaf.near).zip(segments) {
                if info.is_some() && reads_record(segment.field(leaf.field)) {
                    *near = Some(NearList::Blocks { record: lists()?, blocks: Vec::new() });
                }
            }
            Ok(())
        })
    }

    /// The blocks of the one term that can hold the best `k`, in the order in which [`Plan::attach_blocks`] takes them; none
    /// if its lists had better be read whole: a read at a random place takes as long as `read` bytes in a row. Its records are
    /// resident, or attached.
    pub fn block_jobs(
        &mut self,
        segments: &[Segment],
        (k, read): (usize, u64),
        scratch: &mut Scratch,
    ) -> Result<Option<Vec<Job>>> {
        let (mut jobs, mut whole_bytes) = (Vec::new(), 0);
        self.root.for_each_leaf(&mut |leaf| {
            for (number, segment) in segments.iter().enumerate() {
                whole_bytes += leaf.name_blocks(number, segment, k, scratch, &mut jobs)?;
            }
            Ok(())
        })?;
        let bytes = |job: &Job| {
            job.parts().iter().map(|part| read.max(part.range().end - part.range().start)).sum::<u64>()
        };
        let cost: u64 = jobs.iter().map(bytes).sum();
        Ok((whole_bytes == 0 || cost < whole_bytes).then_some(jobs))
    }

    /// Reads the blocks of [`Plan::block_jobs`] from `lists` from now on.
    pub fn attach_blocks(&mut self, mut lists: impl FnMut() -> Result<Option<List>>) -> Result<()> {
        self.root.for_each_leaf(&mut |leaf| {
            for near in leaf.near.iter_mut().flatten() {
                if let NearList::Blocks { blocks, .. } = near {
                    blocks.iter_mut().try_for_each(|(_, list)| lists().map(|found| *list = found))?;
                }
            }
            Ok(())
        })
    }
}

impl Leaf<'_> {
    /// The list in the segment of that number as a cache knows it. None where there is nothing to read.
    fn whole(&self, number: usize, segment: &Segment) -> Result<Option<Job>> {
        let field = segment.field(self.field);
        let Some(info) = &self.infos[number] else { return Ok(None) };
        let [skips, docs, freqs] = field.shared();
        let record = reads_record(field).then_some((skips, &info.skips));
        let blocks = info.blocks.iter().flat_map(|[of_docs, of_freqs]| [(docs, of_docs), (freqs, of_freqs)]);
        job(self.key(segment, 0, info.skips.start), record.into_iter().chain(blocks))
    }

    /// The record alone, if it is not resident.
    fn record(&self, number: usize, segment: &Segment) -> Result<Option<Job>> {
        let field = segment.field(self.field);
        let info = self.infos[number].as_ref().filter(|_| reads_record(field));
        let Some(info) = info else { return Ok(None) };
        job(self.key(segment, RECORD, info.skips.start), [(field.shared()[0], &info.skips)])
    }

    /// Names the blocks that can hold the best `k` of the segment, and adds their jobs. Returns the bytes of the whole list.
    fn name_blocks(
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
        let bounds: Option<Bounds> = Some(self.bounds(segment));
        let near = self.near[number].as_ref();
        let list = Scored::open(field, info, (&self.scorer, near), bounds, scratch)?;
        let blocks = blocks_of_best(&list, k, scratch);
        let [_, docs, freqs] = field.shared();
        if let Some(skips) = list.skips() {
            for block in &blocks {
                let ranges = [skips.range(ListPart::Docs, *block)?, skips.range(ListPart::Freqs, *block)?];
                let key = self.key(segment, BLOCK, ranges[0].start);
                jobs.extend(job(key, [(docs, &ranges[0]), (freqs, &ranges[1])])?);
            }
        }
        list.close(scratch);
        let named = blocks.into_iter().map(|block| (block, None)).collect();
        match &mut self.near[number] {
            Some(NearList::Blocks { blocks, .. }) => *blocks = named,
            near => *near = Some(NearList::Blocks { record: None, blocks: named }),
        }
        Ok(whole.iter().map(|range| range.end - range.start + 2 * PAGE).sum())
    }

    fn key(&self, segment: &Segment, of: u64, offset: u64) -> Key {
        // Lists, records and blocks of a field each stand at an offset of their own.
        Key(segment.meta().id | of, (self.field as u64) << FIELD_SHIFT | offset)
    }
}

/// These parts; none if there are none.
fn job<'a>(
    key: Key,
    parts: impl IntoIterator<Item = (&'a Arc<SealedFile>, &'a Range<u64>)>,
) -> Result<Option<Job>> {
    let parts = parts.into_iter().map(|(file, range)| Ok(Part::new(file.clone(), range.clone())?));
    let parts = parts.collect::<Result<Vec<_>>>()?;
    if parts.is_empty() { Ok(None) } else { Ok(Some(Job::new(key, parts)?)) }
}

/// Whether records of a field are read with the lists: they are not resident.
fn reads_record(field: &FieldReader) -> bool {
    field.skips().kept().is_none()
}
