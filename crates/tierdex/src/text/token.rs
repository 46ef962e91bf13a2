//! Tokens: the terms of a text with their positions and byte ranges.

/// A token that analysis keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token<'a> {
    /// The indexed term, 1 to 255 bytes.
    pub term: &'a str,
    /// Position of the token in the text; dropped tokens count.
    pub position: u32,
    /// Byte offset of the token in the text.
    pub start: usize,
    /// Byte offset of its end in the text.
    pub end: usize,
    /// Its part in a run of text without blanks; `None` for a word.
    pub run: Option<RunPart>,
}

/// The part of a token in a run of text without blanks (Chinese, Japanese, Thai and others): of each two
/// neighbouring grapheme clusters, or of the last cluster alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunPart {
    /// Whether it is the first token of its run.
    pub is_first: bool,
    /// Whether it is the last cluster, alone.
    pub is_last: bool,
}
