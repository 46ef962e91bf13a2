//! The terms of a dictionary that an automaton accepts, without looking at all of them.
//!
//! Terms are read in order, each from where it differs from the one before. When the automaton is dead at
//! some byte, no term with that prefix is accepted: the walk continues at the next greater string that may be
//! accepted, and pages before it are not read.

use super::source::BlockSource;
use super::terms::{TermInfo, TermStream, TermsReader};
use crate::error::Result;
use crate::limits::TERM_BYTES_MAX;

/// A deterministic automaton over the bytes of terms.
pub trait Automaton {
    /// The state before the first byte.
    fn start(&self) -> u32;

    /// The state behind `byte`; `None` if nothing that goes on so is accepted.
    fn step(&self, state: u32, byte: u8) -> Option<u32>;

    /// Whether a term that ends in `state` is accepted.
    fn accepts(&self, state: u32) -> bool;
}

/// Moves over the terms that an automaton accepts, in order.
pub struct Walk<'a, A> {
    stream: TermStream<'a>,
    automaton: A,
    /// The longest prefix of the last term that the automaton does not reject, and its states before and after
    /// each byte.
    path: Vec<u8>,
    states: Vec<u32>,
    finished: bool,
}

impl TermsReader {
    /// The terms that `automaton` accepts; pages that are not in memory come from `source`.
    pub fn walk<'a, A: Automaton>(&'a self, automaton: A, source: &'a dyn BlockSource) -> Walk<'a, A> {
        let states = vec![automaton.start()];
        let mut walk =
            Walk { stream: self.stream_from(source), automaton, path: Vec::new(), states, finished: false };
        walk.begin();
        walk
    }
}

impl<A: Automaton> Walk<'_, A> {
    /// Moves to the next term, which is [`Walk::term`] then; `None` after the last. Returns its dictionary
    /// entry and the state that accepts it.
    pub fn advance(&mut self) -> Result<Option<(TermInfo, u32)>> {
        while !self.finished {
            self.stream.source().checkpoint(0..0)?;
            let Some(info) = self.stream.advance()? else { break };
            match self.follow() {
                Ok(state) if self.automaton.accepts(state) => return Ok(Some((info, state))),
                Ok(_) => {}
                Err(byte) => {
                    self.finished = !self.succeed(byte);
                    self.stream.seek(&self.path);
                }
            }
        }
        self.finished = true;
        Ok(None)
    }

    /// The term to which the walk has moved.
    pub fn term(&self) -> &[u8] {
        self.stream.term()
    }

    /// Runs the automaton over the present term; `Err` is the byte at which it died.
    fn follow(&mut self) -> std::result::Result<u32, u8> {
        let term = self.stream.term();
        let shared = self.path.iter().zip(term).take_while(|(a, b)| a == b).count();
        self.path.truncate(shared);
        self.states.truncate(shared + 1);
        let mut state = self.states[shared];
        for byte in &term[shared..] {
            state = self.automaton.step(state, *byte).ok_or(*byte)?;
            self.path.push(*byte);
            self.states.push(state);
        }
        Ok(state)
    }

    /// Moves the path to the next greater one than itself followed by `byte` that the automaton does not reject.
    /// Returns whether there is one.
    fn succeed(&mut self, mut byte: u8) -> bool {
        while let Some(state) = self.states.last() {
            if self.extend(*state, byte.checked_add(1)) {
                return true;
            }
            self.states.pop();
            let Some(last) = self.path.pop() else { break };
            byte = last;
        }
        false
    }

    /// Adds the first byte from `least` on with which the automaton lives on.
    fn extend(&mut self, state: u32, least: Option<u8>) -> bool {
        let Some(least) = least else { return false };
        for byte in least..=u8::MAX {
            if let Some(next) = self.automaton.step(state, byte) {
                self.path.push(byte);
                self.states.push(next);
                return true;
            }
        }
        false
    }

    /// Goes to the first string that may be accepted. Later on it does not pay to look for more than one
    /// byte of it.
    fn begin(&mut self) {
        while let Some(state) = self.states.last().filter(|state| !self.automaton.accepts(**state)) {
            if self.path.len() == TERM_BYTES_MAX || !self.extend(*state, Some(0)) {
                break;
            }
        }
        self.stream.seek(&self.path);
    }
}
