//! All of some terms, one of which is much rarer than others: of these only what may hold a document of the rarest.
//!
//! The rarest list comes near whole, and its documents are looked up in the skip data of the others (Wang, Lin,
//! Papakonstantinou, Swanson, "Evaluating List Intersection on SSDs for Parallel I/O Skipping", the algorithm `SL`). The unit is
//! a superblock of 32 blocks, some 13 kB: one read of it takes about as long as one of a page.

use super::{SUPER, Want};
use crate::cursor::{NO_DOCUMENT, PostingsCursor, record};
use crate::error::Result;
use crate::limits::{BLOCK, SUPERBLOCK};
use crate::query::plan::{Leaf, Node, Plan};
use crate::segment::read::{BlockList, Record, Segment};
use std::ops::Range;
use tierdex_cache::Job;

/// Documents of a superblock.
const SUPERBLOCK_DOCUMENTS: usize = BLOCK * SUPERBLOCK;

impl<'q> Plan<'q> {
    /// Whether it asks for all of some terms and nothing else. If so it wants of each list what is worth it, a read at a random
    /// place taking as long as `read` bytes in a row; says whether that is less than all.
    pub fn want_some(&mut self, read: u64) -> bool {
        let Some(mut leaves) = self.conjunction() else { return false };
        let mut less = false;
        for number in 0..leaves[0].infos.len() {
            let documents = |leaf: &&mut Leaf<'_>| leaf.infos[number].as_ref().map(|info| info.documents);
            let least = leaves.iter().map(documents).min().flatten();
            for leaf in &mut leaves {
                leaf.wants[number] = match least {
                    // A term that the segment does not have.
                    None => Want::Nothing,
                    Some(least) => leaf.want_of(number, least, read),
                };
                less |= leaf.wants[number] != Want::Whole;
            }
        }
        less
    }

    /// The blocks that hold documents of the rarest term, of the lists of which only records are near, in the order in which
    /// [`Plan::attach_blocks`] takes them.
    pub fn some_jobs(&mut self, segments: &[Segment]) -> Result<Vec<Job>> {
        let mut jobs = Vec::new();
        let Some(mut leaves) = self.conjunction() else { return Ok(jobs) };
        // By leaves first, as they are attached.
        let mut named: Vec<Vec<Vec<Job>>> = leaves.iter().map(|_| Vec::new()).collect();
        for (number, segment) in segments.iter().enumerate() {
            let wants = |leaf: &&mut Leaf<'_>, want| leaf.wants[number] == want;
            let rarest = leaves.iter().filter(|leaf| wants(leaf, Want::Whole));
            let rarest = rarest.min_by_key(|leaf| leaf.infos[number].as_ref().map(|info| info.documents));
            let documents = match rarest {
                Some(rarest) if leaves.iter().any(|leaf| wants(leaf, Want::Record)) => {
                    rarest.documents(number, segment)?
                }
                _ => continue,
            };
            for (place, leaf) in leaves.iter_mut().enumerate().filter(|(_, leaf)| wants(leaf, Want::Record)) {
                let mut jobs = Vec::new();
                leaf.name_some(number, segment, &documents, &mut jobs)?;
                named[place].push(jobs);
            }
        }
        named.into_iter().flatten().for_each(|some| jobs.extend(some));
        Ok(jobs)
    }

    /// Its terms, if it asks for all of two or more and nothing else.
    fn conjunction(&mut self) -> Option<Vec<&mut Leaf<'q>>> {
        let Node::Bool { must, filter, should, must_not, minimum: 0 } = &mut self.root else { return None };
        if must.len() < 2 || !(filter.is_empty() && should.is_empty() && must_not.is_empty()) {
            return None;
        }
        let leaf = |node| match node {
            &mut Node::Term(ref mut leaf) => Some(leaf),
            _ => None,
        };
        must.iter_mut().map(leaf).collect()
    }
}

impl Leaf<'_> {
    /// What of a list is worth it if the rarest has `least` documents.
    fn want_of(&self, number: usize, least: u32, read: u64) -> Want {
        let Some(info) = &self.infos[number] else { return Want::Nothing };
        let Some(blocks) = &info.blocks else { return Want::Whole };
        let superblocks = (info.documents as usize).div_ceil(SUPERBLOCK_DOCUMENTS);
        let bytes: u64 = blocks.iter().map(|range| range.end - range.start).sum();
        // Documents and frequencies are two reads.
        let cost = superblocks.min(least as usize) as u64 * 2 * read.max(bytes / superblocks as u64 / 2);
        if cost < bytes / 2 { Want::Record } else { Want::Whole }
    }

    /// All documents of the list, which is near.
    fn documents(&self, number: usize, segment: &Segment) -> Result<Vec<u32>> {
        let Some(info) = &self.infos[number] else { return Ok(Vec::new()) };
        let mut documents = Vec::with_capacity(info.documents as usize);
        let near = self.near[number].as_ref();
        let mut cursor = PostingsCursor::open_near(segment.field(self.field), info.clone(), near)?;
        while cursor.advance(0)? != NO_DOCUMENT {
            let rest = cursor.documents_of_block();
            let count = rest.len();
            documents.extend_from_slice(rest);
            cursor.skip(count)?;
        }
        Ok(documents)
    }

    /// Names the superblocks that may hold any of `documents`, which rise, and adds their jobs.
    fn name_some(
        &mut self,
        number: usize,
        segment: &Segment,
        documents: &[u32],
        jobs: &mut Vec<Job>,
    ) -> Result<()> {
        let Some(info) = self.infos[number].clone() else { return Ok(()) };
        let record = record(segment.field(self.field), &info, self.near[number].as_ref())?;
        let Record::Blocks(list) = record else { return Ok(()) };
        let ranges = superblocks(&list, documents);
        let named = self.name((number, segment), (&list, SUPER), ranges, jobs)?;
        self.bring(number, named);
        Ok(())
    }
}

/// Blocks of the superblocks that may hold any of `documents`.
fn superblocks(list: &BlockList<'_>, documents: &[u32]) -> Vec<Range<usize>> {
    let mut ranges: Vec<Range<usize>> = Vec::new();
    let mut rest = documents;
    while let Some(next) = rest.first() {
        let block = list.find_block(ranges.last().map_or(0, |range| range.end), *next);
        if block >= list.blocks() {
            break;
        }
        let first = block / SUPERBLOCK * SUPERBLOCK;
        let blocks = first..(first + SUPERBLOCK).min(list.blocks());
        let last = list.last(blocks.end - 1);
        rest = &rest[rest.partition_point(|document| *document <= last)..];
        ranges.push(blocks);
    }
    ranges
}
