//! Reads document lengths.

use crate::error::{Error, Result};
use crate::schema::NormKind;
use crate::transform::norm;
use tierdex_io::{Arena, ResidentBytes, SealedFile};

/// Bytes per read, a multiple of four.
const PIECE: usize = 1 << 20;

/// Lengths of all documents of a segment.
pub enum Norms {
    /// Codes of [`crate::transform::norm`].
    Byte(ResidentBytes),
    /// Lengths in tokens.
    Exact(Vec<u32>),
}

impl Norms {
    /// Reads the whole file. Codes are stored in `arena` if given.
    pub fn read(
        file: &SealedFile,
        (kind, documents): (NormKind, u32),
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
        match kind {
            NormKind::Byte => {
                file.load_into(arena)?;
                Ok(Norms::Byte(file.resident().expect("`load_into` makes the file resident").clone()))
            }
            NormKind::Exact => {
                let mut lengths = Vec::with_capacity(documents as usize);
                let mut piece = Vec::new();
                for start in payload.clone().step_by(PIECE) {
                    file.read_into(start, (payload.end - start).min(PIECE as u64) as usize, &mut piece)?;
                    let numbers =
                        piece.chunks_exact(4).map(|b| u32::from_le_bytes(*b.first_chunk().expect("four")));
                    lengths.extend(numbers);
                }
                Ok(Norms::Exact(lengths))
            }
        }
    }

    /// Upper bound of the document lengths in tokens.
    pub fn longest(&self) -> u32 {
        match self {
            Norms::Byte(codes) => codes.iter().max().map_or(0, |code| norm::ceiling(*code)),
            Norms::Exact(lengths) => lengths.iter().copied().max().unwrap_or(0),
        }
    }

    /// Norm code of a document.
    pub fn code(&self, document: u32) -> u8 {
        match self {
            Norms::Byte(codes) => codes[document as usize],
            Norms::Exact(lengths) => norm::encode(lengths[document as usize]),
        }
    }

    /// Length of a document that ranking uses.
    pub fn length(&self, document: u32) -> f32 {
        match self {
            Norms::Byte(codes) => norm::length(codes[document as usize]),
            Norms::Exact(lengths) => lengths[document as usize] as f32,
        }
    }
}
