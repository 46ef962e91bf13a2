//! Phrases: adjacent words of a document of the corpus.
//!
//! 1. a byte of the file of tokens is chosen at random;
//! 2. the words behind the next blank or the next end of a line are the phrase, if they are words of one
//!    document;
//! 3. if they are not, or were taken before, another byte is chosen.
//!
//! So a frequent phrase is taken with a higher probability. A word may occur in it twice.
//!
//! A phrase with slop is made of such words as well: with equal odds, of the words in another order, or of
//! one word more with one of the inner words left out. No word occurs in it twice.

use crate::{tokens::Corpus, tools::unreadable};
use std::{collections::HashSet, fs::File, os::unix::fs::FileExt};
use tierdex_bench::{Random, Result};

/// Bytes that are read at a place: those of six of the longest words.
const WINDOW: usize = 1206;
/// Places that are tried for a phrase, at most.
const TRIES_MAX: usize = 1000;

/// The given number of distinct phrases of a given length and slop, in the form of the protocol; fewer if
/// the text has no more.
///
/// # Errors
/// If the text cannot be read.
pub fn queries(
    corpus: &Corpus,
    words: usize,
    slop: usize,
    count: usize,
    random: &mut Random,
) -> Result<Vec<String>> {
    let file = File::open(&corpus.path).map_err(|error| unreadable(&corpus.path, &error))?;
    let (mut queries, mut known) = (Vec::new(), HashSet::new());
    let mut window = [0; WINDOW];
    for _ in 0..count * TRIES_MAX {
        if queries.len() == count {
            break;
        }
        let place = random.bits() % corpus.bytes.max(1);
        let len = file.read_at(&mut window, place).map_err(|error| unreadable(&corpus.path, &error))?;
        let query = match slop {
            0 => phrase(&window[..len], words).map(|phrase| format!("\"{phrase}\"")),
            _ => loose(&window[..len], words, random).map(|words| format!("\"{words}\"~{slop}")),
        };
        queries.extend(query.filter(|query| known.insert(query.clone())));
    }
    Ok(queries)
}

/// Different words that stand near each other in a piece of text, but not in a row in their order.
fn loose(text: &[u8], count: usize, random: &mut Random) -> Option<String> {
    let leaves_out = random.below(2) == 0;
    let mut words: Vec<&str> = phrase(text, count + usize::from(leaves_out))?.split(' ').collect();
    if leaves_out {
        words.remove(1 + random.below(count as u32 - 1) as usize);
    }
    if words.iter().collect::<HashSet<_>>().len() < count {
        return None;
    }
    let in_order = words.clone();
    while !leaves_out && words == in_order {
        random.shuffle(&mut words);
    }
    Some(words.join(" "))
}

/// The first words that stand whole in a piece of text, behind a blank or the end of a line; none if a line
/// ends between them.
fn phrase(text: &[u8], words: usize) -> Option<&str> {
    let start = text.iter().position(|byte| byte.is_ascii_whitespace())? + 1;
    let text = &text[start..];
    let mut ends = text.iter().enumerate().filter(|(_, byte)| byte.is_ascii_whitespace());
    let before = ends.by_ref().take(words - 1).filter(|(_, byte)| **byte == b' ').count();
    let (end, _) = ends.next()?;
    (before == words - 1).then(|| str::from_utf8(&text[..end]).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phrase_is_of_one_document() {
        assert_eq!(phrase(b"x ab c\nd", 2), Some("ab c"));
        assert_eq!(phrase(b"\nab c d", 2), Some("ab c"));
        for text in [&b"x ab\nc d "[..], b"x ab c", b"xyz"] {
            assert_eq!(phrase(text, 2), None);
        }
    }

    #[test]
    fn phrases_differ_and_follow_from_the_seed() {
        let path = std::env::temp_dir().join(format!("tierdex-phrases-{}", std::process::id()));
        std::fs::write(&path, "a b c\nd e\n").unwrap();
        let corpus = Corpus { path: path.clone(), bytes: 10, documents: 2, terms: Vec::new() };
        let draw = |seed| queries(&corpus, 2, 0, 3, &mut Random::new(seed)).unwrap();
        assert_eq!(draw(1), draw(1));
        let mut found = draw(2);
        found.sort();
        assert_eq!(found, ["\"b c\"", "\"d e\""]);
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn loose_phrases_lack_a_word_or_have_another_order() {
        let mut random = Random::new(1);
        let found: HashSet<String> = (0..100).filter_map(|_| loose(b"x a b c d\n", 2, &mut random)).collect();
        assert_eq!(found, ["b a", "a c"].map(String::from).into());
        let three: HashSet<String> = (0..100).filter_map(|_| loose(b"x a b c d\n", 3, &mut random)).collect();
        assert!(three.contains("a b d") && three.contains("a c d") && !three.contains("a b c"), "{three:?}");
        assert_eq!(loose(b"x a a a\n", 2, &mut random), None);
    }
}
