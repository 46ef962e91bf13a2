//! Fuzzy words: the terms that are a few edits away, by a Levenshtein automaton over the dictionary.
//!
//! An edit inserts, deletes or replaces a character, or swaps two neighbours; none touches what another one
//! did (the restricted distance, or "optimal string alignment"). The automaton is that of Schulz and Mihov,
//! Fast String Correction with Levenshtein Automata, 2002, from the crate `levenshtein_automata`, put
//! together from tables that are made once.

use crate::segment::read::Automaton;
use levenshtein_automata::{DFA, Distance, LevenshteinAutomatonBuilder, SINK_STATE};
use std::sync::LazyLock;

static ONE: LazyLock<LevenshteinAutomatonBuilder> =
    LazyLock::new(|| LevenshteinAutomatonBuilder::new(1, true));
static TWO: LazyLock<LevenshteinAutomatonBuilder> =
    LazyLock::new(|| LevenshteinAutomatonBuilder::new(2, true));

/// Accepts what is at most one or two edits away from a word.
pub struct Levenshtein(DFA);

impl Levenshtein {
    /// For a word of at most [`crate::limits::FUZZY_BYTES_MAX`] bytes; any distance but 1 is 2.
    pub fn new(word: &str, distance: u8) -> Levenshtein {
        let builder = if distance == 1 { &ONE } else { &TWO };
        Levenshtein(builder.build_dfa(word))
    }

    /// Edits from the word to a term that ends in `state`; `None` if it is too far.
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
