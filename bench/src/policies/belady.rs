//! Belady's rule: evict the page whose next request is farthest in the future. No policy that caches every
//! requested page has fewer misses.

use std::collections::{BTreeSet, HashMap};

/// Number of hits of Belady's rule in a cache of `capacity` pages that starts empty. Counts only requests
/// from index `measured` on.
pub(super) fn belady_hits(requests: &[u64], measured: usize, capacity: usize) -> u64 {
    let next = next_requests(requests);
    // The resident pages, by the position of their next request.
    let mut resident: BTreeSet<(usize, u64)> = BTreeSet::new();
    let mut hits = 0;
    for (at, page) in requests.iter().enumerate() {
        if resident.remove(&(at, *page)) {
            hits += u64::from(at >= measured);
        } else if resident.len() == capacity {
            resident.pop_last();
        }
        if capacity > 0 {
            resident.insert((next[at], *page));
        }
    }
    hits
}

/// For each request the index of the next request of the same page; the number of requests if there is none.
fn next_requests(requests: &[u64]) -> Vec<usize> {
    let mut next = vec![requests.len(); requests.len()];
    let mut seen = HashMap::new();
    for (at, page) in requests.iter().enumerate().rev() {
        if let Some(later) = seen.insert(*page, at) {
            next[at] = later;
        }
    }
    next
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Random;

    #[test]
    fn a_cycle_hits_all_but_one_of_the_pages_that_fit() {
        // Four pages in turn, three fit: after the first cycle two of three requests hit.
        let requests: Vec<u64> = (0..400).map(|at| at % 4).collect();
        assert_eq!(belady_hits(&requests, 4, 3), 264);
        assert_eq!(belady_hits(&requests, 0, 4), 396);
        assert_eq!(belady_hits(&requests, 4, 4), 396);
        assert_eq!(belady_hits(&requests, 0, 0), 0);
        assert_eq!(belady_hits(&[], 0, 3), 0);
    }

    #[test]
    fn no_order_of_evictions_has_more_hits() {
        fn best(requests: &[u64], cache: &mut Vec<u64>, capacity: usize) -> u64 {
            let Some((page, rest)) = requests.split_first() else { return 0 };
            if cache.contains(page) {
                return 1 + best(rest, cache, capacity);
            }
            if cache.len() < capacity {
                cache.push(*page);
                let found = best(rest, cache, capacity);
                cache.pop();
                return found;
            }
            let mut most = 0;
            for at in 0..capacity {
                let evicted = std::mem::replace(&mut cache[at], *page);
                most = most.max(best(rest, cache, capacity));
                cache[at] = evicted;
            }
            most
        }
        let mut random = Random::new(3);
        for _ in 0..200 {
            let requests: Vec<u64> = (0..12).map(|_| u64::from(random.below(5))).collect();
            for capacity in 1..4 {
                assert_eq!(belady_hits(&requests, 0, capacity), best(&requests, &mut Vec::new(), capacity));
            }
        }
    }
}
