//! Test segments, random plans over them, and the expected score of each document, computed naively from its
//! words with the scorer of the engine, whose formula is tested elsewhere.

#[allow(dead_code, reason = "the integration tests use it too")]
#[path = "../../../tests/support/random.rs"]
mod random;

use crate::query::column_clause::{ColumnClause, ColumnMatches};
use crate::query::plan_node::{Leaf, PlanNode, PrefixClause, TermPrefix, show_plan};
use crate::query::{Clauses, QueryPlan};
use crate::rank::{Bm25, CollectionStats, LengthNorms, ScoreScale, Scorer, TermScorer, idf};
use crate::schema::{Column, ColumnType, Field, NormKind, Schema, Stored};
use crate::segment::read::{FILES, OpenSegment, Segment};
use crate::segment::write::{ColumnTarget, FieldTarget, FieldWriter, IdsWriter, write_column, write_lengths};
use crate::{eval::nodes::Alignments, limits::BLOCK, segment::SegmentMeta};
pub(super) use random::Random;
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};
use tierdex_codec::Codec;
use tierdex_io::MemDisk;

/// The words of the documents: how many of a thousand documents have the word outside and inside a burst
/// (a range of documents where it is more frequent), and that every n-th range is a burst.
pub(super) const WORD_FREQUENCIES: [(&str, usize, usize, usize); 12] = [
    ("every", 1000, 1000, 1),
    ("most", 970, 970, 1),
    ("half", 500, 500, 1),
    ("fifth", 200, 200, 1),
    ("burst", 1, 700, 5),
    ("bursts", 0, 900, 9),
    ("once", 0, 400, 60),
    ("some", 20, 20, 1),
    ("few", 6, 6, 1),
    ("pa", 3, 300, 8),
    ("pb", 150, 150, 1),
    ("pc", 4, 4, 1),
];

/// Number of documents of the segment in which every second document has many positions.
const LONG_DOCUMENTS: usize = 900;

/// Number of documents of a burst.
const BURST_DOCUMENTS: usize = 700;

/// Weights of phrases, before they are scaled.
const PHRASE_WEIGHTS: [f64; 4] = [0.01, 0.8, 3.0, 11.0];

/// Positions of a word in each document that contains it.
type WordPositions = BTreeMap<u32, Vec<u32>>;

/// Score of each document; `None` if it does not match.
pub(super) type DocumentScores = Vec<Option<u32>>;

/// A segment, its words, and a plan with a leaf for each word.
pub(super) struct Fixture {
    pub(super) segment: OpenSegment,
    words: Vec<WordPositions>,
    pub(super) plan: QueryPlan,
}

/// Norm kind, codec, scorer, number of documents, and the ratio of the average length in ranking to
/// that of the segment.
type FixtureKind = (NormKind, Codec, Scorer, usize, f64);

const OTHER_SCORER: Scorer = Scorer::Bm25(Bm25 { k1: 0.9, b: 0.4 });

pub(super) static FIXTURES: LazyLock<Vec<Fixture>> = LazyLock::new(|| {
    let default = Scorer::default();
    let kinds: [FixtureKind; 8] = [
        (NormKind::Byte, Codec::Auto, default, 40_003, 1.0),
        (NormKind::Byte, Codec::Auto, default, 20_000, 1.15),
        (NormKind::Exact, Codec::Auto, OTHER_SCORER, 20_001, 3.0),
        (NormKind::Exact, Codec::Pfor256Delta, default, 9_007, 0.5),
        (NormKind::Byte, Codec::Bitmap, default, 9_000, 2.0),
        (NormKind::Byte, Codec::Auto, OTHER_SCORER, 3_001, 1.0),
        (NormKind::Byte, Codec::Auto, Scorer::Dot, 20_003, 1.0),
        (NormKind::Byte, Codec::Auto, default, LONG_DOCUMENTS, 1.0),
    ];
    kinds.into_iter().zip(1..).map(|(kind, seed)| Fixture::new(kind, seed)).collect()
});

impl Fixture {
    fn new(kind: FixtureKind, seed: u64) -> Fixture {
        let (norms, codec, scorer, documents, average) = kind;
        let (words, lengths) = random_words(documents, seed);
        let segment = OpenSegment::new(build_segment(norms, codec, &lengths, &words).into(), None);
        let stats = segment.average_length(0);
        let collection = CollectionStats { documents: documents as u64, average_length: stats * average };
        let bm25 = if let Scorer::Bm25(bm25) = scorer { bm25 } else { Bm25::default() };
        let lengths = Arc::new(LengthNorms::new(bm25, collection));
        let largest = |word: &WordPositions| word.values().map(Vec::len).max().unwrap_or(1) as u32;
        let weight = |word: &WordPositions| 2.0 * idf(documents as u64, word.len() as u64);
        let term_scorer = |weight, largest, scale| match scorer {
            Scorer::Bm25(_) => TermScorer::new(lengths.clone(), weight, scale),
            Scorer::Dot => TermScorer::dot(largest, weight, scale),
        };
        let share_max = |word| if scorer == Scorer::Dot { f64::from(largest(word)) } else { 1.0 };
        let scale =
            ScoreScale::of(words.iter().map(|word| weight(word) * share_max(word)).sum::<f64>() * 50.0);
        let leaf = |(number, word): (usize, &WordPositions)| {
            let term = WORD_FREQUENCIES[number].0.to_string();
            Leaf {
                number,
                field: 0,
                infos: vec![segment.field_of_term(0).terms().get(term.as_bytes(), &FILES).unwrap()],
                term,
                scorer: term_scorer(weight(word), largest(word), scale),
                weight: weight(word),
                is_scored: true,
            }
        };
        let leaves = words.iter().enumerate().map(leaf).collect();
        let phrases = PHRASE_WEIGHTS.map(|weight| term_scorer(weight, 9, scale)).into();
        let plan = QueryPlan { root: PlanNode::Nothing, counted: None, leaves, phrases, scale };
        Fixture { segment, words, plan }
    }

    /// The term of a leaf.
    pub(super) fn term(&self, leaf: usize) -> PlanNode {
        PlanNode::Term { leaf, weight: self.plan.leaves[leaf].weight }
    }

    fn lists_of_prefix(&self, text: &str) -> impl Iterator<Item = &WordPositions> {
        let words = WORD_FREQUENCIES.iter().zip(&self.words);
        words.filter(move |((word, ..), _)| word.starts_with(text)).map(|(_, list)| list)
    }

    /// A prefix, whose dictionary entries the plan may have.
    fn prefix(&self, random: &mut Random, text: &str, weight: f64) -> PlanNode {
        let mut prefix = PrefixClause::new(0, TermPrefix { text, whole_clusters: false }, 1);
        for leaf in self.plan.leaves.iter().filter(|leaf| leaf.term.starts_with(text)) {
            prefix.add_term(leaf.infos.iter().map(Option::as_ref));
        }
        prefix.lists.take_if(|_| random.one_in(4));
        PlanNode::Prefix { prefix: Arc::new(prefix), weight }
    }

    /// A random clause on a column.
    fn column(&self, random: &mut Random) -> PlanNode {
        let column = random.below(COLUMNS.len());
        let reader = self.segment.column(column).expect("some documents have values");
        let largest = reader.tail().maximum;
        let mut ends: Vec<u64> =
            (0..2 * (1 + random.skewed(3))).map(|_| random.below(largest as usize + 2) as u64).collect();
        ends.sort_unstable();
        ends.dedup();
        let mut ranges: Vec<_> = ends.chunks(2).map(|ends| (ends[0], ends[ends.len() - 1])).collect();
        if random.one_in(6) {
            ranges = vec![(0, u64::MAX)];
        }
        let matches = vec![ColumnMatches::of(reader, &ranges).unwrap()];
        let weight = *random.pick(&[0.0, 0.0, 1e-5, 0.7]);
        PlanNode::Column { clause: Arc::new(ColumnClause { column, ranges, matches }), weight }
    }

    /// A random node of a plan, of at most this depth.
    pub(super) fn node(&self, random: &mut Random, depth: usize) -> PlanNode {
        match random.below(if depth == 0 { 11 } else { 16 }) {
            0..4 => self.term(random.below(WORD_FREQUENCIES.len())),
            4..7 => self.phrase(random, WORD_FREQUENCIES.len() - 3),
            7 => {
                let text = *random.pick(&["p", "pa", "pc", "bur", "e"]);
                let weight = *random.pick(&[0.0, 1e-5, 0.7]);
                self.prefix(random, text, weight)
            }
            8 => PlanNode::All { weight: *random.pick(&[0.0, 1e-5, 0.9]) },
            9 | 10 => self.column(random),
            _ => self.group(random, depth - 1),
        }
    }

    /// A random phrase of the first `words` words.
    pub(super) fn phrase(&self, random: &mut Random, words: usize) -> PlanNode {
        let mut distance = 0;
        let leaves = (0..2 + random.below(3)).map(|number| {
            distance += if number == 0 { 0 } else { 1 + random.below(2) as u32 };
            (distance, random.below(words))
        });
        let leaves = leaves.collect();
        let phrase = random.below(PHRASE_WEIGHTS.len());
        let few = random.below(10) as u32;
        let slop = *random.pick(&[0, few, few, few, 12, 100]);
        let weight = PHRASE_WEIGHTS[phrase];
        PlanNode::Phrase { field: 0, leaves, phrase, slop, weight }
    }

    pub(super) fn group(&self, random: &mut Random, depth: usize) -> PlanNode {
        let mut nodes = |most: usize| -> Vec<PlanNode> {
            let count = random.below(most + 1);
            (0..count).map(|_| self.node(random, depth)).collect()
        };
        let (must, filter, mut should, must_not) = (nodes(2), nodes(2), nodes(4), nodes(1));
        let is_free = must.is_empty() && filter.is_empty();
        if is_free && should.is_empty() {
            should.push(self.node(random, depth));
        }
        let minimum_min = usize::from(is_free);
        let minimum = match random.below(3) {
            0 => minimum_min + random.below(should.len() + 1 - minimum_min),
            1 => should.len().min(1),
            _ => should.len().min(2).max(minimum_min),
        };
        let mut clauses = Clauses { must, filter, should, must_not, minimum };
        clauses.require_alternatives();
        PlanNode::Group(Box::new(clauses))
    }

    pub(super) fn scores(&self, node: &PlanNode) -> DocumentScores {
        let documents = self.segment.documents();
        let mut scores: DocumentScores = vec![None; documents as usize];
        match node {
            PlanNode::Term { leaf, .. } => {
                let scorer = &self.plan.leaves[*leaf].scorer;
                for (document, positions) in &self.words[*leaf] {
                    scores[*document as usize] = Some(self.score(scorer, *document, positions.len() as f32));
                }
            }
            PlanNode::Phrase { leaves, phrase, slop, .. } => {
                let mut alignments = Alignments::new(leaves, *slop);
                for document in self.words[leaves[0].1].keys() {
                    let of = |(_, leaf): &(u32, usize)| self.words[*leaf].get(document);
                    let Some(positions) = leaves.iter().map(of).collect::<Option<Vec<_>>>() else { continue };
                    (0..).zip(positions).for_each(|(slot, of)| alignments.positions(slot).clone_from(of));
                    let frequency = alignments.frequency(true);
                    if frequency > 0.0 {
                        let scorer = &self.plan.phrases[*phrase];
                        scores[*document as usize] = Some(self.score(scorer, *document, frequency));
                    }
                }
            }
            PlanNode::Prefix { prefix, weight } => {
                let score = Some(self.plan.scale.constant(*weight));
                let documents = self.lists_of_prefix(&prefix.text).flat_map(BTreeMap::keys);
                documents.for_each(|document| scores[*document as usize] = score);
            }
            PlanNode::Column { clause, weight } => {
                let is_within =
                    |value: &u64| clause.ranges.iter().any(|(low, high)| low <= value && value <= high);
                for (document, score) in scores.iter_mut().enumerate() {
                    let matches = column_values(clause.column, document).iter().any(is_within);
                    *score = matches.then(|| self.plan.scale.constant(*weight));
                }
            }
            PlanNode::All { weight } => scores.fill(Some(self.plan.scale.constant(*weight))),
            PlanNode::Nothing => {}
            PlanNode::Group(group) => scores = self.group_scores(group),
        }
        scores
    }

    fn group_scores(&self, group: &Clauses<PlanNode>) -> DocumentScores {
        let [must, filter, should, must_not] = [&group.must, &group.filter, &group.should, &group.must_not]
            .map(|nodes| nodes.iter().map(|node| self.scores(node)).collect::<Vec<_>>());
        let score = |document: usize| {
            let of = |lists: &[DocumentScores]| -> Vec<u32> {
                lists.iter().filter_map(|scores| scores[document]).collect()
            };
            let (required, optional) = (of(&must), of(&should));
            let matches = required.len() == must.len()
                && of(&filter).len() == filter.len()
                && optional.len() >= group.minimum
                && of(&must_not).is_empty();
            matches.then(|| required.iter().chain(&optional).sum())
        };
        (0..self.segment.documents() as usize).map(score).collect()
    }

    fn score(&self, scorer: &TermScorer, document: u32, frequency: f32) -> u32 {
        scorer.score_of(self.segment.field_of_term(0).norms().unwrap(), document, frequency)
    }
}

/// The positions of random words in a number of documents, and the lengths of the documents.
fn random_words(documents: usize, seed: u64) -> (Vec<WordPositions>, Vec<u32>) {
    let mut words = vec![WordPositions::new(); WORD_FREQUENCIES.len()];
    let mut lengths = Vec::with_capacity(documents);
    let (mut random, mut extremes) = (Random::new(seed), Random::new(!seed));
    for document in 0..documents {
        let mut text = Vec::new();
        for (word, (_, seldom, often, every)) in WORD_FREQUENCIES.into_iter().enumerate() {
            let is_burst = (document / BURST_DOCUMENTS + word).is_multiple_of(every);
            if random.below(1000) < if is_burst { often } else { seldom } {
                let times = if random.one_in(12) { 1 + random.below(9) } else { 1 };
                (0..times).for_each(|_| text.insert(random.below(text.len() + 1), word));
            }
        }
        // Positions that span several pieces, and positions above 24 bits.
        if extremes.one_in(if documents == LONG_DOCUMENTS { 2 } else { 400 }) {
            let words = [0, 1, 2 + extremes.below(10)];
            text.extend((0..extremes.below(3000)).map(|_| *extremes.pick(&words)));
        } else if documents == LONG_DOCUMENTS && extremes.one_in(2) {
            // A few occurrences of one word near the place where a round of the other word ends.
            let [often, seldom] = *extremes.pick(&[[0, 1], [1, 0]]);
            let place = BLOCK * (1 + extremes.below(2));
            text = vec![often; place + 12 + extremes.below(30)];
            (0..1 + extremes.below(2)).for_each(|_| text.insert(place - 12 + extremes.below(24), seldom));
        }
        let mut position = if extremes.one_in(30) { 1u32 << 25 } else { 0 };
        let gap_max = if documents == LONG_DOCUMENTS { [1, 30, 2000][document % 3] } else { 1 };
        for word in &text {
            words[*word].entry(document as u32).or_default().push(position);
            position += if gap_max > 1 { 1 + extremes.below(gap_max) as u32 } else { 1 };
        }
        lengths.push(text.len() as u32);
    }
    (words, lengths)
}

/// The names of the columns, and whether they are multi-valued.
const COLUMNS: [(&str, bool); 3] = [("ordered", false), ("sparse", false), ("several", true)];

/// The values of a document in a column, ascending. The first column has the order of documents, and blocks
/// of which all documents have a value; the second one has few values; the third one several.
fn column_values(column: usize, document: usize) -> Vec<u64> {
    let mut random = Random::new((7 * document + column) as u64);
    match column {
        0 if document / 5000 % 2 == 1 && random.one_in(3) => Vec::new(),
        0 => vec![3 * (document as u64 / 11) + 100],
        1 => (random.one_in(50)).then(|| random.below(1000) as u64).into_iter().collect(),
        _ => {
            let mut values: Vec<u64> =
                (0..random.skewed(5)).map(|_| (random.next() >> (40 + random.below(24))) % 5000).collect();
            values.sort_unstable();
            values
        }
    }
}

/// Writes and opens a segment of one field with positions, and columns.
fn build_segment(norms: NormKind, codec: Codec, lengths: &[u32], words: &[WordPositions]) -> Segment {
    let disk = MemDisk::new();
    let field = Field {
        positions: true,
        norms,
        doc_codec: codec,
        freq_codec: codec.plain(),
        ..Field::new("text", &["text"])
    };
    let target = FieldTarget { disk: &disk, segment: 1, number: 0, field: &field };
    let written = write_lengths(target, || lengths.iter().copied()).unwrap();
    let mut ids = IdsWriter::create(&disk, 1).unwrap();
    (0..lengths.len()).for_each(|document| ids.add(document.to_string().as_bytes()).unwrap());
    let ids = ids.finish().unwrap();
    let lists: BTreeMap<&str, _> = WORD_FREQUENCIES.iter().map(|(word, ..)| *word).zip(words).collect();
    let (stats, mut files) = FieldWriter::write(target, &written.codes, written.tokens, |writer| {
        lists.iter().filter(|(_, list)| !list.is_empty()).try_for_each(|(word, list)| {
            writer.terms().term(word.as_bytes(), |postings| {
                list.iter().try_for_each(|(document, positions)| {
                    postings.add(*document, positions.len() as u32, positions)
                })
            })
        })
    })
    .unwrap();
    files.extend([written.file, ids]);
    let columns = COLUMNS.map(|(name, multi)| Column { multi, ..Column::new(name, ColumnType::U64) });
    for (number, column) in columns.iter().enumerate() {
        let target = ColumnTarget { disk: &disk, segment: 1, number, column };
        let written = write_column(target, &mut |body| {
            (0..lengths.len()).try_for_each(|document| body(&column_values(number, document)))
        });
        files.extend(written.unwrap());
    }
    let meta =
        SegmentMeta { id: 1, documents: lengths.len() as u32, analysis: 0, fields: vec![stats], files };
    let schema = Schema { stored: Stored::Nothing, columns: columns.into(), ..Schema::of(vec![field]) };
    Segment::open(&disk, &schema, meta).unwrap()
}

/// A plan in the notation of [`show_plan`].
pub(super) fn show_plan_node(node: &PlanNode) -> String {
    show_plan(node, &|leaf| WORD_FREQUENCIES[leaf].0.to_string(), &|_, _| String::new())
}
