//! Text analysis. Input: text and an [`Analysis`]. Output: tokens, which are terms with their positions and
//! byte ranges in the text.
//!
//! Documents, queries and snippets use the same chain: tokenizer with lower case and normalization, accent
//! folding, stop words, stemmer. Dropped tokens (stop words, tokens of more than 255 bytes) take a position,
//! so that the words around them are not adjacent in a phrase.

mod char_class;
mod char_ranges;
mod fold;
mod snippet;
mod stop_words;
mod synonyms;
mod token;
mod tokenizers;
mod words;

use crate::limits::TERM_BYTES_MAX;
use crate::schema::{Analysis, Tokenizer};
use rust_stemmers::Stemmer;
use std::collections::HashSet;
use token::TokenConsumer;
use unicode_segmentation::UnicodeSegmentation;
use words::WordBuffers;

pub use snippet::{Snippet, TermMatch, marks_max, snippet};
pub use stop_words::ENGLISH_STOP_WORDS;
pub(crate) use synonyms::{alternatives_of_rules, check_synonyms, key_of_words};
pub use token::{RunPart, Token};
pub use words::is_in_hebrew_word;

/// The version of the analysis: it increases whenever the same text and settings give other tokens than
/// before. A segment stores the version by which its documents were analysed.
pub const ANALYSIS_VERSION: u32 = 1;

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
    /// `None` if the analysis is the tokenizer alone.
    filters: Option<Filters>,
    buffers: WordBuffers,
    /// Number of tokens dropped because of their length, since [`Analyzer::take_too_long`] was called last.
    too_long: u64,
}

/// The token filters that follow the tokenizer, in this order.
struct Filters {
    folding: Folding,
    stop_words: HashSet<String>,
    stemmer: Option<Stemmer>,
}

/// Accent folding, if it is enabled.
struct Folding {
    is_enabled: bool,
    /// Whether compatibility characters such as ligatures are replaced too.
    compatibility: bool,
    /// Buffer for the folded term.
    folded: String,
}

impl Analyzer {
    /// Creates the chain that `analysis` describes.
    pub fn new(analysis: &Analysis) -> Analyzer {
        let plain = !analysis.fold_accents && analysis.stop_words.is_empty() && analysis.stemmer.is_none();
        let filters = (!plain).then(|| Filters {
            folding: Folding {
                is_enabled: analysis.fold_accents,
                compatibility: analysis.tokenizer == Tokenizer::Unicode,
                folded: String::new(),
            },
            stop_words: analysis.stop_words.iter().cloned().collect(),
            stemmer: analysis.stemmer.map(|language| Stemmer::create(language.algorithm())),
        });
        Analyzer { tokenizer: analysis.tokenizer, filters, buffers: WordBuffers::default(), too_long: 0 }
    }

    /// Calls `emit` for each token of `text` that is not dropped, in order. Positions start at
    /// `first_position`. Returns the position after the last token.
    pub fn analyze(&mut self, text: &str, first_position: u32, mut emit: impl FnMut(Token<'_>)) -> u32 {
        let mut position = first_position;
        let (filters, too_long) = (&mut self.filters, &mut self.too_long);
        let mut on_token = |term: &str, start: usize, end: usize, run: Option<RunPart>| {
            let mut emit_term = |term: &str| match has_valid_length(term) {
                true => emit(Token { term, position, start, end, run }),
                false => *too_long += u64::from(!term.is_empty()),
            };
            match filters {
                None => emit_term(term),
                Some(filters) => filters.filter(term, emit_term),
            }
            position = position.saturating_add(1);
        };
        tokenize(self.tokenizer, text, &mut self.buffers, &mut on_token);
        position
    }

    /// Number of tokens that were dropped since the last call because they were too long.
    pub fn take_too_long(&mut self) -> u64 {
        std::mem::take(&mut self.too_long)
    }

    /// Calls `emit` for each token of `text` before stop words and stemmer. Prefixes and fuzzy words are
    /// looked up in this form.
    pub fn normalized(&mut self, text: &str, mut emit: impl FnMut(Token<'_>)) {
        let (filters, too_long, mut position) = (&mut self.filters, &mut self.too_long, 0);
        let mut on_token = |term: &str, start: usize, end: usize, run: Option<RunPart>| {
            let term = match filters {
                Some(filters) if has_valid_length(term) => filters.folding.fold(term),
                _ => term,
            };
            match has_valid_length(term) {
                true => emit(Token { term, position, start, end, run }),
                false => *too_long += u64::from(!term.is_empty()),
            }
            position += 1;
        };
        tokenize(self.tokenizer, text, &mut self.buffers, &mut on_token);
    }

    /// The terms of `text` in order, without positions.
    pub fn terms(&mut self, text: &str) -> Vec<String> {
        let mut terms = Vec::new();
        self.analyze(text, 0, |token| terms.push(token.term.to_string()));
        terms
    }
}

/// Whether a token is a word of a phrase: of a run of text without blanks the last cluster is in the bigram
/// before it.
pub(crate) fn is_phrase_token(run: Option<RunPart>) -> bool {
    run.is_none_or(|part| part.is_first || !part.is_last)
}

impl Filters {
    /// Calls `emit` with the filtered token, unless it is a stop word; with the token itself if it is too
    /// long.
    fn filter(&mut self, lowered: &str, mut emit: impl FnMut(&str)) {
        if !has_valid_length(lowered) {
            return emit(lowered);
        }
        let term = self.folding.fold(lowered);
        if self.stop_words.contains(term) {
            return;
        }
        match &self.stemmer {
            Some(stemmer) => emit(&stemmer.stem(term)),
            None => emit(term),
        }
    }
}

impl Folding {
    /// The term without accents, or the term itself if folding is not enabled.
    fn fold<'a>(&'a mut self, lowered: &'a str) -> &'a str {
        if !self.is_enabled || lowered.is_ascii() {
            return lowered;
        }
        fold::fold_accents(lowered, self.compatibility, &mut self.folded);
        &self.folded
    }
}

/// Calls `on_token` with each token of a text, its byte range, and its part in a run of text without blanks.
fn tokenize(tokenizer: Tokenizer, text: &str, buffers: &mut WordBuffers, on_token: &mut impl TokenConsumer) {
    match tokenizer {
        Tokenizer::Unicode => words::tokenize_unicode(text, buffers, on_token),
        Tokenizer::Alphanumeric => tokenizers::tokenize_alphanumeric(text, &mut buffers.term, on_token),
        Tokenizer::Whitespace => tokenizers::tokenize_whitespace(text, on_token),
    }
}

/// The first grapheme cluster of a text.
pub fn first_cluster(text: &str) -> &str {
    text.graphemes(true).next().unwrap_or("")
}

/// Whether a term has 1 to 255 bytes.
fn has_valid_length(term: &str) -> bool {
    (1..=TERM_BYTES_MAX).contains(&term.len())
}

#[cfg(test)]
mod tests;
