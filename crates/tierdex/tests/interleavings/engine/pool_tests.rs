use super::pool::{MemoryPool, PoolLimits, PoolSizes, PoolUse};
use super::priority::Priority;
use loom::thread;
use std::sync::Arc;

/// A pool of 100 bytes: 40 for the cache at least, 10 for interactive requests, 20 to 50 for evaluations.
/// The cache cannot be smaller than `pinned`.
fn new_pool(pinned: u64) -> Arc<MemoryPool> {
    let mut limits = [PoolLimits::default(); PoolUse::ALL.len()];
    limits[PoolUse::Interactive as usize] = PoolLimits::fixed(10);
    limits[PoolUse::Evaluations as usize] = PoolLimits { minimum: 20, maximum: 50 };
    let cache = PoolLimits { minimum: 40, maximum: 90 };
    let sizes = PoolSizes { total: Some(100), limits, cache };
    MemoryPool::new(sizes, Box::new(move |bytes| bytes.clamp(pinned, 90)))
}

#[test]
fn each_kind_has_its_minimum_and_the_cache_the_rest() {
    loom::model(|| {
        let pool = new_pool(0);
        let evaluation = pool.try_reserve(PoolUse::Evaluations, 50).unwrap();
        assert_eq!(pool.bytes().cache, 50);
        let request = pool.try_reserve(PoolUse::Interactive, 10).unwrap();
        assert_eq!(pool.bytes().cache, 40);
        assert!(pool.try_reserve(PoolUse::Interactive, 1).is_none());
        assert!(!pool.can_grant(PoolUse::Interactive, 11) && pool.can_grant(PoolUse::Evaluations, 50));
        drop((request, evaluation));
        let bytes = pool.bytes();
        assert_eq!((bytes.cache, bytes.smallest_cache), (40, 40), "it grows with the next epoch");
        assert_eq!((bytes.reserved, bytes.largest), ([0; 5], [10, 0, 50, 0, 0]));
    });
}

#[test]
fn a_reservation_is_not_granted_while_the_cache_cannot_shrink() {
    loom::model(|| {
        let pool = new_pool(70);
        assert!(pool.try_reserve(PoolUse::Evaluations, 31).is_none());
        assert_eq!((pool.bytes().cache, pool.bytes().reserved), (70, [0; 5]));
        assert!(pool.try_reserve(PoolUse::Evaluations, 30).is_some());
    });
}

#[test]
fn interactive_evaluations_come_first_and_others_in_order() {
    loom::model(|| {
        let pool = new_pool(0);
        let first = pool.try_evaluation(45).unwrap();
        let (large, small) = (pool.join_wait_queue(Priority::Batch), pool.join_wait_queue(Priority::Batch));
        let urgent = pool.join_wait_queue(Priority::Interactive);
        assert!(large.try_reserve(50).is_none() && small.try_reserve(1).is_none());
        let quick = urgent.try_reserve(5).unwrap();
        drop(urgent);
        // There is memory for it, but the large reservation has waited longer.
        assert!(small.try_reserve(0).is_none() && pool.try_evaluation(0).is_none());
        let changes = pool.changes();
        drop((first, quick));
        assert!(pool.changes() > changes);
        let alone = large.try_reserve(50).unwrap();
        drop(large);
        assert!(small.try_reserve(1).is_none());
        drop(alone);
        assert!(small.try_reserve(1).is_some());
    });
}

/// Reserves all memory of evaluations, and waits for it, as a search thread without other work does.
fn reserve_for_evaluation(pool: &Arc<MemoryPool>, priority: Priority) {
    if pool.try_evaluation(50).is_some() {
        return;
    }
    let waiter = pool.join_wait_queue(priority);
    loop {
        let seen = pool.changes();
        if waiter.try_reserve(50).is_some() {
            return;
        }
        pool.wait(seen, None);
    }
}

#[test]
fn a_thread_that_waits_for_memory_is_woken() {
    loom::model(|| {
        let pool = new_pool(0);
        let other = {
            let pool = pool.clone();
            thread::spawn(move || reserve_for_evaluation(&pool, Priority::Batch))
        };
        reserve_for_evaluation(&pool, Priority::Interactive);
        other.join().unwrap();
        assert_eq!(pool.bytes().reserved, [0; 5]);
    });
}

#[test]
fn a_caller_that_waits_is_woken_by_the_release_and_by_the_close() {
    loom::model(|| {
        let pool = new_pool(0);
        let held = pool.try_reserve(PoolUse::Interactive, 10).unwrap();
        let other = {
            let pool = pool.clone();
            thread::spawn(move || drop(pool.reserve(PoolUse::Interactive, 10, |_| false).unwrap()))
        };
        drop(held);
        other.join().unwrap();
        let closed = Arc::new(loom::sync::atomic::AtomicBool::new(false));
        let held = pool.try_reserve(PoolUse::Interactive, 10).unwrap();
        let other = {
            let (pool, closed) = (pool.clone(), closed.clone());
            let ends = move |_| closed.load(loom::sync::atomic::Ordering::SeqCst);
            thread::spawn(move || assert!(pool.reserve(PoolUse::Interactive, 10, ends).is_none()))
        };
        closed.store(true, loom::sync::atomic::Ordering::SeqCst);
        pool.wake();
        other.join().unwrap();
        drop(held);
    });
}
