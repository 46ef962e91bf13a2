//! Shards that score by common statistics, and several indexes that are searched as one: both answer as one
//! index with all documents.

#[path = "../../../../fuzz/src/statistics.rs"]
mod body;

use crate::support::corpus::{SchemaOptions, TestDocument, random_documents};
use crate::support::queries::random_query_text;
use crate::support::requests::{documents_and_score_bits, engine_options};
use crate::support::{add_documents, build_in_memory, index_in_memory, open_writer, random::Random};
use std::sync::Arc;
use tierdex::io::{Disk, MemDisk};
use tierdex::{
    Bm25, Engine, Error, Index, Merge, MergedHits, OpenMode, Query, Schema, Scorer, SearchRequest, ShardHits,
    Statistics, TotalHits, merge_hits,
};

/// Shards of the documents, each with an engine, and one index of all documents.
struct Shards {
    whole: Engine,
    disks: Vec<Arc<MemDisk>>,
    engines: Vec<Engine>,
    /// The indexes of the shards, searched as one.
    joined: Engine,
    /// First document of each shard in the whole index.
    firsts: Vec<u32>,
}

/// A hit as it is compared: document of the whole index, and bits of the score.
type ComparedHit = (u32, u32);

impl Shards {
    /// `cuts` has the first document of each shard but the first.
    fn new(schema: &Schema, docs: &[TestDocument], cuts: &[usize]) -> Shards {
        let starts: Vec<usize> = [0].iter().chain(cuts).copied().collect();
        let ends = cuts.iter().copied().chain([docs.len()]);
        let disks: Vec<_> = starts
            .iter()
            .zip(ends)
            .map(|(start, end)| build_in_memory(schema, &docs[*start..end], &[(end - start) / 3]))
            .collect();
        let engine = |index: Index| Engine::new(&index, &engine_options(300, 1)).unwrap();
        let all = disks.iter().map(|disk| disk.clone() as Arc<dyn Disk>).collect();
        Shards {
            whole: engine(index_in_memory(schema, docs, &[docs.len() / 2])),
            engines: disks.iter().map(|disk| engine(Index::open_on(disk.clone()).unwrap())).collect(),
            joined: engine(Index::open_all_on(all).unwrap()),
            disks,
            firsts: starts.iter().map(|start| *start as u32).collect(),
        }
    }

    /// A query; what is wrong in its text is ignored.
    fn parse(&self, text: &str) -> Query {
        Query::parse_lenient(text, self.whole.snapshot().schema()).0
    }

    /// The complete statistics of a request, and how often the shards were asked.
    fn statistics(&self, request: &SearchRequest) -> (Arc<Statistics>, usize) {
        agreed_statistics(&self.engines, request)
    }

    /// The answers of all shards by these statistics.
    fn search(&self, request: &SearchRequest, statistics: &Arc<Statistics>) -> Vec<Option<ShardHits>> {
        let request = request.clone().statistics(statistics.clone());
        self.engines.iter().map(|engine| Some(engine.search(request.clone()).unwrap().of_shard())).collect()
    }

    fn compared(&self, merged: &MergedHits) -> Vec<ComparedHit> {
        let hits = merged.hits.iter();
        hits.map(|found| (self.firsts[found.shard] + found.hit.document, found.hit.score.to_bits())).collect()
    }

    /// Compares hits, scale, total and explanation of shards and joined indexes with those of the whole.
    /// Returns how often the shards were asked for statistics.
    #[track_caller]
    fn check(&self, query: &Query, k: usize, scorer: Scorer, what: &str) -> usize {
        let request = SearchRequest::new(query.clone()).k(k).count(true).scorer(scorer);
        let expected = self.whole.search(request.clone());
        let expected = match expected {
            Ok(expected) => expected,
            Err(error) => {
                assert!(matches!(error, Error::Query { .. }), "{what}: {error}");
                return 1;
            }
        };
        let hits = documents_and_score_bits(&expected.hits);
        let (statistics, asked) = self.statistics(&request);
        let parts = self.search(&request, &statistics);
        let merged = merge_hits(&parts, k, false).unwrap();
        assert_eq!(self.compared(&merged), hits, "{what}");
        assert_eq!(merged.total, expected.total, "{what}");
        assert_eq!(merged.missing, [0; 0]);
        parts.iter().flatten().for_each(|part| assert_eq!(part.scale, expected.scale, "{what}"));
        // The scores as integers of a collection of one shard.
        let (of_whole, _) = agreed_statistics(std::slice::from_ref(&self.whole), &request);
        let of_whole = self.whole.search(request.clone().statistics(of_whole)).unwrap();
        let mut units: Vec<u32> = parts.iter().flatten().flat_map(|part| part.units.clone()).collect();
        units.sort_unstable_by(|a, b| b.cmp(a));
        units.truncate(k);
        assert_eq!(units, of_whole.units, "{what}");
        assert_eq!(documents_and_score_bits(&of_whole.hits), hits, "{what}");
        // Without counting fewer documents are evaluated.
        let uncounted = self.search(&request.clone().count(false), &statistics);
        assert_eq!(self.compared(&merge_hits(&uncounted, k, false).unwrap()), hits, "{what}");

        let joined = self.joined.search(request.clone()).unwrap();
        let found = documents_and_score_bits(&joined.hits);
        assert_eq!((found, joined.scale, joined.total), (hits, expected.scale, expected.total), "{what}");
        for (hit, id) in joined.hits.iter().zip(joined.ids().unwrap()) {
            let part = joined.snapshot.index().part_of(hit.document);
            let first = self.firsts[part];
            assert_eq!(
                self.engines[part].snapshot().searcher().id(hit.document - first).unwrap(),
                id,
                "{what}"
            );
        }
        asked
    }

    /// Compares the explanations of a query.
    #[track_caller]
    fn check_explanation(&self, query: &Query, what: &str) {
        // All matches are hits.
        let request = SearchRequest::new(query.clone()).k(10_000).count(true);
        let Ok(expected) = self.whole.snapshot().explain(&request) else { return };
        let (statistics, _) = self.statistics(&request);
        let request = request.statistics(statistics);
        let parts = self.engines.iter().zip(&self.firsts).map(|(engine, first)| {
            let explained = engine.snapshot().explain(&request).unwrap().result;
            let hits = documents_and_score_bits(&explained.hits).into_iter();
            (hits.map(|(document, score)| (document + first, score)).collect::<Vec<_>>(), explained.total)
        });
        let parts: Vec<_> = parts.collect();
        let mut hits: Vec<_> = parts.iter().flat_map(|(hits, _)| hits.clone()).collect();
        let mut of_whole = documents_and_score_bits(&expected.result.hits);
        hits.sort_unstable();
        of_whole.sort_unstable();
        assert_eq!(hits, of_whole, "{what}");
        assert_eq!(parts.iter().map(|(_, total)| total).sum::<u64>(), expected.result.total, "{what}");
    }
}

/// The complete statistics of a request, which go from shard to shard as bytes; and how often the shards
/// were asked.
fn agreed_statistics(shards: &[Engine], request: &SearchRequest) -> (Arc<Statistics>, usize) {
    let mut request = request.clone();
    for asked in 1.. {
        let part = |engine: &Engine| {
            let part = engine.statistics(request.clone()).unwrap();
            let decoded = Statistics::decode(&part.encode()).unwrap();
            assert_eq!(decoded, part);
            decoded
        };
        let mut parts: Vec<_> = shards.iter().map(part).collect();
        let merged = Statistics::merge(&parts).unwrap();
        parts.reverse();
        assert_eq!(Statistics::merge(&parts).unwrap(), merged);
        let merged = Statistics::decode(&merged.encode()).unwrap();
        if merged.is_complete() {
            return (Arc::new(merged), asked);
        }
        request = request.statistics(Arc::new(merged));
    }
    unreachable!()
}

/// Cuts into `shards` shards of very different sizes: one is empty, and one has a single document.
fn uneven_cuts(documents: usize, shards: usize) -> Vec<usize> {
    let mut cuts: Vec<usize> =
        (1..shards).map(|shard| documents * shard * shard / (shards * shards)).collect();
    if shards > 2 {
        let last = cuts.len() - 1;
        cuts[last] = cuts[last - 1] + 1;
    }
    if shards > 3 {
        cuts[1] = cuts[0];
    }
    cuts
}

/// Documents of which some have text without blanks, whose characters are terms of two characters.
fn documents(count: usize) -> Vec<TestDocument> {
    let mut random = Random::new(71);
    let mut docs = random_documents(11, count);
    for doc in docs.iter_mut().step_by(5) {
        let characters: String =
            (0..1 + random.below(6)).map(|_| *random.pick(&['東', '京', '都', '大', '学'])).collect();
        doc.text = format!("{} {characters}", doc.text);
    }
    docs
}

fn query_text(random: &mut Random, schema: &Schema) -> String {
    let text = random_query_text(random, schema);
    match random.below(12) {
        0 => format!("{text} \"{}\"", random.pick(&["東京都", "京", "東大", "all 東"])),
        1 => format!("{text} w{}~2", random.below(30)),
        _ => text,
    }
}

#[test]
fn shards_answer_as_one_index() {
    let schema = SchemaOptions::default().schema();
    let docs = documents(1200);
    crate::support::on_two_threads(5, |number| {
        let shards = [1, 2, 3, 7, 16][number];
        let all = Shards::new(&schema, &docs, &uneven_cuts(docs.len(), shards));
        let mut random = Random::new(shards as u64);
        for query in 0..400 {
            let text = query_text(&mut random, &schema);
            let what = format!("{shards} shards, {text}");
            let scorer = match random.below(4) {
                0 => Scorer::Dot,
                1 => Bm25 { k1: 0.9, b: 0.4 }.into(),
                _ => Scorer::default(),
            };
            let k = *random.pick(&[1, 10, 100]);
            let query_tree = all.parse(&text);
            all.check(&query_tree, k, scorer, &what);
            if query % 8 == 0 {
                all.check_explanation(&query_tree, &what);
            }
        }
    });
}

#[test]
fn shards_answer_as_one_index_after_a_commit_of_one_of_them() {
    let schema = SchemaOptions::default().schema();
    let docs = documents(900);
    let cuts = [200, 500];
    // The documents from 500 to 600 are added to the second shard.
    let (first, rest) = docs.split_at(500);
    let before: Vec<TestDocument> = first.iter().chain(&rest[100..]).cloned().collect();
    let mut all = Shards::new(&schema, &before, &cuts);
    let mut writer = open_writer(&(all.disks[1].clone() as _), &schema, OpenMode::Append);
    add_documents(&mut writer, &rest[..100]);
    writer.commit(Merge::None).unwrap();
    all.whole = Engine::new(&index_in_memory(&schema, &docs, &[]), &engine_options(300, 1)).unwrap();
    all.firsts[2] = 600;
    assert!(all.joined.refresh().unwrap() && !all.joined.refresh().unwrap());
    assert!(all.engines[1].refresh().unwrap());
    let mut random = Random::new(4);
    for _ in 0..150 {
        let text = query_text(&mut random, &schema);
        all.check(&all.parse(&text), 20, Scorer::default(), &text);
    }
}

#[test]
fn scores_depend_on_the_statistics_of_each_shard() {
    let schema = SchemaOptions::one_field().schema();
    let all = Shards::new(&schema, &documents(600), &[100, 300]);
    let request = SearchRequest::new(all.parse("w0 w4")).k(20);
    let parts: Vec<_> =
        all.engines.iter().map(|engine| engine.statistics(request.clone()).unwrap()).collect();
    let hits = |parts: &[Statistics]| {
        let statistics = Arc::new(Statistics::merge(parts).unwrap());
        all.compared(&merge_hits(&all.search(&request, &statistics), 20, false).unwrap())
    };
    let expected = hits(&parts);
    for without in 0..parts.len() {
        let mut fewer = parts.clone();
        fewer.remove(without);
        assert_ne!(hits(&fewer), expected, "without shard {without}");
    }
}

/// Words within two edits of `abcdef`: more than the candidates that a shard lists for a fuzzy word.
fn similar_words() -> Vec<String> {
    let letters = || 'a'..='z';
    let mut words: Vec<String> =
        letters().flat_map(|a| letters().map(move |b| format!("ab{a}d{b}f"))).collect();
    words.extend(letters().map(|a| format!("abcde{a}")));
    words.sort();
    words.dedup();
    words
}

#[test]
fn fuzzy_words_of_many_terms_are_agreed_on() {
    let schema = SchemaOptions::one_field().schema();
    let words = similar_words();
    let mut random = Random::new(3);
    // In each shard other words are frequent.
    let shard = |random: &mut Random, frequent: usize| {
        let word = |random: &mut Random| match random.one_in(3) {
            true => words[(frequent + random.skewed(40)) % words.len()].clone(),
            false => words[random.below(words.len())].clone(),
        };
        let text = |random: &mut Random| (0..8).map(|_| word(random)).collect::<Vec<_>>().join(" ");
        (0..700).map(|_| text(random)).collect::<Vec<String>>()
    };
    let texts: Vec<String> = [0, 13, 300, 500].into_iter().flat_map(|at| shard(&mut random, at)).collect();
    let docs = TestDocument::of_texts(texts);
    let all = Shards::new(&schema, &docs, &[700, 1400, 2100]);
    let mut most = 0;
    for text in ["abcdef~2", "abcdef~1", "abxdxf~2 +abc*", "abcdef~2^3 OR abcdeg~2", "abqdef~2 -abcdef"] {
        for scorer in [Scorer::default(), Scorer::Dot] {
            let query = all.parse(text);
            most = most.max(all.check(&query, 50, scorer, text));
        }
    }
    assert!(most > 1, "no question was asked");
    // All words are equally frequent: every shard lists all of them in the end.
    let once: Vec<TestDocument> = TestDocument::of_texts(&words);
    let all = Shards::new(&schema, &once, &[100, 350]);
    let query = all.parse("abcdef~2");
    all.check(&query, 50, Scorer::default(), "words in one document each");
}

#[test]
fn statistics_that_do_not_fit_are_rejected() {
    let schema = SchemaOptions::one_field().schema();
    let all = Shards::new(&schema, &documents(300), &[100]);
    let ask = |text: &str| SearchRequest::new(all.parse(text));
    let part = |number: usize, text: &str| all.engines[number].statistics(ask(text)).unwrap();
    let message = |result: Result<Statistics, Error>| result.unwrap_err().to_string();
    assert!(message(Statistics::merge(&[])).contains("no statistics"));
    let mixed = message(Statistics::merge(&[part(0, "w0"), part(1, "w4")]));
    assert!(mixed.contains("of another query"), "{mixed}");
    let merged = Statistics::merge(&[part(0, "w0"), part(1, "w0")]).unwrap();
    assert!(message(Statistics::merge(&[merged.clone(), part(1, "w0")])).contains("merged before"));
    // A part is not complete, and one of another schema is not for this index.
    let error = all.engines[0].search(ask("w0").statistics(Arc::new(part(0, "w0")))).err().unwrap();
    assert!(
        matches!(&error, Error::Usage(text) if text.contains("merge the statistics of all shards")),
        "{error}"
    );
    let other = Shards::new(&SchemaOptions::default().schema(), &documents(100), &[]);
    let (of_other, _) = other.statistics(&ask("w0"));
    let error = all.engines[0].search(ask("w0").statistics(of_other)).err().unwrap();
    assert!(error.to_string().contains("another schema"), "{error}");
    // Complete statistics that do not know a term: the shard's own document frequency counts.
    let merged = Arc::new(merged);
    assert!(all.engines[0].search(ask("w4").statistics(merged.clone())).is_ok());

    let hits = |statistics: &Arc<Statistics>, text| all.search(&ask(text), statistics);
    let mut parts = hits(&merged, "w0");
    parts[1] = None;
    let error = merge_hits(&parts, 10, false).unwrap_err();
    assert_eq!(error.to_string(), "no answer of shard 1");
    let partial = merge_hits(&parts, 10, true).unwrap();
    assert_eq!((partial.missing, matches!(partial.total, TotalHits::AtLeast(_))), (vec![1], true));
    let (of_another_query, _) = all.statistics(&ask("w4"));
    parts[1] = hits(&of_another_query, "w4")[1].clone();
    assert!(merge_hits(&parts, 10, false).unwrap_err().to_string().contains("different statistics"));
    let own = |engine: &Engine| Some(engine.search(ask("w0")).unwrap().of_shard());
    let own: Vec<_> = all.engines.iter().map(own).collect();
    assert!(merge_hits(&own, 10, false).unwrap_err().to_string().contains("their own statistics"));
}

#[test]
fn damaged_statistics_are_rejected() {
    let schema = SchemaOptions::default().schema();
    let all = Shards::new(&schema, &documents(400), &[100]);
    let text = "w1 title:w2 w*3 w12~2 \"all 東\" pre*";
    let request = SearchRequest::new(all.parse(text)).scorer(Scorer::Dot);
    let bytes = all.engines[0].statistics(request).unwrap().encode();
    for at in 0..bytes.len() {
        assert!(Statistics::decode(&bytes[..at]).unwrap_err().is_corrupt());
        let mut changed = bytes.clone();
        changed[at] ^= 1 << (at % 8);
        assert!(Statistics::decode(&changed).unwrap_err().is_corrupt());
    }
    // With a valid checksum, every change is an error or another value, and never a panic.
    let mut random = Random::new(8);
    for _ in 0..20_000 {
        let mut changed = bytes[..bytes.len() - 4].to_vec();
        for _ in 0..1 + random.below(3) {
            let at = random.below(changed.len());
            changed[at] = random.next() as u8;
        }
        body::statistics(&changed);
    }
}

#[test]
fn indexes_of_different_schemas_are_not_searched_as_one() {
    let disk = |schema: &Schema| build_in_memory(schema, &documents(10), &[]) as Arc<dyn Disk>;
    let (one, two) = (SchemaOptions::one_field().schema(), SchemaOptions::default().schema());
    let error = Index::open_all_on(vec![disk(&one), disk(&two)]).err().unwrap();
    assert!(error.to_string().contains("cannot be searched as one: fields: "), "{error}");
    let error = Index::open_all_on(vec![]).err().unwrap();
    assert!(error.to_string().contains("no index is named"), "{error}");
}
