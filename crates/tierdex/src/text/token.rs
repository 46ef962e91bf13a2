//! Tokens: the terms of a text with their positions and byte ranges.

/// A token that analysis does not drop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token<'a> {
    /// The indexed term, 1 to 255 bytes.
    pub term: &'a str,
    /// Position of the token in the text, counted in tokens, dropped ones included.
    pub position: u32,
    /// Byte offset of the token in the text.
    pub start: usize,
    /// Byte offset of its end in the text.
    pub end: usize,
    /// For text without blanks, which part of its run the token is; `None` for a word.
    pub run: Option<RunPart>,
}

/// Where a token is in a run of text without blanks (Chinese, Japanese, Thai and others). A run has a token
/// for each two neighbouring grapheme clusters, and one for its last cluster alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunPart {
    /// Whether this is the first token of its run.
    pub is_first: bool,
    /// Whether this is the last token of its run: the last cluster, alone.
    pub is_last: bool,
}

/// What a tokenizer calls with each term, its byte range, and its part in a run of text without blanks.
pub(super) trait TokenConsumer: FnMut(&str, usize, usize, Option<RunPart>) {}

impl<F: FnMut(&str, usize, usize, Option<RunPart>)> TokenConsumer for F {}
