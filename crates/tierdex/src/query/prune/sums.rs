//! Sums of scores over a window of documents.

use crate::rank::TopK;
use tierdex_codec::{BLOCK, Places, at_least, positive};

/// Documents in a window: their sums stay in the first-level cache.
pub(super) const WINDOW: usize = 4096;

/// Sums of scores, each greater than 0, of the documents from `first` on.
pub(super) struct Sums {
    first: u32,
    sums: [f32; WINDOW],
    places: Places,
}

impl Default for Sums {
    fn default() -> Sums {
        Sums { first: 0, sums: [0.0; WINDOW], places: Places::new() }
    }
}

impl Sums {
    /// Moves to `first`, with no scores.
    pub(super) fn reset(&mut self, first: u32) {
        self.first = first;
        self.sums.fill(0.0);
    }

    /// Adds scores of documents of the window.
    #[inline]
    pub(super) fn add(&mut self, documents: &[u32], scores: &[f32]) {
        for (document, score) in documents.iter().zip(scores) {
            self.sums[(document - self.first) as usize % WINDOW] += score;
        }
    }

    /// Calls `body` with the documents whose sums are at least `least`, and the sums, up to 256 at a time.
    pub(super) fn at_least(&mut self, least: f32, mut body: impl FnMut(&[u32], &[f32])) {
        let (mut documents, mut scores) = ([0; BLOCK], [0.0; BLOCK]);
        for (k, sums) in self.sums.chunks(BLOCK).enumerate() {
            at_least(sums, least.max(f32::from_bits(1)), &mut self.places);
            let places = self.places.get();
            for ((place, document), score) in places.iter().zip(&mut documents).zip(&mut scores) {
                *document = self.first + (k * BLOCK) as u32 + u32::from(*place);
                *score = sums[usize::from(*place)];
            }
            if !places.is_empty() {
                body(&documents[..places.len()], &scores[..places.len()]);
            }
        }
    }

    /// Offers the documents that have a sum, numbered from `base` on.
    pub(super) fn offer(&self, base: u32, top: &mut TopK) {
        for (k, sums) in self.sums.chunks(BLOCK).enumerate() {
            // Behind the last document of all nothing has a sum.
            top.offer_dense((base + self.first).saturating_add((k * BLOCK) as u32), sums);
        }
    }

    /// Documents that have a sum.
    pub(super) fn count(&self) -> u64 {
        positive(&self.sums) as u64
    }
}
