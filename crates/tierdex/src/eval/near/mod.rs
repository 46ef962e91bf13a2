//! What of its lists a query has brought near: the one place where queries and the cache meet.
//!
//! | query | jobs | then |
//! |---|---|---|
//! | any | its lists, whole: record, unless that is resident, documents, frequencies | |
//! | the best of one term (`best`) | its record, unless that is resident | the blocks that can hold them, or the rest of it |
//! | all of some terms (`all`) | the rarest whole; of those that are much more frequent their records | their blocks that may hold documents of the lists before them, in one step or list by list |
//! | the best of any of some terms (`any`) | those that weigh most whole; of long lists that weigh little their records | their blocks that may hold one of the best by the lists before them, likewise |
//!
//! What comes first is known by the dictionary alone, and stands in the queue of the cache. What comes then is known as soon as
//! that is near.

mod all;
mod any;
mod best;

pub use any::Known;

use super::scratch::Scratch;
use crate::cursor::{BUFFER_MIN, NearBlocks, NearList, Reading};
use crate::error::{Error, Result};
use crate::intersect::CostModel;
use crate::query::plan::{Leaf, Plan, PlanNode};
use crate::segment::read::{BlockList, FieldReader, Part as ListPart, Segment};
use std::ops::{Deref, Range};
use std::sync::Arc;
use tierdex_cache::{Job, Key, List, Part};
use tierdex_io::SealedFile;

/// Keys have the number of the field above an offset: of the record, or of the first block in `docs`.
const FIELD_SHIFT: u32 = 48;

/// Beside the number of the segment: what the key is of. Numbers of segments are counted, and never so large.
const RECORD: u64 = 1 << 62;
const BLOCK: u64 = 2 << 62;
const SUPER: u64 = 3 << 62;
/// A list without its record.
const REST: u64 = 1 << 61;

/// What of a list in a segment is to come near first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// Nothing: no document of the segment can match.
    Nothing,
    /// The record; some blocks follow.
    Record,
    /// The record, and some blocks which have been named.
    Blocks,
    /// All.
    Whole,
}

/// A plan, and where its lists are read from.
pub struct ListSources {
    pub(crate) plan: Plan,
    /// Of each leaf of the plan.
    pub(super) lists: Vec<ListSource>,
    /// Of each segment, where lists are prefetched one after the other.
    pub(super) known: Vec<Known>,
}

/// Where the lists of a term are read from.
pub struct ListSource {
    pub(super) leaf: Arc<Leaf>,
    /// Its list in each segment, where a cache has it.
    pub(super) near: Vec<Option<NearList>>,
    /// What of that is prefetched first.
    pub(super) wants: Vec<Want>,
    /// Bytes of each part of a list that are buffered, at most.
    pub(super) buffer: usize,
}

/// What answering may take where there is no budget: as much as it pays to read ahead in a few lists.
const WORKING_MEMORY: u64 = 16 << 20;

impl Deref for ListSource {
    type Target = Leaf;

    fn deref(&self) -> &Leaf {
        &self.leaf
    }
}

impl ListSource {
    /// How its list in the segment of that number is read.
    pub(super) fn reading(&self, number: usize) -> Reading<'_> {
        Reading { near: self.near.get(number).and_then(Option::as_ref), buffer: self.buffer }
    }
}

impl ListSources {
    /// All lists are read from their files.
    pub fn files(plan: Plan, segments: &[Segment]) -> ListSources {
        let list = |leaf: &Arc<Leaf>| ListSource {
            leaf: leaf.clone(),
            near: Vec::new(),
            wants: Vec::new(),
            buffer: BUFFER_MIN,
        };
        let lists = plan.leaves.iter().map(list).collect();
        let mut sources = ListSources { plan, lists, known: Vec::new() };
        sources.keep_within(segments, WORKING_MEMORY);
        sources
    }

    /// To be called before anything of so many segments is prefetched.
    pub fn prefetch(&mut self, segments: usize) {
        for list in &mut self.lists {
            list.near.resize_with(segments, || None);
            list.wants.resize(segments, Want::Whole);
        }
    }

    /// What is to come near first, in the order in which [`ListSources::attach`] takes it.
    pub fn jobs(&mut self, segments: &[Segment]) -> Result<Vec<Job>> {
        let mut jobs = Vec::new();
        self.lists.iter_mut().try_for_each(|leaf| {
            segments.iter().enumerate().try_for_each(|(number, segment)| {
                jobs.extend(match leaf.wants[number] {
                    Want::Nothing => None,
                    Want::Record | Want::Blocks => leaf.record(number, segment)?,
                    Want::Whole => leaf.whole(number, segment)?,
                });
                Ok::<(), Error>(())
            })
        })?;
        Ok(jobs)
    }

    /// Reads those of the lists of [`ListSources::jobs`] that `lists` gives from them from now on.
    pub fn attach(
        &mut self,
        segments: &[Segment],
        mut lists: impl FnMut() -> Result<Option<List>>,
    ) -> Result<()> {
        self.lists.iter_mut().try_for_each(|leaf| {
            for (number, segment) in segments.iter().enumerate() {
                let Some(info) = &leaf.infos[number] else { continue };
                let record = reads_record(segment.field(leaf.field));
                leaf.near[number] = match leaf.wants[number] {
                    Want::Whole if record || info.blocks.is_some() => {
                        lists()?.map(|list| NearList::Whole { list, record })
                    }
                    Want::Record | Want::Blocks => {
                        let record = if record { lists()? } else { None };
                        Some(NearList::Blocks { record, blocks: Vec::new() })
                    }
                    Want::Whole | Want::Nothing => None,
                };
            }
            Ok(())
        })
    }

    /// Reads the blocks that were named last from `lists` from now on, in the order of their jobs.
    pub fn attach_blocks(&mut self, mut lists: impl FnMut() -> Result<Option<List>>) -> Result<()> {
        self.lists.iter_mut().try_for_each(|leaf| {
            for near in leaf.near.iter_mut().flatten() {
                if let NearList::Blocks { blocks, .. } = near {
                    let mut named = blocks.iter_mut().filter(|blocks| blocks.list.is_none());
                    named.try_for_each(|blocks| lists().map(|found| blocks.list = found))?;
                }
            }
            Ok(())
        })
    }

    /// What follows from what is near, of the lists of which only records are, in the order in which
    /// [`ListSources::attach_blocks`] takes it; `best` are wanted, where not all has to be looked at, and
    /// reads cost so much. Says whether more follows when that is near.
    pub fn next_jobs(
        &mut self,
        segments: &[Segment],
        (best, cost): (Option<usize>, &CostModel),
        scratch: &mut Scratch,
    ) -> Result<(Vec<Job>, bool)> {
        match best {
            Some(k) if !self.known.is_empty() => self.next_of_any(segments, (k, cost), scratch),
            _ => self.next_of_all(segments),
        }
    }

    /// Wants all of all lists.
    pub fn want_whole(&mut self) {
        for leaf in &mut self.lists {
            leaf.wants.fill(Want::Whole);
            leaf.near.iter_mut().for_each(|near| *near = None);
        }
    }
}

/// The terms of clauses, if they are nothing else.
fn terms<'a>(leaves: &'a mut [ListSource], clauses: &[PlanNode]) -> Option<Vec<&'a mut ListSource>> {
    let number = |node: &PlanNode| match node {
        PlanNode::Term(leaf) => Some(*leaf),
        _ => None,
    };
    let numbers = clauses.iter().map(number).collect::<Option<Vec<usize>>>()?;
    let named = leaves.iter_mut().enumerate().filter(|(number, _)| numbers.contains(number));
    Some(named.map(|(_, leaf)| leaf).collect())
}

impl ListSource {
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

    /// Names these blocks, each range of which is a job of the kind `of`, as those that are to come near.
    fn name(
        &self,
        (number, segment): (usize, &Segment),
        (list, of): (&BlockList<'_>, u64),
        ranges: impl IntoIterator<Item = Range<usize>>,
        jobs: &mut Vec<Job>,
    ) -> Result<Vec<NearBlocks>> {
        let [_, docs, freqs] = segment.field(self.field).shared();
        debug_assert!(self.infos[number].is_some());
        let mut named = Vec::new();
        for blocks in ranges {
            let of_part = |part| -> Result<Range<u64>> {
                let last = list.range(part, blocks.end - 1)?;
                Ok(list.range(part, blocks.start)?.start..last.end)
            };
            let (of_docs, of_freqs) = (of_part(ListPart::Docs)?, of_part(ListPart::Freqs)?);
            let key = self.key(segment, of, of_docs.start);
            jobs.extend(job(key, [(docs, &of_docs), (freqs, &of_freqs)])?);
            named.push(NearBlocks { blocks, starts: [of_docs.start, of_freqs.start], list: None });
        }
        Ok(named)
    }

    /// Has these blocks come near, beside the record that may be here.
    fn bring(&mut self, number: usize, named: Vec<NearBlocks>) {
        match &mut self.near[number] {
            Some(NearList::Blocks { blocks, .. }) => *blocks = named,
            near => *near = Some(NearList::Blocks { record: None, blocks: named }),
        }
    }

    fn key(&self, segment: &Segment, of: u64, offset: u64) -> Key {
        // Lists, records, blocks and superblocks of a field each stand at an offset of their own.
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
pub(super) fn reads_record(field: &FieldReader) -> bool {
    field.skips().kept().is_none()
}
