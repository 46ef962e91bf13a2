//! The contenders of this crate: the project's codecs, and `memcpy` as a reference.

use crate::codecs::{contender::Contender, contender::ContenderInfo, list_group::ValueKind};
use tierdex::codec::{Codec, Kernel};

/// A codec of this project with one of its kernels.
pub(super) struct OwnCodec {
    codec: Codec,
    kernel: Kernel,
}

impl OwnCodec {
    /// Every codec with `kernel`.
    pub(super) fn all(kernel: Kernel) -> impl Iterator<Item = OwnCodec> {
        Codec::ALL.iter().map(move |&codec| OwnCodec { codec, kernel })
    }
}

impl Contender for OwnCodec {
    type Word = u8;

    fn info(&self) -> ContenderInfo {
        let kind = if self.codec.is_delta() { ValueKind::Ids } else { ValueKind::Frequencies };
        ContenderInfo { codec: self.codec.name().to_string(), kernel: self.kernel.name(), kind: Some(kind) }
    }

    fn encode(&self, values: &[u32], prev: u32, out: &mut Vec<u8>) {
        self.codec.encode_with(self.kernel, values, prev, out);
    }

    #[inline]
    fn decode(&self, words: &[u8], prev: u32, out: &mut [u32]) -> Option<usize> {
        self.codec.decode_with(self.kernel, words, prev, out).ok()
    }
}

/// Copies values, as a reference for the speed.
pub(super) struct Memcpy;

impl Contender for Memcpy {
    type Word = u32;

    fn info(&self) -> ContenderInfo {
        ContenderInfo { codec: "memcpy".to_string(), kernel: "-", kind: None }
    }

    fn encode(&self, values: &[u32], _: u32, out: &mut Vec<u32>) {
        out.extend_from_slice(values);
    }

    #[inline]
    fn decode(&self, words: &[u32], _: u32, out: &mut [u32]) -> Option<usize> {
        out.copy_from_slice(words.get(..out.len())?);
        Some(out.len())
    }
}
