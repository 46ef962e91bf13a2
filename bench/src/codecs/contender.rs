//! Who takes part: ways to write and read lists.
//!
//! You have a block of values and the one before it; a [`Contender`] writes it and reads it back. Whatever it needs
//! for that, differences and sums too, is done inside its two functions and so counted in its time. A contender
//! must not know the lists, the clock or the others.

use super::buffers::Word;
use super::data::{Group, Kind};
use super::measure::{Cell, Encoded};
use super::ours::BLOCK;
use crate::Result;

/// A way to write blocks of values and to read them.
pub trait Contender {
    /// Bytes or words of four bytes, as the format has it.
    type Word: Word;

    /// Name of the codec.
    fn codec(&self) -> String;

    /// Name of the instruction set or the library, `-` for none.
    fn kernel(&self) -> String;

    /// Whether it is for such values.
    fn takes(&self, kind: Kind) -> bool;

    /// The most values that one call is given; only the last block of a list has fewer.
    fn block(&self) -> usize {
        BLOCK
    }

    /// Appends the block of `values`; `prev` stands before the first, `u32::MAX` for the start of a list.
    fn encode(&self, values: &[u32], prev: u32, out: &mut Vec<Self::Word>);

    /// Reads `out.len()` values from the front of `words` and returns the number of words that they took; `None`
    /// if they cannot be read.
    fn decode(&self, words: &[Self::Word], prev: u32, out: &mut [u32]) -> Option<usize>;
}

/// A [`Contender`] whose words nobody needs to know.
pub trait Peer {
    /// As [`Contender::codec`].
    fn codec(&self) -> String;

    /// As [`Contender::kernel`].
    fn kernel(&self) -> String;

    /// As [`Contender::takes`].
    fn takes(&self, kind: Kind) -> bool;

    /// Encodes a group and checks that it comes back.
    ///
    /// # Errors
    /// If it does not.
    fn enter<'a>(&'a self, group: &'a Group) -> Result<Box<dyn Cell + 'a>>;
}

impl<C: Contender> Peer for C {
    fn codec(&self) -> String {
        Contender::codec(self)
    }

    fn kernel(&self) -> String {
        Contender::kernel(self)
    }

    fn takes(&self, kind: Kind) -> bool {
        Contender::takes(self, kind)
    }

    fn enter<'a>(&'a self, group: &'a Group) -> Result<Box<dyn Cell + 'a>> {
        Ok(Box::new(Encoded::new(self, group)?))
    }
}
