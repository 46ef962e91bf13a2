//! What a query takes of memory while it waits and while it is answered: known when it is planned.
//!
//! While it is answered, in one segment after the other on each thread, all its lists in the segment are open. Each takes as
//! much as is decoded of it, its record, where that is not resident, and two buffers of documents and of frequencies. What
//! these hold together is bounded: lists that are few read far ahead, and many no more than a block each.

use super::near::{Known, Want, reads_record};
use super::ops::{BoolOp, Op, TermOp, WINDOW, Window};
use super::plan::{Leaf, Node, Plan};
use super::prune::{Bounds, CANDIDATES_BYTES, SCORED_BYTES, few, noted_bytes};
use crate::cursor::{BUFFER_MAX, BUFFER_MIN, IN_ORDER_BYTES, NearList};
use crate::limits::BLOCK;
use crate::rank::TermScorer;
use crate::segment::read::{READ_AHEAD, Segment, TermInfo};
use tierdex_io::PAGE;

/// Bytes that a list takes at most, beside its record, its buffers and its bounds; operators keep less of it than that.
const LIST: u64 = SCORED_BYTES as u64;

const _: () = assert!(size_of::<TermOp<'_>>() + 2 * size_of::<Op<'_>>() + 12 * BLOCK + 4096 < SCORED_BYTES);

/// Documents and frequencies.
const PARTS: u64 = 2;

/// Bytes of an encoded position, about, and of one that is decoded, in two places.
const POSITION: u64 = 4;
const POSITION_DECODED: u64 = 16;

/// Windows of documents for each level of a query, an operator that joins some, and how many of both an ordinary query has.
const WINDOWS: u64 = 2 * size_of::<Window>() as u64;
const JOINS: u64 = (size_of::<BoolOp<'_>>() + 2 * WINDOW) as u64;
const DEPTH: u64 = 2;

/// What a query of so many terms takes at least while it is answered, beside records, where each has a list of blocks.
pub fn working_memory(terms: usize) -> u64 {
    let lists = terms as u64;
    lists * LIST
        + (PARTS * lists + 1) * BUFFER_MIN as u64
        + (noted_bytes(terms) + CANDIDATES_BYTES) as u64
        + (WINDOWS + JOINS) * DEPTH
}

/// Bytes of the text of a usual term, with what memory takes to keep it.
const TEXT: usize = 32;

/// What a term of a planned query takes, about.
pub fn leaf_memory(segments: usize) -> usize {
    let segment = size_of::<Option<TermInfo>>() + size_of::<Option<NearList>>() + size_of::<Want>();
    size_of::<Node<'_>>() + size_of::<TermScorer>() + TEXT + segments * segment
}

/// What answering takes in a segment.
#[derive(Default)]
struct Need {
    bytes: u64,
    /// For one after the other.
    aside: u64,
    buffers: u64,
    lists: usize,
    postings: u64,
    /// Of the shortest list, and whether blocks of others are looked up by it.
    rarest: Option<u32>,
    by_rarest: bool,
}

impl Plan<'_> {
    /// Bytes of memory that it takes, about.
    pub fn memory(&mut self) -> usize {
        let mut bytes = self.known.iter().map(|known| size_of::<Known>() + known.memory()).sum();
        let visited = self.root.for_each_leaf(&mut |leaf| {
            let near = leaf.near.iter().flatten().map(NearList::memory).sum::<usize>();
            bytes += leaf_memory(leaf.infos.len()) + leaf.term.len().saturating_sub(TEXT) + near;
            Ok(())
        });
        debug_assert!(visited.is_ok());
        bytes
    }

    /// Has its lists read ahead as far as `allowance` bytes leave room for, and says what answering takes then, on each
    /// thread: more than `allowance` if that is too little for a block of each list.
    pub fn keep_within(&mut self, segments: &[Segment], allowance: u64) -> u64 {
        let numbered = segments.iter().enumerate();
        let needs: Vec<Need> = numbered.map(|(number, segment)| self.need(number, segment)).collect();
        let room = |need: &Need| allowance.saturating_sub(need.bytes).checked_div(need.buffers);
        let buffer = needs.iter().filter_map(room).min().unwrap_or(0) / PAGE * PAGE;
        let buffer = buffer.clamp(BUFFER_MIN as u64, BUFFER_MAX as u64);
        let set = self.root.for_each_leaf(&mut |leaf| {
            leaf.buffer = buffer as usize;
            Ok(())
        });
        debug_assert!(set.is_ok());
        needs.iter().map(|need| need.bytes + need.buffers * buffer).max().unwrap_or(0)
    }

    fn need(&self, number: usize, segment: &Segment) -> Need {
        let (mut need, alone) = (Need::default(), self.is_of_one_term());
        let depth = self.root.add_to((number, segment), alone, &mut need);
        // A record is read through one more, unless it is resident.
        need.buffers += need.buffers.min(1);
        need.bytes += need.aside + noted_bytes(need.lists) as u64;
        need.bytes += depth * WINDOWS;
        if !self.known.is_empty() {
            need.bytes += CANDIDATES_BYTES as u64;
        }
        if few(need.lists, need.postings, segment.documents()) {
            // Documents and scores, in three batches.
            need.bytes += 3 * 8 * need.postings;
        }
        let of_all = matches!(&self.root, Node::Bool { must, .. } if !must.is_empty());
        if of_all && need.by_rarest {
            // Its documents, before the lists are open.
            need.bytes = need.bytes.max(4 * u64::from(need.rarest.unwrap_or(0)) + 2 * LIST);
        }
        need
    }
}

impl Node<'_> {
    /// Adds what it takes, and says how deep it is.
    fn add_to(&self, segment: (usize, &Segment), alone: bool, need: &mut Need) -> u64 {
        match self {
            Node::Term(leaf) => {
                leaf.add_to(segment, alone, need);
                1
            }
            Node::Phrase(leaves, ..) => {
                for (_, leaf) in leaves {
                    leaf.add_to(segment, alone, need);
                    need.bytes += leaf.positions(segment.0);
                }
                1
            }
            Node::Prefix(_, _, _, terms) => {
                let lists = 2 * terms * size_of::<TermInfo>() + IN_ORDER_BYTES;
                need.aside = need.aside.max(lists as u64 + READ_AHEAD + LIST);
                need.bytes += u64::from(segment.1.documents()).div_ceil(8) + 8;
                1
            }
            Node::Bool { must, filter, should, must_not, .. } => {
                need.bytes += JOINS;
                let clauses = [must, filter, should, must_not].into_iter().flatten();
                1 + clauses.map(|clause| clause.add_to(segment, alone, need)).max().unwrap_or(0)
            }
            Node::All(_) | Node::Nothing => 1,
        }
    }
}

impl Leaf<'_> {
    fn add_to(&self, (number, segment): (usize, &Segment), alone: bool, need: &mut Need) {
        let Some(info) = &self.infos[number] else { return };
        need.lists += 1;
        need.postings += u64::from(info.documents);
        need.rarest = Some(need.rarest.map_or(info.documents, |rarest| rarest.min(info.documents)));
        need.bytes += LIST;
        if reads_record(segment.field(self.field)) {
            need.bytes += info.skips.end - info.skips.start;
        }
        if info.blocks.is_none() {
            return;
        }
        let blocks = u64::from(info.documents).div_ceil(BLOCK as u64);
        if self.bounds(segment) == Bounds::Impacts {
            need.bytes += blocks * size_of::<f32>() as u64;
        }
        if alone {
            // The order of its blocks, and room to find it.
            need.bytes += 3 * 8 * blocks;
        }
        need.by_rarest |= self.wants[number] == Want::Record;
        need.buffers += PARTS;
    }

    /// Bytes for the positions of a block and for those of a document, about: as many as it has on average.
    fn positions(&self, number: usize) -> u64 {
        self.infos[number].as_ref().map_or(0, |info| {
            let each = info.occurrences.div_ceil(u64::from(info.documents));
            each * (u64::from(info.documents).min(BLOCK as u64) * POSITION + POSITION_DECODED)
        })
    }
}
