//! The tokenizers `alphanumeric` and `whitespace`. ASCII is classified by a table, other characters by their
//! Unicode properties.

use super::token::TokenConsumer;

/// For each byte, whether it is an ASCII letter or digit.
const IS_WORD_BYTE: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0_u8;
    while byte < 128 {
        table[byte as usize] = byte.is_ascii_alphanumeric();
        byte += 1;
    }
    table
};

/// The tokenizer `alphanumeric`: tokens are the longest runs of alphanumeric characters, in lower case. Calls
/// `on_token` with each token and its byte range.
pub(super) fn tokenize_alphanumeric(text: &str, lowered: &mut String, on_token: &mut impl TokenConsumer) {
    let bytes = text.as_bytes();
    let mut at = 0;
    loop {
        at = skip_separators(text, at);
        if at == bytes.len() {
            return;
        }
        let start = at;
        lowered.clear();
        let run = bytes[at..].iter().position(|byte| !IS_WORD_BYTE[usize::from(*byte)]);
        at = run.map_or(bytes.len(), |len| at + len);
        lowered.push_str(&text[start..at]);
        lowered.make_ascii_lowercase();
        if bytes.get(at).is_some_and(|byte| !byte.is_ascii()) {
            let end = end_of_run(text, at);
            if end > at {
                at = end;
                // The whole token is lower-cased again: the lower case of a sigma depends on its neighbours.
                *lowered = text[start..at].to_lowercase();
            }
        }
        on_token(lowered, start, at, None);
    }
}

/// The tokenizer `whitespace`: tokens are the longest runs of characters other than white space, unchanged.
pub(super) fn tokenize_whitespace(text: &str, on_token: &mut impl TokenConsumer) {
    let origin = text.as_ptr().addr();
    for token in text.split_whitespace() {
        let start = token.as_ptr().addr() - origin;
        on_token(token, start, start + token.len(), None);
    }
}

/// The offset of the next alphanumeric character from `at` on.
fn skip_separators(text: &str, mut at: usize) -> usize {
    let bytes = text.as_bytes();
    while let Some(&byte) = bytes.get(at) {
        if byte.is_ascii() {
            if IS_WORD_BYTE[usize::from(byte)] {
                break;
            }
            at += 1;
        } else {
            let c = char_at(text, at);
            if c.is_alphanumeric() {
                break;
            }
            at += c.len_utf8();
        }
    }
    at
}

/// The end of the run of alphanumeric characters at `at`.
fn end_of_run(text: &str, mut at: usize) -> usize {
    let bytes = text.as_bytes();
    while let Some(&byte) = bytes.get(at) {
        let c = if byte.is_ascii() { char::from(byte) } else { char_at(text, at) };
        if !c.is_alphanumeric() {
            break;
        }
        at += c.len_utf8();
    }
    at
}

pub(super) fn char_at(text: &str, at: usize) -> char {
    text[at..].chars().next().expect("`at` is a character boundary before the end")
}
