//! Accent folding: Latin, Greek and Cyrillic letters without their combining marks, the Latin letters that do
//! not decompose, and compatibility characters (ligatures, full-width letters, superscripts) as the
//! characters that they stand for.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// Writes `term` without its accents to `out`; `compatibility` folds compatibility characters too.
pub(super) fn fold_accents(term: &str, compatibility: bool, out: &mut String) {
    out.clear();
    if compatibility {
        // What a compatibility character stands for may be a capital letter.
        fold(term.nfkd().flat_map(char::to_lowercase).nfkd(), out);
    } else {
        fold(term.nfd(), out);
    }
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
