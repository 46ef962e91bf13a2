//! The state of `tierdex.Writer`, which calls of several threads and the thread of the writer share.
//!
//! The thread has the engine's writer for its whole life. A call only changes this state, in steps: a step
//! never waits, never calls Python and never drops a piece, which takes time. A step that
//! cannot be done yet is [`Poll::Pending`]: the caller unlocks the state, waits for a change, checks for
//! signals and tries again. So a call waits for nothing but the thread, and the thread for no call.
//!
//! 1. A change (a document or a delete) or piece that a step accepts is counted in `accepted` and stays in
//!    the state until the thread takes it. Before that it belongs to the caller.
//! 2. A commit request includes all changes that were accepted before it. Until the thread has answered it
//!    other calls wait.
//! 3. The thread takes pieces until none is left, then commits, and answers.
//! 4. The writer ends once: closed after a commit, rolled back, or failed. All calls after that report the
//!    end, and how many changes a failure has lost. Then the thread exits.
//!
//! `tests/model` runs all interleavings of these steps.
#![forbid(unsafe_code)]

use std::collections::VecDeque;
use std::ops::{AddAssign, SubAssign};
use std::task::Poll;

/// Single changes in their order, which become a piece when they are enough.
pub trait Changes: Default {
    /// Appends the changes of `other`.
    fn append(&mut self, other: Self);

    /// Numbers of documents and of deletes.
    fn count(&self) -> ChangeCount;

    /// Whether they should be passed to the thread.
    fn is_full(&self) -> bool;
}

/// Numbers of changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ChangeCount {
    /// Documents that are added.
    pub documents: u64,
    /// Ids that are deleted, and documents that are deleted by a query.
    pub deletes: u64,
}

impl AddAssign for ChangeCount {
    fn add_assign(&mut self, other: ChangeCount) {
        self.documents += other.documents;
        self.deletes += other.deletes;
    }
}

impl SubAssign for ChangeCount {
    fn sub_assign(&mut self, other: ChangeCount) {
        self.documents -= other.documents;
        self.deletes -= other.deletes;
    }
}

/// The state of a writer: `C` are single changes, `P` pieces, `F` failures of the thread.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WriterState<C, P, F> {
    /// Capacity of the queue in pieces: calls that add wait while it is full.
    pieces_max: usize,
    /// Changes that no piece has yet; they are after all pieces.
    pending: C,
    /// Pieces that the thread has not taken.
    pieces: VecDeque<P>,
    /// Changes that were accepted since the last commit.
    accepted: ChangeCount,
    /// Number of commits.
    commits: u64,
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
    /// Changes of the commit; known when the thread starts it.
    changes: ChangeCount,
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
    /// All changes were committed.
    Closed,
    /// The changes since the last commit were discarded.
    RolledBack,
    /// The thread has failed.
    Failed {
        /// The failure.
        failure: F,
        /// Changes since the last commit, which are lost.
        lost: ChangeCount,
    },
}

/// Changes and pieces that were discarded: to be dropped after the state is unlocked.
#[must_use]
pub struct Discarded<C, P> {
    _pending: C,
    _pieces: VecDeque<P>,
}

/// What the thread does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Task {
    /// Take pieces, until there is none, and analyse them.
    Analyse,
    /// Commit; the changes since the last commit.
    Commit(CommitOrder, ChangeCount),
    /// Drop the engine's writer.
    Exit,
}

/// The result of a step of a call.
pub type Step<T, F> = Poll<Result<T, End<F>>>;

impl<C: Changes, P: From<C>, F: Clone> WriterState<C, P, F> {
    /// The state of an open writer; `pieces_max` pieces may be queued.
    pub fn new(pieces_max: usize) -> Self {
        WriterState {
            pieces_max,
            pending: C::default(),
            pieces: VecDeque::new(),
            accepted: ChangeCount::default(),
            commits: 0,
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

    /// The changes that were accepted since the last commit.
    pub fn accepted(&self) -> ChangeCount {
        self.accepted
    }

    /// Number of commits so far, and the changes since the last one; waits for the commit of another call.
    pub fn commits(&self) -> Step<(u64, ChangeCount), F> {
        self.check_open()?;
        if self.commit.is_some() { Poll::Pending } else { Poll::Ready(Ok((self.commits, self.accepted))) }
    }

    /// The end of the writer, if it has ended.
    pub fn end(&self) -> Option<&End<F>> {
        self.end.as_ref()
    }

    /// Whether the thread has dropped the engine's writer.
    pub fn has_exited(&self) -> bool {
        self.exited
    }

    /// Accepts single changes, which it takes out of `changes`; waits while the queue has no space.
    pub fn add(&mut self, changes: &mut C) -> Step<(), F> {
        self.check_open()?;
        if self.commit.is_some() || (self.pending.is_full() && !self.has_space()) {
            return Poll::Pending;
        }
        self.flush_if(C::is_full);
        self.accepted += changes.count();
        self.pending.append(std::mem::take(changes));
        if self.has_space() {
            self.flush_if(C::is_full);
        }
        Poll::Ready(Ok(()))
    }

    /// Accepts changes that were chosen from the state after this number of commits, to which no document has
    /// been added, as [`WriterState::add`] does; false, and nothing is accepted, if it is another one.
    pub fn add_to_commit(&mut self, commits: u64, changes: &mut C) -> Step<bool, F> {
        self.check_open()?;
        if self.commit.is_some() {
            return Poll::Pending;
        }
        if self.commits != commits || self.accepted.documents > 0 {
            return Poll::Ready(Ok(false));
        }
        self.add(changes).map_ok(|()| true)
    }

    /// Accepts a piece with these changes, which it takes out of `piece`; waits while the queue has no space.
    pub fn add_piece(&mut self, piece: &mut Option<P>, changes: ChangeCount) -> Step<(), F> {
        self.check_open()?;
        if self.commit.is_some() || !self.has_space() {
            return Poll::Pending;
        }
        Poll::Ready(self.keep_piece(piece, changes))
    }

    /// Accepts a piece without waiting: a signal has ended the wait, and its changes cannot be read again.
    ///
    /// # Errors
    /// The end of the writer; the piece stays with the caller.
    pub fn keep_piece(&mut self, piece: &mut Option<P>, changes: ChangeCount) -> Result<(), End<F>> {
        self.check_open()?;
        self.flush_if(|pending| pending.count() != ChangeCount::default());
        self.accepted += changes;
        self.pieces.extend(piece.take());
        self.changed = true;
        Ok(())
    }

    /// Requests a commit of all accepted changes; waits for the commit of another call.
    pub fn request_commit(&mut self, order: CommitOrder) -> Step<Ticket, F> {
        self.check_open()?;
        if self.commit.is_some() {
            return Poll::Pending;
        }
        self.flush_if(|pending| pending.count() != ChangeCount::default());
        let ticket = Ticket(self.tickets);
        self.tickets += 1;
        self.commit =
            Some(CommitRequest { ticket, order, changes: ChangeCount::default(), abandoned: false });
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

    /// Ends the writer and discards the changes since the last commit; waits for the commit of another
    /// call. If the writer has ended already, nothing changes.
    pub fn roll_back(&mut self) -> Poll<Discarded<C, P>> {
        if self.commit.is_some() && self.end.is_none() {
            return Poll::Pending;
        }
        Poll::Ready(self.abort())
    }

    /// Ends the writer as [`WriterState::roll_back`], without waiting for a commit.
    pub fn abort(&mut self) -> Discarded<C, P> {
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
                commit.changes = self.accepted;
                Poll::Ready(Task::Commit(commit.order, self.accepted))
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
        self.accepted -= commit.changes;
        self.commits += 1;
        if commit.order.closes && self.accepted != ChangeCount::default() {
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

    /// The thread has failed: all changes since the last commit are lost.
    pub fn failed(&mut self, failure: F) -> Discarded<C, P> {
        let lost = self.accepted;
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

    /// Makes the pending changes a piece if `is_due`.
    fn flush_if(&mut self, is_due: impl FnOnce(&C) -> bool) {
        if is_due(&self.pending) {
            self.pieces.push_back(std::mem::take(&mut self.pending).into());
            self.changed = true;
        }
    }

    fn end_with(&mut self, end: End<F>) -> Discarded<C, P> {
        if self.end.is_some() {
            return Discarded::none();
        }
        self.end = Some(end);
        (self.commit, self.accepted, self.changed) = (None, ChangeCount::default(), true);
        Discarded { _pending: std::mem::take(&mut self.pending), _pieces: std::mem::take(&mut self.pieces) }
    }
}

impl<C: Default, P> Discarded<C, P> {
    fn none() -> Self {
        Discarded { _pending: C::default(), _pieces: VecDeque::new() }
    }
}
