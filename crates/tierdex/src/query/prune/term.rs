//! One term: the blocks with the highest bounds first, then those of the others that may still matter.
//!
//! 1. As many blocks as the hits fill are found by the bounds of superblocks, and scored in document order.
//! 2. Of the others, those whose bounds reach the hits so far are taken, the best of them first: few one by one, many
//!    in rounds of twice as many as before, each in document order.
//!
//! Bounds are contiguous arrays, so a list of a million postings costs a look at some hundred numbers and as many
//! blocks as hold the best hits, which is mostly a handful.

use super::Scored;
use super::scratch::Scratch;
use crate::error::Result;
use crate::limits::{BLOCK, SUPERBLOCK};
use crate::rank::TopK;
use tierdex_codec::largest;

/// Blocks that are taken one by one, the best first.
const ONE_BY_ONE: usize = 48;

/// Offers the documents of `list`, which has its bounds, to `top`, numbered from `base` on, but for those that it cannot
/// take.
pub fn best_of_term(list: &mut Scored<'_>, base: u32, scratch: &mut Scratch, top: &mut TopK) -> Result<()> {
    if list.is_exhaustive() {
        for block in 0..list.blocks.len() {
            offer(list, block, base, top)?;
            top.tighten();
        }
        return Ok(());
    }
    let mut keys = std::mem::take(&mut scratch.keys);
    // Those that were brought near can all hold one of the best.
    let first = first_round(top.k()).max(list.blocks.named()).min(list.blocks.len());
    // Each superblock has a block that is as good as its bound.
    let least = nth_super_bound(list, first, &mut scratch.bounds);
    blocks_at_least(list, least, &mut keys);
    let room = &mut scratch.room;
    if keys.len() > first {
        largest(&mut keys, first, room);
        keys.truncate(first);
    }
    let worst = keys.iter().copied().min().unwrap_or(u64::MAX);
    offer_in_order(list, &mut keys, base, top)?;
    blocks_at_least(list, top.least(), &mut keys);
    // The others: whatever is better has been offered.
    keys.retain(|key| *key < worst);
    let mut share = first;
    while keys.len() > ONE_BY_ONE {
        share = (2 * share).min(keys.len());
        largest(&mut keys, share, room);
        let rest = keys.split_off(share);
        offer_in_order(list, &mut keys, base, top)?;
        keys = rest;
        keys.retain(|key| bound_of(*key) >= top.least());
    }
    keys.sort_unstable_by(|a, b| b.cmp(a));
    for key in &keys {
        if bound_of(*key) < top.least() {
            break;
        }
        offer(list, block_of(*key), base, top)?;
        top.tighten();
    }
    keys.clear();
    scratch.keys = keys;
    Ok(())
}

/// As many blocks as `k` hits fill, and one.
fn first_round(k: usize) -> usize {
    k.div_ceil(BLOCK) + 1
}

/// The blocks that [`best_of_term`] takes first for the best `k`, in document order.
pub(super) fn first_blocks(list: &Scored<'_>, k: usize) -> Vec<usize> {
    let mut keys = Vec::new();
    blocks_at_least(list, 0.0, &mut keys);
    keys.sort_unstable_by(|a, b| b.cmp(a));
    keys.truncate(first_round(k));
    let mut blocks: Vec<usize> = keys.into_iter().map(block_of).collect();
    blocks.sort_unstable();
    blocks
}

/// The blocks that can hold one of the best `k` of the list by themselves, in document order: those whose bounds are no less than
/// the `k`-th largest, or less only by what it was rounded by.
pub fn blocks_of_best(list: &Scored<'_>, k: usize, scratch: &mut Scratch) -> Vec<usize> {
    let n = k.clamp(1, list.blocks.len());
    let slack = 2.0 * list.scorer.bound(1);
    let mut keys = std::mem::take(&mut scratch.keys);
    let least = nth_super_bound(list, n, &mut scratch.bounds);
    blocks_at_least(list, least - slack, &mut keys);
    let least =
        if keys.len() >= n { bound_of(*keys.select_nth_unstable_by(n - 1, |a, b| b.cmp(a)).1) } else { 0.0 };
    keys.retain(|key| bound_of(*key) >= least - slack);
    let mut blocks: Vec<usize> = keys.iter().copied().map(block_of).collect();
    blocks.sort_unstable();
    keys.clear();
    scratch.keys = keys;
    blocks
}

/// A block and its bound, in the order of bounds; of equal ones the earlier block is the larger.
fn key(bound: f32, block: usize) -> u64 {
    u64::from(bound.to_bits()) << 32 | u64::from(!(block as u32))
}

fn bound_of(key: u64) -> f32 {
    f32::from_bits((key >> 32) as u32)
}

fn block_of(key: u64) -> usize {
    !(key as u32) as usize
}

/// The `n`-th largest bound of superblocks; 0 if there are not so many.
fn nth_super_bound(list: &Scored<'_>, n: usize, bounds: &mut Vec<f32>) -> f32 {
    bounds.clear();
    let supers = list.blocks.skips().map_or(0, |list| list.superblocks());
    if supers <= n {
        return 0.0;
    }
    bounds.extend((0..supers).map(|superblock| list.super_bound_of(superblock)));
    *bounds.select_nth_unstable_by(n - 1, |a, b| b.total_cmp(a)).1
}

/// The blocks with a bound of at least `least`.
fn blocks_at_least(list: &Scored<'_>, least: f32, keys: &mut Vec<u64>) {
    keys.clear();
    for first in (0..list.blocks.len()).step_by(SUPERBLOCK) {
        if list.super_bound_of(first / SUPERBLOCK) < least {
            continue;
        }
        for block in first..list.blocks.len().min(first + SUPERBLOCK) {
            let bound = list.bound_of(block);
            if bound >= least {
                keys.push(key(bound, block));
            }
        }
    }
}

/// Offers the blocks in document order.
fn offer_in_order(list: &mut Scored<'_>, keys: &mut [u64], base: u32, top: &mut TopK) -> Result<()> {
    keys.sort_unstable_by_key(|key| block_of(*key));
    for key in keys {
        if bound_of(*key) >= top.least() {
            offer(list, block_of(*key), base, top)?;
            top.tighten();
        }
    }
    Ok(())
}

fn offer(list: &mut Scored<'_>, block: usize, base: u32, top: &mut TopK) -> Result<()> {
    let (documents, scores) = list.read_at_least(block, top.least())?;
    top.offer_all(base, documents, scores);
    Ok(())
}
