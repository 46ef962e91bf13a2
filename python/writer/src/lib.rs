//! The state of `tierdex.Writer`, which calls of several threads and the thread of the writer share.
//!
//! The thread has the engine's writer for its whole life. A call only changes this state, in steps: a step
//! never waits, never calls Python and never drops a piece, which takes time. A step that
//! cannot be done yet is [`Poll::Pending`]: the caller unlocks the state, waits for a change, checks for
//! signals and tries again. So a call waits for nothing but the thread, and the thread for no call.
//!
//! 1. A document or piece that a step accepts is counted in `added` and stays in the state until the thread
//!    takes it. Before that it belongs to the caller.
//! 2. A commit request includes all documents that were accepted before it. Until the thread has answered it
//!    other calls wait.
//! 3. The thread takes pieces until none is left, then commits, and answers.
//! 4. The writer ends once: closed after a commit, rolled back, or failed. All calls after that report the
//!    end, and how many documents a failure has lost. Then the thread exits.
//!
//! `tests/model.rs` runs all interleavings of these steps.
#![forbid(unsafe_code)]

use std::{collections::VecDeque, task::Poll};

/// Single documents, which become a piece when they are enough.
pub trait Documents: Default {
    /// Appends the documents of `other`.
    fn append(&mut self, other: Self);

    /// Number of documents.
    fn documents(&self) -> u64;

    /// Whether they should be passed to the thread.
    fn is_full(&self) -> bool;
}

/// The state of a writer: `D` are single documents, `P` pieces, `F` failures of the thread.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WriterState<D, P, F> {
    /// Capacity of the queue in pieces: calls that add wait while it is full.
    pieces_max: usize,
    /// Documents that no piece has yet; they are after all pieces.
    pending: D,
    /// Pieces that the thread has not taken.
    pieces: VecDeque<P>,
    /// Documents that were accepted since the last commit.
    added: u64,
    commit: Option<CommitRequest>,
    tickets: u64,
    /// Generations of commits whose callers have not asked yet.
    answers: Vec<(Ticket, u64)>,
    end: Option<End<F>>,
    exited: bool,
    changed: bool,
}

/// A commit that the thread has not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct CommitRequest {
    ticket: Ticket,
    order: CommitOrder,
    /// Documents of the commit; known when the thread starts it.
    documents: u64,
    /// Nobody asks for the answer.
    abandoned: bool,
}

/// Names a commit request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ticket(u64);

/// What a commit shall do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CommitOrder {
    /// Whether all segments are merged; `None` for the default of the writer.
    pub merge: Option<bool>,
    /// Whether the writer ends after the commit.
    pub closes: bool,
}

/// Why a writer takes no more calls.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum End<F> {
    /// All documents were committed.
    Closed,
    /// The documents since the last commit were discarded.
    RolledBack,
    /// The thread has failed.
    Failed {
        /// The failure.
        failure: F,
        /// Documents since the last commit, which are lost.
        lost: u64,
    },
}

/// Documents and pieces that were discarded: to be dropped after the state is unlocked.
#[must_use]
pub struct Discarded<D, P> {
    _pending: D,
    _pieces: VecDeque<P>,
}

/// What the thread does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Task {
    /// Take pieces, until there is none, and analyse them.
    Analyse,
    /// Commit; the number of documents since the last commit.
    Commit(CommitOrder, u64),
    /// Drop the engine's writer.
    Exit,
}

/// The result of a step of a call.
pub type Step<T, F> = Poll<Result<T, End<F>>>;

impl<D: Documents, P: From<D>, F: Clone> WriterState<D, P, F> {
    /// The state of an open writer; `pieces_max` pieces may be queued.
    pub fn new(pieces_max: usize) -> Self {
        WriterState {
            pieces_max,
            pending: D::default(),
            pieces: VecDeque::new(),
            added: 0,
            commit: None,
            tickets: 0,
            answers: Vec::new(),
            end: None,
            exited: false,
            changed: false,
        }
    }

    /// Whether a step may have ended the wait of somebody, since the last call of this function.
    pub fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.changed)
    }

    /// Number of documents that were accepted since the last commit.
    pub fn added(&self) -> u64 {
        self.added
    }

    /// The end of the writer, if it has ended.
    pub fn end(&self) -> Option<&End<F>> {
        self.end.as_ref()
    }

    /// Whether the thread has dropped the engine's writer.
    pub fn has_exited(&self) -> bool {
        self.exited
    }

    /// Accepts single documents, which it takes out of `documents`; waits while the queue has no space.
    pub fn add(&mut self, documents: &mut D) -> Step<(), F> {
        self.check_open()?;
        if self.commit.is_some() || (self.pending.is_full() && !self.has_space()) {
            return Poll::Pending;
        }
        self.flush_if(D::is_full);
        self.added += documents.documents();
        self.pending.append(std::mem::take(documents));
        if self.has_space() {
            self.flush_if(D::is_full);
        }
        Poll::Ready(Ok(()))
    }

    /// Accepts a piece with this number of documents, which it takes out of `piece`; waits while the queue
    /// has no space.
    pub fn add_piece(&mut self, piece: &mut Option<P>, documents: u64) -> Step<(), F> {
        self.check_open()?;
        if self.commit.is_some() || !self.has_space() {
            return Poll::Pending;
        }
        Poll::Ready(self.keep_piece(piece, documents))
    }

    /// Accepts a piece without waiting: a signal has ended the wait, and its documents cannot be read again.
    ///
    /// # Errors
    /// The end of the writer; the piece stays with the caller.
    pub fn keep_piece(&mut self, piece: &mut Option<P>, documents: u64) -> Result<(), End<F>> {
        self.check_open()?;
        self.flush_if(|pending| pending.documents() > 0);
        self.added += documents;
        self.pieces.extend(piece.take());
        self.changed = true;
        Ok(())
    }

    /// Requests a commit of all accepted documents; waits for the commit of another call.
    pub fn request_commit(&mut self, order: CommitOrder) -> Step<Ticket, F> {
        self.check_open()?;
        if self.commit.is_some() {
            return Poll::Pending;
        }
        self.flush_if(|pending| pending.documents() > 0);
        let ticket = Ticket(self.tickets);
        self.tickets += 1;
        self.commit = Some(CommitRequest { ticket, order, documents: 0, abandoned: false });
        self.changed = true;
        Poll::Ready(Ok(ticket))
    }

    /// The generation of the commit of `ticket`, once it is durable.
    pub fn commit_answer(&mut self, ticket: Ticket) -> Step<u64, F> {
        if let Some(at) = self.answers.iter().position(|(of, _)| *of == ticket) {
            return Poll::Ready(Ok(self.answers.swap_remove(at).1));
        }
        self.check_open()?;
        Poll::Pending
    }

    /// Nobody will ask for the answer of `ticket` any more.
    pub fn abandon_commit(&mut self, ticket: Ticket) {
        self.answers.retain(|(of, _)| *of != ticket);
        if let Some(commit) = self.commit.as_mut().filter(|commit| commit.ticket == ticket) {
            commit.abandoned = true;
        }
    }

    /// Ends the writer and discards the documents since the last commit; waits for the commit of another
    /// call. If the writer has ended already, nothing changes.
    pub fn roll_back(&mut self) -> Poll<Discarded<D, P>> {
        if self.commit.is_some() && self.end.is_none() {
            return Poll::Pending;
        }
        Poll::Ready(self.abort())
    }

    /// Ends the writer as [`WriterState::roll_back`], without waiting for a commit.
    pub fn abort(&mut self) -> Discarded<D, P> {
        self.end_with(End::RolledBack)
    }

    /// The next task of the thread.
    pub fn next_task(&mut self) -> Poll<Task> {
        if self.end.is_some() {
            return Poll::Ready(Task::Exit);
        }
        if !self.pieces.is_empty() {
            return Poll::Ready(Task::Analyse);
        }
        match &mut self.commit {
            Some(commit) => {
                commit.documents = self.added;
                Poll::Ready(Task::Commit(commit.order, self.added))
            }
            None => Poll::Pending,
        }
    }

    /// The next piece for the thread; `None` when it has another task.
    pub fn next_piece(&mut self) -> Poll<Option<P>> {
        if self.end.is_some() {
            return Poll::Ready(None);
        }
        match self.pieces.pop_front() {
            Some(piece) => {
                self.changed = true;
                Poll::Ready(Some(piece))
            }
            None if self.commit.is_some() => Poll::Ready(None),
            None => Poll::Pending,
        }
    }

    /// The thread has committed. If the commit closes the writer, and a piece was kept meanwhile, the thread
    /// commits once more.
    pub fn committed(&mut self, generation: u64) {
        let Some(commit) = self.commit else { return };
        self.added -= commit.documents;
        if commit.order.closes && self.added > 0 {
            return;
        }
        (self.commit, self.changed) = (None, true);
        if !commit.abandoned {
            self.answers.push((commit.ticket, generation));
        }
        if commit.order.closes {
            self.end = Some(End::Closed);
        }
    }

    /// The thread has failed: all documents since the last commit are lost.
    pub fn failed(&mut self, failure: F) -> Discarded<D, P> {
        let lost = self.added;
        self.end_with(End::Failed { failure, lost })
    }

    /// The thread has dropped the engine's writer.
    pub fn exited(&mut self) {
        (self.exited, self.changed) = (true, true);
    }

    fn check_open(&self) -> Result<(), End<F>> {
        self.end.clone().map_or(Ok(()), Err)
    }

    fn has_space(&self) -> bool {
        self.pieces.len() < self.pieces_max
    }

    /// Makes the pending documents a piece if `is_due`.
    fn flush_if(&mut self, is_due: impl FnOnce(&D) -> bool) {
        if is_due(&self.pending) {
            self.pieces.push_back(std::mem::take(&mut self.pending).into());
            self.changed = true;
        }
    }

    fn end_with(&mut self, end: End<F>) -> Discarded<D, P> {
        if self.end.is_some() {
            return Discarded::none();
        }
        self.end = Some(end);
        (self.commit, self.added, self.changed) = (None, 0, true);
        Discarded { _pending: std::mem::take(&mut self.pending), _pieces: std::mem::take(&mut self.pieces) }
    }
}

impl<D: Default, P> Discarded<D, P> {
    fn none() -> Self {
        Discarded { _pending: D::default(), _pieces: VecDeque::new() }
    }
}
