//! Text analysis. Input: text and an [`Analysis`]. Output: tokens, which are terms with their positions and
//! byte ranges in the text.
//!
//! Documents, queries and snippets use the same chain: tokenizer with lower case and normalization, accent
//! folding, stop words, stemmer. Dropped tokens (stop words, tokens of more than 255 bytes) take a position,
//! so that phrases keep their gaps.

mod char_class;
mod char_ranges;
mod fold;
mod snippet;
mod stop;
mod token;
mod tokenize;
mod words;

use crate::limits::TERM_BYTES_MAX;
use crate::schema::{Analysis, Language, Tokenizer};
use rust_stemmers::{Algorithm, Stemmer};
use std::collections::HashSet;
use unicode_segmentation::UnicodeSegmentation;
use words::WordBuffers;

pub use snippet::{Snippet, TermMatch, snippet};
pub use stop::ENGLISH_STOP_WORDS;
pub use token::{RunPart, Token};
pub use words::is_in_hebrew_word;

/// An analysis chain with its buffers, for one thread.
///
/// ```
/// use tierdex::Schema;
/// use tierdex::analysis::Analyzer;
///
/// let schema = Schema::default();
/// let mut analyzer = Analyzer::new(&schema.fields[0].analysis);
/// assert_eq!(analyzer.terms("Café au lait"), ["café", "au", "lait"]);
/// ```
pub struct Analyzer {
    tokenizer: Tokenizer,
    filters: Option<Filters>,
    buffers: WordBuffers,
    too_long: u64,
}

/// The token filters after tokenizer and lower case.
struct Filters {
    folding: Folding,
    stop_words: HashSet<String>,
    stemmer: Option<Stemmer>,
}

/// Optional accent folding, with its buffer.
struct Folding {
    enabled: bool,
    /// Whether compatibility characters such as ligatures are folded too.
    compatibility: bool,
    folded: String,
}

impl Analyzer {
    /// Creates the chain that `analysis` describes.
    pub fn new(analysis: &Analysis) -> Analyzer {
        let plain = !analysis.fold_accents && analysis.stop_words.is_empty() && analysis.stemmer.is_none();
        let filters = (!plain).then(|| Filters {
            folding: Folding {
                enabled: analysis.fold_accents,
                compatibility: analysis.tokenizer == Tokenizer::Unicode,
                folded: String::new(),
            },
            stop_words: analysis.stop_words.iter().cloned().collect(),
            stemmer: analysis.stemmer.map(|language| Stemmer::create(algorithm(language))),
        });
        Analyzer { tokenizer: analysis.tokenizer, filters, buffers: WordBuffers::default(), too_long: 0 }
    }

    /// Calls `emit` for each kept token of `text`, in order. Positions start at `first_position`. Returns
    /// the position after the last token.
    pub fn analyze(&mut self, text: &str, first_position: u32, mut emit: impl FnMut(Token<'_>)) -> u32 {
        let mut position = first_position;
        let (filters, too_long) = (&mut self.filters, &mut self.too_long);
        let mut pass = |term: &str, start: usize, end: usize, run: Option<RunPart>| {
            let mut keep = |term: &str| match fits(term) {
                true => emit(Token { term, position, start, end, run }),
                false => *too_long += u64::from(!term.is_empty()),
            };
            match filters {
                None => keep(term),
                Some(filters) => filters.run(term, keep),
            }
            position = position.saturating_add(1);
        };
        cut(self.tokenizer, text, &mut self.buffers, &mut pass);
        position
    }

    /// Number of tokens dropped since the last call because they were too long, before or after the filters.
    pub fn take_too_long(&mut self) -> u64 {
        std::mem::take(&mut self.too_long)
    }

    /// Calls `emit` for each token of `text` before stop words and stemmer. Prefixes and fuzzy words are
    /// looked up in this form.
    pub fn normalized(&mut self, text: &str, mut emit: impl FnMut(Token<'_>)) {
        let (filters, too_long, mut position) = (&mut self.filters, &mut self.too_long, 0);
        let mut pass = |term: &str, start: usize, end: usize, run: Option<RunPart>| {
            let term = match filters {
                Some(filters) if fits(term) => filters.folding.fold(term),
                _ => term,
            };
            match fits(term) {
                true => emit(Token { term, position, start, end, run }),
                false => *too_long += u64::from(!term.is_empty()),
            }
            position += 1;
        };
        cut(self.tokenizer, text, &mut self.buffers, &mut pass);
    }

    /// The terms of `text` in order, without positions.
    pub fn terms(&mut self, text: &str) -> Vec<String> {
        let mut terms = Vec::new();
        self.analyze(text, 0, |token| terms.push(token.term.to_string()));
        terms
    }
}

impl Filters {
    /// Calls `keep` with the filtered token, or with the token itself if it is too long.
    fn run(&mut self, lowered: &str, mut keep: impl FnMut(&str)) {
        if !fits(lowered) {
            return keep(lowered);
        }
        let term = self.folding.fold(lowered);
        if self.stop_words.contains(term) {
            return;
        }
        match &self.stemmer {
            Some(stemmer) => keep(&stemmer.stem(term)),
            None => keep(term),
        }
    }
}

impl Folding {
    fn fold<'a>(&'a mut self, lowered: &'a str) -> &'a str {
        if !self.enabled || lowered.is_ascii() {
            return lowered;
        }
        fold::fold_accents(lowered, self.compatibility, &mut self.folded);
        &self.folded
    }
}

fn cut(
    tokenizer: Tokenizer,
    text: &str,
    buffers: &mut WordBuffers,
    pass: &mut impl FnMut(&str, usize, usize, Option<RunPart>),
) {
    match tokenizer {
        Tokenizer::Unicode => words::unicode(text, buffers, pass),
        Tokenizer::Alphanumeric => tokenize::alphanumeric(text, &mut buffers.term, pass),
        Tokenizer::Whitespace => tokenize::whitespace(text, pass),
    }
}

/// The first grapheme cluster of a text.
pub fn first_cluster(text: &str) -> &str {
    text.graphemes(true).next().unwrap_or("")
}

fn fits(term: &str) -> bool {
    (1..=TERM_BYTES_MAX).contains(&term.len())
}

fn algorithm(language: Language) -> Algorithm {
    match language {
        Language::Arabic => Algorithm::Arabic,
        Language::Danish => Algorithm::Danish,
        Language::Dutch => Algorithm::Dutch,
        Language::English => Algorithm::English,
        Language::Finnish => Algorithm::Finnish,
        Language::French => Algorithm::French,
        Language::German => Algorithm::German,
        Language::Greek => Algorithm::Greek,
        Language::Hungarian => Algorithm::Hungarian,
        Language::Italian => Algorithm::Italian,
        Language::Norwegian => Algorithm::Norwegian,
        Language::Portuguese => Algorithm::Portuguese,
        Language::Romanian => Algorithm::Romanian,
        Language::Russian => Algorithm::Russian,
        Language::Spanish => Algorithm::Spanish,
        Language::Swedish => Algorithm::Swedish,
        Language::Tamil => Algorithm::Tamil,
        Language::Turkish => Algorithm::Turkish,
    }
}

#[cfg(test)]
mod tests;
