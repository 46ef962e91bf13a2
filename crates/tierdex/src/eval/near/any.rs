//! The best of any of some terms, some of which are long lists that add little: of these only what may hold a hit.
//!
//! Lists of terms that weigh most come near whole. They tell which documents may be among the best (Turtle and Flood,
//! "Query evaluation: strategies and optimizations", 1995: the essential lists of `MaxScore`), and these are looked up in the
//! lists of the others, the one that may add most first, superblock by superblock as where all terms must be there (`all`).
//! What each adds makes them fewer for the next. Those that are left are scored when the query is answered, and no others.

use super::all::{saves_enough, want_of};
use super::{ListSource, ListSources, Want};
use crate::error::Result;
use crate::eval::{CANDIDATES_MAX, Candidates, Evaluation, Node, Scratch, Search, Strategy, open, open_leaf};
use crate::intersect::CostModel;
use crate::query::plan::{PlanGroup, PlanNode};
use crate::segment::read::Segment;
use tierdex_cache::Job;

/// What the `k`-th best of a list is taken to score before any is known, as a part of what its term weighs: most documents
/// that hold a term once score less than a half, and the best of many more.
const REACHED: f64 = 0.5;

/// Lists are worth it if all of them together take as long to read as so many reads: steps wait for each other, and ask for more
/// reads, which are shorter.
const WORTH_READS: u64 = 80;

/// What is known of a segment on the way from list to list.
#[derive(Default)]
pub struct Known {
    candidates: Option<Candidates>,
    /// Terms whose blocks were named last, by their numbers.
    named: Vec<usize>,
}

impl Known {
    /// The documents that may be among the best, if no others may.
    pub fn candidates(&self) -> Option<&Candidates> {
        self.candidates.as_ref()
    }

    /// Bytes that it takes beside itself.
    pub fn memory(&self) -> usize {
        self.candidates.as_ref().map_or(0, Candidates::memory) + size_of_val(&self.named[..])
    }
}

impl ListSources {
    /// Whether it looks for the best `k` of any of some terms and nothing else. If so it wants the lists of those that weigh
    /// most, and of others what is worth it, where reads cost so much; says whether that is less than all.
    pub fn want_essential(&mut self, segments: &[Segment], k: usize, cost: &CostModel) -> bool {
        let ListSources { plan, lists, known } = self;
        let Some(mut leaves) = alternatives(&plan.root, lists).filter(|_| k <= CANDIDATES_MAX / 2) else {
            return false;
        };
        let mut less = false;
        for number in 0..segments.len() {
            let long = light(&leaves, number, k);
            let bytes = |place: &usize| leaves[*place].infos[number].as_ref().map_or(0, |info| info.bytes());
            let bytes = long.iter().map(bytes).sum();
            if cost.seconds(0, bytes) > cost.seconds(WORTH_READS, 0) {
                long.iter().for_each(|place| leaves[*place].wants[number] = Want::Record);
                less |= !long.is_empty();
            }
        }
        if less {
            *known = segments.iter().map(|_| Known::default()).collect();
        }
        less
    }

    /// The blocks that may hold one of the best `k`, of the next of the lists of which only records are near:
    /// in the order in which [`ListSources::attach_blocks`] takes them. Says whether there are more, which
    /// are to be asked for when these are near.
    pub(super) fn next_of_any(
        &mut self,
        segments: &[Segment],
        (k, cost): (usize, &CostModel),
        scratch: &mut Scratch,
    ) -> Result<(Vec<Job>, bool)> {
        let ListSources { plan, lists, known } = self;
        let (mut jobs, mut more) = (Vec::new(), false);
        let Some(mut leaves) = alternatives(&plan.root, lists) else { return Ok((jobs, more)) };
        // By leaves first, as they are attached.
        let mut named: Vec<Vec<Vec<Job>>> = leaves.iter().map(|_| Vec::new()).collect();
        for ((number, segment), known) in segments.iter().enumerate().zip(known) {
            let mut rest = unnamed(&leaves, number);
            if rest.is_empty() {
                continue;
            }
            known.go_on(&leaves, &rest, (number, segment), k, scratch)?;
            if let Some(candidates) = &known.candidates {
                let postings = rest[1..].iter().map(|place| leaves[*place].postings(number));
                let found = candidates.documents().len();
                // Those that are left are hardly fewer than the best.
                if saves_enough(postings, found as f64, k.min(found) as f64) {
                    rest.truncate(1);
                    more = true;
                }
            }
            for &place in &rest {
                let mut jobs = Vec::new();
                let leaf = &mut leaves[place];
                let found = known.candidates.as_ref().map(Candidates::documents);
                match found.filter(|found| leaf.is_worth_less(number, found.len(), cost)) {
                    Some(found) => leaf.name_some(number, segment, found, &mut jobs)?,
                    None => leaf.name_all(number, segment, &mut jobs)?,
                }
                leaf.wants[number] = Want::Blocks;
                named[place].push(jobs);
            }
            known.named = rest;
        }
        named.into_iter().flatten().for_each(|some| jobs.extend(some));
        Ok((jobs, more))
    }
}

impl Known {
    /// Finds candidates by the lists that are near, but for `rest`; or adds what those add that have come near since.
    fn go_on(
        &mut self,
        leaves: &[&mut ListSource],
        rest: &[usize],
        (number, segment): (usize, &Segment),
        k: usize,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let mut open = |places: &mut dyn Iterator<Item = usize>| -> Result<Vec<Node<'_>>> {
            let lists = places.map(|place| open_leaf(leaves[place], (number, segment), scratch));
            lists.filter_map(|list| list.transpose().map(|list| list.map(Node::Term))).collect()
        };
        let mut others = open(&mut rest.iter().copied())?;
        let (mut here, is_first) = match &self.candidates {
            None => (open(&mut (0..leaves.len()).filter(|place| !rest.contains(place)))?, true),
            Some(_) => (open(&mut self.named.iter().copied())?, false),
        };
        match &mut self.candidates {
            Some(candidates) if !is_first => candidates.add(&mut here, &mut others, scratch)?,
            _ => {
                self.candidates = Candidates::find(&mut here, &mut others, k, segment.documents(), scratch)?;
            }
        }
        here.into_iter().chain(others).for_each(|list| list.close(scratch));
        Ok(())
    }
}

/// Terms of long lists that together cannot reach what the best of another are taken to score.
fn light(leaves: &[&mut ListSource], number: usize, k: usize) -> Vec<usize> {
    let there = |place: &usize| leaves[*place].infos[number].is_some();
    let weight = |place: usize| leaves[place].weight;
    let mut order: Vec<usize> = (0..leaves.len()).filter(there).collect();
    order.sort_by(|a, b| weight(*a).total_cmp(&weight(*b)));
    let has_best = |place: &&usize| leaves[**place].postings(number) as usize >= k;
    let reached = order.iter().filter(has_best).map(|place| weight(*place)).fold(0.0, f64::max) * REACHED;
    let mut most = 0.0;
    order.retain(|place| {
        most += weight(*place);
        most < reached
    });
    order.retain(|place| leaves[*place].infos[number].as_ref().is_some_and(|info| info.blocks.is_some()));
    order
}

/// Terms of whose lists only records are near, the one that may add most first.
fn unnamed(leaves: &[&mut ListSource], number: usize) -> Vec<usize> {
    let mut rest: Vec<usize> =
        (0..leaves.len()).filter(|place| leaves[*place].wants[number] == Want::Record).collect();
    rest.sort_by(|a, b| leaves[*b].weight.total_cmp(&leaves[*a].weight));
    rest
}

impl ListSource {
    /// Whether what of the list may hold so many candidates costs less to read than all of it.
    fn is_worth_less(&self, number: usize, candidates: usize, cost: &CostModel) -> bool {
        let info = self.infos[number].as_ref();
        info.is_some_and(|info| want_of(info, candidates as f64, cost) == Want::Record)
    }
}

/// The terms of a query that asks for any of two or more and nothing else.
fn alternatives<'a>(root: &PlanNode, leaves: &'a mut [ListSource]) -> Option<Vec<&'a mut ListSource>> {
    let PlanNode::Group(group) = root else { return None };
    let PlanGroup { must, filter, should, must_not, minimum } = &**group;
    let plain = must.is_empty() && filter.is_empty() && must_not.is_empty();
    if !plain || *minimum > 1 || should.len() < 2 {
        return None;
    }
    super::terms(leaves, should)
}

impl ListSources {
    /// Offers the best of the candidates that the lists have proposed while they were prefetched, and returns
    /// how many were evaluated; `None` if there are none, or if more is asked for.
    pub(crate) fn offer_candidates(
        &self,
        number: usize,
        segment: &Segment,
        search: &mut Search<'_>,
        mut log: Option<&mut Evaluation>,
    ) -> Result<Option<u64>> {
        let candidates = self.known.get(number).and_then(Known::candidates);
        let Some(candidates) = candidates.filter(|found| search.is_within(found.k())) else {
            return Ok(None);
        };
        let Some(mut lists) = open(self, &self.plan.root, (number, segment), search.scratch())? else {
            return Ok(Some(0));
        };
        if let Some(log) = log.as_deref_mut() {
            log.begin(&mut lists);
        }
        let evaluated = candidates.offer(&mut lists, search)?;
        if let Some(log) = log {
            log.end(&self.plan, (number, segment), &mut lists, Strategy::Candidates);
        }
        lists.close(search.scratch());
        Ok(Some(evaluated))
    }
}
