//! Document lengths.

use crate::error::{Error, Result};
use crate::schema::NormKind;
use crate::transform::norm;
use tierdex_io::{Arena, Kept, SealedFile};

/// Lengths of all documents of a segment.
pub enum Norms {
    /// Codes of [`crate::transform::norm`].
    Byte(Kept),
    /// Tokens.
    Exact(Vec<u32>),
}

impl Norms {
    /// Reads the whole file. Codes are kept in `arena`, if there is one.
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
                file.keep_in(arena)?;
                Ok(Norms::Byte(file.kept().expect("it was kept").clone()))
            }
            NormKind::Exact => {
                let bytes = file.read(payload.start, documents as usize * width as usize)?;
                let lengths =
                    bytes.chunks_exact(4).map(|b| u32::from_le_bytes(*b.first_chunk().expect("four")));
                Ok(Norms::Exact(lengths.collect()))
            }
        }
    }

    /// Code of a document's length.
    pub fn code(&self, document: u32) -> u8 {
        match self {
            Norms::Byte(codes) => codes[document as usize],
            Norms::Exact(lengths) => norm::encode(lengths[document as usize]),
        }
    }

    /// Length of a document as ranking sees it.
    pub fn length(&self, document: u32) -> f32 {
        match self {
            Norms::Byte(codes) => norm::length(codes[document as usize]),
            Norms::Exact(lengths) => lengths[document as usize] as f32,
        }
    }
}
