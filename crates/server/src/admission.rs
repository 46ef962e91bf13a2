//! AdmissionControl: a request that would wait too long is rejected at once, before work is spent on it.
//!
//! 1. The *work* of a request is the time that one search thread needs for it. It is estimated from earlier
//!    requests of similar queries (`shape`), as a moving average.
//! 2. Work is measured without knowing what the threads do: each of n requests in progress gets an equal
//!    share of the threads, at most one thread. The share that a request has received when it ends is its
//!    work. So estimates do not depend on the load.
//! 3. The expected wait is the work of all requests in progress, without half of that of the running ones,
//!    divided by the threads; zero while there are fewer requests than threads.
//! 4. A request is rejected if the expected wait exceeds a limit, or the deadline of the request. After that,
//!    until no request was rejected for a second, the limit is the average work of a request: threads share
//!    their time among few requests, so that each takes about twice as long as alone. So a burst is queued,
//!    and a load that does not end is not.

use crate::shape::{SHAPES, SearchShape};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The limit during an overload, at least; the time without a rejection after which an overload has ended.
const OVERLOAD_WAIT_MIN: Duration = Duration::from_millis(1);
const OVERLOAD: Duration = Duration::from_secs(1);

/// Weight of the newest measurement in a moving average.
const WEIGHT: f64 = 0.1;

/// The work of a request before any was measured, in seconds.
const FIRST_WORK: f64 = 1e-3;

/// The work of a request that the thread of its connection evaluates itself, at most, in seconds. With one
/// connection the median latency of short queries was 0.17 ms, and 0.29 ms by a search thread.
const QUICK_WORK: f64 = 0.5e-3;

/// Decides which requests are evaluated.
pub(crate) struct AdmissionControl {
    threads: f64,
    /// The limit of the expected wait before an overload.
    wait_max: Duration,
    state: Mutex<AdmissionState>,
}

struct AdmissionState {
    /// Seconds of a thread that each request in progress has received since the start.
    share: f64,
    updated: Instant,
    /// Requests in progress, and their expected work.
    running: usize,
    work: f64,
    /// Average work by shape, and of all requests, in seconds.
    shapes: [Option<f64>; SHAPES],
    average: f64,
    /// End of the overload, if there is no other rejection.
    overloaded_until: Option<Instant>,
}

/// A request that was admitted. Dropping it ends the request.
pub(crate) struct Admitted {
    admission: Arc<AdmissionControl>,
    shape: SearchShape,
    work: f64,
    share_at_start: f64,
    /// Whether no other request was in progress, and its expected work is small.
    pub(crate) is_quick_alone: bool,
    is_open: bool,
}

/// What the admission expects now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expectation {
    pub(crate) wait: Duration,
    pub(crate) wait_max: Duration,
}

impl AdmissionControl {
    pub(crate) fn new(threads: usize, wait_max: Duration) -> Arc<AdmissionControl> {
        let state = AdmissionState {
            share: 0.0,
            updated: Instant::now(),
            running: 0,
            work: 0.0,
            shapes: [None; SHAPES],
            average: FIRST_WORK,
            overloaded_until: None,
        };
        Arc::new(AdmissionControl { threads: threads.max(1) as f64, wait_max, state: Mutex::new(state) })
    }

    /// Admits a request.
    ///
    /// # Errors
    /// The expected wait, if it is too long.
    pub(crate) fn admit(
        self: &Arc<Self>,
        shape: SearchShape,
        deadline: Duration,
    ) -> Result<Admitted, Duration> {
        self.admit_at(shape, deadline, Instant::now())
    }

    fn admit_at(
        self: &Arc<Self>,
        shape: SearchShape,
        deadline: Duration,
        now: Instant,
    ) -> Result<Admitted, Duration> {
        let mut state = self.lock();
        self.check_wait(&mut state, deadline, now)?;
        state.advance(self.threads, now);
        let work = state.shapes[shape.number()].unwrap_or(state.average);
        let share_at_start = state.share;
        let is_quick_alone = state.running == 0 && work <= QUICK_WORK;
        state.running += 1;
        state.work += work;
        let admission = self.clone();
        Ok(Admitted { admission, shape, work, share_at_start, is_quick_alone, is_open: true })
    }

    /// Whether a request with any deadline would be admitted.
    ///
    /// # Errors
    /// The expected wait, if it is too long.
    pub(crate) fn check(&self) -> Result<(), Duration> {
        self.check_wait(&mut self.lock(), Duration::MAX, Instant::now())
    }

    fn check_wait(
        &self,
        state: &mut AdmissionState,
        deadline: Duration,
        now: Instant,
    ) -> Result<(), Duration> {
        let (wait, limit) = (state.expected_wait(self.threads), state.limit(self.wait_max, now));
        if wait <= limit.min(deadline) {
            return Ok(());
        }
        if wait > limit {
            state.overloaded_until = Some(now + OVERLOAD);
        }
        Err(wait)
    }

    pub(crate) fn expectation(&self) -> Expectation {
        let state = self.lock();
        let wait_max = state.limit(self.wait_max, Instant::now());
        Expectation { wait: state.expected_wait(self.threads), wait_max }
    }

    fn lock(&self) -> MutexGuard<'_, AdmissionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AdmissionState {
    /// Distributes the time since the last call among the requests in progress.
    fn advance(&mut self, threads: f64, now: Instant) {
        let passed = now.saturating_duration_since(self.updated).as_secs_f64();
        self.updated = self.updated.max(now);
        if self.running > 0 {
            self.share += passed * (threads / self.running as f64).min(1.0);
        }
    }

    fn expected_wait(&self, threads: f64) -> Duration {
        if (self.running as f64) < threads {
            return Duration::ZERO;
        }
        let left = 1.0 - threads / 2.0 / self.running as f64;
        Duration::from_secs_f64((self.work * left / threads).max(0.0))
    }

    /// The expected wait of a request that is admitted, at most.
    fn limit(&self, wait_max: Duration, now: Instant) -> Duration {
        match self.overloaded_until.is_some_and(|until| now < until) {
            true => Duration::from_secs_f64(self.average).max(OVERLOAD_WAIT_MIN).min(wait_max),
            false => wait_max,
        }
    }

    /// Adds the measured work of a request.
    fn measure(&mut self, admitted: &Admitted) {
        let work = self.share - admitted.share_at_start;
        let average = self.shapes[admitted.shape.number()].get_or_insert(work);
        *average += WEIGHT * (work - *average);
        self.average += WEIGHT * (work - self.average);
    }
}

impl Admitted {
    /// Ends the request after its evaluation.
    pub(crate) fn finish(mut self) {
        self.end(Instant::now(), true);
    }

    fn end(&mut self, now: Instant, is_evaluated: bool) {
        self.is_open = false;
        let mut state = self.admission.lock();
        state.advance(self.admission.threads, now);
        if is_evaluated {
            state.measure(self);
        }
        state.running -= 1;
        state.work -= self.work;
        if state.running == 0 {
            // No error of rounding is left.
            (state.work, state.share) = (0.0, 0.0);
        }
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        if self.is_open {
            self.end(Instant::now(), false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tierdex::Query;

    const MILLISECOND: Duration = Duration::from_millis(1);

    fn shape() -> SearchShape {
        SearchShape::of(&Query::All { boost: 1.0 }, 10, false)
    }

    /// Runs requests of equal work through a control of two threads, in virtual time: each millisecond
    /// `arrivals` come, and the threads, which the running requests share equally, work for it. Returns the
    /// numbers of admitted requests, of rejected ones, and the longest time of one that was admitted after
    /// the first `settled` milliseconds.
    fn simulate(arrivals: usize, work: f64, millis: usize, settled: usize) -> (usize, usize, f64) {
        let control = AdmissionControl::new(2, 100 * MILLISECOND);
        let mut now = Instant::now();
        let mut running: Vec<(Admitted, f64, usize)> = Vec::new();
        let (mut admitted, mut rejected, mut longest) = (0, 0, 0.0f64);
        for time in 0..millis {
            for _ in 0..arrivals {
                match control.admit_at(shape(), Duration::from_secs(10), now) {
                    Ok(request) => {
                        running.push((request, work, time));
                        admitted += 1;
                    }
                    Err(_) => rejected += 1,
                }
            }
            now += MILLISECOND;
            let share = (2.0 / running.len() as f64).min(1.0) * 1e-3;
            running.iter_mut().for_each(|(_, left, _)| *left -= share);
            let (ended, left): (Vec<_>, Vec<_>) = running.into_iter().partition(|(_, left, _)| *left <= 0.0);
            running = left;
            for (mut request, _, began) in ended {
                request.end(now, true);
                if began >= settled {
                    longest = longest.max((time + 1 - began) as f64);
                }
            }
        }
        (admitted, rejected, longest)
    }

    #[test]
    fn a_load_below_the_capacity_is_admitted() {
        // Two threads do two milliseconds of work in each; 1.5 arrive.
        let (admitted, rejected, _) = simulate(3, 0.5e-3, 5000, 0);
        assert_eq!((admitted, rejected), (15_000, 0));
    }

    #[test]
    fn under_overload_admitted_requests_take_about_twice_as_long_and_threads_stay_busy() {
        let (work, millis) = (5e-3, 20_000);
        let (admitted, rejected, longest) = simulate(4, work, millis, 1000);
        assert!(rejected > 4 * millis - millis / 2, "{rejected}");
        // Of 0.4 requests a millisecond.
        assert!(admitted as f64 > 0.95 * 0.4 * millis as f64, "{admitted}");
        assert!(longest <= 12.0, "{longest} ms");
    }

    #[test]
    fn a_burst_is_queued_and_recovers() {
        let control = AdmissionControl::new(2, 100 * MILLISECOND);
        let now = Instant::now();
        let burst: Vec<_> = (0..150).map(|_| control.admit_at(shape(), 10 * MILLISECOND * 10, now)).collect();
        assert!(burst.iter().all(Result::is_ok));
        let many: Vec<_> = (0..200).map(|_| control.admit_at(shape(), Duration::MAX, now)).collect();
        assert!(many.iter().any(Result::is_err));
        assert!(control.expectation().wait > 50 * MILLISECOND);
        drop((burst, many));
        assert_eq!(control.expectation().wait, Duration::ZERO);
        assert!(control.admit_at(shape(), MILLISECOND, now).is_ok());
    }

    #[test]
    fn a_request_with_a_short_deadline_is_rejected_without_an_overload() {
        let control = AdmissionControl::new(1, 100 * MILLISECOND);
        let now = Instant::now();
        let running: Vec<_> = (0..20).map(|_| control.admit_at(shape(), Duration::MAX, now)).collect();
        assert!(control.admit_at(shape(), MILLISECOND, now).is_err());
        assert!(control.admit_at(shape(), Duration::MAX, now).is_ok());
        drop(running);
    }
}
