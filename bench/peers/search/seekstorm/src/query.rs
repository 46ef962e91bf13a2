//! Which queries of the protocol the library has, in the words of its own parser, which are the same.

/// Whether the library answers a query as the others do: words that are all required or all alternatives,
/// others that are excluded, and phrases that stand alone. It has no filters, and where a word is required
/// all are.
pub fn is_known(text: &str) -> bool {
    if let Some(rest) = text.strip_prefix('"') {
        return rest.strip_suffix('"').is_some_and(|words| !words.contains('"'));
    }
    let (mut required, mut others, mut known) = (false, false, true);
    for word in text.split_ascii_whitespace() {
        match word.as_bytes()[0] {
            b'+' => required = true,
            b'-' => {}
            b'#' => known = false,
            _ => others = true,
        }
    }
    known && required != others && !text.contains('"')
}

/// Whether a query is one word and others that are excluded.
pub fn excludes_from_one(text: &str) -> bool {
    let excluded = |word: &&str| word.starts_with('-');
    let words = text.split_ascii_whitespace().count();
    words > 1 && text.split_ascii_whitespace().filter(excluded).count() == words - 1
}

#[cfg(test)]
mod tests {
    use super::{excludes_from_one, is_known};

    #[test]
    fn one_word_without_others_is_told_apart() {
        assert_eq!(["+a -b", "a -b -c", "a b -c", "a"].map(excludes_from_one), [true, true, false, false]);
    }

    #[test]
    fn mixtures_and_filters_are_not_known() {
        for text in ["a", "a b", "+a +b", "+a -b", "a b -c", "\"a b\""] {
            assert!(is_known(text), "{text}");
        }
        for text in ["", "-a", "+a b", "+a #b", "a b #c", "+\"a b\" c", "\"a b\" c"] {
            assert!(!is_known(text), "{text}");
        }
    }
}
