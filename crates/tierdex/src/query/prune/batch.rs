//! Documents with what they score so far.

use std::ops::Range;
use tierdex_codec::keep_at_least;

/// Documents, rising, with a score each.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) documents: Vec<u32>,
    pub(super) scores: Vec<f32>,
    /// What each of so many terms adds to each document, where it has been noted, a row for each document that was there
    /// when that began.
    parts: Vec<f32>,
    terms: usize,
    /// The row of each document, if there are any.
    rows: Vec<u32>,
}

impl Batch {
    pub(super) fn clear(&mut self) {
        self.truncate(0);
        self.terms = 0;
    }

    /// From now on notes what each of so many terms adds.
    pub(super) fn note(&mut self, terms: usize) {
        self.terms = terms;
        self.rows.clear();
        self.rows.extend(0..self.len() as u32);
        self.parts.clear();
        self.parts.reserve_exact(self.len() * terms);
        self.parts.resize(self.len() * terms, 0.0);
    }

    /// Gives back what was noted.
    pub(super) fn shrink(&mut self) {
        self.clear();
        self.parts = Vec::new();
    }

    /// Adds what a term adds to the document at a place.
    pub(super) fn add(&mut self, place: usize, term: usize, score: f32) {
        self.scores[place] += score;
        if self.terms > 0 {
            self.parts[self.rows[place] as usize * self.terms + term] = score;
        }
    }

    /// Moves the documents at some rising offsets, counted from `from`, to the front of these. There are no rows.
    pub(super) fn pick(&mut self, from: usize, places: &[u8]) {
        debug_assert_eq!(self.terms, 0, "rows would stay behind");
        for (to, place) in (from..).zip(places) {
            let place = from + usize::from(*place);
            self.documents[to] = self.documents[place];
            self.scores[to] = self.scores[place];
        }
    }

    /// Makes each score the sum of what has been noted, in the order of the terms.
    pub(super) fn sum_parts(&mut self) {
        for (score, row) in self.scores.iter_mut().zip(&self.rows) {
            let parts = &self.parts[*row as usize * self.terms..][..self.terms];
            *score = parts.iter().fold(0.0, |sum, part| sum + part);
        }
    }

    pub(super) fn push_all(&mut self, documents: &[u32], scores: &[f32]) {
        self.documents.extend_from_slice(documents);
        self.scores.extend_from_slice(scores);
    }

    /// The documents and their scores, so many at a time.
    pub(super) fn chunks(&self, size: usize) -> impl Iterator<Item = (&[u32], &[f32])> {
        self.documents.chunks(size).zip(self.scores.chunks(size))
    }

    pub(super) fn len(&self) -> usize {
        self.documents.len()
    }

    /// Moves the documents of some places whose scores are at least `least` to the place `to` before them; returns where
    /// they end.
    pub(super) fn keep(&mut self, places: Range<usize>, to: usize, least: f32) -> usize {
        let from = places.start - to;
        let rows = if self.terms > 0 { &mut self.rows[to..places.end] } else { &mut [] };
        let (documents, scores) = (&mut self.documents[to..places.end], &mut self.scores[to..places.end]);
        to + keep_at_least(documents, scores, rows, from, least)
    }

    /// Keeps the documents whose scores are at least `least`.
    pub(super) fn retain(&mut self, least: f32) {
        let kept = self.keep(0..self.len(), 0, least);
        self.truncate(kept);
    }

    /// Keeps the first documents.
    pub(super) fn truncate(&mut self, kept: usize) {
        self.documents.truncate(kept);
        self.scores.truncate(kept);
        self.rows.truncate(kept);
    }

    /// Becomes the union of two others; a document of both has the sum of its scores.
    pub(super) fn merge(&mut self, first: &Batch, second: &Batch) {
        let most = first.len() + second.len();
        self.documents.resize(most, 0);
        self.scores.resize(most, 0.0);
        let (mut i, mut j, mut merged) = (0, 0, 0);
        while i < first.len() && j < second.len() {
            let (a, b) = (first.documents[i], second.documents[j]);
            let (of_a, of_b) = (first.scores[i], second.scores[j]);
            let score = if a <= b { of_a } else { of_b };
            self.documents[merged] = a.min(b);
            self.scores[merged] = if a == b { of_a + of_b } else { score };
            i += usize::from(a <= b);
            j += usize::from(b <= a);
            merged += 1;
        }
        self.truncate(merged);
        self.push_all(&first.documents[i..], &first.scores[i..]);
        self.push_all(&second.documents[j..], &second.scores[j..]);
    }
}
