//! The two ends of a request: the caller's ticket, and the reply of the search thread. Together they are a
//! one-shot channel with cancellation.

use super::sync::{AtomicBool, Condvar, Mutex, MutexGuard, Ordering};
use super::{pool::Reservation, request::Hits};
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

/// The sending end. Dropping it without a result sends an error.
pub(super) struct Reply {
    state: Arc<TicketState>,
}

/// Cancels a request whose result goes to a callback ([`Ticket::on_ready`]).
#[derive(Clone)]
pub struct CancelHandle(Arc<TicketState>);

/// The error of requests that an engine does not answer before it is closed.
pub(super) const CLOSED: &str = "the engine was closed";

type ResultCallback = Box<dyn FnOnce(Result<Hits>) + Send>;

#[derive(Default)]
struct TicketState {
    slot: Mutex<ResultSlot>,
    ready: Condvar,
    cancelled: AtomicBool,
}

#[derive(Default)]
struct ResultSlot {
    result: Option<Result<Hits>>,
    /// The result was sent: it is in `result`, or the ticket or the callback has received it.
    sent: bool,
    callback: Option<ResultCallback>,
    /// Memory of the result until it is delivered.
    reserved: Option<Reservation>,
    /// The caller sleeps.
    waits: bool,
}

impl Ticket {
    /// Both ends of a request whose result has `reserved` memory.
    pub(super) fn new(reserved: Option<Reservation>) -> (Ticket, Reply) {
        let slot = Mutex::new(ResultSlot { reserved, ..ResultSlot::default() });
        let state = Arc::new(TicketState { slot, ..TicketState::default() });
        (Ticket { state: state.clone(), cancels: true }, Reply { state })
    }

    /// Waits for the result.
    ///
    /// # Errors
    /// [`Error::Storage`] when a file cannot be read or is damaged; [`Error::TooLarge`] when the query needs
    /// more memory than the budget leaves; [`Error::Cancelled`] after [`Ticket::cancel`].
    pub fn wait(self) -> Result<Hits> {
        let mut slot = self.state.lock();
        loop {
            if let Some(result) = slot.take() {
                return result;
            }
            if slot.sent {
                return Err(taken());
            }
            slot.waits = true;
            slot = self.state.ready.wait(slot).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits until there is a result, at most for `time`. Returns whether it was sent.
    pub fn wait_timeout(&self, time: Duration) -> bool {
        let until = Instant::now().checked_add(time);
        let mut slot = self.state.lock();
        while !slot.sent {
            let left = until.map_or(Duration::MAX, |until| until.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                return false;
            }
            slot.waits = true;
            slot = self.state.ready.wait_timeout(slot, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    /// Whether the result was sent.
    pub(super) fn is_ready(&self) -> bool {
        self.state.lock().sent
    }

    /// Waits until there is a result.
    pub(super) fn wait_until_ready(&self) {
        let mut slot = self.state.lock();
        while !slot.sent {
            slot.waits = true;
            slot = self.state.ready.wait(slot).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Takes the result, if there is one.
    pub fn poll(&self) -> Option<Result<Hits>> {
        self.state.lock().take()
    }

    /// Passes the result to `callback`, and returns a handle to cancel the request. The callback runs on the
    /// thread that evaluates the request; on this thread if there is a result already; or, if the request
    /// never starts, on a thread that submits another request or drops the engine. It must not block: other
    /// requests would wait.
    pub fn on_ready(mut self, callback: impl FnOnce(Result<Hits>) + Send + 'static) -> CancelHandle {
        self.cancels = false;
        let handle = CancelHandle(self.state.clone());
        let mut slot = self.state.lock();
        if slot.sent {
            let result = slot.take();
            drop(slot);
            callback(result.unwrap_or_else(|| Err(taken())));
        } else {
            slot.callback = Some(Box::new(callback));
        }
        handle
    }

    /// Cancels the request. The evaluation stops at its next read, after at most a few milliseconds of work,
    /// or when memory that it waits for is released.
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
    /// Whether the caller has cancelled the request.
    pub(super) fn is_cancelled(&self) -> bool {
        self.state.cancelled.load(Ordering::Relaxed)
    }

    pub(super) fn cancel_handle(&self) -> CancelHandle {
        CancelHandle(self.state.clone())
    }

    /// Sends the result.
    pub(super) fn send(self, result: Result<Hits>) {
        self.state.send(result);
    }

    /// Sends a result that needs no memory.
    pub(super) fn send_without_hits(self, result: Result<Hits>) {
        self.state.lock().reserved = None;
        self.state.send(result);
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        self.state.send(Err(Error::Failed(CLOSED.to_string())));
    }
}

impl CancelHandle {
    /// As [`Ticket::cancel`].
    pub fn cancel(&self) {
        self.0.cancelled.store(true, Ordering::Relaxed);
    }

    /// Whether the caller has cancelled the request.
    #[inline]
    pub(super) fn is_cancelled(&self) -> bool {
        self.0.cancelled.load(Ordering::Relaxed)
    }
}

impl ResultSlot {
    /// The result, whose memory is the caller's from now on.
    fn take(&mut self) -> Option<Result<Hits>> {
        self.result.take().inspect(|_| self.reserved = None)
    }
}

impl TicketState {
    fn lock(&self) -> MutexGuard<'_, ResultSlot> {
        self.slot.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a result; all but the first are ignored.
    fn send(&self, result: Result<Hits>) {
        let mut slot = self.lock();
        if slot.sent {
            return;
        }
        slot.sent = true;
        if let Some(callback) = slot.callback.take() {
            slot.reserved = None;
            drop(slot);
            // A panic of the callback is reported by the panic hook, and affects no other request.
            let _ = catch_unwind(AssertUnwindSafe(|| callback(result)));
            return;
        }
        slot.result = Some(result);
        // A wake-up is a system call.
        if std::mem::take(&mut slot.waits) {
            drop(slot);
            self.ready.notify_all();
        }
    }
}

/// The error after [`Ticket::poll`] returned the result.
fn taken() -> Error {
    Error::Usage("the result was taken before".to_string())
}
