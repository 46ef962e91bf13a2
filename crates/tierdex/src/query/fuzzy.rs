//! Fuzzy words: an automaton that accepts the words within an edit distance, by which a dictionary is
//! searched.
//!
//! An edit is an insertion, deletion or substitution of a character, or a transposition of two adjacent
//! ones; no substring is edited twice (restricted Damerau-Levenshtein distance, "optimal string alignment").
//! The automaton is that of Schulz and Mihov, Fast String Correction with Levenshtein Automata, 2002, from
//! the crate `levenshtein_automata`. Its parametric tables are built once.

use crate::{limits::FUZZY_DISTANCE_MAX, segment::read::Automaton};
use levenshtein_automata::{DFA, Distance, LevenshteinAutomatonBuilder, SINK_STATE};
use std::sync::LazyLock;

/// The builder of the automata of each distance.
static BUILDERS: [LazyLock<LevenshteinAutomatonBuilder>; 1 + FUZZY_DISTANCE_MAX as usize] = [
    LazyLock::new(|| LevenshteinAutomatonBuilder::new(0, true)),
    LazyLock::new(|| LevenshteinAutomatonBuilder::new(1, true)),
    LazyLock::new(|| LevenshteinAutomatonBuilder::new(2, true)),
];

/// Accepts strings within an edit distance of a word.
pub struct Levenshtein {
    dfa: DFA,
    /// The states from which no string is accepted: those after the sink state, inside a character too.
    dead: [u32; 4],
    /// The bytes of the word, ascending.
    word_bytes: Vec<u8>,
}

impl Levenshtein {
    /// Builds the automaton of a word of at most [`crate::limits::FUZZY_BYTES_MAX`] bytes. A larger distance
    /// than [`FUZZY_DISTANCE_MAX`] counts as that.
    pub fn new(word: &str, distance: u8) -> Levenshtein {
        let dfa = BUILDERS[usize::from(distance.min(FUZZY_DISTANCE_MAX))].build_dfa(word);
        let dead = [b'a', 0xc2, 0xe0, 0xf0].map(|byte| dfa.transition(SINK_STATE, byte));
        let mut word_bytes = word.as_bytes().to_vec();
        word_bytes.sort_unstable();
        word_bytes.dedup();
        Levenshtein { dfa, dead, word_bytes }
    }

    /// Edit distance of a string that ends in `state`; `None` if it is too large.
    pub fn distance(&self, state: u32) -> Option<u8> {
        match self.dfa.distance(state) {
            Distance::Exact(distance) => Some(distance),
            Distance::AtLeast(_) => None,
        }
    }
}

impl Automaton for &Levenshtein {
    fn start(&self) -> u32 {
        self.dfa.initial_state()
    }

    fn step(&self, state: u32, byte: u8) -> Option<u32> {
        let next = self.dfa.transition(state, byte);
        let is_dead = next == SINK_STATE || byte >= 0xc0 && self.dead.contains(&next);
        if is_dead { None } else { Some(next) }
    }

    fn accepts(&self, state: u32) -> bool {
        self.distance(state).is_some()
    }

    /// A state in which a byte that is not in the word is not rejected, rejects none.
    fn next_byte(&self, state: u32, min: u8) -> Option<u8> {
        let in_word = self.word_bytes.iter().copied().filter(|byte| *byte > min);
        std::iter::once(min).chain(in_word).find(|byte| self.step(state, *byte).is_some())
    }
}
