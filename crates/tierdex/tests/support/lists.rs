//! Queries of words of the corpus, and indexes of posting lists without text.

use super::random::Random;
use std::sync::Arc;
use tierdex::explain::SearchResult;
use tierdex::internal::index::ListsBuilder;
use tierdex::io::MemDisk;
use tierdex::schema::{Field, Schema, Source};
use tierdex::{Index, IndexWriter, Merge, OpenMode, Query, WriterOptions};

const WORDS: [&str; 8] = ["all", "w0", "über1", "prefix2", "w3", "w4", "w5", "w8"];

/// Queries of one to four words, some of them required.
pub fn queries(random: &mut Random, count: usize, index: &Index) -> Vec<Query> {
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
pub fn rows(found: &SearchResult) -> (u64, Vec<(u32, u32)>) {
    (found.total, found.hits.iter().map(|hit| (hit.document, hit.score.to_bits())).collect())
}

/// An index without text: some terms are in every thirtieth document, and one makes documents long.
pub fn sparse(documents: u32) -> Arc<MemDisk> {
    let disk = Arc::new(MemDisk::new());
    let field = Field { positions: false, ..Field::new("text", Source::Text) };
    let schema = Schema { fields: vec![field], stored: false };
    let mut writer =
        IndexWriter::open(disk.clone(), schema, OpenMode::New, WriterOptions::default()).unwrap();
    let mut random = Random::new(7);
    let all = (0..documents).collect::<Vec<u32>>();
    let often: Vec<u32> = all.iter().map(|_| 20 + random.below(100) as u32).collect();
    let mut lengths = often.clone();
    let mut list = || {
        let mut next = 0;
        let mut list = (Vec::new(), Vec::new());
        loop {
            next += 1 + random.below(59) as u32;
            if next >= documents {
                return list;
            }
            let frequency =
                1 + random.below(3) as u32 + random.below(40) as u32 / 39 * random.below(30) as u32;
            lengths[next as usize] += frequency;
            list.0.push(next);
            list.1.push(frequency);
        }
    };
    let mut lists: Vec<(Vec<u32>, Vec<u32>)> = (0..4).map(|_| list()).collect();
    // A term in three documents, once together with each of the others.
    let rare: Vec<u32> =
        [0.1, 0.5, 0.9].map(|at| lists[0].0[(at * lists[0].0.len() as f64) as usize]).to_vec();
    rare.iter().for_each(|document| lengths[*document as usize] += 2);
    lists.insert(0, (rare, vec![2; 3]));
    lists.push((all.clone(), often));
    // A term so rare that little of the long lists is read, and a long list with half of its documents.
    let some = (0..documents).step_by(documents as usize / 60).collect::<Vec<u32>>();
    let half = all
        .iter()
        .copied()
        .filter(|document| (document / (documents / 100)).is_multiple_of(2))
        .collect::<Vec<u32>>();
    for list in [some, half] {
        list.iter().for_each(|document| lengths[*document as usize] += 1);
        lists.push((list.clone(), vec![1; list.len()]));
    }
    let number = |document: u32, id: &mut String| id.push_str(&document.to_string());
    let give = |builder: &mut ListsBuilder<'_, '_>| {
        let mut terms = lists.iter().zip(0..);
        terms.try_for_each(|((documents, frequencies), number)| {
            builder.term(&format!("s{number}"), |list| list.extend(documents, frequencies))
        })
    };
    writer.import(lengths.clone(), number, give).unwrap();
    writer.commit(Merge::Keep).unwrap();
    disk
}

/// An index of many terms, and queries of several numbers of them.
pub fn many_terms(terms: usize) -> Arc<MemDisk> {
    let disk = Arc::new(MemDisk::new());
    let field = Field { positions: false, ..Field::new("text", Source::Text) };
    let schema = Schema { fields: vec![field], stored: false };
    let mut writer =
        IndexWriter::open(disk.clone(), schema, OpenMode::New, WriterOptions::default()).unwrap();
    let documents: Vec<u32> = (0..1000).collect();
    let number = |document: u32, id: &mut String| id.push_str(&document.to_string());
    let give = |builder: &mut ListsBuilder<'_, '_>| {
        (0..terms).try_for_each(|number| {
            let frequencies: Vec<u32> =
                documents.iter().map(|document| 1 + (document + number as u32) % 7).collect();
            builder.term(&format!("t{number:03}"), |list| list.extend(&documents, &frequencies))
        })
    };
    let lengths = |document: &u32| (0..terms as u32).map(|number| 1 + (document + number) % 7).sum();
    writer.import(documents.iter().map(lengths).collect(), number, give).unwrap();
    writer.commit(Merge::Keep).unwrap();
    disk
}

/// A query of the first terms of [`many_terms`].
pub fn first_terms(index: &Index, terms: usize) -> Query {
    let text: Vec<String> = (0..terms).map(|number| format!("t{number:03}")).collect();
    Query::parse(&text.join(" "), index.schema()).unwrap()
}
