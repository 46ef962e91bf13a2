//! Documents that hold any of several terms: `MaxScore` (Turtle and Flood, "Query evaluation: strategies and
//! optimizations", 1995) over windows of documents.
//!
//! 1. The bounds of a window's blocks say what each term adds at most there. If all together cannot reach a hit, the
//!    window is passed over, and no block of it is decoded.
//! 2. Terms whose bounds together cannot reach a hit are not what makes one: only the others are accumulated.
//! 3. Documents that may still be hits are scored by all terms, in their order, and offered. If they are many, adding all
//!    terms to the window is less work than looking them up; then so it is in the next few windows too.

use super::{Scored, slack};
use crate::error::Result;
use crate::limits::BLOCK;
use crate::query::ops::{Pool, WINDOW, Window};
use crate::rank::TopK;

/// Offers the documents below `documents` that hold any of `terms` to `top`, numbered from `base` on, but for those that it
/// cannot take. Scores are summed in the order of `terms`. Returns how many documents were met.
pub fn best_of_any(
    mut terms: Vec<Scored<'_>>,
    documents: u32,
    base: u32,
    pool: &mut Pool,
    top: &mut TopK,
) -> Result<u64> {
    let mut met = 0;
    let mut window = pool.take(0);
    let mut bounds = vec![0.0; terms.len()];
    let mut plainly = 0;
    for first in (0..documents).step_by(WINDOW) {
        let last = documents.min(first.saturating_add(WINDOW as u32)) - 1;
        for (bound, term) in bounds.iter_mut().zip(&mut terms) {
            term.advance(first);
            *bound = term.bound(first, last);
        }
        let least = top.least();
        let Some(mut essential) = split(&bounds, least) else { continue };
        if plainly > 0 {
            plainly -= 1;
            essential = Essential { terms: vec![true; terms.len()], rest: 0.0 };
        }
        accumulate_all(&mut terms, &essential.terms, &mut window, (first, last))?;
        if essential.rest > 0.0 {
            let reaches = |score| (score + essential.rest) * slack(terms.len()) > least;
            let candidates = candidates(&window, reaches);
            if candidates.len() * LOOK_UP_POSTINGS > postings(&terms, first, last) {
                plainly = PLAINLY_WINDOWS;
                accumulate_all(&mut terms, &vec![true; bounds.len()], &mut window, (first, last))?;
            } else {
                met += window.matches();
                offer(&mut terms, &candidates, base, top)?;
                top.tighten();
                continue;
            }
        }
        // All terms have been added, and in their order.
        met += window.matches();
        window.for_each(|document, score| top.offer(base + document, score));
        top.tighten();
    }
    pool.give(window);
    Ok(met)
}

/// Postings that are added to a window in the time that one document takes to be looked up.
const LOOK_UP_POSTINGS: usize = 32;

/// Windows to which all terms are added after one in which too many documents had to be looked up.
const PLAINLY_WINDOWS: usize = 7;

/// Which terms a document must hold one of to be a hit, and what the others add at most.
struct Essential {
    terms: Vec<bool>,
    rest: f32,
}

/// The terms of which one is needed to score more than `least`; none if all together do not.
fn split(bounds: &[f32], least: f32) -> Option<Essential> {
    let reaches = |sum: f32| sum * slack(bounds.len()) > least;
    if !reaches(bounds.iter().sum()) || bounds.iter().all(|bound| *bound == 0.0) {
        return None;
    }
    let mut order: Vec<usize> = (0..bounds.len()).collect();
    order.sort_unstable_by(|a, b| bounds[*a].total_cmp(&bounds[*b]));
    let mut essential = vec![true; bounds.len()];
    let mut rest = 0.0;
    for term in order {
        if reaches(rest + bounds[term]) {
            break;
        }
        rest += bounds[term];
        essential[term] = false;
    }
    Some(Essential { terms: essential, rest })
}

/// Adds the scores of some terms, in their order, to an empty window.
fn accumulate_all(
    terms: &mut [Scored<'_>],
    which: &[bool],
    window: &mut Window,
    (first, last): (u32, u32),
) -> Result<()> {
    window.reset(first);
    let wanted = terms.iter_mut().zip(which).filter(|(_, which)| **which);
    wanted.into_iter().try_for_each(|(term, _)| accumulate(term, window, last))
}

/// About how many postings the terms have in a window.
fn postings(terms: &[Scored<'_>], first: u32, last: u32) -> usize {
    let blocks = |term: &Scored<'_>| term.blocks.find(term.block, last) - term.blocks.find(term.block, first);
    terms.iter().map(|term| blocks(term) * BLOCK + BLOCK / 2).sum()
}

/// Adds the scores of the term's documents up to `last`.
fn accumulate(term: &mut Scored<'_>, window: &mut Window, last: u32) -> Result<()> {
    for block in term.block..term.blocks.len() {
        if term.blocks.first(block) > last {
            break;
        }
        term.for_each(block, window.base()..=last, |document, score| window.add(document, score))?;
    }
    Ok(())
}

/// The documents of the window whose score so far may still become enough.
fn candidates(window: &Window, reaches: impl Fn(f32) -> bool) -> Vec<u32> {
    let mut candidates = Vec::new();
    window.for_each(|document, score| {
        if reaches(score) {
            candidates.push(document);
        }
    });
    candidates
}

/// Looks the documents up in all lists, and offers them.
fn offer(terms: &mut [Scored<'_>], documents: &[u32], base: u32, top: &mut TopK) -> Result<()> {
    for document in documents {
        let mut sum = 0.0;
        for term in terms.iter_mut() {
            if let Some(score) = term.score(*document)? {
                sum += score;
            }
        }
        top.offer(base + document, sum);
    }
    Ok(())
}
