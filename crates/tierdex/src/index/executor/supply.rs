//! The five modes: who brings a query's lists near, and when.
//!
//! With a cache that is filled ahead, lists stand in its queue in the order of the queries. Where some blocks are enough, they
//! may be known at once: then they stand in the queue instead. Else they follow from what comes near first: then they are
//! asked for beside the queue, for the next few queries, and wait for nobody's room.

use crate::error::Result;
use crate::eval::{ListSources, Scratch};
use crate::intersect::CostModel;
use crate::segment::read::Segment;
use tierdex_cache::{Begun, Job, List, PagePrefetcher, PageQuery, Prefetcher, Query, Sample, Stats};

/// For each list that was asked for: its job with two or three parts, and its place in queues.
pub(super) const LIST: usize = 256;

/// Who brings lists near.
pub(super) enum Supply {
    /// Nobody.
    Base,
    /// A worker, into the page cache.
    Pages(PagePrefetcher),
    /// Workers, into the cache, for queries to come.
    Behind(Prefetcher),
    /// Workers, into the cache, ahead of the queries.
    Ahead(Prefetcher),
}

/// How far a query's lists are.
pub(super) enum Place {
    /// They stay where they are.
    Base,
    /// In the queue of the page cache.
    Pages(PageQuery),
    /// They will be looked for in the cache.
    Behind(Vec<Job>),
    /// In the queue of the cache.
    Ahead(Query),
    /// The same, of blocks of one term.
    AheadBlocks(Query),
    /// Nothing of the one term was asked for.
    Later,
    /// Its records were.
    Records(Vec<Begun>),
    /// What comes first is in the queue of the cache; what then, follows from it.
    AheadFirst(Query),
    /// Its blocks were, behind what came first; there may be more, which follow from these.
    Blocks { first: Option<Query>, blocks: Vec<Begun>, more: bool },
}

impl Place {
    /// Whether there is another step to be taken.
    fn is_on_the_way(&self) -> bool {
        matches!(
            self,
            Place::Later | Place::Records(_) | Place::AheadFirst(_) | Place::Blocks { more: true, .. }
        )
    }

    /// Bytes that it takes, about.
    pub(super) fn memory(&self) -> usize {
        let lists = match self {
            Place::Base | Place::Pages(_) | Place::Later => 0,
            Place::Behind(jobs) => jobs.len(),
            Place::Ahead(query) | Place::AheadBlocks(query) | Place::AheadFirst(query) => query.lists(),
            Place::Records(begun) => begun.len(),
            Place::Blocks { first, blocks, .. } => blocks.len() + first.as_ref().map_or(0, Query::lists),
        };
        lists * LIST
    }
}

/// What planning goes by.
pub(super) struct Shape<'a> {
    pub(super) segments: &'a [Segment],
    /// How many of the best are asked for, where not all has to be looked at.
    pub(super) best: Option<usize>,
    /// Whether lists of alternatives may come near one after the other: not where all matches are counted.
    pub(super) steps: bool,
    /// Whether records are resident.
    pub(super) resident: bool,
    /// What reads cost.
    pub(super) cost: CostModel,
}

impl Supply {
    /// Puts a query into the queue.
    pub(super) fn push(
        &self,
        plan: &mut ListSources,
        shape: &Shape<'_>,
        scratch: &mut Scratch,
    ) -> Result<Place> {
        let mut first = false;
        if !matches!(self, Supply::Base) {
            plan.prefetch(shape.segments.len());
        }
        let best = shape.best.filter(|_| plan.is_of_one_term());
        match (self, best) {
            (Supply::Base, _) => return Ok(Place::Base),
            (Supply::Ahead(_), Some(_)) if !shape.resident => return Ok(Place::Later),
            (Supply::Ahead(prefetcher), Some(k)) => {
                if let Some(jobs) = plan.block_jobs(shape.segments, (k, &shape.cost), scratch)? {
                    return Ok(Place::AheadBlocks(prefetcher.push(jobs)));
                }
            }
            (Supply::Ahead(_), None) => {
                let best = shape.best.filter(|_| shape.steps);
                first = plan.want_some(shape.segments, &shape.cost)
                    || best.is_some_and(|k| plan.want_essential(shape.segments, k, &shape.cost));
            }
            (Supply::Pages(_) | Supply::Behind(_), _) => {}
        }
        let jobs = plan.jobs(shape.segments)?;
        Ok(match self {
            Supply::Base => Place::Base,
            Supply::Pages(worker) => Place::Pages(worker.push(jobs)),
            Supply::Behind(_) => Place::Behind(jobs),
            Supply::Ahead(prefetcher) if first => Place::AheadFirst(prefetcher.push(jobs)),
            Supply::Ahead(prefetcher) => Place::Ahead(prefetcher.push(jobs)),
        })
    }

    /// Goes one step on with a query whose turn will soon come, if that needs no waiting and no read: what it goes by stands in
    /// the cache.
    pub(super) fn promote(
        &self,
        place: &mut Place,
        plan: &mut ListSources,
        shape: &Shape<'_>,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let ready = match place {
            Place::Later => true,
            Place::Records(begun) | Place::Blocks { blocks: begun, more: true, .. } => {
                begun.iter().all(Begun::is_here)
            }
            Place::AheadFirst(query) => (0..query.lists()).all(|list| query.is_here(list)),
            _ => false,
        };
        if ready { self.step(place, plan, shape, scratch) } else { Ok(()) }
    }

    /// Goes one step on with a query whose lists come near in several; waits where it must.
    fn step(
        &self,
        place: &mut Place,
        plan: &mut ListSources,
        shape: &Shape<'_>,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let Supply::Ahead(prefetcher) = self else { return Ok(()) };
        let begin = |jobs: Vec<Job>| prefetcher.begin_all(&jobs);
        *place = match (std::mem::replace(place, Place::Later), shape.best) {
            (Place::Later, _) => {
                plan.want_records();
                Place::Records(begin(plan.jobs(shape.segments)?))
            }
            (Place::Records(begun), Some(k)) => {
                plan.attach(shape.segments, ended(begun))?;
                // Lists are not wanted whole: their records are here.
                let jobs = plan.block_jobs(shape.segments, (k, &shape.cost), scratch)?.unwrap_or_default();
                Place::Blocks { first: None, blocks: begin(jobs), more: false }
            }
            (Place::AheadFirst(query), _) => {
                plan.attach(shape.segments, waited(&query))?;
                let (jobs, more) = plan.next_jobs(shape.segments, (shape.best, &shape.cost), scratch)?;
                Place::Blocks { first: Some(query), blocks: begin(jobs), more }
            }
            (Place::Blocks { first, blocks, more: true }, _) => {
                plan.attach_blocks(ended(blocks))?;
                let (jobs, more) = plan.next_jobs(shape.segments, (shape.best, &shape.cost), scratch)?;
                Place::Blocks { first, blocks: begin(jobs), more }
            }
            (further, _) => further,
        };
        scratch.shrink();
        Ok(())
    }

    /// Waits for the lists of a query, and has its plan read them from where they are. The place is to be dropped behind the plan.
    pub(super) fn attach(
        &self,
        place: &mut Place,
        plan: &mut ListSources,
        shape: &Shape<'_>,
        scratch: &mut Scratch,
    ) -> Result<()> {
        while place.is_on_the_way() {
            self.step(place, plan, shape, scratch)?;
        }
        match (self, place) {
            (_, Place::Pages(query)) => Ok(query.wait()?),
            (Supply::Behind(prefetcher), Place::Behind(jobs)) => {
                let mut jobs = jobs.drain(..);
                plan.attach(shape.segments, || {
                    let Some(job) = jobs.next() else { return Ok(None) };
                    let found = prefetcher.cache().lookup(&job)?;
                    if found.is_none() {
                        prefetcher.request(job);
                    }
                    Ok(found.map(List::Pinned))
                })
            }
            (_, Place::Ahead(query)) => plan.attach(shape.segments, waited(query)),
            (_, Place::AheadBlocks(query)) => plan.attach_blocks(waited(query)),
            (_, Place::Blocks { blocks, .. }) => plan.attach_blocks(ended(blocks.drain(..))),
            _ => Ok(()),
        }
    }

    /// What the cache did; none without one.
    pub(super) fn stats(&self) -> Option<Stats> {
        match self {
            Supply::Base | Supply::Pages(_) => None,
            Supply::Behind(prefetcher) | Supply::Ahead(prefetcher) => Some(prefetcher.cache().stats()),
        }
    }

    /// Bytes that the worker of the page cache read.
    pub(super) fn pages_read(&self) -> u64 {
        match self {
            Supply::Pages(worker) => worker.bytes_read(),
            _ => 0,
        }
    }

    /// What was noted.
    pub(super) fn lookahead_samples(&self) -> Vec<Sample> {
        match self {
            Supply::Base => Vec::new(),
            Supply::Pages(worker) => worker.lookahead_samples(),
            Supply::Behind(prefetcher) | Supply::Ahead(prefetcher) => prefetcher.cache().lookahead_samples(),
        }
    }
}

/// The lists of a query in their order, each waited for.
fn waited(query: &Query) -> impl FnMut() -> Result<Option<List>> {
    let mut lists = 0..query.lists();
    move || Ok(lists.next().map(|list| query.wait(list)).transpose()?)
}

/// Lists that were asked for, each waited for.
fn ended(begun: impl IntoIterator<Item = Begun>) -> impl FnMut() -> Result<Option<List>> {
    let mut begun = begun.into_iter();
    move || Ok(begun.next().map(Begun::wait).transpose()?)
}
