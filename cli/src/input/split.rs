//! Splits long texts at word boundaries.

/// The parts of a text, each of 1 to `bytes_max` bytes and without leading and trailing white space. A word
/// of more than `bytes_max` bytes is split between characters. `bytes_max` is at least 4, the length of a
/// character.
pub(super) fn split_text(text: &str, bytes_max: usize) -> impl Iterator<Item = &str> {
    let mut rest = text.trim();
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (part, after) = rest.split_at(first_part_len(rest, bytes_max));
        rest = after.trim_start();
        Some(part.trim_end())
    })
}

/// Length of the beginning of a text whose parts do not depend on what may follow the text, and the number of
/// these parts.
pub(super) fn settled_parts(text: &str, bytes_max: usize) -> (usize, u64) {
    // A part ends before a character that does not fit.
    const CHARACTER_BYTES_MAX: usize = 4;
    let (mut rest, mut parts) = (text.trim_start(), 0);
    while rest.len() > bytes_max + CHARACTER_BYTES_MAX {
        rest = rest[first_part_len(rest, bytes_max)..].trim_start();
        parts += 1;
    }
    (text.len() - rest.len(), parts)
}

/// Length of the first part of a text that begins with a word; at least 1.
fn first_part_len(text: &str, bytes_max: usize) -> usize {
    if text.len() <= bytes_max {
        return text.len();
    }
    let limit = text.floor_char_boundary(bytes_max);
    let (head, tail) = text.split_at(limit);
    if tail.starts_with(char::is_whitespace) {
        return limit;
    }
    head.rfind(char::is_whitespace).unwrap_or(limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_parts(text: &str, bytes_max: usize, expected: &[&str]) {
        assert_eq!(split_text(text, bytes_max).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn texts_are_split_between_words() {
        check_parts("one two three", 7, &["one two", "three"]);
        check_parts("one two three", 8, &["one two", "three"]);
        check_parts("one two three", 6, &["one", "two", "three"]);
        check_parts("  one \n\t two  ", 5, &["one", "two"]);
        check_parts("abcdefghij", 4, &["abcd", "efgh", "ij"]);
        check_parts("ab cdefghij k", 4, &["ab", "cdef", "ghij", "k"]);
        check_parts("ééé", 5, &["éé", "é"]);
        check_parts("a\u{3000}b\u{a0}c", 4, &["a", "b\u{a0}c"]);
        check_parts(" \n ", 4, &[]);
        check_parts("", 4, &[]);
    }

    #[test]
    fn parts_contain_all_characters_but_white_space() {
        let alphabet = ['a', 'b', 'ß', '語', '😀', ' ', ' ', '\n', '\u{2003}'];
        let mut state = 3u32;
        for round in 0..4000usize {
            let mut random = |below: usize| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (state >> 8) as usize % below
            };
            let choices = 1 + random(alphabet.len());
            let text: String =
                (0..random(200)).map(|_| alphabet[alphabet.len() - 1 - random(choices)]).collect();
            let bytes_max = 4 + round % 40;
            let found: Vec<&str> = split_text(&text, bytes_max).collect();
            assert!(
                found.iter().all(|part| !part.is_empty() && part.len() <= bytes_max && part.trim() == *part)
            );
            let without_space = |text: &str| text.split_whitespace().collect::<String>();
            assert_eq!(without_space(&found.concat()), without_space(&text));
            let whole = text.split_whitespace().filter(|word| word.len() <= bytes_max);
            for word in whole {
                assert!(
                    found.iter().any(|part| part.split_whitespace().any(|other| other == word)),
                    "{word}"
                );
            }
        }
    }
}
