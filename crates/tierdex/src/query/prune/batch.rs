//! Documents with what they score so far.

/// Documents, rising, with a score each.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) documents: Vec<u32>,
    pub(super) scores: Vec<f32>,
    /// What each of so many terms adds to each document, where it has been noted.
    parts: Vec<f32>,
    terms: usize,
}

impl Batch {
    pub(super) fn clear(&mut self) {
        self.truncate(0);
        self.terms = 0;
    }

    /// From now on notes what each of so many terms adds.
    pub(super) fn note(&mut self, terms: usize) {
        self.terms = terms;
        self.parts.clear();
        self.parts.resize(self.len() * terms, 0.0);
    }

    /// Adds what a term adds to the document at a place.
    pub(super) fn add(&mut self, place: usize, term: usize, score: f32) {
        self.scores[place] += score;
        if self.terms > 0 {
            self.parts[place * self.terms + term] = score;
        }
    }

    /// Makes each score the sum of what has been noted, in the order of the terms.
    pub(super) fn sum_parts(&mut self) {
        for (score, parts) in self.scores.iter_mut().zip(self.parts.chunks(self.terms)) {
            *score = parts.iter().fold(0.0, |sum, part| sum + part);
        }
    }

    /// Puts the document at a place to an earlier one.
    #[inline]
    pub(super) fn put(&mut self, from: usize, to: usize) {
        // Whether they differ is hard to foretell.
        (self.documents[to], self.scores[to]) = (self.documents[from], self.scores[from]);
        if self.terms > 0 && from != to {
            self.parts.copy_within(from * self.terms..(from + 1) * self.terms, to * self.terms);
        }
    }

    pub(super) fn push_all(&mut self, documents: &[u32], scores: &[f32]) {
        self.documents.extend_from_slice(documents);
        self.scores.extend_from_slice(scores);
    }

    pub(super) fn len(&self) -> usize {
        self.documents.len()
    }

    /// Keeps the documents whose score `may` matter.
    pub(super) fn retain(&mut self, may: impl Fn(f32) -> bool) {
        let mut kept = 0;
        for place in 0..self.documents.len() {
            self.put(place, kept);
            kept += usize::from(may(self.scores[kept]));
        }
        self.truncate(kept);
    }

    /// Keeps the first documents.
    pub(super) fn truncate(&mut self, kept: usize) {
        self.documents.truncate(kept);
        self.scores.truncate(kept);
        self.parts.truncate(kept * self.terms);
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
