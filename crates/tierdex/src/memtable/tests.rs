//! Compares sorted runs with a model, a map from terms to postings.

use super::*;
use crate::limits::{FIELD_TOKENS_MAX, POSITION_GAP};
use crate::schema::{Analysis, Tokenizer};
use crate::text::Analyzer;
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
    let mut interner = Interner::new();
    let mut table = FieldTable::new(3, false);
    let mut analyzer = analyzer();
    assert_eq!(table.add(&mut interner, &mut analyzer, ["a b", "c"].into_iter()), 0);
    // Three tokens are beyond the limit; one of them is a stop word.
    assert_eq!(table.add(&mut interner, &mut analyzer, ["a b", "c d stop e"].into_iter()), 2);
    assert_eq!(table.take_run(&interner.sorted_terms()).lengths(), [3, 3]);
}

#[test]
fn values_have_a_gap_and_the_longest_is_first() {
    let mut interner = Interner::new();
    let mut table = FieldTable::new(200, true);
    assert_eq!(
        table.add(&mut interner, &mut analyzer(), ["a", "", "bb a stop", "stop", "c", "d"].into_iter()),
        2
    );
    let run = table.take_run(&interner.sorted_terms());
    let expected = [("a", vec![1, 3 + POSITION_GAP]), ("bb", vec![0])];
    let expected = expected.map(|(term, at)| (term.to_string(), vec![(0, at.len() as u32, at)]));
    assert_eq!(read_run(&run), PostingMap::from(expected));
    assert_eq!(run.lengths(), [3]);
}

proptest! {
    #[test]
    fn runs_contain_the_added_postings(
        documents in prop::collection::vec(prop::collection::vec("[a-c]{1,3}|stop|[a-z]{9,12}", 0..20), 0..30),
        positions in any::<bool>(),
    ) {
        let mut interner = Interner::new();
    let mut table = FieldTable::new(FIELD_TOKENS_MAX, positions);
        let mut analyzer = analyzer();
        for round in 0..2 {
            let mut model = PostingMap::new();
            let mut lengths = Vec::new();
            for (document, words) in documents.iter().enumerate() {
                let mut kept = BTreeMap::<&str, Vec<u32>>::new();
                let (first, second) = words.split_at(words.len() / 2);
                let parts = [first.join(" "), second.join(" ")];
                let is_swapped = positions && parts[1].len() > parts[0].len();
                let ordered = if is_swapped { [second, first] } else { [first, second] };
                let gap = if positions && !ordered[0].is_empty() { POSITION_GAP } else { 0 };
                let starts = [0, ordered[0].len() as u32 + gap];
                for (words, start) in ordered.iter().zip(starts) {
                    for (position, word) in (start..).zip(*words).filter(|(_, word)| *word != "stop") {
                        kept.entry(word).or_default().push(position);
                    }
                }
                lengths.push(kept.values().map(Vec::len).sum::<usize>() as u32);
                for (word, word_positions) in kept {
                    let frequency = word_positions.len() as u32;
                    let word_positions = if positions { word_positions } else { Vec::new() };
                    model.entry(word.to_string()).or_default().push((document as u32, frequency, word_positions));
                }
                table.add(&mut interner, &mut analyzer, parts.iter().map(String::as_str));
            }
            let run = table.take_run(&interner.sorted_terms());
            interner.clear();
            prop_assert_eq!(read_run(&run), model, "round {}", round);
            prop_assert_eq!(run.lengths(), lengths);
        }
    }
}

/// A cursor from any term on is at the first term that is not less, in runs with and without marks.
#[test]
fn a_cursor_starts_at_any_term() {
    for (documents, words) in [(3, 5), (40, 400)] {
        let (mut interner, mut table, mut analyzer) =
            (Interner::new(), FieldTable::new(1000, true), analyzer());
        for document in 0..documents {
            let text = (0..words).map(|word| format!("w{} ", (word * 7919 + document * 13) % 5000));
            table.add(&mut interner, &mut analyzer, [text.collect::<String>().as_str()].into_iter());
        }
        let run = table.take_run(&interner.sorted_terms());
        let terms: Vec<&[u8]> = run.cursor().map(|term| term.term).collect();
        assert_eq!(run.marked_terms().count() > 1, words == 400);
        assert!(run.marked_terms().is_sorted() && run.marked_terms().all(|term| terms.contains(&term)));
        let beside = terms.iter().flat_map(|term| [term.to_vec(), [*term, b"!"].concat()]);
        for first in beside.chain([Vec::new(), b"x".to_vec()]) {
            let from = terms.partition_point(|term| *term < first.as_slice());
            assert!(run.cursor_from(&first).map(|term| term.term).eq(terms[from..].iter().copied()));
        }
    }
}
