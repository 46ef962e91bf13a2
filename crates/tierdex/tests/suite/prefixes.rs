//! Sets of prefixes, which are filled when their documents are needed, and kept for later queries: the same
//! hits as exhaustive evaluation by a searcher that has kept nothing.

use crate::support::lists::{Postings, total_and_hits, write_lists};
use crate::support::requests::{documents_and_score_bits, engine_options, parse_query};
use tierdex::{Engine, Index, SearchOptions, SearchRequest, io::RegionKind};

/// Several chunks of the sets, the last one not full.
const DOCUMENTS: u32 = 70_001;

/// The posting lists of the index:
///
/// - `long0` to `long3`: several blocks, some with gaps of more than a chunk
/// - `short00` to `short39`: a few documents each
/// - `many00000` to `many09999`: one document each; more terms than a plan keeps the lists of
/// - `half`: every second document, a few of them with a high frequency
/// - `medium`: one document in 150
fn index_of_lists() -> Index {
    let hash = |document: u32, seed: u32| document.wrapping_mul(2_654_435_761).rotate_left(seed) >> 8;
    let list = |documents: Vec<u32>, frequency: &dyn Fn(u32) -> u32| -> Postings {
        let frequencies = documents.iter().map(|document| frequency(*document)).collect();
        (documents, frequencies)
    };
    let in_one_of =
        |of: u32, seed: u32| (0..DOCUMENTS).filter(move |document| hash(*document, seed) % of == 0);
    let mut terms = vec![
        ("half".to_string(), list(in_one_of(2, 3).collect(), &|document| 1 + 40 / (1 + document % 997))),
        ("long0".to_string(), list(in_one_of(9, 5).collect(), &|_| 1)),
        ("long1".to_string(), list(in_one_of(100, 7).collect(), &|_| 1)),
        ("long2".to_string(), list((500..900).chain(60_000..62_000).collect(), &|_| 1)),
        ("long3".to_string(), list(in_one_of(3, 11).filter(|document| *document > 40_000).collect(), &|_| 1)),
    ];
    terms.extend((0..10_000).map(|number| (format!("many{number:05}"), list(vec![7 * number], &|_| 1))));
    terms.push(("many_long".to_string(), list(in_one_of(60, 13).collect(), &|_| 1)));
    terms.push(("medium".to_string(), list(in_one_of(150, 17).collect(), &|_| 2)));
    terms.extend(
        (0..40).map(|number| (format!("short{number:02}"), list(in_one_of(9000, number).collect(), &|_| 1))),
    );
    terms.retain(|(_, (documents, _))| !documents.is_empty());
    Index::open_on(write_lists(DOCUMENTS, &terms)).unwrap()
}

const QUERIES: [&str; 19] = [
    "long*",
    "short*",
    "many*",
    "many0000*",
    "+half #many0000*",
    "medium long* -many0000*",
    "+long* +short*",
    "+long* +many*",
    "+half #long*",
    "+half #short*",
    "+medium #long*",
    "+half -long*",
    "half long*",
    "medium many* long*",
    "#long* half",
    "+(long* medium) +half",
    "(long* short* half)~2",
    "*:* -long*",
    "long1* +(half many*)",
];

#[test]
fn filled_and_kept_sets_give_the_hits_of_exhaustive_evaluation() {
    let index = index_of_lists();
    let load = || crate::support::load_into_region(&index, RegionKind::Dram).unwrap();
    for is_resident in [false, true] {
        if is_resident {
            load();
        }
        let asked_often = index.searcher();
        let engine = Engine::new(&index, &engine_options(1000, 1)).unwrap();
        // Sets are filled a little, whole, and not again.
        for (text, round) in QUERIES.iter().flat_map(|text| (0..3).map(move |round| (text, round))) {
            let query = parse_query(&index, text);
            for (k, count) in [(10, false), (0, true), (10, true), (1000, false)] {
                let options = SearchOptions { k, count, ..SearchOptions::default() };
                let exhaustive = SearchOptions { exhaustive: true, count: true, ..options };
                let expected = index.searcher().search(&query, &exhaustive).unwrap();
                let what = format!("{text}, k {k}, count {count}, round {round}, resident {is_resident}");
                for searcher in [&index.searcher(), &asked_often] {
                    let found = searcher.search(&query, &options).unwrap();
                    assert_eq!(total_and_hits(&found).1, total_and_hits(&expected).1, "{what}");
                    assert!(!count || found.total == expected.total, "{what}: {}", found.total);
                }
                let found = engine.search(SearchRequest::new(query.clone()).options(options)).unwrap();
                assert_eq!(documents_and_score_bits(&found.hits), total_and_hits(&expected).1, "{what}");
            }
        }
    }
}
