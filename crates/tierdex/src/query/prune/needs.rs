//! What a way of evaluation may ask for, by nothing but the skip data: known before a block is read.

use super::all::may_enter;
use super::term::first_blocks;
use super::{Scored, Way};
use std::ops::Range;

/// Blocks of one list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// Those that are asked for first, whatever they hold.
    pub first: Vec<Range<usize>>,
    /// Those that may be asked for at all.
    pub at_most: Vec<Range<usize>>,
}

/// Blocks of each of `lists` that `way` may need for hits that score at least `least`, the best `k` of them.
pub fn needs(lists: &[Scored<'_>], way: Way, count: bool, (k, least): (usize, f32)) -> Vec<Needs> {
    let whole = |list: &Scored<'_>| Vec::from_iter(std::iter::once(0..list.blocks.len()));
    let every = |list: &Scored<'_>| Needs { first: whole(list), at_most: whole(list) };
    match (way, lists) {
        (Way::Nothing | Way::Dictionary, _) => lists.iter().map(|_| Needs::default()).collect(),
        (Way::OneTerm, [list]) if !list.is_exhaustive() => {
            let first = first_blocks(list, k).into_iter().filter(|block| list.bound_of(*block) >= least);
            let reaching = (0..list.blocks.len()).filter(|block| list.bound_of(*block) >= least);
            vec![Needs { first: ranges(first), at_most: ranges(reaching) }]
        }
        (Way::All, _) => needs_of_all(lists, count, least),
        (Way::Any, _) if !count => {
            lists.iter().map(|list| Needs { first: Vec::new(), at_most: whole(list) }).collect()
        }
        _ => lists.iter().map(every).collect(),
    }
}

/// Blocks of the rarest that may hold a hit, and those of the others that overlap them.
fn needs_of_all(lists: &[Scored<'_>], count: bool, least: f32) -> Vec<Needs> {
    let mut order: Vec<usize> = (0..lists.len()).collect();
    order.sort_by_key(|list| lists[*list].documents);
    let rarest = &lists[order[0]].blocks;
    let entering: Vec<usize> =
        (0..rarest.len()).filter(|block| count || may_enter(lists, &order, *block, least)).collect();
    let mut needs: Vec<Needs> = lists
        .iter()
        .map(|list| {
            let mut from = 0;
            let overlapping = entering.iter().flat_map(|block| {
                let (first, last) = (rarest.first(*block), rarest.last(*block));
                let start = list.blocks.find(from, first);
                let end = (start..list.blocks.len()).take_while(|b| list.blocks.first(*b) <= last).count();
                let overlap = start..start + end;
                // One that overlaps the next block too has been named.
                from = overlap.end;
                overlap
            });
            Needs { first: Vec::new(), at_most: ranges(overlapping) }
        })
        .collect();
    needs[order[0]].at_most = ranges(entering.iter().copied());
    needs
}

/// Rising numbers as ranges.
fn ranges(blocks: impl IntoIterator<Item = usize>) -> Vec<Range<usize>> {
    let mut ranges: Vec<Range<usize>> = Vec::new();
    for block in blocks {
        match ranges.last_mut() {
            Some(last) if last.end == block => last.end += 1,
            _ => ranges.push(block..block + 1),
        }
    }
    ranges
}
