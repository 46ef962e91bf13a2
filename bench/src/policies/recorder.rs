//! A policy that records the requests of pages.

use std::sync::{Arc, Mutex, PoisonError};
use tierdex::internal::cache::Policy;

/// Requests in order, each as the hash of its page.
#[derive(Clone, Default)]
pub(super) struct Requests(Arc<Mutex<Vec<u64>>>);

impl Requests {
    /// Returns the requests since the last call, and forgets them.
    pub(super) fn take(&self) -> Vec<u64> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn push(&self, hash: u64) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(hash);
    }
}

/// Wraps the policy of one shard of a cache and records each page that is inserted or touched. Each of these
/// calls is a request, because these caches read no page ahead.
pub(super) struct RequestRecorder {
    policy: Box<dyn Policy>,
    /// Hash of the page of each entry.
    hashes: Vec<u64>,
    requests: Requests,
}

impl RequestRecorder {
    /// Wraps the policy of an empty shard.
    pub(super) fn new(policy: Box<dyn Policy>, requests: &Requests) -> RequestRecorder {
        RequestRecorder { policy, hashes: Vec::new(), requests: requests.clone() }
    }
}

impl Policy for RequestRecorder {
    fn insert(&mut self, entry: u32, hash: u64, cells: u32) {
        let entries = self.hashes.len().max(entry as usize + 1);
        self.hashes.resize(entries, 0);
        self.hashes[entry as usize] = hash;
        self.requests.push(hash);
        self.policy.insert(entry, hash, cells);
    }

    fn restore(&mut self, entry: u32, hash: u64, cells: u32, _class: usize) {
        self.insert(entry, hash, cells);
    }

    fn touch(&mut self, entry: u32) {
        self.requests.push(self.hashes[entry as usize]);
        self.policy.touch(entry);
    }

    fn remove(&mut self, entry: u32) {
        self.policy.remove(entry);
    }

    fn victim(&mut self, is_evictable: &dyn Fn(u32) -> bool) -> Option<u32> {
        self.policy.victim(is_evictable)
    }

    fn visit(&self, visit: &mut dyn FnMut(u32, usize)) {
        self.policy.visit(visit);
    }

    fn bytes(&self) -> usize {
        self.policy.bytes() + self.hashes.capacity() * size_of::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tierdex::internal::cache::PolicyKind;

    #[test]
    fn requests_are_recorded_in_order_and_passed_on() {
        for kind in PolicyKind::ALL {
            let requests = Requests::default();
            let mut shards = [0, 1].map(|_| RequestRecorder::new(kind.policy(4), &requests));
            shards[0].insert(2, 20, 1);
            shards[1].insert(0, 30, 1);
            shards[0].touch(2);
            assert_eq!(requests.take(), [20, 30, 20], "{kind}");
            assert_eq!(shards[0].victim(&|_| true), Some(2), "{kind}");
            shards[0].remove(2);
            shards[0].insert(2, 50, 1);
            shards[0].touch(2);
            assert_eq!(requests.take(), [50, 50], "{kind}");
        }
    }
}
