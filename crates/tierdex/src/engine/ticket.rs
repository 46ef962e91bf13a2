//! The two ends of a request: the caller's ticket, and the reply of the thread that answers it.

use super::request::Hits;
use super::sync::{AtomicBool, Condvar, Mutex, MutexGuard, Ordering};
use crate::error::{Error, Result};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

/// The future result of a request. A ticket that is dropped cancels its request.
pub struct Ticket {
    state: Arc<TicketState>,
    /// Whether dropping the ticket cancels the request; false once a callback is registered.
    cancels: bool,
}

/// The duty to answer a request: dropped, it answers with an error.
pub(super) struct Reply {
    state: Arc<TicketState>,
}

/// Cancels a request whose result goes to a callback ([`Ticket::on_ready`]).
#[derive(Clone)]
pub struct CancelHandle(Arc<TicketState>);

type Callback = Box<dyn FnOnce(Result<Hits>) + Send>;

#[derive(Default)]
struct TicketState {
    slot: Mutex<Slot>,
    ready: Condvar,
    cancelled: AtomicBool,
}

#[derive(Default)]
struct Slot {
    answer: Option<Result<Hits>>,
    /// It was given to the ticket or to the callback, or is in `answer`.
    answered: bool,
    callback: Option<Callback>,
    /// The caller sleeps.
    waits: bool,
}

impl Ticket {
    pub(super) fn new() -> (Ticket, Reply) {
        let state = Arc::new(TicketState::default());
        (Ticket { state: state.clone(), cancels: true }, Reply { state })
    }

    /// Waits for the result.
    ///
    /// # Errors
    /// [`Error::Storage`] when a file cannot be read or is damaged; [`Error::Limit`] when the query needs more
    /// memory than the budget leaves; [`Error::Cancelled`] after [`Ticket::cancel`].
    pub fn wait(self) -> Result<Hits> {
        let mut slot = self.state.lock();
        loop {
            if let Some(answer) = slot.answer.take() {
                return answer;
            }
            if slot.answered {
                return Err(taken());
            }
            slot.waits = true;
            slot = self.state.ready.wait(slot).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits until there is a result, at most for `time`. Returns whether there is one.
    pub fn wait_timeout(&self, time: Duration) -> bool {
        let until = Instant::now().checked_add(time);
        let mut slot = self.state.lock();
        while !slot.answered {
            let left = until.map_or(Duration::MAX, |until| until.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                return false;
            }
            slot.waits = true;
            slot = self.state.ready.wait_timeout(slot, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    /// Takes the result, if there is one.
    pub fn poll(&self) -> Option<Result<Hits>> {
        self.state.lock().answer.take()
    }

    /// Passes the result to `callback`, and returns a handle to cancel the request. The callback runs on the
    /// thread that evaluates the request; on this thread if there is a result already; or, if the request
    /// never starts, on a thread that submits another request or drops the engine. It must not block: other
    /// requests would wait.
    pub fn on_ready(mut self, callback: impl FnOnce(Result<Hits>) + Send + 'static) -> CancelHandle {
        self.cancels = false;
        let handle = CancelHandle(self.state.clone());
        let mut slot = self.state.lock();
        if slot.answered {
            let answer = slot.answer.take();
            drop(slot);
            callback(answer.unwrap_or_else(|| Err(taken())));
        } else {
            slot.callback = Some(Box::new(callback));
        }
        handle
    }

    /// Cancels the request. The evaluation stops at its next read, or after at most a few milliseconds of
    /// work.
    pub fn cancel(&self) {
        self.state.cancelled.store(true, Ordering::Relaxed);
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if self.cancels {
            self.cancel();
        }
    }
}

impl Reply {
    /// Whether nobody wants the answer.
    pub(super) fn is_cancelled(&self) -> bool {
        self.state.cancelled.load(Ordering::Relaxed)
    }

    pub(super) fn cancel_handle(&self) -> CancelHandle {
        CancelHandle(self.state.clone())
    }

    /// Gives the answer.
    pub(super) fn send(self, answer: Result<Hits>) {
        self.state.answer(answer);
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        self.state.answer(Err(Error::Failed("the engine was closed".to_string())));
    }
}

impl CancelHandle {
    /// As [`Ticket::cancel`].
    pub fn cancel(&self) {
        self.0.cancelled.store(true, Ordering::Relaxed);
    }

    /// Whether nobody wants the answer.
    #[inline]
    pub(super) fn is_cancelled(&self) -> bool {
        self.0.cancelled.load(Ordering::Relaxed)
    }
}

impl TicketState {
    fn lock(&self) -> MutexGuard<'_, Slot> {
        self.slot.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The first answer counts.
    fn answer(&self, answer: Result<Hits>) {
        let mut slot = self.lock();
        if slot.answered {
            return;
        }
        slot.answered = true;
        if let Some(callback) = slot.callback.take() {
            drop(slot);
            // A panic of the caller's code is reported by the panic hook, and harms no other request.
            let _ = catch_unwind(AssertUnwindSafe(|| callback(answer)));
            return;
        }
        slot.answer = Some(answer);
        // Waking is a system call.
        if std::mem::take(&mut slot.waits) {
            drop(slot);
            self.ready.notify_all();
        }
    }
}

/// `poll` took the answer.
fn taken() -> Error {
    Error::Usage("the answer was taken before".to_string())
}
