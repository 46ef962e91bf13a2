//! Compares the terms to which prefixes and fuzzy words expand with those that a scan of all terms finds.

use crate::support::corpus::{SchemaOptions, TestDocument};
use crate::support::model::{Model, edit_distance};
use crate::support::{AnswerOptions, answer_query, answer_text, index_in_memory, matching_documents};
use proptest::prelude::*;
use std::collections::BTreeSet;
use tierdex::internal::segment::read::{Automaton, FILES};
use tierdex::limits::{
    FUZZY_BYTES_MAX, FUZZY_EXPANSIONS_MAX, PREFIX_EXPANSIONS_MAX, QUERY_EXPANDED_MAX, QUERY_TERMS_MAX,
};
use tierdex::schema::{Analysis, Language, Schema, Tokenizer};
use tierdex::{Error, Index, Query, internal::query::fuzzy::Levenshtein};

fn schema() -> Schema {
    let shape = SchemaOptions {
        title: false,
        stored: false,
        tokenizer: Tokenizer::Whitespace,
        ..SchemaOptions::default()
    };
    shape.schema()
}

/// Pattern of random words over a small alphabet, with characters of one to four bytes, so that many words
/// are similar.
const WORD_PATTERN: &str = "[abü語😀]{1,7}|[a-c]{1,5}|[aé\u{301}]{1,4}";

/// Longer words, so that a dictionary has several pages and terms share prefixes.
const TERM_PATTERN: &str = "([abü語😀]{1,7}|[a-c]{1,5}|[aé\u{301}]{1,4}){1,3}";

/// The edit distance that an automaton computes for a word; `None` if it rejects the word.
fn automaton_distance(automaton: &Levenshtein, word: &str) -> Option<u8> {
    let step = |state, byte: &u8| automaton.step(state, *byte);
    let state = word.as_bytes().iter().try_fold(automaton.start(), step)?;
    automaton.distance(state)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn automata_compute_edit_distances(a in WORD_PATTERN, b in WORD_PATTERN) {
        for most in 0..=2 {
            let expected = Some(edit_distance(&a, &b) as u8).filter(|edits| *edits <= most);
            prop_assert_eq!(automaton_distance(&Levenshtein::new(&a, most), &b), expected, "{} {} {}", a, b, most);
        }
    }

    #[test]
    fn walks_find_what_looking_at_all_terms_finds(
        terms in prop::collection::btree_set(TERM_PATTERN, 1..600),
        words in prop::collection::vec(WORD_PATTERN, 6),
        cut in 0usize..600,
        is_resident in any::<bool>(),
    ) {
        let schema = schema();
        let docs = TestDocument::of_texts(&terms);
        let index = index_in_memory(&schema, &docs, &[cut.min(docs.len())]);
        if is_resident {
            index.segments().iter().for_each(|segment| segment.load_terms(None).unwrap());
        }
        // Some words are close to a term.
        for word in words.iter().chain(terms.iter().take(3)) {
            for segment in index.segments() {
                let terms = segment.field_of_term(0).terms();
                let mut all = BTreeSet::new();
                let mut stream = terms.stream();
                while let Some((term, _)) = stream.next().unwrap() {
                    all.insert(String::from_utf8(term.to_vec()).unwrap());
                }
                for most in 0..=2 {
                    let mut found = Vec::new();
                    let automaton = Levenshtein::new(word, most);
                    let mut walk = terms.walk(&automaton, &FILES).unwrap();
                    while let Some((info, state)) = walk.advance().unwrap() {
                        prop_assert_eq!(Some(info), terms.get(walk.term(), &FILES).unwrap());
                        let term = String::from_utf8(walk.term().to_vec()).unwrap();
                        found.push((term, automaton.distance(state).unwrap()));
                    }
                    let close = all.iter().map(|term| (term.clone(), edit_distance(word, term) as u8));
                    let expected: Vec<_> = close.filter(|(_, edits)| *edits <= most).collect();
                    prop_assert_eq!(found, expected, "{}~{}", word, most);
                }
            }
            let begun: BTreeSet<u32> = (0..).zip(&docs).filter(|(_, doc)| doc.text.starts_with(word.as_str()))
                .map(|(document, _)| document).collect();
            prop_assert_eq!(matching_documents(&index, &format!("{word}*")), begun);
        }
    }

    #[test]
    fn answers_do_not_depend_on_segments(
        words in prop::collection::vec(WORD_PATTERN, 60..300),
        asked in prop::collection::vec(WORD_PATTERN, 8),
        mut cuts in prop::collection::vec(0usize..60, 0..5),
    ) {
        cuts.sort_unstable();
        let docs = TestDocument::of_texts(words.chunks(3).map(|words| words.join(" ")));
        cuts.iter_mut().for_each(|cut| *cut = (*cut).min(docs.len()));
        let schema = schema();
        let (one, many) = (index_in_memory(&schema, &docs, &[]), index_in_memory(&schema, &docs, &cuts));
        let model = Model::new(&schema, &docs);
        for text in asked.iter().flat_map(|word| [format!("{word}~1"), format!("{word}~ {word}*^0.5")]) {
            let query = Query::parse(&text, &schema).unwrap();
            let look = AnswerOptions { shown: 0, ..AnswerOptions::default() };
            let expected = model.answer(&query, look);
            prop_assert_eq!(&answer_query(&one, &query, look).unwrap(), &expected, "{}", text);
            prop_assert_eq!(&answer_query(&many, &query, look).unwrap(), &expected, "{}", text);
        }
    }
}

#[test]
fn the_closest_and_most_frequent_terms_are_taken() {
    // One term at distance 0, 30 at distance 1, 60 at distance 2. Term 40 of the last is in two documents.
    let near = (0..30).map(|i| format!("word{}", char::from_u32(0x400 + i).unwrap()));
    let far = (0..60).map(|i| format!("word-{}", char::from_u32(0x500 + i).unwrap()));
    let far: Vec<String> = far.collect();
    let words = near.chain(far.iter().cloned()).chain([far[40].clone(), "word".to_string()]);
    let docs = TestDocument::of_texts(words);
    let index = index_in_memory(&schema(), &docs, &[31, 70]);
    let found = matching_documents(&index, "word~2");
    assert_eq!(found.len(), FUZZY_EXPANSIONS_MAX + 1, "fifty terms, one of them in two documents");
    assert!((0..30).chain([70, 90, 91]).all(|document| found.contains(&document)));
    assert!((30..48).all(|document| found.contains(&document)) && !found.contains(&48));
    let query = Query::parse("word~2", index.schema()).unwrap();
    let marks = index.searcher().marks(&query, 0, &FILES).unwrap();
    let marked: BTreeSet<&str> =
        docs.iter().map(|doc| doc.text.as_str()).filter(|text| marks.find(text).is_some()).collect();
    assert_eq!(marked.len(), FUZZY_EXPANSIONS_MAX);
    let query = Query::parse("wor* word-* other", index.schema()).unwrap();
    let marks = index.searcher().marks(&query, 0, &FILES).unwrap();
    assert_eq!(
        ["word", "other", "wo", "others"].map(|term| marks.find(term).is_some()),
        [true, true, false, false]
    );
}

#[test]
fn short_words_must_share_a_character() {
    let index =
        index_in_memory(&schema(), &TestDocument::of_texts(["a", "b", "ab", "ba", "abc", "xyc", ""]), &[]);
    let check = |text: &str, expected: &[u32]| {
        assert_eq!(matching_documents(&index, text), expected.iter().copied().collect(), "{text}");
    };
    check("a~2", &[0]);
    check("ab~1", &[2, 3, 4]);
    check("ab~2", &[2, 3, 4]);
    check("abc~2", &[2, 4, 5]);
    check("b*", &[1, 3]);
}

#[test]
fn normalized_words_are_folded_but_not_stemmed() {
    let mut schema = SchemaOptions { title: false, stored: false, ..SchemaOptions::default() }.schema();
    schema.fields[0].analysis = Analysis {
        fold_accents: true,
        stop_words: vec!["the".to_string()],
        stemmer: Some(Language::English),
        ..Analysis::default()
    };
    let index = index_in_memory(&schema, &TestDocument::of_texts(["running", "theory", "café"]), &[]);
    let count = |text: &str| matching_documents(&index, text).len();
    assert_eq!(
        (count("RUN*"), count("runn*"), count("The*"), count("CAFÉ*"), count("cafè~1")),
        (1, 0, 1, 1, 1)
    );
    assert_eq!((count("running~2"), count("runing~2"), count("runs")), (0, 0, 1));
}

#[test]
fn prefix_expansions_are_limited() {
    let terms = |count: usize| {
        let words: Vec<String> = (0..count).map(|number| format!("x{number}")).collect();
        TestDocument::of_texts(words.chunks(1000).map(|words| words.join(" ")))
    };
    let most = index_in_memory(&schema(), &terms(PREFIX_EXPANSIONS_MAX), &[30]);
    assert_eq!(matching_documents(&most, "x*").len(), PREFIX_EXPANSIONS_MAX.div_ceil(1000));
    let rejected = |index: &Index, text: &str| match answer_text(index, text, AnswerOptions::default()) {
        Err(Error::Query { at: None, message }) => {
            assert!(message.contains("more than 65536 terms"), "{message}")
        }
        other => panic!("{text}: {other:?}"),
    };
    rejected(&most, "x* x1*");
    for cuts in [&[][..], &[10, 40]] {
        rejected(&index_in_memory(&schema(), &terms(PREFIX_EXPANSIONS_MAX + 1), cuts), "x*");
    }
}

#[test]
fn prefixes_and_fuzzy_words_are_limited() {
    let schema = schema();
    let rejected = |text: &str, words: &str| {
        match Query::parse(text, &schema) {
            Err(Error::Query { at: None, message }) => assert!(message.contains(words), "{message}"),
            other => panic!("{other:?}"),
        }
        let (query, warnings) = Query::parse_lenient(text, &schema);
        assert!(warnings[0].to_string().contains(words), "{warnings:?}");
        query
    };
    let prefixes = |count: usize| (0..count).map(|i| format!("p{i}* ")).collect::<String>();
    Query::parse(&prefixes(QUERY_EXPANDED_MAX), &schema).unwrap();
    let cut = rejected(&prefixes(QUERY_EXPANDED_MAX + 1), "prefixes and fuzzy words");
    assert_eq!(cut, Query::parse(&prefixes(QUERY_EXPANDED_MAX), &schema).unwrap());
    Query::parse(&format!("{}~", "ä".repeat(FUZZY_BYTES_MAX / 2)), &schema).unwrap();
    rejected(&format!("{}~", "a".repeat(FUZZY_BYTES_MAX + 1)), "65 bytes");
    rejected("((a^1e9)^1e9)", "boosts");
    let words: String = (0..=QUERY_TERMS_MAX).map(|i| format!("{i}\\ {i} ")).collect();
    assert!(
        matches!(Query::parse_lenient(&words, &schema).0, Query::Bool { should, .. } if !should.is_empty())
    );
}

#[test]
fn boosts_out_of_range_are_rejected() {
    let index = index_in_memory(&schema(), &TestDocument::of_texts(["a"]), &[]);
    for boost in [-1.0, f64::NAN, f64::INFINITY, 1e14] {
        let term = Query::Term { field: 0, term: "a".to_string(), boost };
        for query in [Query::clauses(vec![], vec![term], vec![]), Query::All { boost }] {
            assert!(
                matches!(answer_query(&index, &query, AnswerOptions::default()), Err(Error::Usage(_))),
                "{boost}"
            );
        }
    }
}

/// Pattern of random texts of queries, valid and invalid.
const QUERY_PATTERN: &str = "([ab ()\"+:\\\\*~^#0-9.-]| AND | OR | NOT |#|a|b\\*|\\(|\\)|\"|~1|~2|\\^2| text:|\\*:\\*){0,30}|\\PC{0,40}";

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn lenient_queries_always_have_results(queries in prop::collection::vec(QUERY_PATTERN, 12), positions in any::<bool>()) {
        let shape = SchemaOptions { positions, title: false, stored: false, ..SchemaOptions::default() };
        let schema = shape.schema();
        let docs = TestDocument::of_texts(["a b", "b a ab", "ba 1 2"]);
        let index = index_in_memory(&schema, &docs, &[2]);
        let model = Model::new(&schema, &docs);
        for text in &queries {
            let (query, warnings) = Query::parse_lenient(text, &schema);
            match Query::parse_with_notes(text, &schema) {
                Ok((strict, notes)) if notes.len() == warnings.len() => prop_assert_eq!(&strict, &query),
                Ok(_) => prop_assert!(!positions, "{} {:?}", text, warnings),
                Err(error) => {
                    let warnings: Vec<_> = warnings.iter().map(Error::to_string).collect();
                    prop_assert!(warnings.contains(&error.to_string()), "{} {:?} {}", text, warnings, error);
                }
            }
            let look = AnswerOptions { shown: 0, ..AnswerOptions::default() };
            prop_assert_eq!(answer_query(&index, &query, look).unwrap(), model.answer(&query, look), "{}", text);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn terms_are_listed_in_order_from_any_term(
        words in prop::collection::vec(WORD_PATTERN, 1..60), cut in 0usize..60, prefix in "[abü]{0,2}",
        after in prop::option::of(WORD_PATTERN), limit in 1usize..20,
    ) {
        let docs = TestDocument::of_texts(&words);
        let searcher = index_in_memory(&schema(), &docs, &[cut.min(docs.len())]).searcher();
        let distinct: BTreeSet<&String> = words.iter().collect();
        let follows = |term: &&&String| after.as_ref().is_none_or(|after| *term > &after);
        let expected = distinct.iter().filter(|term| term.starts_with(&prefix)).filter(follows).take(limit);
        let expected: Vec<_> = expected
            .map(|term| {
                let count = words.iter().filter(|word| word == term).count() as u64;
                (term.to_string(), count, count)
            })
            .collect();
        let found = searcher.terms(0, &prefix, after.as_deref(), limit).unwrap();
        let found: Vec<_> =
            found.into_iter().map(|found| (found.term, found.documents, found.occurrences)).collect();
        prop_assert_eq!(found, expected);
    }
}

#[test]
fn documents_are_found_by_their_ids() {
    let docs: Vec<TestDocument> =
        (0..300).map(|i| TestDocument::new(format!("id{}", i % 250), "", "a")).collect();
    let searcher = index_in_memory(&schema(), &docs, &[70, 200]).searcher();
    let mut found = Vec::new();
    let wanted = ["id249", "id3", "missing"];
    let note = |document, id: &str| {
        found.push((document, id.to_string()));
        Ok(())
    };
    searcher.scan_ids(|id| wanted.contains(&id), note).unwrap();
    let expected = [(3, "id3"), (249, "id249"), (253, "id3")];
    assert_eq!(found, expected.map(|(document, id)| (document, id.to_string())));
}
