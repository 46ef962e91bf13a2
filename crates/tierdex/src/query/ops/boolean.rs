//! Required, alternative and excluding clauses.

use super::Op;
use super::window::{Pool, WINDOW, Window};
use crate::error::Result;

/// Joins clauses as [`crate::query::Query::Bool`] says.
pub struct BoolOp<'a> {
    must: Vec<Op<'a>>,
    filter: Vec<Op<'a>>,
    should: Vec<Op<'a>>,
    must_not: Vec<Op<'a>>,
    /// How many of `should` must match.
    minimum: usize,
    documents: u32,
    /// How many of `should` each document of a window matches.
    counts: Vec<u16>,
}

impl<'a> BoolOp<'a> {
    pub(crate) fn new(
        (must, filter): (Vec<Op<'a>>, Vec<Op<'a>>),
        (should, minimum): (Vec<Op<'a>>, u32),
        must_not: Vec<Op<'a>>,
        documents: u32,
    ) -> BoolOp<'a> {
        let free = must.is_empty() && filter.is_empty() && !should.is_empty();
        let minimum = (minimum as usize).max(usize::from(free));
        BoolOp { must, filter, should, must_not, minimum, documents, counts: Vec::new() }
    }

    /// Required ones first, then alternatives, then those that exclude.
    pub(super) fn clauses(&mut self) -> impl Iterator<Item = &mut Op<'a>> {
        let required = self.must.iter_mut().chain(&mut self.filter);
        required.chain(&mut self.should).chain(&mut self.must_not)
    }

    pub(super) fn next(&self, from: u32) -> Option<u32> {
        if self.minimum > self.should.len() {
            return None;
        }
        let mut required = self.must.iter().chain(&self.filter);
        let from = required.try_fold(from, |from, clause| clause.next(from))?;
        if self.minimum == 0 {
            return Some(from).filter(|&from| from < self.documents);
        }
        let mut next: Vec<u32> = self.should.iter().filter_map(|clause| clause.next(from)).collect();
        // A match is in so many of them, so that it is not before the last but so many.
        let last = self.minimum - 1;
        (last < next.len()).then(|| *next.select_nth_unstable(last).1)
    }

    pub(super) fn accumulate(&mut self, window: &mut Window, pool: &mut Pool) -> Result<()> {
        let conditions = self.must.len() + self.filter.len() + self.must_not.len();
        if conditions == 0 && self.minimum == 1 && window.is_empty() {
            return self.should.iter_mut().try_for_each(|clause| clause.accumulate(window, pool));
        }
        let mut mine = pool.take(window.base());
        self.require(&mut mine, pool)?;
        if !mine.is_empty() {
            self.exclude(&mut mine, pool)?;
            window.union(&mine);
        }
        pool.give(mine);
        Ok(())
    }

    /// Matches of the required clauses, and of the alternatives, with their scores.
    fn require(&mut self, mine: &mut Window, pool: &mut Pool) -> Result<()> {
        match self.must.split_first_mut() {
            Some((first, others)) => {
                first.accumulate(mine, pool)?;
                join_all(others, mine, pool, Window::intersect)?;
                join_all(&mut self.filter, mine, pool, Window::restrict)?;
            }
            None => match self.filter.split_first_mut() {
                Some((first, others)) => {
                    first.accumulate(mine, pool)?;
                    mine.forget_scores();
                    join_all(others, mine, pool, Window::restrict)?;
                }
                None if self.minimum > 1 => return self.count(mine, pool, Window::union),
                None if self.minimum == 1 => {
                    return self.should.iter_mut().try_for_each(|clause| clause.accumulate(mine, pool));
                }
                None => mine.add_all(self.documents),
            },
        }
        match self.minimum {
            0 => join_all(&mut self.should, mine, pool, Window::reward),
            _ => self.count(mine, pool, Window::reward),
        }
    }

    /// Joins the alternatives, and keeps the documents that enough of them match.
    fn count(&mut self, mine: &mut Window, pool: &mut Pool, join: fn(&mut Window, &Window)) -> Result<()> {
        self.counts.clear();
        self.counts.resize(WINDOW, 0);
        for clause in &mut self.should {
            let mut other = pool.take(mine.base());
            clause.accumulate(&mut other, pool)?;
            other.count(&mut self.counts);
            join(mine, &other);
            pool.give(other);
        }
        mine.retain(|place| usize::from(self.counts[place]) >= self.minimum);
        Ok(())
    }

    fn exclude(&mut self, mine: &mut Window, pool: &mut Pool) -> Result<()> {
        join_all(&mut self.must_not, mine, pool, Window::subtract)
    }
}

/// Runs each clause in a window of its own and joins that with `mine`, until nothing is left there.
fn join_all(
    clauses: &mut [Op<'_>],
    mine: &mut Window,
    pool: &mut Pool,
    join: fn(&mut Window, &Window),
) -> Result<()> {
    for clause in clauses {
        if mine.is_empty() {
            return Ok(());
        }
        let mut other = pool.take(mine.base());
        clause.accumulate(&mut other, pool)?;
        join(mine, &other);
        pool.give(other);
    }
    Ok(())
}
