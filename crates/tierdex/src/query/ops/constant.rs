//! Documents that all score the same.

use super::window::Window;

/// Documents of a segment.
pub enum Documents {
    /// All below this one.
    All(u32),
    /// These, in order.
    Few(Vec<u32>),
    /// Those whose bit is set.
    Many(Vec<u64>),
}

impl Documents {
    /// Room for those of up to `postings` postings, among `documents`: whichever takes less of it.
    pub fn with_room(postings: u64, documents: u32) -> Documents {
        let words = documents.div_ceil(64) as usize;
        if postings < 2 * words as u64 {
            Documents::Few(Vec::with_capacity(postings as usize))
        } else {
            Documents::Many(vec![0; words])
        }
    }

    /// Adds documents of the segment, in any order.
    pub fn add(&mut self, documents: &[u32]) {
        match self {
            Documents::All(_) => {}
            Documents::Few(few) => few.extend_from_slice(documents),
            Documents::Many(bits) => {
                for document in documents {
                    bits[(document / 64) as usize] |= 1 << (document % 64);
                }
            }
        }
    }

    /// To be called when all have been added.
    pub fn finish(mut self) -> Documents {
        if let Documents::Few(few) = &mut self {
            few.sort_unstable();
            few.dedup();
        }
        self
    }

    /// The first from `from` on.
    fn next(&self, from: u32) -> Option<u32> {
        match self {
            Documents::All(end) => Some(from).filter(|from| from < end),
            Documents::Few(few) => few.get(few.partition_point(|document| *document < from)).copied(),
            Documents::Many(bits) => {
                let first = (from / 64) as usize;
                let rest = bits.get(first)? & (u64::MAX << (from % 64));
                let words = std::iter::once(rest).chain(bits[first + 1..].iter().copied());
                let (number, word) = words.enumerate().find(|(_, word)| *word != 0)?;
                Some((first + number) as u32 * 64 + word.trailing_zeros())
            }
        }
    }
}

/// Gives each of some documents the same score.
pub struct ConstantOp {
    documents: Documents,
    score: f32,
}

impl ConstantOp {
    pub(crate) fn new(documents: Documents, score: f32) -> ConstantOp {
        ConstantOp { documents, score }
    }

    pub(super) fn next(&self, from: u32) -> Option<u32> {
        self.documents.next(from)
    }

    pub(super) fn accumulate(&mut self, window: &mut Window) {
        let mut from = window.base();
        while let Some(document) = self.documents.next(from).filter(|document| *document < window.end()) {
            window.add(document, self.score);
            from = document + 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn both_forms_hold_the_same(mut documents in prop::collection::vec(0u32..1000, 0..200), from in 0u32..1100) {
            let few = Documents::Few(Vec::new());
            let many = Documents::with_room(u64::MAX, 1000);
            prop_assert!(matches!(many, Documents::Many(_)));
            let [few, many] = [few, many].map(|mut set| {
                documents.chunks(7).for_each(|some| set.add(some));
                set.finish()
            });
            documents.sort_unstable();
            let expected = documents.iter().copied().find(|document| *document >= from);
            prop_assert_eq!(few.next(from), expected);
            prop_assert_eq!(many.next(from), expected);
        }
    }
}
