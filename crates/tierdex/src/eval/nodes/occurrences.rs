//! Counts the occurrences of a phrase in a batch of candidates, with SIMD kernels over the positions.
//!
//! The *phrase end* of an occurrence of a term is its position plus the term's distance to the last term of
//! the phrase: the phrase occurs where all terms have the same phrase end. With slop, every match contains a
//! phrase end of the rarest term that is within the slop of one of each other term, and these are counted.
//! Those that are close only to ones of the previous round are not found, but the last phrase end of that
//! round is part of the same matches.
//!
//! 1. The phrase ends of the rarest term are collected, at most 256 per round, over several candidates.
//! 2. For each other term, the positions of these candidates, which are compressed in pieces of 256, are
//!    decoded to prefix sums. The sums of a candidate differ from its phrase ends by a constant.
//! 3. Phrase ends that are among the sums, or within the slop of one, are kept, with their candidates.
//!
//! Memory does not depend on the frequency of a term: a candidate with more phrase ends is continued in the
//! next round.

use crate::{
    Result, cursor::PositionsReader, eval::nodes::Term, eval::state::CandidateBatch,
    eval::state::buffers::FoundPostings, limits::BLOCK,
};
use std::mem::swap;
use tierdex_codec::{RUN_SLACK, RunPair, ValueRun, copy_runs, intersect_runs};

/// Arrays for the counting of a phrase, reused from batch to batch.
pub struct Occurrences {
    /// Phrase ends that all terms looked at so far have in common, candidate by candidate.
    phrase_ends: Box<PhraseEnds>,
    candidate_ends: Box<[CandidateEnds; BLOCK + 1]>,
    candidates: usize,
    /// The phrase ends and candidates that are left after the next term; swapped with the others then.
    kept_ends: Box<PhraseEnds>,
    kept_candidates: Box<[CandidateEnds; BLOCK + 1]>,
    runs: Box<[ValueRun; BLOCK]>,
    pairs: Box<[RunPair; BLOCK]>,
    batch: CandidateBatch,
}

/// Maximum bytes of [`Occurrences`], with what it allocates.
pub(crate) const OCCURRENCES_BYTES: usize = size_of::<Occurrences>()
    + 2 * size_of::<PhraseEnds>()
    + 2 * size_of::<[CandidateEnds; BLOCK + 1]>()
    + size_of::<[ValueRun; BLOCK]>()
    + size_of::<[RunPair; BLOCK]>()
    + 4 * BLOCK * size_of::<u32>();

/// Up to 256 phrase ends, with padding that SIMD stores may overwrite.
type PhraseEnds = [u32; BLOCK + RUN_SLACK];

/// Which phrase ends belong to a candidate: `len` of them from index `start` on.
#[derive(Clone, Copy, Default)]
struct CandidateEnds {
    candidate: u8,
    start: u16,
    len: u16,
}

/// A term of a phrase: its list, and its reader of positions.
pub(crate) struct PhraseTerm<'a> {
    /// Index of the term in the phrase.
    pub(crate) number: usize,
    /// Distance to the last term, in positions.
    pub(crate) distance: u32,
    pub(crate) term: Box<Term<'a>>,
    pub(crate) positions: PositionsReader<'a>,
    pub(crate) read_position: ReadPosition,
}

/// Where the reading of the positions of a term continues in the next round: at the candidate with number
/// `candidate`, after its first `taken` positions, all of which are less than `end`.
#[derive(Clone, Copy, Default)]
pub(crate) struct ReadPosition {
    candidate: usize,
    taken: u32,
    end: u32,
}

impl ReadPosition {
    /// Moves to the first position of a candidate, unless it was there or after it.
    fn move_to(&mut self, candidate: usize) {
        if self.candidate != candidate {
            *self = ReadPosition { candidate, ..ReadPosition::default() };
        }
    }
}

impl Default for Occurrences {
    fn default() -> Occurrences {
        Occurrences {
            phrase_ends: Box::new([0; _]),
            candidate_ends: Box::new([CandidateEnds::default(); _]),
            candidates: 0,
            kept_ends: Box::new([0; _]),
            kept_candidates: Box::new([CandidateEnds::default(); _]),
            runs: Box::new([ValueRun::default(); _]),
            pairs: Box::new([RunPair::default(); _]),
            batch: CandidateBatch::default(),
        }
    }
}

impl Occurrences {
    /// Adds the number of occurrences of the phrase to the frequency of each candidate; with slop, the number
    /// of phrase ends of the rarest term that are within `slop` of one of each other term. The candidates
    /// have been found in the lists of the first `looked_up_first` terms; in the others only remaining
    /// candidates are looked up.
    pub(crate) fn count_in(
        &mut self,
        terms: &mut [PhraseTerm<'_>],
        looked_up_first: usize,
        slop: u32,
        documents: &[u32],
        frequencies: &mut [u32],
    ) -> Result<()> {
        terms.iter_mut().for_each(|term| term.read_position = ReadPosition::default());
        let Some((rarest, others)) = terms.split_first_mut() else { return Ok(()) };
        while rarest.read_position.candidate < frequencies.len() {
            self.collect_phrase_ends(rarest, frequencies.len())?;
            for (number, other) in (1..).zip(&mut *others) {
                if number >= looked_up_first {
                    self.look_up_remaining(other, documents)?;
                }
                self.keep_close_ends(other, slop)?;
            }
            for CandidateEnds { candidate, len, .. } in &self.candidate_ends[..self.candidates] {
                frequencies[usize::from(*candidate)] += u32::from(*len);
            }
        }
        Ok(())
    }

    /// Fills `phrase_ends` with those of the rarest term in the next candidates.
    fn collect_phrase_ends(&mut self, phrase_term: &mut PhraseTerm<'_>, candidates: usize) -> Result<()> {
        let PhraseTerm { term, positions, distance, read_position, .. } = phrase_term;
        let FoundPostings { blocks, offsets, .. } = &term.buffers.found;
        let (mut next, mut n, mut len) = (read_position.candidate, 0, 0);
        while next < candidates && len < BLOCK {
            let block = blocks[next];
            let following = || {
                let later = &blocks[next..candidates];
                later.get(later.partition_point(|later| *later <= block)).copied()
            };
            term.blocks.move_positions(block as usize, positions, following)?;
            let piece = (positions.starts()[usize::from(offsets[next])] + read_position.taken) / BLOCK as u32;
            positions.decode(piece)?;
            let (starts, sums) = (positions.starts(), positions.sums());
            let (piece_start, filled) = (piece * BLOCK as u32, len);
            let mut runs = 0;
            while next < candidates && blocks[next] == block {
                let offset = usize::from(offsets[next]);
                let (start, end) = (starts[offset] + read_position.taken, starts[offset + 1]);
                let from = (start - piece_start) as usize;
                let to = ((end - piece_start) as usize).min(BLOCK).min(from + BLOCK - len);
                if to <= from {
                    break;
                }
                let count = (to - from) as u16;
                if read_position.taken > 0 && n > 0 {
                    self.candidate_ends[n - 1].len += count;
                } else {
                    self.candidate_ends[n] =
                        CandidateEnds { candidate: next as u8, start: len as u16, len: count };
                    n += 1;
                }
                let base = sums[from].wrapping_sub(read_position.end).wrapping_add(1);
                let add = distance.wrapping_sub(base);
                self.runs[runs] = ValueRun { start: from as u16, len: count, add };
                (runs, len) = (runs + 1, len + to - from);
                if piece_start + (to as u32) < end {
                    read_position.taken += u32::from(count);
                    read_position.end = sums[to].wrapping_sub(base).wrapping_add(1);
                    break;
                }
                (next, *read_position) = (next + 1, ReadPosition::default());
            }
            copy_runs(sums_in_piece(sums), &self.runs[..runs], &mut self.phrase_ends[filled..]);
        }
        (read_position.candidate, self.candidates) = (next, n);
        Ok(())
    }

    /// Looks up the candidates that still have phrase ends in the list of a term, and drops those not found.
    fn look_up_remaining(&mut self, phrase_term: &mut PhraseTerm<'_>, documents: &[u32]) -> Result<()> {
        self.batch.clear();
        let of_candidate = |of: &CandidateEnds| documents[usize::from(of.candidate)];
        self.batch.documents.extend(self.candidate_ends[..self.candidates].iter().map(of_candidate));
        self.batch.scores.resize(self.candidates, 0);
        phrase_term.term.find_candidates(&mut self.batch, 0, 0)?;
        let mut kept = 0;
        for at in 0..self.candidates {
            let of = self.candidate_ends[at];
            self.candidate_ends[kept] = of;
            kept += usize::from(self.batch.documents.get(kept) == Some(&of_candidate(&of)));
        }
        self.candidates = kept;
        // Move each found posting to the index of its candidate, as in the lists looked up first.
        let found = &mut phrase_term.term.buffers.found;
        for (from, of) in self.candidate_ends[..kept].iter().enumerate().rev() {
            let to = usize::from(of.candidate);
            (found.blocks[to], found.offsets[to]) = (found.blocks[from], found.offsets[from]);
        }
        Ok(())
    }

    /// Keeps the phrase ends that differ by at most `slop` from one of a term.
    fn keep_close_ends(&mut self, phrase_term: &mut PhraseTerm<'_>, slop: u32) -> Result<()> {
        let (mut next, mut kept) = (0, KeptEnds::default());
        while next < self.candidates {
            // Decode the piece with the next positions of the next candidate.
            let PhraseTerm { term, positions, read_position, .. } = &mut *phrase_term;
            let FoundPostings { blocks, offsets, .. } = &term.buffers.found;
            let all = &self.candidate_ends[next..self.candidates];
            let candidate = usize::from(all[0].candidate);
            read_position.move_to(candidate);
            let (pairs_of, is_resumed, block) = (next, read_position.taken > 0, blocks[candidate]);
            let following = || {
                let at = all.partition_point(|of| blocks[usize::from(of.candidate)] <= block);
                all.get(at).map(|of| blocks[usize::from(of.candidate)])
            };
            term.blocks.move_positions(block as usize, positions, following)?;
            let first = positions.starts()[usize::from(offsets[candidate])] + read_position.taken;
            positions.decode(first / BLOCK as u32)?;

            // Intersect it with the phrase ends, and append those that are kept.
            let pairs = self.pair_with_piece(phrase_term, first / BLOCK as u32, &mut next);
            let (sums, pairs) = (sums_in_piece(phrase_term.positions.sums()), &mut self.pairs[..pairs]);
            intersect_runs(&self.phrase_ends, sums, slop, pairs, &mut self.kept_ends[kept.len..]);
            kept.append(&mut self.kept_candidates[..], &self.candidate_ends[pairs_of..], pairs, is_resumed);

            // The next piece decides on the phrase ends after the last that is kept: it is not close to any
            // other before.
            let last = kept.candidates.checked_sub(1).map(|last| self.kept_candidates[last].candidate);
            let of = &mut self.candidate_ends[next];
            if next < self.candidates && last == Some(of.candidate) {
                let ends = &self.phrase_ends[usize::from(of.start)..][..usize::from(of.len)];
                let decided = ends.partition_point(|end| *end <= self.kept_ends[kept.len - 1]) as u16;
                (of.start, of.len) = (of.start + decided, of.len - decided);
                next += usize::from(of.len == 0);
            }
        }
        swap(&mut self.phrase_ends, &mut self.kept_ends);
        swap(&mut self.candidate_ends, &mut self.kept_candidates);
        self.candidates = kept.candidates;
        Ok(())
    }

    /// Pairs the phrase ends of each candidate, from `next` on, that has positions in a decoded piece with
    /// these. Returns the number of pairs; `next` is then the first candidate that needs another piece.
    fn pair_with_piece(&mut self, phrase_term: &mut PhraseTerm<'_>, piece: u32, next: &mut usize) -> usize {
        let PhraseTerm { term, positions, distance, read_position, .. } = phrase_term;
        let FoundPostings { blocks, offsets, .. } = &term.buffers.found;
        let (starts, sums, piece_start) = (positions.starts(), positions.sums(), piece * BLOCK as u32);
        let all = &self.candidate_ends[..self.candidates];
        let block = blocks[usize::from(all[*next].candidate)];
        let mut pairs = 0;
        while let Some(of) = all.get(*next)
            && blocks[usize::from(of.candidate)] == block
        {
            read_position.move_to(usize::from(of.candidate));
            let offset = usize::from(offsets[usize::from(of.candidate)]);
            let (start, end) = (starts[offset] + read_position.taken, starts[offset + 1]);
            let from = (start - piece_start) as usize;
            let to = ((end - piece_start) as usize).min(BLOCK);
            if to <= from {
                break;
            }
            let base = sums[from].wrapping_sub(read_position.end).wrapping_add(1);
            let add = distance.wrapping_sub(base);
            let second = ValueRun { start: from as u16, len: (to - from) as u16, add };
            self.pairs[pairs] = RunPair { first: of.start, first_len: of.len, second, shared: 0 };
            pairs += 1;
            let last_end = self.phrase_ends[usize::from(of.start + of.len) - 1];
            if piece_start + (to as u32) < end && sums[to].wrapping_add(add) < last_end {
                read_position.taken += (to - from) as u32;
                read_position.end = sums[to].wrapping_sub(base).wrapping_add(1);
                break;
            }
            *next += 1;
        }
        debug_assert!(pairs > 0, "a candidate has positions in its current piece");
        pairs
    }
}

/// How much of the arrays of kept candidates and of kept phrase ends is filled.
#[derive(Default)]
struct KeptEnds {
    candidates: usize,
    len: usize,
}

impl KeptEnds {
    /// Appends to `to` the candidates of `pairs` that share phrase ends with the term. If `is_resumed`, the
    /// first candidate may be the last of `to`, appended for its previous piece of positions; then it is
    /// extended.
    fn append(
        &mut self,
        to: &mut [CandidateEnds],
        of: &[CandidateEnds],
        pairs: &[RunPair],
        is_resumed: bool,
    ) {
        for (number, (pair, of)) in pairs.iter().zip(of).enumerate() {
            let last = self.candidates.checked_sub(1).map(|last| &mut to[last]);
            match last {
                Some(last) if number == 0 && is_resumed && last.candidate == of.candidate => {
                    last.len += pair.shared;
                }
                _ => {
                    let start = self.len as u16;
                    to[self.candidates] = CandidateEnds { candidate: of.candidate, start, len: pair.shared };
                    self.candidates += usize::from(pair.shared > 0);
                }
            }
            self.len += usize::from(pair.shared);
        }
    }
}

/// The prefix sums of a piece of positions, without the sum before its first position.
fn sums_in_piece(sums: &[u32; 1 + BLOCK + RUN_SLACK]) -> &[u32; BLOCK + RUN_SLACK] {
    sums[1..].first_chunk().expect("the array is longer by one")
}
