//! Scratch buffers: memory that evaluations take, return, and leave to the next query, to avoid allocations.

use crate::eval::state::buffers::{SpareLookUp, TermBuffers};
use crate::eval::state::range_sets::{Bits, ScoreWindow};
use crate::eval::tuning::{COUNTED_DOCS, LIST_BUFFERS_MAX, SORT_KEYS_MAX, WINDOW_DOCS};
use crate::{cursor::DecodedBlock, eval::state::batch::CandidateBatch};
use tierdex_codec::Survivors;

/// Buffers for lists, windows, bitsets and batches that no evaluation uses now.
#[derive(Default)]
pub struct Scratch {
    #[allow(clippy::vec_box, reason = "a list takes one without a copy")]
    pub(in crate::eval) decoded: Vec<Box<DecodedBlock>>,
    #[allow(clippy::vec_box, reason = "a list takes one without a copy")]
    pub(in crate::eval) buffers: Vec<Box<TermBuffers>>,
    /// Number of open lists.
    open_lists: usize,
    spare_look_up: SpareLookUp,
    /// Sort keys of blocks for impact order, and memory for the selection among them.
    pub(in crate::eval) sort_keys: Vec<u64>,
    pub(in crate::eval) selection: Vec<u64>,
    pub(in crate::eval) bounds: Vec<u32>,
    #[allow(clippy::vec_box, reason = "windows are taken and given back for each range")]
    windows: Vec<Box<ScoreWindow>>,
    /// Whether a window was used since the last [`Scratch::trim_retained`].
    used_window: bool,
    bits: Vec<Bits>,
    batches: Vec<CandidateBatch>,
}

/// Bytes of a candidate of a batch: its document and its score.
pub(in crate::eval) const CANDIDATE_BYTES: usize = 2 * size_of::<u32>();

/// Bytes of the documents of a window that reach the threshold, with their sums.
pub(in crate::eval) const SURVIVORS_BYTES: usize = 2 * size_of::<u32>() * (WINDOW_DOCS + Survivors::SLACK);

/// Bytes of the bitset of a range of this number of documents, with its byte for each document.
pub(in crate::eval) const fn bits_bytes(range: usize) -> usize {
    9 * range.div_ceil(8)
}

/// Bytes of a score window of a range, without the documents that reach the threshold.
pub(in crate::eval) const fn window_bytes(range: usize) -> usize {
    size_of::<u32>() * WINDOW_DOCS + bits_bytes(range)
}

const WINDOWS_BYTES: usize = 2 * (window_bytes(WINDOW_DOCS) + SURVIVORS_BYTES + bits_bytes(WINDOW_DOCS));
const COUNTED_SETS_BYTES: usize = 2 * bits_bytes(COUNTED_DOCS);

/// Bytes of windows, bitsets and batches that [`Scratch::trim_retained`] leaves, at most: two windows and two
/// bitsets, or two larger bitsets for counting; and batches of the candidates of two windows.
pub const RANGE_BYTES: usize =
    (if WINDOWS_BYTES > COUNTED_SETS_BYTES { WINDOWS_BYTES } else { COUNTED_SETS_BYTES })
        + 2 * CANDIDATE_BYTES * WINDOW_DOCS;

impl Scratch {
    /// Frees what only a large query needs: at most [`RANGE_BYTES`] are left, and buffers for
    /// [`LIST_BUFFERS_MAX`] lists and [`SORT_KEYS_MAX`] sort keys.
    pub fn trim_retained(&mut self) {
        // An interrupted evaluation does not return its lists.
        self.open_lists = 0;
        for keys in [&mut self.sort_keys, &mut self.selection] {
            if keys.capacity() > SORT_KEYS_MAX {
                *keys = Vec::new();
            }
        }
        if self.bounds.capacity() > SORT_KEYS_MAX {
            self.bounds = Vec::new();
        }
        // Counting takes larger bitsets, and no windows. What the last query used is kept.
        let is_large = |bits: &Bits| bits.capacity() > WINDOW_DOCS;
        if std::mem::take(&mut self.used_window) {
            self.bits.retain(|bits| !is_large(bits));
        } else if self.bits.iter().any(is_large) {
            self.windows.clear();
        }
        self.bits.truncate(2);
        self.windows.truncate(2);
        let mut left = 2 * WINDOW_DOCS;
        self.batches.retain(|batch| {
            let fits = batch.capacity() <= WINDOW_DOCS.min(left);
            left -= if fits { batch.capacity() } else { 0 };
            fits
        });
    }

    pub(in crate::eval) fn take_window(&mut self) -> Box<ScoreWindow> {
        self.used_window = true;
        self.windows.pop().unwrap_or_default()
    }

    pub(in crate::eval) fn give_window(&mut self, window: Box<ScoreWindow>) {
        self.windows.push(window);
    }

    pub(in crate::eval) fn take_bits(&mut self) -> Bits {
        self.bits.pop().unwrap_or_default()
    }

    pub(in crate::eval) fn give_bits(&mut self, bits: Bits) {
        self.bits.push(bits);
    }

    /// An empty batch with memory for exactly `len` candidates, or for more in a batch that was used before,
    /// since the memory of an evaluation is counted.
    pub(in crate::eval) fn take_batch(&mut self, len: usize) -> CandidateBatch {
        // The shortest batch that is long enough, else the longest.
        let numbered = self.batches.iter().map(CandidateBatch::capacity).enumerate();
        let best = numbered.min_by_key(|(_, capacity)| {
            if *capacity < len { (true, usize::MAX - capacity) } else { (false, *capacity) }
        });
        let mut batch = best.map_or_else(CandidateBatch::default, |(at, _)| self.batches.swap_remove(at));
        batch.clear();
        batch.reserve(len);
        batch
    }

    pub(in crate::eval) fn give_batch(&mut self, batch: CandidateBatch) {
        self.batches.push(batch);
    }

    /// Buffers of a list, to be given back by [`Scratch::give_list`].
    pub(in crate::eval) fn take_list(&mut self) -> Box<TermBuffers> {
        let mut buffers =
            self.buffers.pop().unwrap_or_else(|| Box::new(TermBuffers::new(self.spare_look_up.clone())));
        buffers.shares_look_ups = self.open_lists >= LIST_BUFFERS_MAX;
        self.open_lists += 1;
        buffers
    }

    pub(in crate::eval) fn give_list(&mut self, decoded: Box<DecodedBlock>, mut buffers: Box<TermBuffers>) {
        buffers.release_look_up();
        self.open_lists -= 1;
        if self.buffers.len() < LIST_BUFFERS_MAX {
            self.decoded.push(decoded);
            self.buffers.push(buffers);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::state::range::DocRange;

    #[test]
    fn large_queries_leave_a_bounded_scratch() {
        let mut scratch = Scratch::default();
        // Numbers of documents of a range, and of the bitsets and windows that are kept.
        for (range, windows_used, kept) in [
            (WINDOW_DOCS, 5, (2, 2)),
            (COUNTED_DOCS, 0, (2, 0)),
            (WINDOW_DOCS, 5, (2, 2)),
            (COUNTED_DOCS, 3, (0, 2)),
        ] {
            let windows: Vec<_> = (0..windows_used).map(|_| scratch.take_window()).collect();
            let bits: Vec<Bits> = (0..5).map(|_| scratch.take_bits()).collect();
            windows.into_iter().for_each(|window| scratch.give_window(window));
            for mut bits in bits {
                // A range that grows must not take more memory than its largest.
                bits.restart(DocRange { first: 0, last: range as u32 * 2 / 3 });
                bits.restart(DocRange { first: 0, last: range as u32 - 1 });
                assert!(bits.capacity() <= COUNTED_DOCS);
                scratch.give_bits(bits);
                let mut batch = CandidateBatch::default();
                batch.push_equal(&[7; WINDOW_DOCS], 1);
                scratch.give_batch(batch);
                let mut batch = CandidateBatch::default();
                batch.push_equal(&[7; 1 << 16], 1);
                scratch.give_batch(batch);
            }
            scratch.sort_keys.reserve(1 << 14);
            scratch.selection.reserve(1 << 14);
            scratch.bounds.reserve(1 << 14);
            scratch.trim_retained();
            assert_eq!(
                (scratch.bits.len(), scratch.windows.len(), scratch.batches.len()),
                (kept.0, kept.1, 2)
            );
            let documents: usize = scratch.batches.iter().map(CandidateBatch::capacity).sum();
            assert_eq!(documents, 2 * WINDOW_DOCS);
            assert_eq!(
                scratch.sort_keys.capacity() + scratch.selection.capacity() + scratch.bounds.capacity(),
                0
            );
        }
    }
}
