//! Fuzzy words: an automaton that accepts the words within an edit distance, by which a dictionary is
//! searched.
//!
//! An edit is an insertion, deletion or substitution of a character, or a transposition of two adjacent
//! ones; no substring is edited twice (restricted Damerau-Levenshtein distance, "optimal string alignment").
//! The automaton is that of Schulz and Mihov, Fast String Correction with Levenshtein Automata, 2002, from
//! the crate `levenshtein_automata`. Its parametric tables are built once.

use crate::segment::read::Automaton;
use levenshtein_automata::{DFA, Distance, LevenshteinAutomatonBuilder, SINK_STATE};
use std::sync::LazyLock;

static DISTANCE_1_BUILDER: LazyLock<LevenshteinAutomatonBuilder> =
    LazyLock::new(|| LevenshteinAutomatonBuilder::new(1, true));
static DISTANCE_2_BUILDER: LazyLock<LevenshteinAutomatonBuilder> =
    LazyLock::new(|| LevenshteinAutomatonBuilder::new(2, true));

/// Accepts strings within an edit distance of 1 or 2 of a word.
pub struct Levenshtein(DFA);

impl Levenshtein {
    /// Builds the automaton of a word of at most [`crate::limits::FUZZY_BYTES_MAX`] bytes. A distance other
    /// than 1 counts as 2.
    pub fn new(word: &str, distance: u8) -> Levenshtein {
        let builder = if distance == 1 { &DISTANCE_1_BUILDER } else { &DISTANCE_2_BUILDER };
        Levenshtein(builder.build_dfa(word))
    }

    /// Edit distance of a string that ends in `state`; `None` if it is too large.
    pub fn distance(&self, state: u32) -> Option<u8> {
        match self.0.distance(state) {
            Distance::Exact(distance) => Some(distance),
            Distance::AtLeast(_) => None,
        }
    }
}

impl Automaton for &Levenshtein {
    fn start(&self) -> u32 {
        self.0.initial_state()
    }

    fn step(&self, state: u32, byte: u8) -> Option<u32> {
        Some(self.0.transition(state, byte)).filter(|state| *state != SINK_STATE)
    }

    fn accepts(&self, state: u32) -> bool {
        self.distance(state).is_some()
    }
}
