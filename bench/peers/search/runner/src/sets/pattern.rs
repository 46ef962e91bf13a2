//! Patterns of queries: the syntax of the protocol with placeholders for words.
//!
//! | placeholder | a word |
//! |---|---|
//! | `h`, `m` | a term of class H, or of class M200 |
//! | `x` | a term of one of the two, with equal odds |
//! | `x~1`, `x~2` | such a term of at least four or six letters |
//! | `p` | the first three to five characters of such a term, at least one less than it has |
//!
//! The words of a query differ.

use super::{draw::Queues, recipe::Class};

/// Lengths of prefixes in characters.
const PREFIX_CHARS: [usize; 3] = [3, 4, 5];

impl Queues<'_> {
    /// The next query of a pattern; none if there are not enough terms.
    pub(super) fn fill(&mut self, pattern: &str) -> Option<String> {
        let (mut query, mut words) = (String::new(), Vec::new());
        for (at, letter) in pattern.char_indices() {
            match letter {
                'h' => self.add(Class::H, &mut words)?,
                'm' => self.add(Class::M200, &mut words)?,
                'x' => {
                    let least = letters_min(&pattern[at + 1..]);
                    let class = self.common();
                    self.add_part(class, |term| has_letters(term, least).then_some(term), &mut words)?;
                }
                'p' => {
                    let class = self.common();
                    let len = PREFIX_CHARS[self.random(PREFIX_CHARS.len())];
                    self.add_part(class, |term| prefix(term, len), &mut words)?;
                }
                sign => {
                    query.push(sign);
                    continue;
                }
            }
            query += words.last()?;
        }
        Some(query)
    }

    /// H or M200, with equal odds.
    fn common(&mut self) -> Class {
        [Class::H, Class::M200][self.random(2)]
    }
}

/// Letters of a term, at least, by what follows its placeholder; 0 if it is not fuzzy.
fn letters_min(rest: &str) -> usize {
    match rest.as_bytes() {
        [b'~', b'1', ..] => 4,
        [b'~', ..] => 6,
        _ => 0,
    }
}

fn has_letters(term: &str, least: usize) -> bool {
    least == 0 || term.chars().count() >= least && term.chars().all(char::is_alphabetic)
}

/// The first `len` characters, fewer of a term that is not longer; none if they are too few.
fn prefix(term: &str, len: usize) -> Option<&str> {
    let len = len.min(term.chars().count().checked_sub(1)?);
    let (end, _) = term.char_indices().nth(len)?;
    (len >= PREFIX_CHARS[0]).then(|| &term[..end])
}

#[cfg(test)]
mod tests {
    use super::super::draw::Classes;
    use super::*;
    use crate::tokens::Corpus;
    use tierdex_bench::Random;

    #[test]
    fn placeholders_become_words_of_their_classes() {
        let high = ["of", "the", "there", "thereby", "wherever", "2004"].map(|term| (term.to_string(), 2000));
        let medium = ('a'..='z').map(|letter| (format!("medium{letter}"), 300));
        let terms = high.into_iter().chain(medium).collect();
        let corpus = Corpus { path: "x".into(), bytes: 0, documents: 100_000, terms };
        let classes = Classes::of(&corpus);
        let mut queues = Queues::new(&classes, 0, Random::new(1));
        for _ in 0..100 {
            let query = queues.fill("+m -(h p*)~2 x~2").unwrap();
            let [m, h, p, x] = query.split(' ').collect::<Vec<_>>()[..] else { panic!("{query}") };
            assert!(m.starts_with("+medium") && h.starts_with("-("), "{query}");
            let prefix = p.strip_suffix("*)~2").unwrap();
            assert!((3..=5).contains(&prefix.len()), "{query}");
            assert!(["thereby~2", "wherever~2"].contains(&x) || x.starts_with("medium"), "{query}");
        }
    }

    #[test]
    fn prefixes_are_shorter_than_their_terms() {
        assert_eq!(
            ["été1", "été", "abcdefg", ""].map(|term| prefix(term, 5)),
            [Some("été"), None, Some("abcde"), None]
        );
        assert_eq!(prefix("abcd", 3), Some("abc"));
    }
}
