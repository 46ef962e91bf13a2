//! A policy that reports the requests of pages.

use super::eviction::Policy;
use std::sync::Arc;

/// Called with the key of each request.
pub(crate) type RequestObserver = dyn Fn(u64) + Send + Sync;

/// Wraps the policy of one shard of a cache, and reports each page that is inserted or touched. Each of these
/// calls is a request, except for pages that are read because they are between two requested ones.
pub(crate) struct ObservedPolicy {
    policy: Box<dyn Policy>,
    /// Key of the page of each entry.
    keys: Vec<u64>,
    observe: Arc<RequestObserver>,
}

impl ObservedPolicy {
    /// Wraps the policy of an empty shard.
    pub(crate) fn new(policy: Box<dyn Policy>, observe: Arc<RequestObserver>) -> ObservedPolicy {
        ObservedPolicy { policy, keys: Vec::new(), observe }
    }

    fn set_key(&mut self, entry: u32, key: u64) {
        let entries = self.keys.len().max(entry as usize + 1);
        self.keys.resize(entries, 0);
        self.keys[entry as usize] = key;
    }
}

impl Policy for ObservedPolicy {
    fn insert(&mut self, entry: u32, key: u64, cells: u32) {
        self.set_key(entry, key);
        (self.observe)(key);
        self.policy.insert(entry, key, cells);
    }

    fn restore(&mut self, entry: u32, key: u64, cells: u32, class: usize) {
        self.set_key(entry, key);
        self.policy.restore(entry, key, cells, class);
    }

    fn touch(&mut self, entry: u32) {
        (self.observe)(self.keys[entry as usize]);
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
        self.policy.bytes() + self.keys.capacity() * size_of::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::PolicyKind;
    use std::sync::Mutex;

    #[test]
    fn requests_are_reported_in_order_and_passed_on() {
        for kind in PolicyKind::ALL {
            let requests = Arc::new(Mutex::new(Vec::new()));
            let reported = requests.clone();
            let observe: Arc<RequestObserver> = Arc::new(move |key| reported.lock().unwrap().push(key));
            let mut shards = [0, 1].map(|_| ObservedPolicy::new(kind.policy(4), observe.clone()));
            shards[0].insert(2, 20, 1);
            shards[1].insert(0, 30, 1);
            shards[0].touch(2);
            assert_eq!(shards[0].victim(&|_| true), Some(2), "{kind}");
            shards[0].remove(2);
            shards[0].insert(2, 50, 1);
            shards[0].touch(2);
            assert_eq!(*requests.lock().unwrap(), [20, 30, 20, 50, 50], "{kind}");
        }
    }
}
