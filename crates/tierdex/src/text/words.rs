//! The `unicode` tokenizer: words and runs of text without blanks, in any script.
//!
//! *Input*: a text. *Output*: terms in lower case and normalization form C, with their byte ranges.
//!
//! 1. ASCII letters and digits are words. A word continues with letters, digits and their marks by the rules
//!    WB4 to WB10 of UAX 29 ("Unicode Text Segmentation"), except that what separates words in ASCII does
//!    not join them elsewhere: apostrophes, full stops and colons between letters (WB6, WB7), separators of
//!    numbers (WB11, WB12) and low lines (WB13a, WB13b).
//! 2. A run of text without blanks (Chinese, Japanese kana, Thai, Lao, Khmer, Burmese) becomes a term for
//!    each two neighbouring grapheme clusters, and one for its last cluster: each cluster begins a term.
//! 3. Invisible characters (soft hyphens, joiners, variation selectors) belong to their word, but not to the
//!    term.
//! 4. A dot above an `i` is dropped: the lower case of `İ` is `i` with a dot.

use super::char_class::{CharClass, CharKind};
use super::{token::RunPart, tokenize::char_at};
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;
use unicode_segmentation::UnicodeSegmentation;

/// May stand between the words of a run, as a place to break the line.
const ZERO_WIDTH_SPACE: char = '\u{200b}';
const DOT_ABOVE: char = '\u{307}';

/// Buffers of tokenizers.
#[derive(Default)]
pub(super) struct WordBuffers {
    pub(super) term: String,
    /// The starts of the grapheme clusters of a run, and its end.
    clusters: Vec<usize>,
}

/// Calls `pass` with each term of `text`, its byte range, and its part in a run of text without blanks.
pub(super) fn unicode(
    text: &str,
    buffers: &mut WordBuffers,
    pass: &mut impl FnMut(&str, usize, usize, Option<RunPart>),
) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        match ASCII[usize::from(byte)] {
            SEPARATOR => at += 1,
            NOT_ASCII => at = not_ascii(text, at, buffers, pass),
            _ => {
                let (start, mut seen) = (at, 0);
                while let Some(&byte) = bytes.get(at)
                    && ASCII[usize::from(byte)] & WORD != 0
                {
                    seen |= ASCII[usize::from(byte)];
                    at += 1;
                }
                let continues = bytes.get(at).is_some_and(|byte| !byte.is_ascii());
                if seen & CAPITAL == 0 && !continues {
                    // Most words are as they are in the text.
                    pass(&text[start..at], start, at, None);
                } else {
                    at = copied_word(text, start, at, continues, buffers, pass);
                }
            }
        }
    }
}

/// Classes of bytes.
const SEPARATOR: u8 = 0;
const NOT_ASCII: u8 = 1;
const WORD: u8 = 2;
const CAPITAL: u8 = 4;

const ASCII: [u8; 256] = {
    let mut table = [NOT_ASCII; 256];
    let mut byte = 0;
    while byte < 128 {
        table[byte] = if (byte as u8).is_ascii_uppercase() {
            WORD | CAPITAL
        } else if (byte as u8).is_ascii_alphanumeric() {
            WORD
        } else {
            SEPARATOR
        };
        byte += 1;
    }
    table
};

/// Passes a word whose first part is ASCII in lower case; returns its end.
#[inline(never)]
fn copied_word(
    text: &str,
    start: usize,
    mut at: usize,
    continues: bool,
    buffers: &mut WordBuffers,
    pass: &mut impl FnMut(&str, usize, usize, Option<RunPart>),
) -> usize {
    let term = &mut buffers.term;
    term.clear();
    term.push_str(&text[start..at]);
    term.make_ascii_lowercase();
    if continues {
        at = rest_of_word(text, start, at, term);
    }
    pass(term, start, at, None);
    at
}

/// Passes the word or run that a character outside ASCII begins, if it does; returns its end.
#[inline(never)]
fn not_ascii(
    text: &str,
    start: usize,
    buffers: &mut WordBuffers,
    pass: &mut impl FnMut(&str, usize, usize, Option<RunPart>),
) -> usize {
    let c = char_at(text, start);
    match CharClass::of(c).kind() {
        CharKind::Separator | CharKind::Extend | CharKind::Ignorable | CharKind::Middle => {
            start + c.len_utf8()
        }
        CharKind::Ideograph | CharKind::Complex => run(text, start, buffers, pass),
        CharKind::Letter | CharKind::Digit | CharKind::Hebrew => {
            buffers.term.clear();
            let end = rest_of_word(text, start, start, &mut buffers.term);
            pass(&buffers.term, start, end, None);
            end
        }
    }
}

/// Appends the rest of a word, from `at` on, to `term`; returns the end of the word.
#[inline(never)]
fn rest_of_word(text: &str, start: usize, at: usize, term: &mut String) -> usize {
    let mut word = Word::new(text, start, at, term);
    while let Some(c) = text[word.at..].chars().next() {
        if !word.take(c) {
            break;
        }
    }
    word.finish()
}

/// A word while it is read.
struct Word<'a> {
    text: &'a str,
    at: usize,
    term: &'a mut String,
    /// The kind of the last character that is no mark.
    previous: CharKind,
    /// Bytes of the term up to the last letter or digit, and the marks behind it.
    kept: usize,
    normalize: bool,
    after_reordered: bool,
    has_sigma: bool,
    has_dot_above: bool,
}

impl Word<'_> {
    fn new<'a>(text: &'a str, start: usize, at: usize, term: &'a mut String) -> Word<'a> {
        let previous = match text[start..at].bytes().last() {
            Some(b'0'..=b'9') => CharKind::Digit,
            _ => CharKind::Letter,
        };
        let kept = term.len();
        Word {
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

    /// Adds a character; false if the word ends before it.
    fn take(&mut self, c: char) -> bool {
        let class = CharClass::of(c);
        let next = self.at + c.len_utf8();
        match class.kind() {
            CharKind::Letter | CharKind::Hebrew => self.letter(c, class),
            CharKind::Digit if self.previous != CharKind::Middle => self.letter(c, class),
            CharKind::Extend => self.mark(c, class),
            CharKind::Ignorable => {}
            CharKind::Middle if self.is_after_letter() && letter_follows(self.text, next, false) => {
                self.middle(c)
            }
            CharKind::Separator if c == '\'' && self.previous == CharKind::Hebrew => self.middle('\u{5f3}'),
            CharKind::Separator
                if c == '"' && self.previous == CharKind::Hebrew && letter_follows(self.text, next, true) =>
            {
                self.middle('\u{5f4}');
            }
            _ => return false,
        }
        self.at = next;
        true
    }

    fn letter(&mut self, c: char, class: CharClass) {
        self.normalize |= class.composes();
        self.after_reordered = false;
        self.previous = class.kind();
        self.has_dot_above |= c == 'İ';
        match c {
            // The lower case of a sigma depends on its neighbours in the whole word.
            'Σ' => {
                self.has_sigma = true;
                self.term.push(c);
            }
            _ if class.is_lowered() => self.term.extend(c.to_lowercase()),
            _ => self.term.push(c),
        }
        self.kept = self.term.len();
    }

    fn mark(&mut self, c: char, class: CharClass) {
        self.has_dot_above |= c == DOT_ABOVE;
        self.normalize |= class.composes() || (self.after_reordered && class.reorders());
        self.after_reordered = class.reorders();
        self.term.push(c);
        if self.previous != CharKind::Middle {
            self.kept = self.term.len();
        }
    }

    /// A character that joins the letters around it. At the end of a word it is not part of the term.
    fn middle(&mut self, c: char) {
        self.normalize |= CharClass::of(c).composes();
        self.previous = CharKind::Middle;
        self.term.push(c);
    }

    fn is_after_letter(&self) -> bool {
        matches!(self.previous, CharKind::Letter | CharKind::Hebrew)
    }

    fn finish(self) -> usize {
        let Word { at, term, kept, normalize, has_sigma, has_dot_above, .. } = self;
        term.truncate(kept);
        if has_sigma {
            *term = term.to_lowercase();
        }
        if has_dot_above {
            *term = without_dots(term);
        } else if normalize {
            *term = term.nfc().collect();
        }
        at
    }
}

/// The term in normalization form C without the dots above of its letters `i`.
fn without_dots(term: &str) -> String {
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

/// Whether a letter follows at `at`, with or without marks before it.
fn letter_follows(text: &str, at: usize, hebrew: bool) -> bool {
    let kinds = text[at..].chars().map(|c| CharClass::of(c).kind());
    let mut kinds = kinds.skip_while(|kind| matches!(kind, CharKind::Extend | CharKind::Ignorable));
    match kinds.next() {
        Some(CharKind::Hebrew) => true,
        Some(CharKind::Letter) => !hebrew,
        _ => false,
    }
}

/// Passes the terms of the run that starts at `start`; returns its end.
fn run(
    text: &str,
    start: usize,
    buffers: &mut WordBuffers,
    pass: &mut impl FnMut(&str, usize, usize, Option<RunPart>),
) -> usize {
    let WordBuffers { term, clusters } = buffers;
    let (end, plain) = read_run(text, start, clusters);
    let count = clusters.len();
    clusters.push(end);
    for (number, &from) in clusters[..count].iter().enumerate() {
        let part = RunPart { is_first: number == 0, is_last: number + 1 == count };
        let to = clusters[(number + 2).min(count)];
        let source = &text[from..to];
        if plain {
            pass(source, from, to, Some(part));
        } else {
            term.clear();
            term.extend(source.chars().filter(|c| is_visible(*c)).nfc());
            pass(term, from, to, Some(part));
        }
    }
    end
}

/// Finds the starts of the grapheme clusters of a run. Returns the end of the run, and whether its terms are
/// the text as it is.
fn read_run(text: &str, start: usize, clusters: &mut Vec<usize>) -> (usize, bool) {
    clusters.clear();
    let (mut plain, mut at) = (true, start);
    for c in text[start..].chars() {
        let class = CharClass::of(c);
        match class.kind() {
            CharKind::Ideograph => {
                plain &= !class.composes();
                clusters.push(at);
            }
            CharKind::Complex | CharKind::Extend | CharKind::Ignorable => plain = false,
            _ if c == ZERO_WIDTH_SPACE && run_follows(text, at + c.len_utf8()) => plain = false,
            _ => break,
        }
        at += c.len_utf8();
    }
    if !plain {
        clusters.clear();
        let graphemes = text[start..at].grapheme_indices(true);
        let visible = graphemes.filter(|(_, grapheme)| grapheme.chars().any(is_visible));
        clusters.extend(visible.map(|(offset, _)| start + offset));
    }
    (at, plain)
}

fn run_follows(text: &str, at: usize) -> bool {
    let next = text[at..].chars().next();
    next.is_some_and(|c| matches!(CharClass::of(c).kind(), CharKind::Ideograph | CharKind::Complex))
}

fn is_visible(c: char) -> bool {
    c != ZERO_WIDTH_SPACE && CharClass::of(c).kind() != CharKind::Ignorable
}
