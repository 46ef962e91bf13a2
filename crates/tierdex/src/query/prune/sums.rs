//! Sums of scores over a window of documents.

use crate::rank::TopK;
use tierdex_codec::{BLOCK, Swept, sweep};

/// Documents in a window: their sums stay in the first-level cache.
pub(super) const WINDOW: usize = 4096;

/// The first document of a window is a multiple of this, as that of a bitmap is.
const ALIGNED: u32 = 8;

/// The last document of the window that `first` is in.
pub(super) fn window_end(first: u32) -> u32 {
    (first & !(ALIGNED - 1)).saturating_add(WINDOW as u32 - 1)
}

/// Sums of scores, each greater than 0, of the documents from `first` on.
pub(super) struct Sums {
    first: u32,
    sums: [f32; WINDOW],
    /// Whether something has been added since they were all 0.
    some: bool,
    swept: Swept,
}

impl Default for Sums {
    fn default() -> Sums {
        Sums { first: 0, sums: [0.0; WINDOW], some: false, swept: Swept::default() }
    }
}

impl Sums {
    /// Moves to where a window with `first` begins, with no scores.
    pub(super) fn reset(&mut self, first: u32) {
        self.first = first & !(ALIGNED - 1);
        if std::mem::replace(&mut self.some, true) {
            // An error cut the last window short.
            self.sums.fill(0.0);
        }
    }

    /// The sums, and the document of the first.
    pub(super) fn parts(&mut self) -> (u32, &mut [f32; WINDOW]) {
        (self.first, &mut self.sums)
    }

    /// Adds scores of documents of the window.
    #[inline]
    pub(super) fn add(&mut self, documents: &[u32], scores: &[f32]) {
        for (document, score) in documents.iter().zip(scores) {
            self.sums[(document - self.first) as usize] += score;
        }
    }

    /// Takes the documents whose sums are at least `least`, and the sums, and counts those that have one. None are left.
    pub(super) fn take(&mut self, least: f32) -> &Swept {
        sweep(&mut self.sums, self.first, least.max(f32::from_bits(1)), &mut self.swept);
        self.some = false;
        &self.swept
    }

    /// Offers the documents that have a sum, numbered from `base` on, and returns how many they are. None are left.
    pub(super) fn offer(&mut self, base: u32, top: &mut TopK) -> u64 {
        let swept = self.take(top.least());
        for (documents, sums) in swept.values().chunks(BLOCK).zip(swept.sums().chunks(BLOCK)) {
            top.offer_all(base, documents, sums);
        }
        swept.positive() as u64
    }
}
