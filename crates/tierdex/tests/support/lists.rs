//! Queries of words of the random documents, and indexes that are written from posting lists without text.

use super::{open_writer, random::Random, requests::documents_and_score_bits};
use std::sync::Arc;
use tierdex::schema::{Field, Schema, Stored};
use tierdex::{
    Index, Merge, OpenMode, Query, explain::SearchResult, internal::index::ListsBuilder, io::MemDisk,
};

const WORDS: [&str; 8] = ["all", "w0", "über1", "prefix2", "w3", "w4", "w5", "w8"];

/// Queries of one to four words, some of them required.
pub fn random_queries(random: &mut Random, count: usize, index: &Index) -> Vec<Query> {
    let query = |random: &mut Random| {
        let words = 1 + random.below(4);
        let word = |random: &mut Random| {
            let mark = ["", "+", "-"][random.below(3)];
            format!("{mark}{}", WORDS[random.below(WORDS.len())])
        };
        let text: Vec<String> = (0..words).map(|_| word(random)).collect();
        let text = if random.one_in(6) { "\"all w0\"".to_string() } else { text.join(" ") };
        Query::parse(&text, index.schema()).unwrap()
    };
    (0..count).map(|_| query(random)).collect()
}

/// Number of matches, documents and score bits.
pub fn total_and_hits(found: &SearchResult) -> (u64, Vec<(u32, u32)>) {
    (found.total, documents_and_score_bits(&found.hits))
}

/// The documents and frequencies of a term.
pub type Postings = (Vec<u32>, Vec<u32>);

/// Writes an index of posting lists, in order of their terms. The length of a document is the sum of its
/// frequencies.
pub fn write_lists(documents: u32, lists: &[(String, Postings)]) -> Arc<MemDisk> {
    let disk = Arc::new(MemDisk::new());
    let field = Field { positions: false, ..Field::new("text", &["text"]) };
    let schema = Schema { stored: Stored::Nothing, ..Schema::of(vec![field]) };
    let mut lengths = vec![0; documents as usize];
    for (documents, frequencies) in lists.iter().map(|(_, list)| list) {
        documents.iter().zip(frequencies).for_each(|(document, times)| lengths[*document as usize] += times);
    }
    let number = |document: u32, id: &mut String| id.push_str(&document.to_string());
    let mut writer = open_writer(&(disk.clone() as _), &schema, OpenMode::New);
    let give = |builder: &mut ListsBuilder<'_, '_>| {
        lists.iter().try_for_each(|(term, (documents, frequencies))| {
            builder.term(term, |list| list.extend(documents, frequencies))
        })
    };
    writer.import(lengths, number, give).unwrap();
    writer.commit(Merge::None).unwrap();
    disk
}

/// Writes an index of posting lists: terms in every thirtieth document, a rare term, and a term in all
/// documents whose frequencies make the documents long.
pub fn write_sparse_lists(documents: u32) -> Arc<MemDisk> {
    let mut random = Random::new(7);
    let all = (0..documents).collect::<Vec<u32>>();
    let often: Vec<u32> = all.iter().map(|_| 20 + random.below(100) as u32).collect();
    let mut list = || {
        let mut next = 0;
        let mut list = (Vec::new(), Vec::new());
        loop {
            next += 1 + random.below(59) as u32;
            if next >= documents {
                return list;
            }
            let frequency = 1 + random.below(3) as u32;
            list.0.push(next);
            list.1.push(frequency + random.below(40) as u32 / 39 * random.below(30) as u32);
        }
    };
    let mut lists: Vec<Postings> = (0..4).map(|_| list()).collect();
    // A term in three documents, once together with each of the others.
    let rare = [0.1, 0.5, 0.9].map(|at| lists[0].0[(at * lists[0].0.len() as f64) as usize]);
    lists.insert(0, (rare.to_vec(), vec![2; 3]));
    lists.push((all.clone(), often));
    // A term so rare that little of the long lists is read, and a long list with half of its documents.
    let some = (0..documents).step_by(documents as usize / 60).collect::<Vec<u32>>();
    let is_even = |document: &u32| (document / (documents / 100)).is_multiple_of(2);
    let half = all.into_iter().filter(is_even).collect::<Vec<u32>>();
    lists.extend([some, half].map(|list| (list.clone(), vec![1; list.len()])));
    let named = (0..).zip(lists).map(|(number, list)| (format!("s{number}"), list));
    write_lists(documents, &named.collect::<Vec<_>>())
}

/// Writes an index of many terms, each in all of a thousand documents.
pub fn write_many_terms(terms: usize) -> Arc<MemDisk> {
    let documents: Vec<u32> = (0..1000).collect();
    let list = |number: usize| {
        let frequencies = documents.iter().map(|document| 1 + (document + number as u32) % 7).collect();
        (format!("t{number:03}"), (documents.clone(), frequencies))
    };
    write_lists(1000, &(0..terms).map(list).collect::<Vec<_>>())
}

/// A query of the first terms of [`write_many_terms`].
pub fn query_of_first_terms(index: &Index, terms: usize) -> Query {
    let text: Vec<String> = (0..terms).map(|number| format!("t{number:03}")).collect();
    Query::parse(&text.join(" "), index.schema()).unwrap()
}
