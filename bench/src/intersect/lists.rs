//! Lists generated as in the paper: uniform, with a given share of the shortest list in all lists (section
//! IV, table I).

use crate::Random;

/// `count` distinct ids, uniform over the whole range, in increasing order.
pub(super) fn uniform_ids(random: &mut Random, count: u32) -> Vec<u32> {
    short_list(random, count, &[], 0.0)
}

/// A list of `count` ids, of which exactly the share `share` is in `long`.
pub(super) fn short_list(random: &mut Random, count: u32, long: &[u32], share: f64) -> Vec<u32> {
    let shared = (f64::from(count) * share).round() as usize;
    let mut ids = sample_ids(random, long, shared);
    while ids.len() < count as usize {
        let missing = count as usize - ids.len();
        let candidates = (0..missing).map(|_| random.below(u32::MAX)).collect::<Vec<_>>();
        ids.extend(candidates.into_iter().filter(|id| long.binary_search(id).is_err()));
        ids.sort_unstable();
        ids.dedup();
    }
    ids
}

/// A uniform list of about `count` ids that contains all of `ids`.
pub(super) fn superset_ids(random: &mut Random, count: u32, ids: &[u32]) -> Vec<u32> {
    let mut all = uniform_ids(random, count.saturating_sub(ids.len() as u32));
    all.extend_from_slice(ids);
    all.sort_unstable();
    all.dedup();
    all
}

/// A random sample of `count` of `ids`, in increasing order. An id is taken with a probability of the number
/// of ids that are still to be taken, divided by the number of ids that are still to be seen.
fn sample_ids(random: &mut Random, ids: &[u32], count: usize) -> Vec<u32> {
    let mut missing = count.min(ids.len());
    let mut taken = Vec::with_capacity(missing);
    for (at, &id) in ids.iter().enumerate() {
        if (random.below((ids.len() - at) as u32) as usize) < missing {
            taken.push(id);
            missing -= 1;
        }
    }
    taken
}

/// The intersection of lists in memory: the shortest is intersected with the others, one after the other.
pub(super) fn intersect_in_memory(lists: &[&[u32]]) -> Vec<u32> {
    let mut sorted = lists.to_vec();
    sorted.sort_by_key(|list| list.len());
    let Some((first, others)) = sorted.split_first() else { return Vec::new() };
    let mut found = first.to_vec();
    for other in others {
        let mut rest = *other;
        found.retain(|id| {
            let smaller = rest.partition_point(|other| other < id);
            rest = &rest[smaller..];
            rest.first() == Some(id)
        });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_have_the_requested_sizes_and_share() {
        let mut random = Random::new(1);
        let long = uniform_ids(&mut random, 50_000);
        for share in [0.0, 0.01, 0.5, 1.0] {
            let short = short_list(&mut random, 2_000, &long, share);
            assert!(short.len() == 2_000 && short.is_sorted_by(|a, b| a < b));
            let common = intersect_in_memory(&[&long, &short]);
            assert_eq!(common.len(), (2_000.0 * share) as usize);
            let middle = superset_ids(&mut random, 9_000, &common);
            assert!(middle.len() > 8_900 && intersect_in_memory(&[&short, &middle, &long]) == common);
        }
    }
}
