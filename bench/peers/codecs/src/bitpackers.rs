//! Crate `bitpacking`: blocks of 128 (`BitPacker4x`) and 256 (`BitPacker8x`) values at the width of the
//! widest.
//!
//! A block is its width in one byte, then the packed values: differences (`compress_sorted`) or differences
//! minus one (`compress_strictly_sorted`) for ids, the values for frequencies. The crate takes whole blocks
//! only; the rest of a list is left to [`plain`](crate::plain).

use crate::plain::{OWN, decode_short, encode_short, initial};
use bitpacking::{BitPacker, BitPacker4x, BitPacker8x};
use std::cell::RefCell;
use tierdex_bench::codecs::{Contender, ContenderInfo, Peer, ValueKind};

/// All forms of both sizes.
pub fn all() -> Vec<Box<dyn Peer>> {
    let mut all = Vec::new();
    for form in [Form::Sorted, Form::StrictlySorted, Form::Plain] {
        all.push(Packed::boxed("bitpacking-4x", BitPacker4x::new(), form));
        all.push(Packed::boxed("bitpacking-8x", BitPacker8x::new(), form));
    }
    all
}

/// The packed values: differences, differences minus one, or plain values.
#[derive(Clone, Copy, PartialEq)]
enum Form {
    Sorted,
    StrictlySorted,
    Plain,
}

struct Packed<P> {
    name: &'static str,
    packer: P,
    form: Form,
    packed: RefCell<[u8; PACKED_MAX]>,
}

/// Bytes of 256 values of 32 bits: the largest block.
const PACKED_MAX: usize = 1024;

impl<P: BitPacker + 'static> Packed<P> {
    fn boxed(name: &'static str, packer: P, form: Form) -> Box<dyn Peer> {
        Box::new(Packed { name, packer, form, packed: RefCell::new([0; PACKED_MAX]) })
    }

    fn kind(&self) -> ValueKind {
        if self.form == Form::Plain { ValueKind::Frequencies } else { ValueKind::Ids }
    }
}

/// The id before a block, in the form that the crate needs for differences minus one.
fn before(prev: u32) -> Option<u32> {
    (prev != u32::MAX).then_some(prev)
}

impl<P: BitPacker + 'static> Contender for Packed<P> {
    type Word = u8;

    fn info(&self) -> ContenderInfo {
        let form = match self.form {
            Form::Sorted => "-sorted",
            Form::StrictlySorted => "-strict",
            Form::Plain => "",
        };
        let codec = format!("{}{form}", self.name);
        ContenderInfo { codec, kernel: OWN, kind: Some(self.kind()) }
    }

    fn block(&self) -> usize {
        P::BLOCK_LEN
    }

    fn encode(&self, values: &[u32], prev: u32, out: &mut Vec<u8>) {
        if values.len() < P::BLOCK_LEN {
            return encode_short(self.kind(), values, prev, out);
        }
        let packed = &mut *self.packed.borrow_mut();
        let (width, len) = match self.form {
            Form::Sorted => {
                let width = self.packer.num_bits_sorted(initial(prev), values);
                (width, self.packer.compress_sorted(initial(prev), values, packed, width))
            }
            Form::StrictlySorted => {
                let width = self.packer.num_bits_strictly_sorted(before(prev), values);
                (width, self.packer.compress_strictly_sorted(before(prev), values, packed, width))
            }
            Form::Plain => {
                let width = self.packer.num_bits(values);
                (width, self.packer.compress(values, packed, width))
            }
        };
        out.push(width);
        out.extend_from_slice(&packed[..len]);
    }

    #[inline]
    fn decode(&self, bytes: &[u8], prev: u32, out: &mut [u32]) -> Option<usize> {
        if out.len() < P::BLOCK_LEN {
            return decode_short(self.kind(), bytes, prev, out);
        }
        let (&width, packed) = bytes.split_first()?;
        let used = match self.form {
            Form::Sorted => self.packer.decompress_sorted(initial(prev), packed, out, width),
            Form::StrictlySorted => self.packer.decompress_strictly_sorted(before(prev), packed, out, width),
            Form::Plain => self.packer.decompress(packed, out, width),
        };
        Some(1 + used)
    }
}
