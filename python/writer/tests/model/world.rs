//! A world: the state of a writer, the calls of several threads and the thread of the writer, between steps.

use std::task::Poll;
use tierdex_python_writer::{ChangeCount, Changes, CommitOrder, End, Task, Ticket, WriterState};

/// Numbers of documents and of deletes ([`is_delete`]), which are called documents below; two are a piece.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Batch(pub Vec<u8>);

fn is_delete(number: u8) -> bool {
    number % 8 >= 3
}

impl Changes for Batch {
    fn append(&mut self, mut other: Batch) {
        self.0.append(&mut other.0);
    }

    fn count(&self) -> ChangeCount {
        let deletes = self.0.iter().filter(|number| is_delete(**number)).count() as u64;
        ChangeCount { documents: self.0.len() as u64 - deletes, deletes }
    }

    fn is_full(&self) -> bool {
        self.0.len() >= 2
    }
}

pub type State = WriterState<Batch, Batch, &'static str>;

/// A call of a Python thread.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Call {
    Add(Batch),
    /// The pieces of an `add_many`, the last one first.
    AddMany(Vec<Batch>),
    /// Chooses what is deleted from the last commit.
    ChooseDeletes(Batch),
    /// Deletes what was chosen after this number of commits, which had these documents.
    DeleteChosen(Batch, u64, Vec<u8>),
    Commit(CommitOrder),
    /// Waits for the answer to a commit of these documents; one that closes waits for the end of the thread.
    Answer(Ticket, CommitOrder, Vec<u8>),
    Rollback,
    /// Waits until the thread has dropped the engine's writer.
    Exit,
}

/// What a step of a call did.
pub enum Stepped {
    Next(Call),
    Returned,
    Pending,
}

/// A thread of Python: its calls, and those of signal handlers inside of the first one, innermost last.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Caller {
    script: Vec<Call>,
    active: Vec<Call>,
    handler: Option<Call>,
    signals: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Worker {
    Waits,
    Analyses,
    Commits(CommitOrder),
    Exits,
    Exited,
}

/// A defect that the model must find.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Defect {
    None,
    /// A call gives its documents away before it is sure that they are accepted.
    TakesTooEarly,
    /// A signal drops the piece that waits.
    DropsThePiece,
    /// The thread ends and tells nobody.
    EndsSilently,
    /// A failure is answered like a commit.
    CommitsNothing,
    /// What was chosen from a commit is deleted after others.
    DeletesLate,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct World {
    state: State,
    callers: Vec<Caller>,
    worker: Worker,
    /// The stop signal of the engine's writer.
    stop: bool,
    faults: u8,
    defect: Defect,
    /// Documents for which a call has returned or that were kept after a signal.
    accepted: Vec<u8>,
    /// Documents in the engine's writer.
    analysed: Vec<u8>,
    committed: Vec<u8>,
}

pub const KEEPING_COMMIT: CommitOrder = CommitOrder { merge: None, closes: false };
pub const CLOSING_COMMIT: CommitOrder = CommitOrder { merge: None, closes: true };

impl World {
    pub fn new(scripts: &[&[Call]], defect: Defect) -> World {
        let caller = |script: &&[Call]| Caller {
            script: script.iter().rev().cloned().collect(),
            active: Vec::new(),
            handler: None,
            signals: 0,
        };
        World {
            state: State::new(1),
            callers: scripts.iter().map(caller).collect(),
            worker: Worker::Waits,
            stop: false,
            faults: 0,
            defect,
            accepted: Vec::new(),
            analysed: Vec::new(),
            committed: Vec::new(),
        }
    }

    pub fn with_faults(mut self, faults: u8) -> World {
        self.faults = faults;
        self
    }

    pub fn with_signals(mut self, signals: u8) -> World {
        self.callers.iter_mut().for_each(|caller| caller.signals = signals);
        self
    }

    pub fn with_handler(mut self, caller: usize, handler: Call) -> World {
        self.callers[caller].handler = Some(handler);
        self
    }

    pub fn is_finished(&self) -> bool {
        self.callers.iter().all(|caller| caller.script.is_empty() && caller.active.is_empty())
    }

    /// All worlds after one step, with the name of the step.
    pub fn successors(&self) -> Vec<(String, World)> {
        let mut next = Vec::new();
        for number in 0..self.callers.len() {
            let mut world = self.clone();
            match world.step_caller(number) {
                true => {
                    next.push((format!("{number}: {:?}", self.call(number)), world));
                    // The writer may end between the last attempt of a call that waits and its signal.
                    if self.state.end().is_some() {
                        next.extend(self.interruptions(number));
                    }
                }
                false => {
                    assert_eq!(world.state, self.state, "changed by a step that waits: {self:#?}");
                    next.extend(self.interruptions(number));
                }
            }
        }
        next.extend(self.worker_steps().into_iter().map(|world| (format!("{:?}", self.worker), world)));
        for (step, world) in &mut next {
            let wakes = world.state.take_changed();
            let sleeps_on = self.worker_sleeps() && !world.worker_sleeps() && !wakes;
            assert!(!sleeps_on, "the thread sleeps on after {step}: {self:#?}");
        }
        next
    }

    /// Whether the thread waits for a change of the state.
    fn worker_sleeps(&self) -> bool {
        let mut state = self.state.clone();
        match self.worker {
            Worker::Waits => state.next_task().is_pending(),
            Worker::Analyses => state.next_piece().is_pending(),
            _ => false,
        }
    }

    fn call(&self, number: usize) -> Option<&Call> {
        let caller = &self.callers[number];
        caller.active.last().or(caller.script.last())
    }

    /// Runs a step of a thread; false if it cannot run.
    fn step_caller(&mut self, number: usize) -> bool {
        let caller = &mut self.callers[number];
        if caller.active.is_empty() {
            caller.active.extend(caller.script.pop());
        }
        let Some(call) = caller.active.pop() else { return false };
        match self.step(call) {
            Stepped::Returned => true,
            Stepped::Next(call) => {
                self.callers[number].active.push(call);
                true
            }
            Stepped::Pending => false,
        }
    }

    fn step(&mut self, call: Call) -> Stepped {
        match call {
            Call::Add(mut documents) => {
                let given = documents.clone();
                let commits = self.commits();
                match self.state.add(&mut documents) {
                    Poll::Ready(Ok(())) if commits => panic!("added during a commit: {self:#?}"),
                    Poll::Ready(Ok(())) => self.accept(given),
                    Poll::Ready(Err(_)) => (),
                    Poll::Pending if self.defect == Defect::TakesTooEarly => self.accept(given),
                    Poll::Pending => {
                        assert_eq!(documents, given, "taken by a step that waits: {self:#?}");
                        return Stepped::Pending;
                    }
                }
                Stepped::Returned
            }
            Call::AddMany(mut pieces) => {
                let Some(piece) = pieces.pop() else { return Stepped::Returned };
                let (given, changes) = (piece.clone(), piece.count());
                let (mut piece, commits) = (Some(piece), self.commits());
                match self.state.add_piece(&mut piece, changes) {
                    Poll::Ready(Ok(())) if commits => panic!("added during a commit: {self:#?}"),
                    Poll::Ready(Ok(())) => self.accept(given),
                    Poll::Ready(Err(_)) => return Stepped::Returned,
                    Poll::Pending => {
                        assert_eq!(piece, Some(given), "taken by a step that waits: {self:#?}");
                        return Stepped::Pending;
                    }
                }
                Stepped::Next(Call::AddMany(pieces))
            }
            Call::ChooseDeletes(deletes) => match self.state.commits() {
                Poll::Ready(Ok((commits, ChangeCount { documents: 0, .. }))) => {
                    Stepped::Next(Call::DeleteChosen(deletes, commits, self.committed.clone()))
                }
                // An error, also for documents that no query finds yet.
                Poll::Ready(_) => Stepped::Returned,
                Poll::Pending => Stepped::Pending,
            },
            Call::DeleteChosen(deletes, commits, chosen_from) => {
                self.delete_chosen(deletes, commits, &chosen_from)
            }
            Call::Commit(order) => match self.state.request_commit(order) {
                Poll::Ready(Ok(ticket)) => Stepped::Next(Call::Answer(ticket, order, self.accepted.clone())),
                Poll::Ready(Err(_)) if order.closes => Stepped::Next(Call::Exit),
                Poll::Ready(Err(_)) => Stepped::Returned,
                Poll::Pending => Stepped::Pending,
            },
            Call::Answer(ticket, order, documents) => match self.state.commit_answer(ticket) {
                Poll::Ready(Ok(_)) => {
                    let missing = documents.iter().find(|document| !self.committed.contains(document));
                    assert_eq!(missing, None, "lost by a commit: {self:#?}");
                    if order.closes { Stepped::Next(Call::Exit) } else { Stepped::Returned }
                }
                Poll::Ready(Err(End::Failed { .. })) => Stepped::Returned,
                Poll::Ready(Err(_)) => panic!("a commit without an answer: {self:#?}"),
                Poll::Pending => Stepped::Pending,
            },
            Call::Rollback => match self.state.roll_back() {
                Poll::Ready(_discarded) => {
                    self.stop = true;
                    Stepped::Next(Call::Exit)
                }
                Poll::Pending => Stepped::Pending,
            },
            Call::Exit if self.state.has_exited() => Stepped::Returned,
            Call::Exit => Stepped::Pending,
        }
    }

    fn delete_chosen(&mut self, mut deletes: Batch, commits: u64, chosen_from: &[u8]) -> Stepped {
        let given = deletes.clone();
        let deleted = match self.defect {
            Defect::DeletesLate => self.state.add(&mut deletes).map_ok(|()| true),
            _ => self.state.add_to_commit(commits, &mut deletes),
        };
        match deleted {
            Poll::Ready(Ok(true)) => {
                assert_eq!(self.committed, chosen_from, "chosen from another state: {self:#?}");
                let is_new = |number: &&u8| !is_delete(**number) && !self.committed.contains(number);
                assert_eq!(self.accepted.iter().find(is_new), None, "chosen from another state: {self:#?}");
                self.accept(given);
                Stepped::Returned
            }
            Poll::Ready(Ok(false)) => Stepped::Next(Call::ChooseDeletes(given)),
            Poll::Ready(Err(_)) => Stepped::Returned,
            Poll::Pending => {
                assert_eq!(deletes, given, "taken by a step that waits: {self:#?}");
                Stepped::Pending
            }
        }
    }

    /// Whether a commit was requested and not answered: the thread takes the pieces that are left, no more.
    fn commits(&self) -> bool {
        let mut state = self.state.clone();
        loop {
            match state.next_piece() {
                Poll::Ready(Some(_)) => (),
                Poll::Ready(None) => return state.end().is_none(),
                Poll::Pending => return false,
            }
        }
    }

    fn accept(&mut self, documents: Batch) {
        self.accepted.extend(documents.0);
    }

    /// Signals in a call that waits: a handler that calls the writer, and one that raises an exception.
    fn interruptions(&self, number: usize) -> Vec<(String, World)> {
        let mut next = Vec::new();
        let waits = !self.callers[number].active.is_empty() || !self.callers[number].script.is_empty();
        if waits && self.callers[number].handler.is_some() {
            let mut world = self.clone();
            let caller = &mut world.callers[number];
            if caller.active.is_empty() {
                caller.active.extend(caller.script.pop());
            }
            caller.active.extend(caller.handler.take());
            next.push((format!("{number}: handler"), world));
        }
        if waits && self.callers[number].signals > 0 {
            let mut world = self.clone();
            world.interrupt(number);
            next.push((format!("{number}: signal"), world));
        }
        next
    }

    /// Ends the innermost call of a thread by an exception.
    fn interrupt(&mut self, number: usize) {
        let caller = &mut self.callers[number];
        caller.signals -= 1;
        let call = caller.active.pop().or_else(|| caller.script.pop());
        match call {
            Some(Call::AddMany(mut pieces)) if self.defect != Defect::DropsThePiece => {
                let Some(piece) = pieces.pop() else { return };
                let (given, changes) = (piece.clone(), piece.count());
                if self.state.keep_piece(&mut Some(piece), changes).is_ok() {
                    self.accept(given);
                }
            }
            Some(Call::AddMany(mut pieces)) => self.accept(pieces.pop().unwrap_or_default()),
            Some(Call::Answer(ticket, ..)) => {
                self.stop = true;
                self.state.abandon_commit(ticket);
            }
            _ => (),
        }
    }

    /// Worlds after a step of the writer's thread.
    fn worker_steps(&self) -> Vec<World> {
        let mut next = Vec::new();
        let mut world = self.clone();
        match &self.worker {
            Worker::Waits => match world.state.next_task() {
                Poll::Ready(task) => {
                    world.worker = match task {
                        Task::Analyse => Worker::Analyses,
                        Task::Commit(order, _) => Worker::Commits(order),
                        Task::Exit => Worker::Exits,
                    };
                    next.push(world);
                }
                Poll::Pending => (),
            },
            Worker::Analyses => match world.state.next_piece() {
                Poll::Ready(Some(piece)) => {
                    next.extend(world.failures());
                    if !world.stop {
                        world.analysed.extend(piece.0);
                        next.push(world);
                    }
                }
                Poll::Ready(None) => {
                    world.worker = Worker::Waits;
                    next.push(world);
                }
                Poll::Pending if world.stop => next.extend(world.failures()),
                Poll::Pending => (),
            },
            Worker::Commits(_) => {
                next.extend(world.failures());
                world.commit();
                next.push(world);
            }
            Worker::Exits => {
                world.worker = Worker::Exited;
                if world.defect != Defect::EndsSilently {
                    world.state.exited();
                }
                next.push(world);
            }
            Worker::Exited => (),
        }
        next
    }

    /// A successful commit. One that a signal came too late to stop is the last.
    fn commit(&mut self) {
        self.committed.append(&mut self.analysed);
        self.state.committed(1);
        self.worker = Worker::Waits;
        if self.stop {
            let _discarded = self.state.failed("interrupted");
        }
    }

    /// Worlds in which the thread fails here: by an error, or by a panic, after which it exits at once.
    fn failures(&self) -> Vec<World> {
        if self.faults == 0 && !self.stop {
            return Vec::new();
        }
        let mut error = self.clone();
        error.faults = error.faults.saturating_sub(1);
        if self.defect == Defect::CommitsNothing {
            error.state.committed(1);
        }
        let _discarded = error.state.failed("a fault");
        let mut panic = error.clone();
        error.worker = Worker::Exits;
        panic.state.exited();
        panic.worker = Worker::Exited;
        vec![error, panic]
    }

    /// Checks a world in which all calls have returned.
    pub fn check(&self) {
        let mut world = self.clone();
        let in_state = world.state.accepted();
        let _discarded = world.state.abort();
        world.stop = true;
        while let Some(next) = world.worker_steps().pop() {
            world = next;
        }
        assert!(world.state.has_exited(), "the thread runs on: {self:#?}");
        let mut once = self.committed.clone();
        once.sort_unstable();
        once.dedup();
        assert_eq!(once.len(), self.committed.len(), "a document twice: {self:#?}");
        assert!(once.iter().all(|document| self.accepted.contains(document)), "not accepted: {self:#?}");
        let (mut uncommitted, committed) = (Batch(self.accepted.clone()).count(), Batch(once).count());
        uncommitted -= committed;
        match world.state.end() {
            Some(End::Closed) => assert_eq!(uncommitted, ChangeCount::default(), "lost: {self:#?}"),
            Some(End::Failed { lost, .. }) => assert_eq!(uncommitted, *lost, "lost: {self:#?}"),
            // Discarded by the call of `roll_back`, or by the end of the world.
            _ if self.state.end().is_some() => (),
            _ => assert_eq!(uncommitted, in_state, "lost: {self:#?}"),
        }
        for caller in 0..u8::try_from(self.callers.len()).expect("few callers") {
            let of = |document: &&u8| **document / 16 == caller;
            let order: Vec<_> = self.committed.iter().filter(of).collect();
            assert!(order.is_sorted(), "out of order: {self:#?}");
        }
    }
}
