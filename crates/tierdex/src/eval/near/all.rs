//! All of some terms, one of which is much rarer than others: of these only what may hold a document of those before them.
//!
//! The rarest list comes near whole, and its documents are looked up in the skip data of the next; what stands in both, in
//! that of the one after it (Wang, Lin, Papakonstantinou, Swanson, "Evaluating List Intersection on SSDs for Parallel I/O
//! Skipping", the algorithm `SL`, its reads many at a time). Whether some blocks are worth it is decided by the cost model of
//! the room `intersect`. What was read is kept in the cache, for the next query that needs it; so the unit is the same for all
//! queries: a superblock of 32 blocks, some 13 kB, which is about as much as is read in a row in the time of another read.

use super::{ListSource, ListSources, SUPER, Want};
use crate::cursor::{NO_DOCUMENT, PostingsCursor, record};
use crate::error::Result;
use crate::intersect::CostModel;
use crate::limits::{BLOCK, SUPERBLOCK};
use crate::query::plan::{PlanGroup, PlanNode};
use crate::segment::read::{BlockList, Record, Segment, TermInfo};
use std::ops::Range;
use tierdex_cache::Job;
use tierdex_io::PAGE;

/// Documents of a superblock.
const SUPERBLOCK_DOCUMENTS: usize = BLOCK * SUPERBLOCK;

/// To wait for a list before the next is asked for is worth it if so many superblocks less are expected to be read.
const WORTH_A_STEP: f64 = 8.0;

/// Some superblocks are worth it if they cost at most so much of the whole list: more may be kept of that for other queries.
const WORTH_LESS: f64 = 0.75;

impl ListSources {
    /// Whether it asks for all of some terms and nothing else. If so it wants of each list what is worth it, where reads cost
    /// so much; says whether that is less than all.
    pub fn want_some(&mut self, segments: &[Segment], cost: &CostModel) -> bool {
        let Some(mut leaves) = self.conjunction() else { return false };
        let mut less = false;
        for (number, segment) in segments.iter().enumerate() {
            let lacks_one = leaves.iter().any(|leaf| leaf.infos[number].is_none());
            // As many as are expected to be left by the lists before, if terms stand in documents by chance.
            let mut candidates = f64::INFINITY;
            for place in order(&leaves, number) {
                let leaf = &mut leaves[place];
                let want = match &leaf.infos[number] {
                    Some(info) if !lacks_one => {
                        let want = want_of(info, candidates, cost);
                        let share = f64::from(info.documents) / f64::from(segment.documents());
                        candidates = (candidates * share).min(f64::from(info.documents));
                        want
                    }
                    // Nothing has them all.
                    _ => Want::Nothing,
                };
                leaf.wants[number] = want;
                less |= want != Want::Whole;
            }
        }
        less
    }

    /// The blocks that may hold documents of all terms that are near, of the lists of which only records are:
    /// in the order in which [`ListSources::attach_blocks`] takes them. Says whether there are more, which
    /// are to be asked for when these are near.
    pub(super) fn next_of_all(&mut self, segments: &[Segment]) -> Result<(Vec<Job>, bool)> {
        let (mut jobs, mut more) = (Vec::new(), false);
        let Some(mut leaves) = self.conjunction() else { return Ok((jobs, more)) };
        // By leaves first, as they are attached.
        let mut named: Vec<Vec<Vec<Job>>> = leaves.iter().map(|_| Vec::new()).collect();
        for (number, segment) in segments.iter().enumerate() {
            let mut order = order(&leaves, number);
            let unnamed = |leaf: &usize| leaves[*leaf].wants[number] == Want::Record;
            let Some(next) = order.iter().position(unnamed) else { continue };
            let before: Vec<&ListSource> = order[..next].iter().map(|leaf| &*leaves[*leaf]).collect();
            let documents = documents_of_all(&before, number, segment)?;
            let mut rest = order.split_off(next);
            rest.retain(unnamed);
            let postings = rest.iter().map(|leaf| leaves[*leaf].postings(number));
            if is_worth_a_step(postings, documents.len(), segment.documents()) {
                rest.truncate(1);
                more = true;
            }
            for place in rest {
                let mut jobs = Vec::new();
                leaves[place].name_some(number, segment, &documents, &mut jobs)?;
                named[place].push(jobs);
            }
        }
        named.into_iter().flatten().for_each(|some| jobs.extend(some));
        Ok((jobs, more))
    }

    /// Its terms, if it asks for all of two or more and nothing else.
    fn conjunction(&mut self) -> Option<Vec<&mut ListSource>> {
        let PlanNode::Group(group) = &self.plan.root else { return None };
        let PlanGroup { must, filter, should, must_not, .. } = &**group;
        // Where they are only counted, all are filters.
        let (clauses, others) = if must.is_empty() { (filter, must) } else { (must, filter) };
        if clauses.len() < 2 || !(others.is_empty() && should.is_empty() && must_not.is_empty()) {
            return None;
        }
        super::terms(&mut self.lists, clauses)
    }
}

/// The order in which candidates are looked up: the rarest term first, as the ways of evaluation have it.
fn order(leaves: &[&mut ListSource], number: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..leaves.len()).collect();
    order.sort_by_key(|leaf| leaves[*leaf].infos[number].as_ref().map(|info| info.documents));
    order
}

/// What of a list is worth it if so many candidates are looked up in it.
pub(super) fn want_of(info: &TermInfo, candidates: f64, cost: &CostModel) -> Want {
    if info.blocks.is_none() {
        return Want::Whole;
    }
    let bytes = info.bytes();
    let superblocks = superblocks_of(info.documents);
    let hit = hit(superblocks, candidates);
    // Documents and frequencies are two reads, of a page more than they need.
    let some = cost.seconds((2.0 * hit) as u64, (hit * (bytes as f64 / superblocks + PAGE as f64)) as u64);
    if some < WORTH_LESS * cost.seconds(2, bytes) { Want::Record } else { Want::Whole }
}

/// Superblocks of a list of so many postings.
fn superblocks_of(postings: u32) -> f64 {
    (f64::from(postings) / SUPERBLOCK_DOCUMENTS as f64).ceil()
}

/// How many of the superblocks are expected to be hit by so many candidates.
fn hit(superblocks: f64, candidates: f64) -> f64 {
    superblocks * (1.0 - (1.0 - 1.0 / superblocks).powf(candidates))
}

/// Documents that hold all of some terms, the rarest of which is the first. Their lists are near, as far as that matters.
fn documents_of_all(leaves: &[&ListSource], number: usize, segment: &Segment) -> Result<Vec<u32>> {
    let Some((rarest, others)) = leaves.split_first() else { return Ok(Vec::new()) };
    let mut documents = rarest.documents(number, segment)?;
    for leaf in others {
        let Some(mut cursor) = leaf.cursor(number, segment)? else { return Ok(Vec::new()) };
        let mut kept = 0;
        for at in 0..documents.len() {
            let document = documents[at];
            if cursor.advance(document)? == document {
                documents[kept] = document;
                kept += 1;
            }
        }
        documents.truncate(kept);
    }
    Ok(documents)
}

/// Whether superblocks are saved in the lists behind the first if the candidates are looked up in that before. The lists have
/// so many `postings` each, and the segment so many documents.
fn is_worth_a_step(mut postings: impl Iterator<Item = u32>, candidates: usize, documents: u32) -> bool {
    let Some(next) = postings.next() else { return false };
    let candidates = candidates as f64;
    saves_enough(postings, candidates, candidates * f64::from(next) / f64::from(documents))
}

/// Whether enough superblocks are saved in lists of so many `postings` each if of the candidates only so many are left.
pub(super) fn saves_enough(postings: impl Iterator<Item = u32>, candidates: f64, left: f64) -> bool {
    let superblocks = postings.map(superblocks_of);
    let saved = superblocks.map(|superblocks| hit(superblocks, candidates) - hit(superblocks, left));
    saved.sum::<f64>() >= WORTH_A_STEP
}

impl ListSource {
    /// A cursor over its list; `None` if the segment does not have the term.
    fn cursor<'a>(&'a self, number: usize, segment: &'a Segment) -> Result<Option<PostingsCursor<'a>>> {
        let (info, reading) = (self.infos[number].clone(), self.reading(number));
        info.map(|info| PostingsCursor::open_near(segment.field(self.field), info, reading)).transpose()
    }

    /// How many documents of the segment of that number hold the term.
    pub(super) fn postings(&self, number: usize) -> u32 {
        self.infos[number].as_ref().map_or(0, |info| info.documents)
    }

    /// All documents of the list, which is near.
    fn documents(&self, number: usize, segment: &Segment) -> Result<Vec<u32>> {
        let Some(mut cursor) = self.cursor(number, segment)? else { return Ok(Vec::new()) };
        let mut documents = Vec::with_capacity(cursor.term().documents as usize);
        while cursor.advance(0)? != NO_DOCUMENT {
            let rest = cursor.documents_of_block();
            let count = rest.len();
            documents.extend_from_slice(rest);
            cursor.skip(count)?;
        }
        Ok(documents)
    }

    /// Names the superblocks that may hold any of `documents`, which rise, and adds their jobs.
    pub(super) fn name_some(
        &mut self,
        number: usize,
        segment: &Segment,
        documents: &[u32],
        jobs: &mut Vec<Job>,
    ) -> Result<()> {
        let Some(info) = self.infos[number].clone() else { return Ok(()) };
        let record = record(segment.field(self.field), &info, self.reading(number))?;
        let Record::Blocks(list) = record else { return Ok(()) };
        let ranges = superblocks(&list, documents);
        let named = self.name((number, segment), (&list, SUPER), ranges, jobs)?;
        self.bring(number, named);
        self.wants[number] = Want::Blocks;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_worth_it_where_few_remain() {
        let is_worth =
            |postings: &[u32], candidates| is_worth_a_step(postings.iter().copied(), candidates, 4_000_000);
        assert!(is_worth(&[400_000, 3_000_000], 200));
        // No list follows; nearly all remain; so many that all superblocks are hit, or so few that hardly any is.
        assert!(!is_worth(&[], 200) && !is_worth(&[400_000], 200));
        assert!(!is_worth(&[3_900_000, 4_000_000], 200));
        assert!(!is_worth(&[400_000, 3_000_000], 100_000) && !is_worth(&[400_000, 3_000_000], 3));
    }
}
