//! The five modes: who brings a query's lists near, and when.
//!
//! With a cache that is filled ahead, lists stand in its queue in the order of the queries. Where some blocks are enough, they
//! may be known at once: then they stand in the queue instead. Else they follow from what comes near first: then they are
//! asked for beside the queue, for the next few queries, and wait for nobody's room.

use crate::error::Result;
use crate::intersect::CostModel;
use crate::query::Plan;
use crate::query::prune::Scratch;
use crate::segment::read::Segment;
use tierdex_cache::{Begun, Job, List, PagePrefetcher, PageQuery, Prefetcher, Query, Sample, Stats};

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
    /// Its lists were.
    Lists(Vec<Begun>),
}

impl Place {
    /// Whether there is another step to be taken.
    fn is_on_the_way(&self) -> bool {
        matches!(
            self,
            Place::Later | Place::Records(_) | Place::AheadFirst(_) | Place::Blocks { more: true, .. }
        )
    }
}

/// What planning goes by.
pub(super) struct Shape<'a> {
    pub(super) segments: &'a [Segment],
    /// How many of the best are asked for, where not all has to be looked at.
    pub(super) best: Option<usize>,
    /// Whether records are resident.
    pub(super) resident: bool,
    /// What reads cost.
    pub(super) cost: CostModel,
}

impl Supply {
    /// Puts a query into the queue; returns about how many bytes it takes there.
    pub(super) fn push(
        &self,
        plan: &mut Plan<'_>,
        shape: &Shape<'_>,
        scratch: &mut Scratch,
    ) -> Result<(Place, usize)> {
        let mut first = false;
        let best = shape.best.filter(|_| plan.is_of_one_term());
        match (self, best) {
            (Supply::Base, _) => return Ok((Place::Base, 0)),
            (Supply::Ahead(_), Some(_)) if !shape.resident => return Ok((Place::Later, 0)),
            (Supply::Ahead(prefetcher), Some(k)) => {
                if let Some(jobs) = plan.block_jobs(shape.segments, (k, &shape.cost), scratch)? {
                    let bytes = memory(&jobs);
                    return Ok((Place::AheadBlocks(prefetcher.push(jobs)), bytes));
                }
            }
            (Supply::Ahead(_), None) => first = plan.want_some(&shape.cost),
            (Supply::Pages(_) | Supply::Behind(_), _) => {}
        }
        let jobs = plan.jobs(shape.segments)?;
        let bytes = memory(&jobs);
        let place = match self {
            Supply::Base => Place::Base,
            Supply::Pages(worker) => Place::Pages(worker.push(jobs)),
            Supply::Behind(_) => Place::Behind(jobs),
            Supply::Ahead(prefetcher) if first => Place::AheadFirst(prefetcher.push(jobs)),
            Supply::Ahead(prefetcher) => Place::Ahead(prefetcher.push(jobs)),
        };
        Ok((place, bytes))
    }

    /// Goes one step on with a query whose turn will soon come, if that needs no waiting.
    pub(super) fn promote(
        &self,
        place: &mut Place,
        plan: &mut Plan<'_>,
        shape: &Shape<'_>,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let ready = match place {
            Place::Later => true,
            Place::Records(begun) | Place::Blocks { blocks: begun, more: true, .. } => {
                begun.iter().all(Begun::is_ready)
            }
            Place::AheadFirst(query) => (0..query.lists()).all(|list| query.is_ready(list)),
            _ => false,
        };
        if ready { self.step(place, plan, shape, scratch) } else { Ok(()) }
    }

    /// Goes one step on with a query whose lists come near in several; waits where it must.
    fn step(
        &self,
        place: &mut Place,
        plan: &mut Plan<'_>,
        shape: &Shape<'_>,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let Supply::Ahead(prefetcher) = self else { return Ok(()) };
        let begin = |jobs: Vec<Job>| jobs.into_iter().map(|job| prefetcher.begin(job)).collect();
        *place = match (std::mem::replace(place, Place::Later), shape.best) {
            (Place::Later, _) => {
                plan.want_records()?;
                Place::Records(begin(plan.jobs(shape.segments)?))
            }
            (Place::Records(begun), Some(k)) => {
                plan.attach(shape.segments, ended(begun))?;
                match plan.block_jobs(shape.segments, (k, &shape.cost), scratch)? {
                    Some(jobs) => Place::Blocks { first: None, blocks: begin(jobs), more: false },
                    None => Place::Lists(begin(plan.jobs(shape.segments)?)),
                }
            }
            (Place::AheadFirst(query), _) => {
                plan.attach(shape.segments, waited(&query))?;
                let (jobs, more) = plan.some_jobs(shape.segments)?;
                Place::Blocks { first: Some(query), blocks: begin(jobs), more }
            }
            (Place::Blocks { first, blocks, more: true }, _) => {
                plan.attach_blocks(ended(blocks))?;
                let (jobs, more) = plan.some_jobs(shape.segments)?;
                Place::Blocks { first, blocks: begin(jobs), more }
            }
            (further, _) => further,
        };
        Ok(())
    }

    /// Waits for the lists of a query, and has its plan read them from where they are. The place is to be dropped behind the plan.
    pub(super) fn attach(
        &self,
        place: &mut Place,
        plan: &mut Plan<'_>,
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
            (_, Place::Lists(begun)) => plan.attach(shape.segments, ended(begun.drain(..))),
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

    /// Begins to note the lookahead; that of the page cache is noted from its start.
    pub(super) fn record_lookahead(&self, samples: usize) {
        if let Supply::Behind(prefetcher) | Supply::Ahead(prefetcher) = self {
            prefetcher.cache().record_lookahead(samples);
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

fn memory(jobs: &[Job]) -> usize {
    size_of_val(jobs) + jobs.iter().map(|job| size_of_val(job.parts())).sum::<usize>()
}
