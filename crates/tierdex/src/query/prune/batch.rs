//! Documents with what they score so far.

/// Documents, rising, with a score each.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) documents: Vec<u32>,
    pub(super) scores: Vec<f32>,
}

impl Batch {
    pub(super) fn clear(&mut self) {
        self.documents.clear();
        self.scores.clear();
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
            let (document, score) = (self.documents[place], self.scores[place]);
            (self.documents[kept], self.scores[kept]) = (document, score);
            kept += usize::from(may(score));
        }
        self.truncate(kept);
    }

    /// Keeps the first documents.
    pub(super) fn truncate(&mut self, kept: usize) {
        self.documents.truncate(kept);
        self.scores.truncate(kept);
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
