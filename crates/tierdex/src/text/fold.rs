//! Accent folding: Latin, Greek and Cyrillic letters without their combining marks, the Latin letters that do
//! not decompose, and compatibility characters (ligatures, full-width letters, superscripts) as the
//! characters that they stand for.

use super::char_class::{CharClass, CharKind};
use std::iter;
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// Writes `term` without its accents to `out`; `compatibility` folds compatibility characters too.
pub(super) fn fold_accents(term: &str, compatibility: bool, out: &mut String) {
    out.clear();
    if compatibility {
        // What a compatibility character stands for may be a capital letter.
        fold(term.chars().flat_map(stands_for).flat_map(char::to_lowercase).nfd(), out);
    } else {
        fold(term.nfd(), out);
    }
}

/// What a character stands for. One of text without blanks that stands for several is kept, as a term of such
/// text has two grapheme clusters (`ำ` in Thai, `㌔`).
fn stands_for(c: char) -> impl Iterator<Item = char> {
    let is_of_run = matches!(CharClass::of(c).kind(), CharKind::Ideograph | CharKind::Complex);
    let keeps = is_of_run && iter::once(c).nfkd().count() > 1;
    let (kept, folded) = if keeps { (Some(c), None) } else { (None, Some(iter::once(c).nfkd())) };
    kept.into_iter().chain(folded.into_iter().flatten())
}

fn fold(decomposed: impl Iterator<Item = char>, out: &mut String) {
    let mut accented = false;
    let kept = decomposed.filter(|&c| {
        let mark = is_combining_mark(c);
        if !mark {
            accented = has_accents(c);
        }
        !(mark && accented)
    });
    for c in kept.nfc() {
        match letters(c) {
            Some(plain) => out.push_str(plain),
            None => out.push(c),
        }
    }
}

/// Whether combining marks of this base letter are accents: Latin, Greek and Cyrillic letters. In other
/// scripts a mark may form a different letter.
fn has_accents(base: char) -> bool {
    matches!(base, 'a'..='z' | 'A'..='Z' | '\u{c0}'..='\u{52f}' | '\u{1e00}'..='\u{1fff}')
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
