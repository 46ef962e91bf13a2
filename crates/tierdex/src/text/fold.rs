//! Accent folding: canonical decomposition without its combining marks, and the letters that do not decompose.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// Writes `term` without accents into `out`.
pub(super) fn fold_accents(term: &str, out: &mut String) {
    out.clear();
    for c in term.nfd().filter(|&c| !is_combining_mark(c)) {
        match letters(c) {
            Some(plain) => out.push_str(plain),
            None => out.push(c),
        }
    }
}

/// Latin letters that Unicode does not decompose, in lower case.
fn letters(c: char) -> Option<&'static str> {
    Some(match c {
        'ß' => "ss",
        'æ' => "ae",
        'œ' => "oe",
        'ø' => "o",
        'đ' | 'ð' => "d",
        'ħ' => "h",
        'ı' => "i",
        'ł' => "l",
        'ŧ' => "t",
        'þ' => "th",
        _ => return None,
    })
}
