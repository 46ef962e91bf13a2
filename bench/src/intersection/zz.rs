//! ZZ, zig-zag (section III-C): an eliminator, at first the shortest list's first id, goes round the lists. A list that does
//! not hold it makes its successor there the eliminator; an id that all lists hold in turn is found.

use super::crew::Crew;
use super::fetch::Reader;
use super::list::PagedList;
use super::partition;
use super::reads::Found;
use super::walker::Walker;
use std::ops::Range;
use tierdex::error::Result;

/// The ids that stand in all lists.
///
/// # Errors
/// When a page cannot be read or is damaged.
pub fn intersect(crew: &Crew, lists: &[PagedList]) -> Result<Found> {
    partition::run(crew, lists, task)
}

fn task(reader: &mut Reader, lists: &[PagedList], range: Range<u64>) -> Result<Vec<u32>> {
    let mut found = Vec::new();
    let mut walkers: Vec<Walker<'_>> = lists.iter().map(Walker::new).collect();
    let mut eliminator = walkers[0].seek(reader, range.start)?;
    let (mut holds, mut turn) = (1, 1);
    loop {
        if holds == lists.len() {
            found.push(eliminator);
            (eliminator, holds, turn) = (eliminator + 1, 0, 0);
        }
        let Some((next, place)) = walkers[turn].successor(reader, eliminator)? else { return Ok(found) };
        if turn == 0 && place >= range.end {
            return Ok(found);
        }
        holds = if next == eliminator { holds + 1 } else { 1 };
        eliminator = next;
        turn = (turn + 1) % lists.len();
    }
}
