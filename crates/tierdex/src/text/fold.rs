//! Accent folding: removes the combining marks of Latin, Greek and Cyrillic letters, and replaces Latin
//! letters that do not decompose (ß, ø) and compatibility characters (ligatures, full-width letters,
//! superscripts).

use super::char_class::{CharClass, CharKind};
use std::iter;
use unicode_normalization::{UnicodeNormalization, char::is_combining_mark};

/// Writes `term` without accents to `out`. If `compatibility`, compatibility characters are replaced too.
pub(super) fn fold_accents(term: &str, compatibility: bool, out: &mut String) {
    out.clear();
    if compatibility {
        // The decomposition of a compatibility character may have capital letters.
        fold_decomposed(
            term.chars().flat_map(compatibility_decomposition).flat_map(char::to_lowercase).nfd(),
            out,
        );
    } else {
        fold_decomposed(term.nfd(), out);
    }
}

/// The compatibility decomposition of a character. A character of a script without blanks with a
/// decomposition of several characters (`ำ` in Thai, `㌔`) is not decomposed, so that terms still have two
/// grapheme clusters.
fn compatibility_decomposition(c: char) -> impl Iterator<Item = char> {
    let has_no_blanks = matches!(CharClass::of(c).kind(), CharKind::Ideograph | CharKind::Complex);
    let is_kept = has_no_blanks && iter::once(c).nfkd().count() > 1;
    let (kept, folded) = if is_kept { (Some(c), None) } else { (None, Some(iter::once(c).nfkd())) };
    kept.into_iter().chain(folded.into_iter().flatten())
}

/// Appends decomposed text to `out`, composed again but without accents.
fn fold_decomposed(decomposed: impl Iterator<Item = char>, out: &mut String) {
    let mut accented = false;
    let kept = decomposed.filter(|&c| {
        let mark = is_combining_mark(c);
        if !mark {
            accented = has_accents(c);
        }
        !(mark && accented)
    });
    for c in kept.nfc() {
        match plain_letters(c) {
            Some(plain) => out.push_str(plain),
            None => out.push(c),
        }
    }
}

/// Whether combining marks of this letter are accents: that is so for Latin, Greek and Cyrillic. In other
/// scripts a letter with a mark may be a different letter.
fn has_accents(base: char) -> bool {
    matches!(base, 'a'..='z' | 'A'..='Z' | '\u{c0}'..='\u{52f}' | '\u{1e00}'..='\u{1fff}')
}

/// The replacement of a Latin letter in lower case that Unicode does not decompose; `None` for other
/// characters.
fn plain_letters(c: char) -> Option<&'static str> {
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
