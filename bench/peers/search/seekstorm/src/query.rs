//! The queries of the protocol that the library supports. The syntax of its parser is the same.

/// Whether the library evaluates a query as the other engines do: all words required or all words optional,
/// excluded words, and single phrases. It has no filters, and if one word is required, all are. Groups,
/// prefixes, fuzzy words and slop are not supported.
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
    known && required != others && !text.contains(['"', '(', '*', '~'])
}

/// Whether a query excludes words.
pub fn excludes(text: &str) -> bool {
    text.split_ascii_whitespace().any(|word| word.starts_with('-'))
}

#[cfg(test)]
mod tests {
    use super::{excludes, is_known};

    #[test]
    fn exclusions_are_told_apart() {
        assert_eq!(["+a -b", "a b -c", "a", "\"a b\""].map(excludes), [true, true, false, false]);
    }

    #[test]
    fn mixtures_filters_and_groups_are_not_known() {
        for text in ["a", "a b", "+a +b", "+a -b", "a b -c", "\"a b\""] {
            assert!(is_known(text), "{text}");
        }
        let mixed = ["", "-a", "+a b", "+a #b", "a b #c", "+\"a b\" c", "\"a b\" c"];
        for text in mixed.iter().chain(&["(a b)~2", "+(a b) +c", "a*", "a~1", "\"a b\"~3"]) {
            assert!(!is_known(text), "{text}");
        }
    }
}
