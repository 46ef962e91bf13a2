//! Finds the terms of a dictionary that an automaton accepts, without decoding all terms.
//!
//! 1. Terms are visited in order. For each term the automaton continues after the prefix shared with the
//!    previous term.
//! 2. When it rejects a byte, following terms that share this byte are skipped by the lengths of their shared
//!    prefixes.
//! 3. At the next restart point, and at the end of the page, the walk seeks to the smallest term after the
//!    rejected prefix that the automaton could accept: to the restart point before it, or to its page. Pages
//!    in between are not read.

use super::source::BlockSource;
use super::terms::{PagePosition, TermInfo, TermPage, TermsReader};
use crate::{Result, bytes::common_prefix, limits::TERM_BYTES_MAX};

/// A deterministic automaton over the bytes of terms.
pub trait Automaton {
    /// The state before the first byte of a term.
    fn start(&self) -> u32;

    /// The state after `byte`; `None` if no term that continues so is accepted.
    fn step(&self, state: u32, byte: u8) -> Option<u32>;

    /// Whether a term that ends in `state` is accepted.
    fn accepts(&self, state: u32) -> bool;

    /// The smallest byte from `min` on that `step` does not reject.
    fn next_byte(&self, state: u32, min: u8) -> Option<u8> {
        (min..=u8::MAX).find(|byte| self.step(state, *byte).is_some())
    }
}

/// Iterates over the terms that an automaton accepts, in order.
pub struct TermWalk<'a, A> {
    reader: &'a TermsReader,
    source: &'a dyn BlockSource,
    page: u64,
    /// The position after the last visited term of the page; `None` before its first.
    entries: Option<PagePosition>,
    /// The bytes of the page, if the pages are not resident.
    buffer: Vec<u8>,
    path: AutomatonPath<A>,
}

/// A prefix that an automaton does not reject: the longest of the last visited term, or the target of a seek.
struct AutomatonPath<A> {
    automaton: A,
    len: usize,
    bytes: [u8; TERM_BYTES_MAX],
    /// The states before and after each byte.
    states: [u32; TERM_BYTES_MAX + 1],
    /// The byte after the prefix in the last visited term, which the automaton rejects.
    rejected: Option<u8>,
    /// Whether no term after the path is accepted.
    is_finished: bool,
}

impl TermsReader {
    /// The terms that `automaton` accepts; pages that are not resident are read from `source`.
    pub fn walk<'a, A: Automaton>(
        &'a self,
        automaton: A,
        source: &'a dyn BlockSource,
    ) -> Result<TermWalk<'a, A>> {
        let (bytes, states) = ([0; TERM_BYTES_MAX], [automaton.start(); TERM_BYTES_MAX + 1]);
        let mut path = AutomatonPath { automaton, len: 0, bytes, states, rejected: None, is_finished: false };
        path.extend();
        let page = self.page_of(path.bytes())?.unwrap_or(self.pages());
        Ok(TermWalk { reader: self, source, page, entries: None, buffer: Vec::new(), path })
    }
}

impl<A: Automaton> TermWalk<'_, A> {
    /// Moves to the next term, [`TermWalk::term`]; `None` after the last. Returns its dictionary entry and
    /// the accepting state.
    pub fn advance(&mut self) -> Result<Option<(TermInfo, u32)>> {
        while self.page < self.reader.pages() {
            self.source.checkpoint(0..0)?;
            let bytes = match self.reader.resident_page(self.page) {
                Some(bytes) => bytes,
                None => {
                    if self.entries.is_none() {
                        self.reader.read_page(self.page, self.source, &mut self.buffer)?;
                    }
                    &self.buffer
                }
            };
            let page = self.reader.parse_page(self.page, bytes)?;
            let entries = match &mut self.entries {
                Some(entries) => entries,
                none => none.insert(page.position_at(page.find_restart(0, self.path.bytes())?)?),
            };
            if let Some(accepted) = self.path.find_accepted(&page, entries)? {
                return Ok(Some(accepted));
            }
            self.entries = None;
            self.page = match self.path.skip_rejected() {
                // The target may be between the last term of the page and its separator: then the index names
                // the same page again.
                true => self.reader.page_of(self.path.bytes())?.unwrap_or(u64::MAX).max(self.page + 1),
                false => self.reader.pages(),
            };
        }
        Ok(None)
    }

    /// The current term.
    pub fn term(&self) -> &[u8] {
        self.path.bytes()
    }
}

impl<A: Automaton> AutomatonPath<A> {
    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// Moves to the next term of a page that the automaton accepts; `None` if there is none. Returns its
    /// dictionary entry and the accepting state.
    fn find_accepted(
        &mut self,
        page: &TermPage<'_>,
        position: &mut PagePosition,
    ) -> Result<Option<(TermInfo, u32)>> {
        let mut entries = *position;
        loop {
            let is_restart = page.is_restart(&entries);
            if is_restart {
                page.check_restart(&entries)?;
                if self.rejected.is_some() {
                    if !self.skip_rejected() {
                        return Ok(None);
                    }
                    page.skip_restarts(&mut entries, self.bytes())?;
                }
            }
            page.skip_while(&mut entries, |shared, first| self.is_rejected(shared, first));
            if page.is_restart(&entries) && !is_restart {
                // All entries before the restart point were skipped.
                continue;
            }
            let Some(entry) = page.entry(&mut entries)? else { break };
            let (mut shared, mut suffix) = (entry.shared, entry.suffix);
            if is_restart {
                // A byte remains for the step, also in a damaged dictionary that contains a term twice.
                shared = common_prefix(self.bytes(), &suffix[..suffix.len() - 1]);
                suffix = &suffix[shared..];
            }
            if self.is_rejected(shared, suffix[0]) {
                continue;
            }
            self.len = shared;
            let Some(next) = self.automaton.step(self.states[shared], suffix[0]) else { continue };
            self.push(suffix[0], next);
            if let Some(state) = self.follow(&suffix[1..])
                && self.automaton.accepts(state)
            {
                *position = entries;
                return Ok(Some((entry.info(), state)));
            }
        }
        page.check_padding(&entries)?;
        Ok(None)
    }

    /// Whether the automaton rejects the terms that share this number of bytes with the last visited one, and
    /// go on with this byte. If so, the path ends before the rejected byte.
    #[inline(always)]
    fn is_rejected(&mut self, shared: usize, first: u8) -> bool {
        // In one branch, which is mispredicted less often than two.
        let (shares_rejected, len) = (shared > self.len, shared.min(self.len));
        let is_rejected = shares_rejected || self.automaton.step(self.states[len], first).is_none();
        if is_rejected {
            self.rejected = if shares_rejected { self.rejected } else { Some(first) };
            self.len = len;
        }
        is_rejected
    }

    /// Runs the automaton over the bytes that follow the path. Returns the last state; `None` if the
    /// automaton rejects a byte.
    fn follow(&mut self, suffix: &[u8]) -> Option<u32> {
        self.rejected = None;
        let mut state = self.states[self.len];
        for byte in suffix {
            let Some(next) = self.automaton.step(state, *byte) else {
                self.rejected = Some(*byte);
                return None;
            };
            state = next;
            self.push(*byte, next);
        }
        Some(state)
    }

    /// If a byte was rejected, replaces the path by the smallest string that is greater than all that start
    /// so, and that the automaton could accept. False if there is none.
    fn skip_rejected(&mut self) -> bool {
        while let Some(byte) = self.rejected {
            let state = self.states[self.len];
            match byte.checked_add(1).and_then(|min| self.automaton.next_byte(state, min)) {
                Some(next) => {
                    self.rejected = None;
                    self.push_byte(next);
                    self.extend();
                }
                None if self.len == 0 => {
                    self.rejected = None;
                    self.is_finished = true;
                }
                None => {
                    self.len -= 1;
                    self.rejected = Some(self.bytes[self.len]);
                }
            }
        }
        !self.is_finished
    }

    /// Extends the path to the smallest string that starts so and that the automaton could accept.
    fn extend(&mut self) {
        while self.len < TERM_BYTES_MAX && !self.automaton.accepts(self.states[self.len]) {
            let Some(byte) = self.automaton.next_byte(self.states[self.len], 0) else { break };
            self.push_byte(byte);
        }
    }

    fn push_byte(&mut self, byte: u8) {
        if let Some(next) = self.automaton.step(self.states[self.len], byte) {
            self.push(byte, next);
        }
    }

    #[inline]
    fn push(&mut self, byte: u8, state: u32) {
        self.bytes[self.len] = byte;
        self.len += 1;
        self.states[self.len] = state;
    }
}
