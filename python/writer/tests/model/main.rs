//! Runs all interleavings of the calls of several threads, signals, faults of the writer's thread and panics
//! over the state of a writer, and checks that no accepted change is lost or doubled unless an error has
//! named it, and that no call waits for ever. [`Search`] visits each [`World`] once.

mod world;

use std::{collections::HashSet, slice::from_ref};
use world::{Batch, CLOSING_COMMIT, Call, Defect, KEEPING_COMMIT, World};

/// Visits all worlds that can follow from one.
#[derive(Default)]
struct Search {
    visited: HashSet<World>,
    finished: usize,
    path: Vec<String>,
}

impl Search {
    fn visit(&mut self, world: World) {
        if !self.visited.insert(world.clone()) {
            return;
        }
        let next = world.successors();
        if world.is_finished() {
            self.finished += 1;
            world.check();
        } else {
            assert!(!next.is_empty(), "waits for ever after {:#?}: {world:#?}", self.path);
        }
        for (step, world) in next {
            self.path.push(step);
            self.visit(world);
            self.path.pop();
        }
    }
}

fn explore(world: World) -> usize {
    let mut search = Search::default();
    search.visit(world);
    assert!(search.finished > 0);
    search.visited.len()
}

fn batch_of(documents: &[u8]) -> Batch {
    Batch(documents.to_vec())
}

/// Each entry point. The documents of caller `n` are from `16 n` on; those of signal handlers from 64 on.
fn entry_point_calls(caller: u8) -> Vec<Call> {
    let first = caller * 16;
    vec![
        Call::Add(batch_of(&[first])),
        Call::AddMany(vec![batch_of(&[first + 3]), batch_of(&[first + 1, first + 2])]),
        Call::ChooseDeletes(batch_of(&[first + 4])),
        Call::Commit(KEEPING_COMMIT),
        Call::Rollback,
        Call::Commit(CLOSING_COMMIT),
    ]
}

/// The call again with the next documents.
fn call_with_next_documents(call: &Call) -> Call {
    match call {
        Call::Add(Batch(documents)) => Call::Add(batch_of(&[documents[0] + 8])),
        Call::ChooseDeletes(Batch(deletes)) => Call::ChooseDeletes(batch_of(&[deletes[0] + 8])),
        Call::AddMany(pieces) => {
            let later = |piece: &Batch| Batch(piece.0.iter().map(|document| document + 8).collect());
            Call::AddMany(pieces.iter().map(later).collect())
        }
        other => other.clone(),
    }
}

#[test]
fn two_threads_of_two_calls() {
    let mut worlds = 0;
    for a in entry_point_calls(0) {
        for b in entry_point_calls(0).iter().map(call_with_next_documents) {
            for c in entry_point_calls(1) {
                for d in entry_point_calls(1).iter().map(call_with_next_documents) {
                    let scripts: [&[Call]; 2] = [&[a.clone(), b.clone()], &[c.clone(), d]];
                    worlds += explore(World::new(&scripts, Defect::None).with_faults(1).with_signals(1));
                }
            }
        }
    }
    assert!(worlds > 100_000, "{worlds} worlds");
}

#[test]
fn three_threads_with_faults() {
    for a in entry_point_calls(0) {
        for b in entry_point_calls(1) {
            for c in entry_point_calls(2) {
                let scripts: [&[Call]; 3] = [from_ref(&a), from_ref(&b), &[c, Call::Commit(CLOSING_COMMIT)]];
                explore(World::new(&scripts, Defect::None).with_faults(1).with_signals(1));
            }
        }
    }
}

#[test]
fn signal_handlers_that_call_the_writer() {
    for a in entry_point_calls(0) {
        for b in entry_point_calls(1) {
            for handler in entry_point_calls(4) {
                let scripts: [&[Call]; 2] = [&[a.clone(), Call::Commit(KEEPING_COMMIT)], from_ref(&b)];
                let world = World::new(&scripts, Defect::None).with_faults(1).with_signals(1);
                explore(world.with_handler(0, handler));
            }
        }
    }
}

fn adding_callers() -> Vec<Vec<Call>> {
    let add = |document| Call::Add(batch_of(&[document]));
    let first = vec![add(0), add(1), add(2), add(3), Call::Commit(CLOSING_COMMIT)];
    vec![
        first,
        vec![Call::AddMany(vec![batch_of(&[18, 19]), batch_of(&[16, 17])]), Call::Commit(KEEPING_COMMIT)],
    ]
}

fn run_adding(defect: Defect) {
    let adding = adding_callers();
    let scripts: Vec<&[Call]> = adding.iter().map(Vec::as_slice).collect();
    explore(World::new(&scripts, defect).with_signals(1).with_faults(1));
}

#[test]
fn many_documents() {
    run_adding(Defect::None);
}

#[test]
#[should_panic(expected = "lost")]
fn canary_documents_that_are_taken_too_early() {
    run_adding(Defect::TakesTooEarly);
}

#[test]
#[should_panic(expected = "lost")]
fn canary_a_piece_that_a_signal_drops() {
    run_adding(Defect::DropsThePiece);
}

#[test]
#[should_panic(expected = "waits for ever")]
fn canary_a_thread_that_ends_silently() {
    let scripts: [&[Call]; 1] = [&[Call::Rollback]];
    explore(World::new(&scripts, Defect::EndsSilently));
}

#[test]
#[should_panic(expected = "lost")]
fn canary_a_failure_that_is_answered_like_a_commit() {
    run_adding(Defect::CommitsNothing);
}

#[test]
#[should_panic(expected = "chosen from another state")]
fn canary_deletes_that_were_chosen_from_another_state() {
    let changes = [Call::Add(batch_of(&[16])), Call::Commit(KEEPING_COMMIT)];
    let scripts: [&[Call]; 2] = [&[Call::ChooseDeletes(batch_of(&[4]))], &changes];
    explore(World::new(&scripts, Defect::DeletesLate));
}
