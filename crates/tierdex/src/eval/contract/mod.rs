//! Contract tests of the node interface, for all kinds of nodes over segments of a few superblocks. Nodes
//! are called with random ranges in random order, and the results compared with a table of the scores of all
//! documents.

mod fixture;

use crate::eval::state::{Bits, CandidateBatch, DocRange, Refine, Refinement, ScoreWindow, Scratch};
use crate::eval::tuning::{COUNTED_DOCS, WINDOW_DOCS};
use crate::eval::{EvaluationOptions, SegmentView, Strategy, Tuning, nodes::Node};
use crate::query::{Clauses, PlanRewriter, plan_node::PlanNode};
use crate::{eval::strategy::has_positive_scores, segment::read::FILES};
use fixture::{FIXTURES, Fixture, Random, WORD_FREQUENCIES, show_plan_node};
use proptest::prelude::*;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The node under test, and the expected score of each document.
struct NodeUnderTest<'a> {
    node: Node<'a>,
    has_positive_scores: bool,
    scores: &'a [Option<u32>],
    scratch: Scratch,
    window: ScoreWindow,
    bits: Bits,
}

impl NodeUnderTest<'_> {
    fn documents(&self) -> u32 {
        self.scores.len() as u32
    }

    fn score(&self, document: u32) -> Option<u32> {
        self.scores[document as usize]
    }

    /// The expected matches of a range.
    fn matches(&self, range: DocRange) -> Vec<(u32, u32)> {
        (range.first..=range.last).filter_map(|document| Some((document, self.score(document)?))).collect()
    }

    /// A random range that starts at a multiple of `multiple` and has at most `size` documents.
    fn range(&self, random: &mut Random, multiple: u32, size: usize) -> DocRange {
        let first = random.below(self.scores.len()) as u32 / multiple * multiple;
        let size = match random.below(4) {
            0 => size,
            1 => 1 + random.below(size),
            2 => 1 + random.below(size.min(300)),
            _ => 1 + random.below(size.min(20)),
        };
        DocRange { first, last: (first + size as u32 - 1).min(self.documents() - 1) }
    }

    fn check_random_method(&mut self, random: &mut Random) {
        match random.below(13) {
            10.. => self.check_collect(random),
            0 => self.check_next_lower_bound(random),
            1 | 2 => self.check_max_score(random),
            3 => self.check_mark_matches(random),
            4 | 5 => self.check_add_scores(random),
            _ => self.check_refine_batch(random),
        }
    }

    /// `next_lower_bound` never skips a match, from any document.
    fn check_next_lower_bound(&mut self, random: &mut Random) {
        let (mut from, mut calls) = (random.below(self.scores.len()) as u32, 0);
        while from < self.documents() && calls < 20 {
            let next = self.node.next_lower_bound(from);
            let passed = (from..next.min(self.documents())).find(|document| self.score(*document).is_some());
            assert!(next >= from && passed.is_none(), "next_lower_bound({from}) is {next}");
            from = next.saturating_add(1 + random.below(400).saturating_sub(200) as u32);
            calls += 1;
        }
    }

    /// `next_lower_bound` visits every match and terminates.
    fn check_all_matches_visited(&mut self) {
        let (mut from, mut matches) = (0, 0);
        while from < self.documents() {
            let next = self.node.next_lower_bound(from);
            matches += usize::from(next < self.documents() && self.score(next).is_some());
            from = next.saturating_add(1);
        }
        assert_eq!(matches, self.scores.iter().flatten().count(), "every match is visited");
        assert!(self.node.cost() >= matches as u64, "{matches} match, but the cost is {}", self.node.cost());
        let zero = self.scores.iter().flatten().any(|score| *score == 0);
        assert!(!(zero && self.has_positive_scores), "a match scores 0");
    }

    fn check_max_score(&mut self, random: &mut Random) {
        let size = if random.one_in(3) { self.scores.len() } else { 5000 };
        let range = self.range(random, 1, size);
        let bound = self.node.max_score(range).unwrap();
        let above =
            self.matches(range).into_iter().find(|(_, score)| bound.is_none_or(|bound| *score > bound));
        assert_eq!(above, None, "the bound of {range:?} is {bound:?}");
    }

    fn check_mark_matches(&mut self, random: &mut Random) {
        let range = self.range(random, 8, COUNTED_DOCS);
        self.bits.restart(range);
        // Documents that are already in the set stay.
        let before = range.first + random.below((range.last - range.first + 1) as usize) as u32;
        let has_before = random.one_in(2);
        if has_before {
            self.bits.add(&[before]);
        }
        self.node.mark_matches(&mut self.bits, &mut self.scratch).unwrap();
        let is_marked = |document: &u32| self.score(*document).is_some() || has_before && *document == before;
        let expected: Vec<u32> = (range.first..=range.last).filter(is_marked).collect();
        assert!(self.bits.documents().eq(expected.iter().copied()), "marks of {range:?}");
        assert_eq!(self.bits.count(), expected.len() as u64);
    }

    fn check_add_scores(&mut self, random: &mut Random) {
        let range = self.range(random, 8, WINDOW_DOCS);
        self.window.restart(range);
        let times = 1 + u32::from(random.one_in(4));
        for _ in 0..times {
            self.node.add_scores(&mut self.window, 0, &mut self.scratch).unwrap();
        }
        let mut batch = CandidateBatch::default();
        self.window.drain(&mut batch);
        let mut expected = self.matches(range);
        expected.iter_mut().for_each(|(_, score)| *score *= times);
        assert_same(&scored(&batch), &expected, || format!("sums of {range:?}, {times} times"));
    }

    /// `collect` and `collect_unscored` find the matches of a window or a block, and of documents after it.
    fn check_collect(&mut self, random: &mut Random) {
        let mut range = self.range(random, 1, WINDOW_DOCS);
        range.last = range.last.min((range.first & !7) + WINDOW_DOCS as u32 - 1);
        if random.one_in(2) {
            range.last = self.node.block_end(range.first).min(self.documents() - 1).max(range.last);
        }
        let mut batch = CandidateBatch::default();
        if random.one_in(4) {
            self.node.collect_unscored(range, &mut batch, &mut self.scratch).unwrap();
            let expected = self.matches(range).into_iter().map(|(document, _)| document);
            assert!(batch.documents.iter().copied().eq(expected), "documents of {range:?}");
            return;
        }
        let end = if random.one_in(2) { self.documents() } else { range.last + 1 };
        let matches = self.matches(range);
        let min_score = match random.below(3) {
            0 => 0,
            _ if matches.is_empty() => 1,
            _ => matches[random.below(matches.len())].1 + random.below(2) as u32,
        };
        let last = self.node.collect(range, end, min_score, &mut batch, &mut self.scratch).unwrap();
        assert!(last >= range.last && last < end, "{range:?} is extended to {last}");
        let mut expected = self.matches(DocRange { last, ..range });
        expected.retain(|(_, score)| *score >= min_score);
        let mut found = scored(&batch);
        found.retain(|(_, score)| *score >= min_score);
        assert_same(&found, &expected, || format!("candidates of {range:?} with at least {min_score}"));
    }

    /// Random candidates: none, all documents of a range, only matches, only non-matches, or a sample of
    /// these.
    fn candidates(&self, random: &mut Random) -> Vec<u32> {
        let size = *random.pick(&[40, 300, 1500, self.scores.len()]);
        let DocRange { first, last } = self.range(random, 1, size);
        let (kind, part) = (random.below(5), *random.pick(&[1, 1, 2, 30]));
        let is_candidate = |document: &u32| match kind {
            0 => self.score(*document).is_some(),
            1 => self.score(*document).is_none(),
            _ => true,
        };
        let mut batch: Vec<u32> =
            (first..=last).filter(is_candidate).filter(|_| random.one_in(part)).collect();
        batch.truncate(if kind == 4 { 0 } else { 5000 });
        batch
    }

    fn check_refine_batch(&mut self, random: &mut Random) {
        let candidates = self.candidates(random);
        let how = *random.pick(&[Refine::Require, Refine::Filter, Refine::Exclude, Refine::Optional]);
        let highest = candidates.iter().filter_map(|document| self.score(*document)).max().unwrap_or(0);
        // The included bound is an upper bound over the range of the candidates, or 0.
        let included_bound = match candidates.as_slice() {
            [first, .., last] if how.is_scored() && !random.one_in(4) => {
                self.node.max_score(DocRange { first: *first, last: *last }).unwrap().unwrap_or(0)
                    + 1000 * random.below(2) as u32
            }
            _ => 0,
        };
        let others: Vec<u32> = candidates.iter().map(|_| random.below(1 << 18) as u32).collect();
        let exact = |document: u32, others: u32| match (self.score(document), how) {
            (Some(score), Refine::Require | Refine::Optional) => Some(others + score),
            (Some(_), Refine::Filter) | (None, Refine::Exclude | Refine::Optional) => Some(others),
            (Some(_), Refine::Exclude) | (None, Refine::Require | Refine::Filter) => None,
        };
        let all = candidates.iter().zip(&others);
        let all = all.filter_map(|(document, others)| Some((*document, exact(*document, *others)?)));
        let mut all: Vec<_> = all.collect();
        let min_score = match random.below(4) {
            // Scores that do not include the bound must not be compared with a threshold.
            _ if how.is_scored() && included_bound < highest => 0,
            0 => 0,
            1 => random.below(1 << 19) as u32,
            _ if all.is_empty() => 1,
            // The score of a candidate, or one more.
            _ => all[random.below(all.len())].1 + random.below(2) as u32,
        };
        let mut batch = self.scratch.take_batch(0);
        batch.documents.extend(&candidates);
        batch.scores.extend(others.iter().map(|others| others + included_bound));
        let refinement = Refinement { how, included_bound, min_score };
        self.node.refine_batch(&mut batch, refinement, &mut self.scratch).unwrap();
        let (found, what) = (scored(&batch), || format!("{refinement:?} of {} candidates", candidates.len()));
        // A candidate below the threshold may be kept, with its exact score.
        all.retain(|candidate| candidate.1 >= min_score || found.binary_search(candidate).is_ok());
        assert_same(&found, &all, what);
        self.scratch.give_batch(batch);
    }
}

fn scored(batch: &CandidateBatch) -> Vec<(u32, u32)> {
    batch.documents.iter().copied().zip(batch.scores.iter().copied()).collect()
}

fn assert_same(found: &[(u32, u32)], expected: &[(u32, u32)], what: impl Fn() -> String) {
    if found != expected {
        let index = (0..).find(|at| found.get(*at) != expected.get(*at)).unwrap_or(0);
        panic!(
            "{}: {} and not {}; entry {index} is {:?} and not {:?}",
            what(),
            found.len(),
            expected.len(),
            found.get(index),
            expected.get(index)
        );
    }
}

/// Calls random methods of a node and checks the results.
fn check_node(fixture: &Fixture, plan: &PlanNode, random: &mut Random, calls: usize) {
    check_node_against(fixture, plan, &fixture.scores(plan), random, calls);
}

fn check_node_against(
    fixture: &Fixture,
    plan: &PlanNode,
    scores: &[Option<u32>],
    random: &mut Random,
    calls: usize,
) {
    let mut scratch = Scratch::default();
    let view = SegmentView { plan: &fixture.plan, number: 0, segment: &fixture.segment };
    let (leaves, documents) = (&fixture.plan.leaves, fixture.segment.documents());
    let plan = PlanRewriter::of_segment(leaves, 0, documents, true).rewrite_root(plan.clone());
    if let PlanNode::Nothing = plan {
        assert!(scores.iter().all(Option::is_none), "a plan that is rewritten to nothing must not match");
        return;
    }
    let has_positive_scores = has_positive_scores(&plan);
    let strategy =
        Strategy { clauses: Clauses { must: vec![plan], ..Clauses::default() }, ..Strategy::default() };
    let options = EvaluationOptions { k: 10, count: false, exhaustive: false, tuning: Tuning::default() };
    let node = strategy.open(view, &FILES, &options, &mut scratch).unwrap();
    let (window, bits) = (ScoreWindow::default(), Bits::default());
    let mut subject = NodeUnderTest { node, has_positive_scores, scores, scratch, window, bits };
    (0..calls).for_each(|_| subject.check_random_method(random));
    subject.check_all_matches_visited();
    (0..4).for_each(|_| subject.check_random_method(random));
    subject.node.close(&mut subject.scratch);
}

fn is_without_panic(check: impl FnOnce()) -> bool {
    catch_unwind(AssertUnwindSafe(check)).is_ok()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn groups_satisfy_the_contract(seed in any::<u64>(), depth in 0usize..5, fixture in 0usize..7) {
        let (mut random, fixture) = (Random::new(seed), &FIXTURES[fixture]);
        let plan = fixture.group(&mut random, depth);
        let is_sound = is_without_panic(|| check_node(fixture, &plan, &mut random, 40));
        prop_assert!(is_sound, "{}", show_plan_node(&plan));
    }
}

/// Each list by itself with many calls, and random phrases and sets.
#[test]
fn leaves_satisfy_the_contract() {
    for (number, fixture) in FIXTURES.iter().enumerate() {
        let mut random = Random::new(number as u64);
        for leaf in 0..WORD_FREQUENCIES.len() {
            check_node(fixture, &fixture.term(leaf), &mut random, 100);
        }
        for _ in 0..20 {
            let plan = fixture.node(&mut random, 0);
            check_node(fixture, &plan, &mut random, 40);
        }
    }
}

/// Phrases of words with up to 3000 positions in a document, which span several pieces and rounds.
#[test]
fn phrases_in_long_documents_satisfy_the_contract() {
    let (fixture, mut random) = (&FIXTURES[FIXTURES.len() - 1], Random::new(1));
    for words in [2, 2, 2, 3, 3, 8].repeat(30) {
        let plan = fixture.phrase(&mut random, words);
        check_node(fixture, &plan, &mut random, 10);
    }
}

/// A range is extended past an optional clause only if its matches after the range are found: the lead is a
/// rare alternative beside a frequent one, which does not reach the threshold alone.
#[test]
fn groups_with_extended_ranges_satisfy_the_contract() {
    let mut random = Random::new(2);
    for round in 0..90 {
        let fixture = &FIXTURES[round % 3];
        let mut term = |words: &[usize]| fixture.term(*random.pick(words));
        let alternatives = Clauses::any(vec![term(&[7, 8, 11]), term(&[0, 1, 2])]);
        let (must, should) = (vec![PlanNode::Group(Box::new(alternatives))], vec![term(&[4, 5, 6])]);
        let plan = PlanNode::Group(Box::new(Clauses { must, should, ..Clauses::default() }));
        check_node(fixture, &plan, &mut random, 40);
    }
}

/// Canary: an extra match, a missing match or a wrong score makes the checks fail.
#[test]
fn contract_violations_are_detected() {
    let fixture = &FIXTURES[5];
    let plan = fixture.term(2);
    let sound = fixture.scores(&plan);
    let is_detected = |document: usize, score: Option<u32>| {
        let mut scores = sound.clone();
        assert_ne!(scores[document], score);
        scores[document] = score;
        !is_without_panic(|| check_node_against(fixture, &plan, &scores, &mut Random::new(5), 600))
    };
    let (first, last) = (sound.iter().position(Option::is_some), sound.iter().rposition(Option::is_some));
    let none = sound.iter().rposition(Option::is_none).unwrap();
    for document in [first.unwrap(), last.unwrap()] {
        let score = sound[document].unwrap();
        assert!(is_detected(document, None) && is_detected(document, Some(score - 1)));
        assert!(is_detected(document, Some(score + 1)) && is_detected(document, Some(u32::MAX >> 2)));
    }
    assert!(is_detected(none, Some(1)));
}
