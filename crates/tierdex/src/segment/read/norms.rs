//! Reads document lengths.

use crate::{Error, Result, schema::NormKind, transform::norm};
use tierdex_io::{Arena, ResidentBytes, SealedFile};

/// Lengths of all documents of a segment.
pub enum Norms {
    /// Lengths as one-byte codes ([`crate::transform::norm`]).
    Byte(ResidentBytes),
    /// Lengths in tokens.
    Exact(ExactLengths),
}

/// Lengths of all documents in tokens, as little-endian `u32`.
pub struct ExactLengths(ResidentBytes);

impl ExactLengths {
    /// Length of a document.
    #[inline]
    pub fn get(&self, document: u32) -> u32 {
        let start = 4 * document as usize;
        u32::from_le_bytes(*self.0[start..].first_chunk().expect("a length has four bytes"))
    }

    /// The lengths as they are stored in the file.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl From<&[u32]> for ExactLengths {
    fn from(lengths: &[u32]) -> ExactLengths {
        ExactLengths(lengths.iter().flat_map(|length| length.to_le_bytes()).collect::<Vec<u8>>().into())
    }
}

impl Norms {
    /// Reads the whole file, into `arena` if given.
    pub fn read(
        file: &SealedFile,
        kind: NormKind,
        documents: u32,
        arena: Option<&mut Arena>,
    ) -> Result<Norms> {
        let width = match kind {
            NormKind::Byte => 1,
            NormKind::Exact => 4,
        };
        let payload = file.payload();
        if payload.end - payload.start != u64::from(documents) * width {
            return Err(Error::corrupt(file.name(), payload.end, "does not hold one length a document"));
        }
        file.load_into(arena)?;
        let bytes = file.resident().expect("`load_into` makes the file resident").clone();
        Ok(match kind {
            NormKind::Byte => Norms::Byte(bytes),
            NormKind::Exact => Norms::Exact(ExactLengths(bytes)),
        })
    }

    /// Upper bound of the document lengths in tokens.
    pub fn longest(&self) -> u32 {
        match self {
            Norms::Byte(codes) => codes.iter().max().map_or(0, |code| norm::ceiling(*code)),
            Norms::Exact(lengths) => {
                lengths.0.as_chunks().0.iter().map(|length| u32::from_le_bytes(*length)).max().unwrap_or(0)
            }
        }
    }

    /// Length of a document as a one-byte code.
    pub fn code(&self, document: u32) -> u8 {
        match self {
            Norms::Byte(codes) => codes[document as usize],
            Norms::Exact(lengths) => norm::encode(lengths.get(document)),
        }
    }

    /// Length of a document in tokens for scores: exact, or the length that its code stands for.
    pub fn length(&self, document: u32) -> f32 {
        match self {
            Norms::Byte(codes) => norm::length(codes[document as usize]),
            Norms::Exact(lengths) => lengths.get(document) as f32,
        }
    }
}
