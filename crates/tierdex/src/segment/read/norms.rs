//! Document lengths.

use crate::error::{Error, Result};
use crate::schema::NormKind;
use crate::transform::norm;
use tierdex_io::SealedFile;

/// Lengths of all documents of a segment.
pub enum Norms {
    /// Codes of [`crate::transform::norm`].
    Byte(Vec<u8>),
    /// Tokens.
    Exact(Vec<u32>),
}

impl Norms {
    /// Reads the whole file.
    pub fn read(file: &SealedFile, kind: NormKind, documents: u32) -> Result<Norms> {
        let width = match kind {
            NormKind::Byte => 1,
            NormKind::Exact => 4,
        };
        let payload = file.payload();
        if payload.end - payload.start != u64::from(documents) * width {
            return Err(Error::corrupt(file.name(), payload.end, "does not hold one length a document"));
        }
        let bytes = file.read(payload.start, documents as usize * width as usize)?;
        Ok(match kind {
            NormKind::Byte => Norms::Byte(bytes),
            NormKind::Exact => Norms::Exact(
                bytes.chunks_exact(4).map(|b| u32::from_le_bytes(*b.first_chunk().expect("four"))).collect(),
            ),
        })
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
