//! The two ends of a request: the caller's ticket, and the reply of the thread that answers it.

use super::request::Answer;
use super::sync::{AtomicBool, Condvar, Mutex, MutexGuard, Ordering};
use crate::error::{Error, Result};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

/// The answer that a request will have. Dropped, it cancels the request.
pub struct Ticket {
    state: Arc<TicketState>,
    /// Whether dropping the ticket cancels the request; false once a callback is registered.
    cancels: bool,
}

/// The duty to answer a request: dropped, it answers with an error.
pub(super) struct Reply {
    state: Arc<TicketState>,
}

/// Cancels a request whose answer goes to a callback.
#[derive(Clone)]
pub struct CancelHandle(Arc<TicketState>);

type Callback = Box<dyn FnOnce(Result<Answer>) + Send>;

#[derive(Default)]
struct TicketState {
    slot: Mutex<Slot>,
    ready: Condvar,
    cancelled: AtomicBool,
}

#[derive(Default)]
struct Slot {
    answer: Option<Result<Answer>>,
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

    /// Waits for the answer.
    ///
    /// # Errors
    /// Those of the search; [`Error::Cancelled`] after [`Ticket::cancel`].
    pub fn wait(self) -> Result<Answer> {
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

    /// Waits until there is an answer, or the time has passed. Whether there is one.
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

    /// Takes the answer, if it is there.
    pub fn poll(&self) -> Option<Result<Answer>> {
        self.state.lock().answer.take()
    }

    /// Has the answer given to `callback`, and returns a handle to cancel the request. The callback is
    /// called on the thread that answers, on this one if there is an answer already, or, if the request
    /// never starts, on one that submits another request or closes the engine. It must not block: other
    /// requests would wait.
    pub fn on_ready(mut self, callback: impl FnOnce(Result<Answer>) + Send + 'static) -> CancelHandle {
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

    /// Stops the evaluation at the next page that it waits for, or after some blocks or windows of
    /// documents.
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
    pub(super) fn send(self, answer: Result<Answer>) {
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
    fn answer(&self, answer: Result<Answer>) {
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
