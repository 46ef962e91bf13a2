//! Compares sorted runs with a model, a map from terms to postings.

use super::*;
use crate::schema::{Analysis, Tokenizer};
use crate::{limits::FIELD_TOKENS_MAX, text::Analyzer};
use proptest::prelude::*;
use std::{collections::BTreeMap, convert::Infallible};

/// For each term its documents, with frequency and positions in each.
type PostingMap = BTreeMap<String, Vec<(u32, u32, Vec<u32>)>>;

fn read_run(run: &SortedRun) -> PostingMap {
    let mut postings = PostingMap::new();
    for term in run.cursor() {
        let mut list = Vec::new();
        let Ok(()) = term.for_each(&mut Vec::new(), |document, frequency, positions| {
            list.push((document, frequency, positions.to_vec()));
            Ok::<(), Infallible>(())
        });
        postings.insert(String::from_utf8(term.term.to_vec()).unwrap(), list);
    }
    postings
}

fn analyzer() -> Analyzer {
    let stop_words = vec!["stop".to_string()];
    Analyzer::new(&Analysis { tokenizer: Tokenizer::Whitespace, stop_words, ..Analysis::default() })
}

#[test]
fn tokens_beyond_the_limit_are_counted() {
    let mut table = FieldTable::new(3);
    let mut analyzer = analyzer();
    assert_eq!(table.add(&mut analyzer, ["a b", "c"].into_iter()), 0);
    // Three tokens are beyond the limit; one of them is a stop word.
    assert_eq!(table.add(&mut analyzer, ["a b", "c d stop e"].into_iter()), 2);
    assert_eq!(table.take_run(false).lengths(), [3, 3]);
}

proptest! {
    #[test]
    fn runs_contain_the_added_postings(
        documents in prop::collection::vec(prop::collection::vec("[a-c]{1,3}|stop|[a-z]{9,12}", 0..20), 0..30),
        positions in any::<bool>(),
    ) {
        let mut table = FieldTable::new(FIELD_TOKENS_MAX);
        let mut analyzer = analyzer();
        for round in 0..2 {
            let mut model = PostingMap::new();
            let mut lengths = Vec::new();
            for (document, words) in documents.iter().enumerate() {
                let mut kept = BTreeMap::<&str, Vec<u32>>::new();
                for (position, word) in words.iter().enumerate().filter(|(_, word)| *word != "stop") {
                    kept.entry(word).or_default().push(position as u32);
                }
                lengths.push(kept.values().map(Vec::len).sum::<usize>() as u32);
                for (word, word_positions) in kept {
                    let frequency = word_positions.len() as u32;
                    let word_positions = if positions { word_positions } else { Vec::new() };
                    model.entry(word.to_string()).or_default().push((document as u32, frequency, word_positions));
                }
                let half = words.len() / 2;
                let parts = [words[..half].join(" "), words[half..].join(" ")];
                table.add(&mut analyzer, parts.iter().map(String::as_str));
            }
            let run = table.take_run(positions);
            prop_assert_eq!(read_run(&run), model, "round {}", round);
            prop_assert_eq!(run.lengths(), lengths);
        }
    }
}
