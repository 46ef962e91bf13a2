//! The body of the fuzz target for queries: evaluates a query over a small fixed index with all strategies
//! and compares the results.
//!
//! Nothing here depends on the fuzzer, so that an ordinary test can run the same body.

use std::sync::{Arc, OnceLock};
use tierdex::schema::{Field, NormKind, Schema, Stored};
use tierdex::{
    Bm25, Index, IndexWriter, Merge, OpenMode, Query, Result, Scorer, SearchOptions, WriterOptions,
};
use tierdex::{explain::SearchResult, internal::index::Tuning, io::MemDisk};

/// Number of documents of each segment, and their approximate mean length in words.
const SEGMENT_SIZES: [(u32, u64); 3] = [(2600, 6), (40, 40), (700, 2)];

/// The text that a byte selects, so that most inputs are queries with matches.
const QUERY_PIECES: [&str; 48] = [
    "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "z", " ", " ", " ", " ", " +", " +", " -", " #",
    " (", ") ", ") ", "\"", "\"", "\" ", "~", "~1", "~2", "~3 ", "~12 ", "* ", "*:* ", "^0 ", "^2 ",
    "^1e-30 ", "^1e9 ", " AND ", " OR ", " NOT ", "bc", "ab", "title:", "title:(", "text:", "a a", "a b ",
    "every",
];

/// Limits so low that the short lists of the test index are evaluated by the code for long lists.
const SMALL_TUNING: Tuning = Tuning {
    superblocks_ordered: 1,
    head_record_bytes_min: 1 << 7,
    head_superblocks_per_candidate: 0,
    impact_record_bytes_max: 1 << 9,
};

/// The scorer that two bits of an input select.
const RANKINGS: [Scorer; 4] = [
    Scorer::Bm25(Bm25 { k1: 1.2, b: 0.75 }),
    Scorer::Bm25(Bm25 { k1: 0.9, b: 0.4 }),
    Scorer::Bm25(Bm25 { k1: 0.0, b: 1.0 }),
    Scorer::Dot,
];

/// Evaluates the query in the bytes with pruning and exhaustively; returns whether a document matches.
///
/// ```text
/// [number of hits less 1] [ranking in two bits; divided, text, small tuning in one bit each] the query
/// ```
///
/// # Panics
/// If the results differ.
pub fn queries(data: &[u8]) -> bool {
    let Some((head, rest)) = data.split_first_chunk::<2>() else { return false };
    let [k, kind] = *head;
    let text = match kind >> 3 & 1 {
        0 => rest.iter().map(|byte| QUERY_PIECES[usize::from(*byte) % QUERY_PIECES.len()]).collect(),
        _ => String::from_utf8_lossy(rest).into_owned(),
    };
    let (index, k) = (test_index(), usize::from(k) + 1);
    let query = match Query::parse(&text, index.schema()) {
        Ok(query) => query,
        Err(_) => Query::parse_lenient(&text, index.schema()).0,
    };
    let scorer = RANKINGS[usize::from(kind % 4)];
    let exhaustive = SearchOptions { k, scorer, exhaustive: true, count: true, ..SearchOptions::default() };
    let searcher = index.searcher();
    let all = searcher.search(&query, &exhaustive);
    let tuning = if kind >> 4 & 1 == 1 { SMALL_TUNING } else { Tuning::default() };
    // Divide the remaining documents after each checkpoint, or never.
    let divides = kind >> 2 & 1 == 1;
    let cut = |rest: std::ops::Range<u32>| divides.then_some(rest.start + rest.len() as u32 / 2);
    for (k, count) in [(k, false), (k, true), (0, true)] {
        let found = searcher.search_divided(
            &query,
            &SearchOptions { k, scorer, count, tuning, ..SearchOptions::default() },
            cut,
        );
        compare_results(&found, &all, k, count, &text);
    }
    all.is_ok_and(|all| all.total > 0)
}

fn compare_results(
    found: &Result<SearchResult>,
    all: &Result<SearchResult>,
    k: usize,
    count: bool,
    text: &str,
) {
    let (found, all) = match (found, all) {
        (Ok(found), Ok(all)) => (found, all),
        // A query with too many terms is rejected by both.
        (Err(_), Err(_)) => return,
        _ => panic!("`{text}`: only one evaluation gives an error"),
    };
    let rows = |found: &SearchResult| -> Vec<(u32, u32)> {
        found.hits.iter().map(|hit| (hit.document, hit.score.to_bits())).collect()
    };
    let (found_rows, all_rows) = (rows(found), rows(all));
    assert_eq!(found_rows, all_rows[..k.min(all_rows.len())], "`{text}`, k {k}, count {count}");
    if count {
        assert_eq!(found.total, all.total, "`{text}`, k {k}");
    } else {
        let possible = found_rows.len() as u64..=all.total;
        assert!(possible.contains(&found.total), "`{text}`, k {k}: {} of {possible:?}", found.total);
    }
}

/// Documents of the words `a` to `j`, each half as frequent as the one before it; some have a title.
fn test_index() -> &'static Index {
    static INDEX: OnceLock<Index> = OnceLock::new();
    INDEX.get_or_init(|| {
        let disk = Arc::new(MemDisk::new());
        let title = Field { norms: NormKind::Exact, ..Field::new("title", &["title"]) };
        let text = Field { positions: true, ..Field::new("text", &["text"]) };
        let title = Field { positions: true, ..title };
        let schema = Schema { stored: Stored::Nothing, ..Schema::of(vec![text, title]) };
        let options = WriterOptions::default();
        let mut writer = IndexWriter::open(disk.clone(), schema, OpenMode::New, options).expect("a writer");
        let mut state = 1u64;
        // Linear congruential (Knuth, MMIX); the high bits are the random ones.
        let mut random = move |bound: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % bound
        };
        for (documents, length) in SEGMENT_SIZES {
            for document in 0..documents {
                let mut words = |length: u64| {
                    let mut text = String::new();
                    for _ in 0..random(2 * length) {
                        let rank = (random(1 << 10) + 1).leading_zeros() - 53;
                        text.push(char::from(b'a' + rank as u8));
                        text.push(' ');
                    }
                    text
                };
                let title = if document % 3 == 0 { words(2) } else { String::new() };
                let text = words(length);
                let text = if document % 50 == 0 { text } else { format!("{text} every") };
                // A term in bursts, so that blocks have different impacts.
                let burst = if document / 100 % 7 == 3 { "k k " } else { "" };
                writer
                    .add(&document.to_string(), [("title", &title), ("text", &format!("{burst}{text}"))])
                    .expect("a document");
            }
            writer.commit(Merge::Keep).expect("a commit");
        }
        Index::open_on(disk).expect("an index")
    })
}
