//! The interface of the codecs that are compared.
//!
//! A [`Contender`] encodes and decodes one block of values, given the value before it. Differences and
//! prefix sums are part of the two functions, and so part of the measured time. [`Peer`] is the same without
//! the word type, and [`EncodedGroup`] is the encoding of a group by one contender.

use crate::Result;
use crate::codecs::{buffers::Buffers, buffers::EncodedWord, list_group::ListGroup, list_group::ValueKind};
use tierdex::codec::BLOCK;

/// What a contender is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContenderInfo {
    /// Name of the codec.
    pub codec: String,
    /// Name of the kernel, `-` for none.
    pub kernel: &'static str,
    /// The only kind of values that the codec encodes; `None` if it encodes both.
    pub kind: Option<ValueKind>,
}

impl ContenderInfo {
    /// Whether the codec encodes values of this kind.
    pub fn takes(&self, kind: ValueKind) -> bool {
        self.kind.is_none_or(|only| only == kind)
    }
}

/// Encodes and decodes blocks of values.
pub trait Contender {
    /// The unit of the encoded form: bytes or words of four bytes.
    type Word: EncodedWord;

    /// What it is.
    fn info(&self) -> ContenderInfo;

    /// Values of a block. Only the last block of a list has fewer.
    fn block(&self) -> usize {
        BLOCK
    }

    /// Encodes a block and appends it to `out`. `prev` is the value before the block, `u32::MAX` at the
    /// start of a list.
    fn encode(&self, values: &[u32], prev: u32, out: &mut Vec<Self::Word>);

    /// Decodes `out.len()` values from the beginning of `words` and returns the number of words consumed;
    /// `None` if they cannot be decoded.
    fn decode(&self, words: &[Self::Word], prev: u32, out: &mut [u32]) -> Option<usize>;
}

/// A [`Contender`] as a trait object, whose unit of encoding is hidden.
pub trait Peer {
    /// See [`Contender::info`].
    fn info(&self) -> ContenderInfo;

    /// Encodes a group and checks the round trip.
    ///
    /// # Errors
    /// If the decoded values differ.
    fn enter<'a>(&'a self, group: &'a ListGroup) -> Result<Box<dyn EncodedGroup + 'a>>;
}

/// The encoding of one group by one contender, ready to be timed.
pub trait EncodedGroup {
    /// Encoded bytes of all lists.
    fn bytes(&self) -> u64;

    /// Decodes each list block by block into a buffer of one block.
    fn decode_l1(&self, buffers: &mut Buffers);

    /// Decodes each list into memory that no cache holds.
    fn decode_ram(&self, buffers: &mut Buffers);

    /// Encodes each list into a vector that is already allocated.
    fn encode(&self, buffers: &mut Buffers);
}
