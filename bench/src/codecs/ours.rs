//! The contenders of this crate: the project's codecs, and copying for scale.

use super::contender::Contender;
use super::data::Kind;
use tierdex::codec::{Codec, Kernel};

/// Values of a block.
pub(super) const BLOCK: usize = tierdex::codec::BLOCK;

/// What [`Copy`] is called.
pub(super) const COPY: &str = "memcpy";

/// A codec of this project by one of its kernels.
pub struct Ours {
    codec: Codec,
    kernel: Kernel,
}

impl Ours {
    /// Every codec by `kernel`.
    pub fn all(kernel: Kernel) -> impl Iterator<Item = Ours> {
        Codec::ALL.iter().map(move |&codec| Ours { codec, kernel })
    }
}

impl Contender for Ours {
    type Word = u8;

    fn codec(&self) -> String {
        self.codec.name().to_string()
    }

    fn kernel(&self) -> String {
        self.kernel.name().to_string()
    }

    fn takes(&self, kind: Kind) -> bool {
        self.codec.is_delta() == (kind == Kind::Ids)
    }

    fn encode(&self, values: &[u32], prev: u32, out: &mut Vec<u8>) {
        self.codec.encode_with(self.kernel, values, prev, out);
    }

    #[inline]
    fn decode(&self, words: &[u8], prev: u32, out: &mut [u32]) -> Option<usize> {
        self.codec.decode_with(self.kernel, words, prev, out).ok()
    }
}

/// Values as they are, for scale.
pub(super) struct Copy;

impl Contender for Copy {
    type Word = u32;

    fn codec(&self) -> String {
        COPY.to_string()
    }

    fn kernel(&self) -> String {
        "-".to_string()
    }

    fn takes(&self, _: Kind) -> bool {
        true
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
