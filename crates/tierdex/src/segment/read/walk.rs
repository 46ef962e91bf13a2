//! Finds the terms of a dictionary that an automaton accepts, without decoding all terms.
//!
//! Terms are visited in order. For each term the automaton continues at the first byte that differs from the
//! previous term. When it rejects a prefix, the walk seeks to the next greater string that the automaton may
//! accept; pages before that are not read.

use super::source::BlockSource;
use super::terms::{TermInfo, TermStream, TermsReader};
use crate::{Result, limits::TERM_BYTES_MAX};

/// A deterministic automaton over the bytes of terms.
pub trait Automaton {
    /// The state before the first byte of a term.
    fn start(&self) -> u32;

    /// The state after `byte`; `None` if no term that continues so is accepted.
    fn step(&self, state: u32, byte: u8) -> Option<u32>;

    /// Whether a term that ends in `state` is accepted.
    fn accepts(&self, state: u32) -> bool;
}

/// Iterates over the terms that an automaton accepts, in order.
pub struct TermWalk<'a, A> {
    stream: TermStream<'a>,
    automaton: A,
    /// The longest prefix of the last term that the automaton does not reject, and its states before and
    /// after each byte.
    path: Vec<u8>,
    states: Vec<u32>,
    is_finished: bool,
}

impl TermsReader {
    /// The terms that `automaton` accepts; pages that are not resident are read from `source`.
    pub fn walk<'a, A: Automaton>(
        &'a self,
        automaton: A,
        source: &'a dyn BlockSource,
    ) -> Result<TermWalk<'a, A>> {
        let states = vec![automaton.start()];
        let mut walk = TermWalk {
            stream: self.stream_from(source),
            automaton,
            path: Vec::new(),
            states,
            is_finished: false,
        };
        walk.seek_first()?;
        Ok(walk)
    }
}

impl<A: Automaton> TermWalk<'_, A> {
    /// Moves to the next term, [`TermWalk::term`]; `None` after the last. Returns its dictionary entry and
    /// the accepting state.
    pub fn advance(&mut self) -> Result<Option<(TermInfo, u32)>> {
        while !self.is_finished {
            self.stream.source().checkpoint(0..0)?;
            let Some(info) = self.stream.advance()? else { break };
            match self.run_automaton() {
                Ok(state) if self.automaton.accepts(state) => return Ok(Some((info, state))),
                Ok(_) => {}
                Err(byte) => {
                    self.is_finished = !self.advance_path(byte);
                    self.stream.seek(&self.path)?;
                }
            }
        }
        self.is_finished = true;
        Ok(None)
    }

    /// The current term.
    pub fn term(&self) -> &[u8] {
        self.stream.term()
    }

    /// Runs the automaton over the current term; `Err` is the byte that it rejects.
    fn run_automaton(&mut self) -> std::result::Result<u32, u8> {
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

    /// Replaces the path by the smallest string that is greater than all that start with `path + byte`, and
    /// that the automaton does not reject. False if there is none.
    fn advance_path(&mut self, mut byte: u8) -> bool {
        while let Some(state) = self.states.last() {
            if self.extend_path(*state, byte.checked_add(1)) {
                return true;
            }
            self.states.pop();
            let Some(last) = self.path.pop() else { break };
            byte = last;
        }
        false
    }

    /// Appends to the path the smallest byte from `min` on that the automaton does not reject. False if there
    /// is none.
    fn extend_path(&mut self, state: u32, min: Option<u8>) -> bool {
        let Some(min) = min else { return false };
        for byte in min..=u8::MAX {
            if let Some(next) = self.automaton.step(state, byte) {
                self.path.push(byte);
                self.states.push(next);
                return true;
            }
        }
        false
    }

    /// Seeks to the smallest string that the automaton may accept.
    fn seek_first(&mut self) -> Result<()> {
        while let Some(state) = self.states.last().filter(|state| !self.automaton.accepts(**state)) {
            if self.path.len() == TERM_BYTES_MAX || !self.extend_path(*state, Some(0)) {
                break;
            }
        }
        self.stream.seek(&self.path)
    }
}
