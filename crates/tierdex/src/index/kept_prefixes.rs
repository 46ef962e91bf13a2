//! Prefixes of recent queries, which later queries of the same commit use again: with their dictionary
//! entries, and with the sets of their documents once an evaluation has filled them.
//!
//! All commits of an engine share one bound of memory. It includes the sets from the start, also before they
//! are filled. If it is reached, the least recently used prefixes are dropped that no plan refers to; if
//! plans refer to all, a new one is not kept.

use crate::query::{PrefixStore, plan_node::PrefixClause, plan_node::TermPrefix};
use crate::segment::read::OpenSegment;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Maximum number of prefixes that are kept, since they are searched one by one.
const KEPT_PREFIXES_MAX: usize = 256;

/// The kept prefixes of a commit.
pub(super) struct KeptPrefixes {
    commit: u64,
    bytes_max: usize,
    state: Arc<Mutex<KeptState>>,
}

/// The kept prefixes of all commits of an engine.
#[derive(Default)]
struct KeptState {
    /// The least recently used first.
    prefixes: Vec<KeptPrefix>,
    /// Number of commits so far.
    commits: u64,
}

struct KeptPrefix {
    commit: u64,
    clause: Arc<PrefixClause>,
    bytes: usize,
}

impl KeptPrefixes {
    /// Keeps prefixes with this number of bytes, at most.
    pub(super) fn new(bytes_max: usize) -> KeptPrefixes {
        KeptPrefixes { commit: 0, bytes_max, state: Arc::default() }
    }

    /// Those of another commit, within the same bound. Drops the prefixes that no query uses.
    pub(super) fn for_commit(&self) -> KeptPrefixes {
        let mut state = self.lock();
        state.prefixes.retain(KeptPrefix::is_used);
        state.commits += 1;
        KeptPrefixes { commit: state.commits, bytes_max: self.bytes_max, state: self.state.clone() }
    }

    fn lock(&self) -> MutexGuard<'_, KeptState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PrefixStore for KeptPrefixes {
    fn find(&self, field: usize, prefix: TermPrefix<'_>) -> Option<Arc<PrefixClause>> {
        let clause = self.lock().find(self.commit, field, prefix)?;
        clause.is_used_again.store(true, Ordering::Relaxed);
        Some(clause)
    }

    fn keep(&self, mut clause: PrefixClause, segments: &[OpenSegment]) -> Arc<PrefixClause> {
        let numbered = segments.iter().map(|segment| segment.documents()).enumerate();
        let of_many = numbered.filter(|(number, documents)| !clause.has_few_documents(*number, *documents));
        let sets = of_many.map(|(_, documents)| PrefixClause::set_bytes(documents));
        let of_segment = size_of::<u64>() + size_of::<OnceLock<Vec<u8>>>();
        let bytes = size_of::<KeptPrefix>() + size_of::<PrefixClause>() + clause.text.len() + clause.memory();
        let bytes = bytes + segments.len() * of_segment + sets.sum::<usize>();
        if bytes > self.bytes_max {
            return Arc::new(clause);
        }
        let mut state = self.lock();
        if let Some(other) = state.find(self.commit, clause.field, clause.prefix()) {
            return other;
        }
        while state.bytes() + bytes > self.bytes_max || state.prefixes.len() == KEPT_PREFIXES_MAX {
            match state.prefixes.iter().position(|kept| !kept.is_used()) {
                Some(unused) => drop(state.prefixes.remove(unused)),
                None => return Arc::new(clause),
            }
        }
        clause.sets = segments.iter().map(|_| OnceLock::new()).collect();
        let clause = Arc::new(clause);
        state.prefixes.push(KeptPrefix { commit: self.commit, clause: clause.clone(), bytes });
        clause
    }
}

impl KeptState {
    fn bytes(&self) -> usize {
        self.prefixes.iter().map(|kept| kept.bytes).sum()
    }

    /// Finds a clause, which then is the most recently used one.
    fn find(&mut self, commit: u64, field: usize, prefix: TermPrefix<'_>) -> Option<Arc<PrefixClause>> {
        let found = self.prefixes.iter().position(|KeptPrefix { commit: of, clause, .. }| {
            *of == commit && clause.field == field && clause.prefix() == prefix
        })?;
        self.prefixes[found..].rotate_left(1);
        self.prefixes.last().map(|kept| kept.clause.clone())
    }
}

impl KeptPrefix {
    fn is_used(&self) -> bool {
        Arc::strong_count(&self.clause) > 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefix(text: &str) -> TermPrefix<'_> {
        TermPrefix { text, whole_clusters: false }
    }

    #[test]
    fn the_least_recently_used_prefix_that_no_query_uses_is_dropped() {
        let kept = KeptPrefixes::new(3 * (size_of::<KeptPrefix>() + size_of::<PrefixClause>() + 1));
        let keep = |text: &str| kept.keep(PrefixClause::new(0, prefix(text), 0), &[]);
        let find = |text: &str| kept.find(0, prefix(text)).is_some();
        let texts = || kept.lock().prefixes.iter().map(|kept| kept.clause.text.clone()).collect::<String>();
        ["a", "b", "c"].iter().for_each(|text| drop(keep(text)));
        assert!(find("a") && !find("d") && kept.find(1, prefix("a")).is_none());
        drop(keep("d"));
        assert_eq!(texts(), "cad");
        let used = [keep("c"), keep("e")];
        assert_eq!(texts(), "dce");
        let used = [used, [keep("f"), keep("g")]].concat();
        assert_eq!(texts(), "cef", "all are used");
        assert!(Arc::ptr_eq(&used[1], &keep("e")));
        drop(keep("a text that is longer than the bound".repeat(100).as_str()));
        assert!(kept.lock().bytes() <= kept.bytes_max && texts() == "cfe");
        let next = kept.for_commit();
        assert!(next.find(0, prefix("c")).is_none() && find("c"), "a commit has prefixes of its own");
        drop(used);
        next.for_commit();
        assert_eq!(texts(), "", "prefixes of commits before are dropped");
    }
}
