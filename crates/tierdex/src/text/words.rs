//! The tokenizer `unicode`: words, and runs of text without blanks, in any script.
//!
//! *Input*: a text. *Output*: terms in lower case and normalization form C, with their byte ranges.
//!
//! 1. ASCII letters and digits are words. A word continues with letters, digits and their marks by the rules
//!    WB4 to WB10 of UAX 29 ("Unicode Text Segmentation"), except that what separates words in ASCII does
//!    not join them elsewhere: apostrophes, full stops and colons between letters (WB6, WB7), separators of
//!    numbers (WB11, WB12) and low lines (WB13a, WB13b).
//! 2. A run of text without blanks (Chinese, Japanese kana, Thai, Lao, Khmer, Burmese) has a term for each
//!    two neighbouring grapheme clusters, and one for its last cluster, so that each cluster begins a term.
//! 3. Invisible characters (soft hyphens, joiners, variation selectors) belong to their word, but not to the
//!    term.
//! 4. A dot above an `i` is dropped: the lower case of `İ` is `i` with a dot.

use super::char_class::{CharClass, CharKind};
use super::token::{RunPart, TokenConsumer};
use super::tokenizers::char_at;
use unicode_normalization::{UnicodeNormalization, char::is_combining_mark};
use unicode_segmentation::UnicodeSegmentation;

/// May be between the words of a run of text without blanks, to allow a line break there.
const ZERO_WIDTH_SPACE: char = '\u{200b}';
const DOT_ABOVE: char = '\u{307}';

/// Scratch buffers of the tokenizers.
#[derive(Default)]
pub(super) struct WordBuffers {
    pub(super) term: String,
    /// Start offsets of the grapheme clusters of a run, and its end.
    clusters: Vec<usize>,
}

/// Calls `on_token` with each term of `text`, its byte range, and its part in a run of text without blanks.
pub(super) fn tokenize_unicode(text: &str, buffers: &mut WordBuffers, on_token: &mut impl TokenConsumer) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        match BYTE_CLASSES[usize::from(byte)] {
            BYTE_SEPARATOR => at += 1,
            NOT_ASCII => at = tokenize_not_ascii(text, at, buffers, on_token),
            _ => {
                let (start, mut seen) = (at, 0);
                while let Some(&byte) = bytes.get(at)
                    && BYTE_CLASSES[usize::from(byte)] & FLAG_WORD != 0
                {
                    seen |= BYTE_CLASSES[usize::from(byte)];
                    at += 1;
                }
                let continues = bytes.get(at).is_some_and(|byte| !byte.is_ascii());
                if seen & FLAG_CAPITAL == 0 && !continues {
                    // The term is the text itself, as for most words.
                    on_token(&text[start..at], start, at, None);
                } else {
                    at = tokenize_copied_word(text, start, at, continues, buffers, on_token);
                }
            }
        }
    }
}

/// Classes of bytes: a separator, a byte of a character outside ASCII, or flags of a letter or digit.
const BYTE_SEPARATOR: u8 = 0;
const NOT_ASCII: u8 = 1;
const FLAG_WORD: u8 = 2;
const FLAG_CAPITAL: u8 = 4;

/// The class of each byte.
const BYTE_CLASSES: [u8; 256] = {
    let mut table = [NOT_ASCII; 256];
    let mut byte = 0;
    while byte < 128 {
        table[byte] = if (byte as u8).is_ascii_uppercase() {
            FLAG_WORD | FLAG_CAPITAL
        } else if (byte as u8).is_ascii_alphanumeric() {
            FLAG_WORD
        } else {
            BYTE_SEPARATOR
        };
        byte += 1;
    }
    table
};

/// Calls `on_token` with a word that starts with ASCII characters, up to `at`, and must be copied: it has
/// capital letters, or `continues` with other characters. Returns its end.
#[inline(never)]
fn tokenize_copied_word(
    text: &str,
    start: usize,
    mut at: usize,
    continues: bool,
    buffers: &mut WordBuffers,
    on_token: &mut impl TokenConsumer,
) -> usize {
    let term = &mut buffers.term;
    term.clear();
    term.push_str(&text[start..at]);
    term.make_ascii_lowercase();
    if continues {
        at = read_rest_of_word(text, start, at, term);
    }
    on_token(term, start, at, None);
    at
}

/// Calls `on_token` for the word or run that starts with a character outside ASCII. Returns its end, or that
/// of the character if it starts neither.
#[inline(never)]
fn tokenize_not_ascii(
    text: &str,
    start: usize,
    buffers: &mut WordBuffers,
    on_token: &mut impl TokenConsumer,
) -> usize {
    let c = char_at(text, start);
    match CharClass::of(c).kind() {
        CharKind::Separator | CharKind::Extend | CharKind::Ignorable | CharKind::Middle => {
            start + c.len_utf8()
        }
        CharKind::Ideograph | CharKind::Complex => tokenize_run(text, start, buffers, on_token),
        CharKind::Letter | CharKind::Digit | CharKind::Hebrew => {
            buffers.term.clear();
            let end = read_rest_of_word(text, start, start, &mut buffers.term);
            on_token(&buffers.term, start, end, None);
            end
        }
    }
}

/// Appends the rest of a word that starts at `start`, from `at` on, to `term`; returns the end of the word.
#[inline(never)]
fn read_rest_of_word(text: &str, start: usize, at: usize, term: &mut String) -> usize {
    let mut word = WordReader::new(text, start, at, term);
    while let Some(c) = text[word.at..].chars().next() {
        if !word.add(c) {
            break;
        }
    }
    word.finish()
}

/// Reads a word, character by character, into `term`.
struct WordReader<'a> {
    text: &'a str,
    /// End of the word so far.
    at: usize,
    term: &'a mut String,
    /// The kind of the last character that is not a mark.
    previous: CharKind,
    /// Bytes of the term up to the last letter or digit and its marks: a middle character at the end is
    /// removed.
    kept: usize,
    /// Whether the term must be normalized.
    normalize: bool,
    /// Whether the last character [`CharClass::reorders`].
    after_reordered: bool,
    has_sigma: bool,
    has_dot_above: bool,
}

impl WordReader<'_> {
    fn new<'a>(text: &'a str, start: usize, at: usize, term: &'a mut String) -> WordReader<'a> {
        let previous = match text[start..at].bytes().last() {
            Some(b'0'..=b'9') => CharKind::Digit,
            _ => CharKind::Letter,
        };
        let kept = term.len();
        WordReader {
            text,
            at,
            term,
            previous,
            kept,
            normalize: false,
            after_reordered: false,
            has_sigma: false,
            has_dot_above: false,
        }
    }

    /// Adds the next character; false if the word ends before it.
    fn add(&mut self, c: char) -> bool {
        let class = CharClass::of(c);
        let next = self.at + c.len_utf8();
        match class.kind() {
            CharKind::Letter | CharKind::Hebrew => self.add_letter(c, class),
            CharKind::Digit if self.previous != CharKind::Middle => self.add_letter(c, class),
            CharKind::Extend => self.add_mark(c, class),
            CharKind::Ignorable => {}
            CharKind::Middle if self.is_after_letter() && letter_follows(self.text, next, false) => {
                self.add_middle(c)
            }
            CharKind::Separator if c == '\'' && self.previous == CharKind::Hebrew => {
                self.add_middle('\u{5f3}')
            }
            CharKind::Separator
                if c == '"' && self.previous == CharKind::Hebrew && letter_follows(self.text, next, true) =>
            {
                self.add_middle('\u{5f4}');
            }
            _ => return false,
        }
        self.at = next;
        true
    }

    fn add_letter(&mut self, c: char, class: CharClass) {
        self.normalize |= class.composes();
        self.after_reordered = false;
        self.previous = class.kind();
        self.has_dot_above |= c == 'İ';
        match c {
            // The lower case of a sigma depends on its neighbours: the whole word is lower-cased at its end.
            'Σ' => {
                self.has_sigma = true;
                self.term.push(c);
            }
            _ if class.is_lowered() => self.term.extend(c.to_lowercase()),
            _ => self.term.push(c),
        }
        self.kept = self.term.len();
    }

    fn add_mark(&mut self, c: char, class: CharClass) {
        self.has_dot_above |= c == DOT_ABOVE;
        self.normalize |= class.composes() || (self.after_reordered && class.reorders());
        self.after_reordered = class.reorders();
        self.term.push(c);
        if self.previous != CharKind::Middle {
            self.kept = self.term.len();
        }
    }

    /// Adds a character that joins the letters around it. At the end of a word it is not part of the term.
    fn add_middle(&mut self, c: char) {
        self.normalize |= CharClass::of(c).composes();
        self.previous = CharKind::Middle;
        self.term.push(c);
    }

    fn is_after_letter(&self) -> bool {
        matches!(self.previous, CharKind::Letter | CharKind::Hebrew)
    }

    /// Normalizes the term; returns the end of the word.
    fn finish(self) -> usize {
        let WordReader { at, term, kept, normalize, has_sigma, has_dot_above, .. } = self;
        term.truncate(kept);
        if has_sigma {
            *term = term.to_lowercase();
        }
        if has_dot_above {
            *term = remove_dots(term);
        } else if normalize {
            *term = term.nfc().collect();
        }
        at
    }
}

/// The term in normalization form C, without dots above on its letters `i`.
fn remove_dots(term: &str) -> String {
    let mut after_i = false;
    let kept = term.nfd().filter(|&c| {
        if !is_combining_mark(c) {
            after_i = c == 'i';
        }
        !(after_i && c == DOT_ABOVE)
    });
    kept.nfc().collect()
}

/// Whether the quotation mark at `at` is between two Hebrew letters, as in an acronym (WB7b, WB7c).
pub fn is_in_hebrew_word(text: &str, at: usize) -> bool {
    let mut before = text[..at].chars().rev().map(|c| CharClass::of(c).kind());
    let before = before.find(|kind| !matches!(kind, CharKind::Extend | CharKind::Ignorable));
    before == Some(CharKind::Hebrew) && letter_follows(text, at + 1, true)
}

/// Whether a letter, of any script or `hebrew`, is at `at` or after marks there.
fn letter_follows(text: &str, at: usize, hebrew: bool) -> bool {
    let kinds = text[at..].chars().map(|c| CharClass::of(c).kind());
    let mut kinds = kinds.skip_while(|kind| matches!(kind, CharKind::Extend | CharKind::Ignorable));
    match kinds.next() {
        Some(CharKind::Hebrew) => true,
        Some(CharKind::Letter) => !hebrew,
        _ => false,
    }
}

/// Calls `on_token` with the terms of the run of text without blanks that starts at `start`; returns its end.
fn tokenize_run(
    text: &str,
    start: usize,
    buffers: &mut WordBuffers,
    on_token: &mut impl TokenConsumer,
) -> usize {
    let WordBuffers { term, clusters } = buffers;
    let (end, is_plain) = read_run(text, start, clusters);
    let count = clusters.len();
    clusters.push(end);
    for (number, &from) in clusters[..count].iter().enumerate() {
        let part = RunPart { is_first: number == 0, is_last: number + 1 == count };
        let to = clusters[(number + 2).min(count)];
        let source = &text[from..to];
        if is_plain {
            on_token(source, from, to, Some(part));
        } else {
            term.clear();
            term.extend(source.chars().filter(|c| is_visible(*c)).nfc());
            on_token(term, from, to, Some(part));
        }
    }
    end
}

/// Finds the grapheme clusters of a run, and writes their start offsets to `clusters`. Returns the end of the
/// run, and whether its terms are the text unchanged.
fn read_run(text: &str, start: usize, clusters: &mut Vec<usize>) -> (usize, bool) {
    clusters.clear();
    let (mut is_plain, mut at) = (true, start);
    for c in text[start..].chars() {
        let class = CharClass::of(c);
        match class.kind() {
            CharKind::Ideograph => {
                is_plain &= !class.composes();
                clusters.push(at);
            }
            CharKind::Complex | CharKind::Extend | CharKind::Ignorable => is_plain = false,
            _ if c == ZERO_WIDTH_SPACE && run_follows(text, at + c.len_utf8()) => is_plain = false,
            _ => break,
        }
        at += c.len_utf8();
    }
    if !is_plain {
        clusters.clear();
        let graphemes = text[start..at].grapheme_indices(true);
        let visible = graphemes.filter(|(_, grapheme)| grapheme.chars().any(is_visible));
        clusters.extend(visible.map(|(offset, _)| start + offset));
    }
    (at, is_plain)
}

/// Whether a run of text without blanks is at `at`.
fn run_follows(text: &str, at: usize) -> bool {
    let next = text[at..].chars().next();
    next.is_some_and(|c| matches!(CharClass::of(c).kind(), CharKind::Ideograph | CharKind::Complex))
}

/// Whether a character is part of terms.
fn is_visible(c: char) -> bool {
    c != ZERO_WIDTH_SPACE && CharClass::of(c).kind() != CharKind::Ignorable
}
