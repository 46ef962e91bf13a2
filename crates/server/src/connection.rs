//! Open connections, and when they are closed by the server.
//!
//! A task looks at all connections several times a second and closes those that waste memory: that wait for
//! a request for long, send it slowly, or do not read their answer. If there are too many connections, a new
//! one takes the place of one that sends nothing.

use std::collections::HashMap;
use std::io::IoSlice;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::Notify;

/// Time without a request, and with more than three quarters of all connections open.
const IDLE: Duration = Duration::from_secs(60);
const IDLE_CROWDED: Duration = Duration::from_secs(5);

/// Time until the first byte of the first request, and of the headers of each request; of the rest of the
/// headers when the server stops.
const HEADERS: Duration = Duration::from_secs(10);
const HEADERS_STOPPING: Duration = Duration::from_secs(1);

/// A client that does not read this many bytes of its answer in this time is disconnected.
const WRITE_STALL: Duration = Duration::from_secs(10);
const WRITE_BYTES: u64 = 16 << 10;

/// Time of a body.
const BODY: Duration = Duration::from_secs(30);

/// Minimum age of a connection that is closed for a new one: without a request, and with a partial body.
const EVICTABLE: Duration = Duration::from_millis(100);
const EVICTABLE_BODY: Duration = Duration::from_millis(250);

/// Bytes of a body that are discarded before a connection is closed, at most.
const DISCARDED_BYTES: usize = 4 << 20;

/// Bits of a phase.
const PHASE_BITS: u32 = 3;

/// What ends when the bytes of an answer were written. If they never are, it is dropped.
pub(crate) trait AnswerEnd: Send {
    fn written(self: Box<Self>);
}

/// What a connection does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub(crate) enum Phase {
    /// No request was sent yet.
    New,
    /// It waits for the next request.
    Idle,
    /// The headers of a request arrive.
    Headers,
    /// Its body arrives.
    Body,
    /// A request is answered.
    Busy,
}

/// An open connection.
pub(crate) struct Connection {
    began: Instant,
    /// The phase in the lowest bits, and above them the milliseconds from `began` to its change.
    phase: AtomicU64,
    /// Requests so far.
    requests: AtomicU64,
    /// Milliseconds from `began`, plus one, since bytes wait to be written; 0 if none do.
    write_waits: AtomicU64,
    /// Bytes that were written since.
    written: AtomicU64,
    /// Whether a part of the body of the last request may not have been read.
    leaves_body: AtomicBool,
    /// What ends with the answer whose bytes are being written.
    unwritten: Mutex<Option<Box<dyn AnswerEnd>>>,
    /// Tells its task to end.
    pub(crate) close: Notify,
    /// Whether it is one more than there may be: it only serves health checks and metrics.
    is_reserved: AtomicBool,
}

/// All open connections.
pub(crate) struct Connections {
    max: usize,
    /// Requests that wait until another connection can be closed.
    waiting: AtomicUsize,
    open: Mutex<OpenConnections>,
}

#[derive(Default)]
struct OpenConnections {
    next: u64,
    by_number: HashMap<u64, Arc<Connection>>,
}

/// A connection in the table; dropping it removes the entry.
pub(crate) struct OpenConnection {
    all: Arc<Connections>,
    number: u64,
    pub(crate) connection: Arc<Connection>,
}

impl Connection {
    fn new(is_reserved: bool) -> Connection {
        Connection {
            began: Instant::now(),
            phase: AtomicU64::new(Phase::New as u64),
            requests: AtomicU64::new(0),
            write_waits: AtomicU64::new(0),
            written: AtomicU64::new(0),
            leaves_body: AtomicBool::new(false),
            unwritten: Mutex::default(),
            close: Notify::new(),
            is_reserved: AtomicBool::new(is_reserved),
        }
    }

    fn millis(&self) -> u64 {
        self.began.elapsed().as_millis() as u64
    }

    pub(crate) fn set_phase(&self, phase: Phase) {
        self.phase.store(self.millis() << PHASE_BITS | phase as u64, Ordering::Relaxed);
    }

    /// Before the connection is closed, the rest of the body of the last request is read, so that the client
    /// reads the answer: a connection with unread bytes is reset.
    pub(crate) fn leave_body(&self) {
        self.leaves_body.store(true, Ordering::Relaxed);
    }

    /// Begins a request; returns its number.
    pub(crate) fn begin(&self) -> u64 {
        self.leaves_body.store(false, Ordering::Relaxed);
        self.set_phase(Phase::Busy);
        self.requests.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Ends a request, unless the next one has begun.
    pub(crate) fn end(&self, number: u64) {
        if self.requests.load(Ordering::Relaxed) == number {
            self.set_phase(Phase::Idle);
        }
    }

    fn phase(&self) -> (Phase, Duration) {
        let stored = self.phase.load(Ordering::Relaxed);
        let age = self.millis().saturating_sub(stored >> PHASE_BITS);
        let phase = match stored & ((1 << PHASE_BITS) - 1) {
            0 => Phase::New,
            1 => Phase::Idle,
            2 => Phase::Headers,
            3 => Phase::Body,
            _ => Phase::Busy,
        };
        (phase, Duration::from_millis(age))
    }

    /// Keeps a value until all bytes of the answer were written to the socket, or the connection is closed.
    pub(crate) fn keep_until_written(&self, end: Box<dyn AnswerEnd>) {
        *self.unwritten() = Some(end);
    }

    fn unwritten(&self) -> MutexGuard<'_, Option<Box<dyn AnswerEnd>>> {
        self.unwritten.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a task that was told to close this connection may do so: no request has come meanwhile.
    pub(crate) fn may_close(&self) -> bool {
        self.phase().0 != Phase::Busy || self.has_write_stalled()
    }

    fn has_write_stalled(&self) -> bool {
        let waits = self.write_waits.load(Ordering::Relaxed);
        waits > 0 && Duration::from_millis((self.millis() + 1).saturating_sub(waits)) > WRITE_STALL
    }

    /// How well it can be closed for a new connection: first those that have waited long for the next
    /// request, then those that have not sent one. `None` if it is answered, or new.
    fn evictable(&self) -> Option<(u8, Duration)> {
        let (phase, age) = self.phase();
        let (rank, least) = match phase {
            Phase::Busy => return None,
            Phase::Idle if age >= IDLE_CROWDED => (2, IDLE_CROWDED),
            Phase::Body => (1, EVICTABLE_BODY),
            Phase::New | Phase::Headers => (1, EVICTABLE),
            Phase::Idle => (0, EVICTABLE),
        };
        (age >= least).then_some((rank, age))
    }

    /// Whether it is to be closed.
    fn is_due(&self, is_crowded: bool, is_stopping: bool) -> bool {
        let (phase, age) = self.phase();
        let limit = match phase {
            Phase::Busy => return self.has_write_stalled(),
            Phase::Headers if is_stopping => HEADERS_STOPPING,
            Phase::New | Phase::Headers => HEADERS,
            Phase::Body => BODY,
            Phase::Idle if is_crowded => IDLE_CROWDED,
            Phase::Idle => IDLE,
        };
        age > limit || self.has_write_stalled()
    }
}

impl Connections {
    pub(crate) fn new(max: usize) -> Arc<Connections> {
        Arc::new(Connections { max, waiting: AtomicUsize::new(0), open: Mutex::default() })
    }

    /// Number of open connections.
    pub(crate) fn count(&self) -> usize {
        self.lock().by_number.len()
    }

    pub(crate) fn max(&self) -> usize {
        self.max
    }

    /// Adds a connection. If there are too many, closes one that sends nothing. `None` if all are busy and
    /// the `reserve` is used up.
    pub(crate) fn add(self: &Arc<Self>, reserve: usize) -> Option<OpenConnection> {
        let mut open = self.lock();
        if open.by_number.len() >= self.max {
            open.close_one();
        }
        let is_reserved = open.by_number.len() >= self.max;
        if open.by_number.len() >= self.max + reserve {
            return None;
        }
        let (number, connection) = (open.next, Arc::new(Connection::new(is_reserved)));
        open.next += 1;
        open.by_number.insert(number, connection.clone());
        drop(open);
        Some(OpenConnection { all: self.clone(), number, connection })
    }

    /// Whether a connection may be used for any request: it is not one more than there may be, or another
    /// could be closed for it.
    pub(crate) fn admits(&self, connection: &Connection) -> bool {
        if !connection.is_reserved.load(Ordering::Relaxed) {
            return true;
        }
        let mut open = self.lock();
        let is_admitted = open.by_number.len() <= self.max || open.close_one();
        connection.is_reserved.store(!is_admitted, Ordering::Relaxed);
        is_admitted
    }

    /// Registers a request that waits until [`Connections::admits`] its connection. `None` if half of the
    /// `reserve` waits: the rest is for health checks.
    pub(crate) fn wait(&self, reserve: usize) -> Option<WaitingRequest<'_>> {
        let waiting = WaitingRequest(&self.waiting);
        (self.waiting.fetch_add(1, Ordering::Relaxed) < reserve / 2).then_some(waiting)
    }

    /// Closes the connections that waste memory.
    pub(crate) fn close_due(&self, is_stopping: bool) {
        let open = self.lock();
        let is_crowded = open.by_number.len() > self.max / 4 * 3;
        let due = open.by_number.values().filter(|connection| connection.is_due(is_crowded, is_stopping));
        due.for_each(|connection| connection.close.notify_one());
    }

    fn lock(&self) -> MutexGuard<'_, OpenConnections> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request that waits; dropping it ends that.
pub(crate) struct WaitingRequest<'c>(&'c AtomicUsize);

impl Drop for WaitingRequest<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl OpenConnections {
    /// Closes the connection that is closed best. False if all are answered.
    fn close_one(&mut self) -> bool {
        let all = self.by_number.iter();
        let evictable = all.filter_map(|(number, connection)| Some((connection.evictable()?, *number)));
        let Some((_, best)) = evictable.max() else { return false };
        // Its task ends later; its place is free now.
        self.by_number.remove(&best).into_iter().for_each(|connection| connection.close.notify_one());
        true
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        // It refers to the connection.
        drop(self.connection.unwritten().take());
        self.all.lock().by_number.remove(&self.number);
    }
}

/// A stream that records what its connection does.
pub(crate) struct WatchedStream {
    stream: TcpStream,
    connection: Arc<Connection>,
    /// Bytes of a body that are discarded after the shutdown, and one more; 0 before.
    left: usize,
}

impl WatchedStream {
    pub(crate) fn new(stream: TcpStream, connection: Arc<Connection>) -> WatchedStream {
        WatchedStream { stream, connection, left: 0 }
    }

    fn record_write(&self, written: &Poll<std::io::Result<usize>>) {
        let Connection { write_waits, written: bytes, .. } = &*self.connection;
        match written {
            Poll::Pending if write_waits.load(Ordering::Relaxed) == 0 => {
                bytes.store(0, Ordering::Relaxed);
                write_waits.store(self.connection.millis() + 1, Ordering::Relaxed);
            }
            Poll::Ready(Ok(count))
                if bytes.fetch_add(*count as u64, Ordering::Relaxed) + *count as u64 >= WRITE_BYTES =>
            {
                write_waits.store(0, Ordering::Relaxed);
            }
            _ => {}
        }
    }
}

impl AsyncRead for WatchedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        let (phase, _) = self.connection.phase();
        if buffer.filled().len() > before && matches!(phase, Phase::New | Phase::Idle) {
            self.connection.set_phase(Phase::Headers);
        }
        read
    }
}

impl AsyncWrite for WatchedStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.record_write(&written);
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<std::io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, bytes);
        self.record_write(&written);
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        // Called when no bytes are left to write.
        self.connection.write_waits.store(0, Ordering::Relaxed);
        let end = self.connection.unwritten().take();
        end.into_iter().for_each(AnswerEnd::written);
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        if self.left == 0 {
            ready!(Pin::new(&mut self.stream).poll_shutdown(context))?;
            if !self.connection.leaves_body.load(Ordering::Relaxed) {
                return Poll::Ready(Ok(()));
            }
            self.left = DISCARDED_BYTES;
            // It has as much time as headers.
            self.connection.set_phase(Phase::Headers);
        }
        let mut bytes = [0; 4096];
        while self.left > 1 {
            let mut buffer = ReadBuf::new(&mut bytes);
            ready!(Pin::new(&mut self.stream).poll_read(context, &mut buffer))?;
            let read = buffer.filled().len();
            if read == 0 {
                break;
            }
            self.left = self.left.saturating_sub(read).max(1);
        }
        Poll::Ready(Ok(()))
    }
}
