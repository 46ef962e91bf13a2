//! Documents that match all of several clauses: the rarest proposes candidates, a block at a time, and only
//! where the maximum scores of all together may reach a hit. The others are looked up, rarest first.
//!
//! Of more than two scored lists the intersection is found first, and then scored: mostly few candidates are
//! left. Of two, the candidates of the rarer that score enough are looked up in the other.

use super::batch::Batch;
use super::node::{Node, Refine, Refinement};
use super::refine::Refiners;
use super::search::Search;
use super::term::Term;
use super::tuning::WINDOW;
use super::window::range_from;
use crate::cursor::NO_DOCUMENT;
use crate::error::Result;
use crate::limits::BLOCK;

/// A required clause.
pub(super) struct Required<'n, 'a> {
    node: &'n mut Node<'a>,
    is_scored: bool,
    /// Upper bound of its scores in the range at hand; 0 if it is not scored.
    assumed: u32,
    /// Its candidates are found, and are not scored yet.
    pending: bool,
}

impl Required<'_, '_> {
    fn how(&self) -> Refine {
        if self.is_scored { Refine::Require } else { Refine::Filter }
    }
}

/// The required clauses, cheapest first.
pub(super) fn required<'n, 'a>(
    must: &'n mut [Node<'a>],
    filter: &'n mut [Node<'a>],
) -> Vec<Required<'n, 'a>> {
    let must = must.iter_mut().map(|node| (node, true));
    let all = must.chain(filter.iter_mut().map(|node| (node, false)));
    let new = |(node, is_scored)| Required { node, is_scored, assumed: 0, pending: false };
    let mut required: Vec<_> = all.map(new).collect();
    required.sort_by_key(|required| required.node.cost());
    required
}

/// Offers the documents that match all `required` clauses, of which there is at least one, and that the
/// refiners let pass; but for those that cannot be hits. Returns how many match if they are counted, else how
/// many were evaluated.
pub(super) fn conjunction<'a>(
    required: &mut [Required<'_, 'a>],
    refiners: &mut Refiners<'_, 'a>,
    search: &mut Search<'_>,
) -> Result<u64> {
    let (generator, others) = required.split_first_mut().expect("a clause is required");
    let late = others.iter().filter(|other| other.is_scored).count() + usize::from(generator.is_scored) > 2;
    let mut run =
        Run { others, refiners, late: late || search.count, batch: search.scratch.batch(), matches: 0 };
    let is_scored = generator.is_scored;
    let done = match &mut generator.node {
        Node::Term(term) => run.by_blocks(term, is_scored, search),
        Node::Phrase(_) => run.by_phrase(generator, search),
        node => run.by_windows(node, is_scored, search),
    };
    let matches = run.matches;
    search.scratch.give_batch(run.batch);
    done.map(|()| matches)
}

struct Run<'r, 'n, 'a, 'f> {
    others: &'r mut [Required<'n, 'a>],
    refiners: &'r mut Refiners<'f, 'a>,
    /// Candidates are found in all lists before they are scored.
    late: bool,
    batch: Batch,
    matches: u64,
}

impl<'a> Run<'_, '_, 'a, '_> {
    /// Upper bound of what the other clauses add in a range; `None` if nothing matches there.
    fn rest(&mut self, range: (u32, u32)) -> Result<Option<u32>> {
        let mut rest = 0;
        for other in self.others.iter_mut() {
            match other.node.max_score(range)? {
                None => return Ok(None),
                Some(score) => other.assumed = if other.is_scored { score } else { 0 },
            }
            rest += other.assumed;
        }
        Ok(Some(rest + self.refiners.optional_max(range)?))
    }

    fn by_blocks(&mut self, term: &mut Term<'a>, is_scored: bool, search: &mut Search<'_>) -> Result<()> {
        for block in 0..term.blocks.len() {
            let range = (term.blocks.first(block), term.blocks.last(block).min(search.documents - 1));
            let top = search.top.k() > 0;
            let bound = if is_scored && top { term.block_max(block)? } else { 0 };
            let rest = if top { self.rest(range)? } else { Some(0) };
            let wanted =
                rest.is_some_and(|rest| search.top.k() > 0 && search.may_enter(bound + rest, range.0));
            let Some(rest) = rest.filter(|_| wanted || search.count) else {
                term.blocks.refuse(block);
                continue;
            };
            self.batch.clear();
            let prunes = is_scored && wanted && !search.count;
            let selected =
                if prunes { term.select(block, search.need().saturating_sub(rest))? } else { BLOCK };
            let pending = is_scored && wanted && self.late && selected == BLOCK;
            if pending || !is_scored || !wanted {
                self.batch.push_equal(term.blocks.documents(block)?, bound + rest);
            } else {
                let (documents, scores) = term.read_selected(block, selected)?;
                self.batch.push_all(documents, scores);
                self.batch.raise(rest);
            }
            if pending {
                term.found_in_block(block, &self.batch.documents);
            }
            let generator = pending.then_some((&mut *term, bound));
            self.refine(generator, wanted, search)?;
        }
        Ok(())
    }

    /// The rarest term of the phrase proposes candidates, of which the phrase keeps some.
    fn by_phrase(&mut self, generator: &mut Required<'_, 'a>, search: &mut Search<'_>) -> Result<()> {
        let how = generator.how();
        let Node::Phrase(phrase) = &mut *generator.node else { return Ok(()) };
        for block in 0..phrase.rarest().blocks.len() {
            let rarest = phrase.rarest();
            let range = (rarest.blocks.first(block), rarest.blocks.last(block).min(search.documents - 1));
            let bound = match phrase.max_score(range)? {
                None => continue,
                Some(bound) if how.is_scored() => bound,
                Some(_) => 0,
            };
            let Some(rest) = self.rest(range)? else { continue };
            let wanted = search.top.k() > 0 && search.may_enter(bound + rest, range.0);
            if !wanted && !search.count {
                phrase.rarest().blocks.refuse(block);
                continue;
            }
            self.batch.clear();
            let need = if search.count { 0 } else { search.need() };
            let how = if wanted { how } else { Refine::Filter };
            // A phrase occurs no more often than its rarest term.
            let documents = if how.is_scored() && need > 0 {
                phrase.rarest().read_at_least(block, need.saturating_sub(rest))?.0
            } else {
                phrase.rarest().blocks.documents(block)?
            };
            self.batch.push_equal(documents, bound + rest);
            let assumed = if how.is_scored() { bound } else { 0 };
            phrase.refine(&mut self.batch, Refinement { how, assumed, need }, search.scratch)?;
            self.refine(None, wanted, search)?;
        }
        Ok(())
    }

    /// Windows of the clause propose candidates.
    fn by_windows(&mut self, node: &mut Node<'a>, is_scored: bool, search: &mut Search<'_>) -> Result<()> {
        let (mut window, mut all) = (search.scratch.window(), search.scratch.batch());
        let mut next = node.next(0);
        while next != NO_DOCUMENT && next < search.documents {
            let range = range_from(next, WINDOW, search.documents);
            let bound = node.max_score(range)?.map(|bound| if is_scored { bound } else { 0 });
            let rest = self.rest(range)?;
            if let (Some(bound), Some(rest)) = (bound, rest) {
                let wanted = search.top.k() > 0 && search.may_enter(bound + rest, range.0);
                if wanted || search.count {
                    window.restart(range);
                    if is_scored && wanted {
                        node.add(&mut window, search.scratch)?;
                    } else {
                        node.mark(&mut window.unscored, search.scratch)?;
                    }
                    window.take_all(&mut all);
                    for (documents, scores) in all.chunks(BLOCK) {
                        self.batch.clear();
                        self.batch.push_all(documents, scores);
                        self.batch.raise(rest);
                        self.refine(None, wanted, search)?;
                    }
                }
            }
            next = if range.1 + 1 < search.documents { node.next(range.1 + 1) } else { NO_DOCUMENT };
        }
        search.scratch.give_window(window);
        search.scratch.give_batch(all);
        Ok(())
    }

    /// Keeps the candidates that match the other clauses, at most [`BLOCK`], and offers them if they are
    /// `wanted`. `generator` has found them, and has not scored them: its upper bound is in their scores.
    fn refine(
        &mut self,
        generator: Option<(&mut Term<'a>, u32)>,
        wanted: bool,
        search: &mut Search<'_>,
    ) -> Result<()> {
        let Run { others, refiners, batch, .. } = self;
        let need = if search.count { 0 } else { search.need() };
        for other in others.iter_mut() {
            if batch.len() == 0 {
                return Ok(());
            }
            other.pending = false;
            match &mut *other.node {
                Node::Term(term) if self.late && wanted && other.is_scored => {
                    term.find_all(batch, other.assumed, need)?;
                    other.pending = true;
                }
                node => {
                    let how = if wanted && other.is_scored { Refine::Require } else { Refine::Filter };
                    let assumed = if how.is_scored() { other.assumed } else { 0 };
                    node.refine(batch, Refinement { how, assumed, need }, search.scratch)?;
                }
            }
        }
        refiners.select(batch, search)?;
        self.matches += batch.len() as u64;
        if !wanted || batch.len() == 0 {
            return Ok(());
        }
        let need = search.need();
        batch.retain(need);
        if let Some((term, bound)) = generator {
            term.score_found(batch, bound, need)?;
        }
        for other in others.iter_mut().filter(|other| other.pending) {
            if let Node::Term(term) = &mut *other.node {
                term.score_found(batch, other.assumed, need)?;
            }
        }
        refiners.add_optional(batch, search)?;
        search.offer(batch);
        Ok(())
    }
}
