//! Required, alternative and excluding clauses.

use super::Op;
use super::window::{Pool, Window};
use crate::error::Result;

/// Joins clauses as [`crate::query::Query::Bool`] says.
pub struct BoolOp<'a> {
    must: Vec<Op<'a>>,
    should: Vec<Op<'a>>,
    must_not: Vec<Op<'a>>,
    documents: u32,
}

impl<'a> BoolOp<'a> {
    pub(crate) fn new(
        must: Vec<Op<'a>>,
        should: Vec<Op<'a>>,
        must_not: Vec<Op<'a>>,
        documents: u32,
    ) -> BoolOp<'a> {
        BoolOp { must, should, must_not, documents }
    }

    pub(super) fn next(&self, from: u32) -> Option<u32> {
        if !self.must.is_empty() {
            return self.must.iter().try_fold(from, |from, clause| clause.next(from));
        }
        if !self.should.is_empty() {
            return self.should.iter().filter_map(|clause| clause.next(from)).min();
        }
        Some(from).filter(|&from| from < self.documents)
    }

    pub(super) fn accumulate(&mut self, window: &mut Window, pool: &mut Pool) -> Result<()> {
        if self.must.is_empty() && self.must_not.is_empty() && !self.should.is_empty() {
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

    /// Matches of the required clauses and scores of the others; of the alternatives where nothing is required.
    fn require(&mut self, mine: &mut Window, pool: &mut Pool) -> Result<()> {
        let Some((first, others)) = self.must.split_first_mut() else {
            if self.should.is_empty() {
                mine.add_all(self.documents);
            }
            return self.should.iter_mut().try_for_each(|clause| clause.accumulate(mine, pool));
        };
        first.accumulate(mine, pool)?;
        for clause in others {
            if mine.is_empty() {
                return Ok(());
            }
            apply(clause, mine, pool, Window::intersect)?;
        }
        for clause in &mut self.should {
            if mine.is_empty() {
                return Ok(());
            }
            apply(clause, mine, pool, Window::reward)?;
        }
        Ok(())
    }

    fn exclude(&mut self, mine: &mut Window, pool: &mut Pool) -> Result<()> {
        self.must_not.iter_mut().try_for_each(|clause| apply(clause, mine, pool, Window::subtract))
    }
}

/// Runs `clause` in a window of its own and joins that with `mine`.
fn apply(
    clause: &mut Op<'_>,
    mine: &mut Window,
    pool: &mut Pool,
    join: fn(&mut Window, &Window),
) -> Result<()> {
    let mut other = pool.take(mine.base());
    clause.accumulate(&mut other, pool)?;
    join(mine, &other);
    pool.give(other);
    Ok(())
}
