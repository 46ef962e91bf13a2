//! Values to blocks.

use super::header::{Form, bitmap_len, constant_len};
use super::plan::choose;
use crate::bitpack::{self, Layout};
use crate::{BLOCK, vbyte};

/// Appends the shortest block of `values`, of which there are 1 to 256.
pub(crate) fn encode(values: &[u32], layout: Layout, out: &mut Vec<u8>) {
    let header = choose(values);
    let (start, width) = (out.len(), header.width);
    header.write(out);
    match header.form {
        Form::Plain => bitpack::pack(values, width, layout, out),
        Form::List { .. } => write_list(values, width, layout, out),
        Form::Bitmap { high_width, .. } => write_bitmap(values, width, high_width, layout, out),
        Form::Constant => out.extend_from_slice(&values[0].to_le_bytes()[..constant_len(width)]),
    }
    debug_assert_eq!(out.len() - start, header.block_len(values.len()));
}

fn write_list(values: &[u32], width: u32, layout: Layout, out: &mut Vec<u8>) {
    let exceptions = Exceptions::of(values, width);
    bitpack::pack(values, width, layout, out);
    vbyte::encode(exceptions.highs(), out);
    out.extend_from_slice(exceptions.positions());
}

fn write_bitmap(values: &[u32], width: u32, high_width: u32, layout: Layout, out: &mut Vec<u8>) {
    let exceptions = Exceptions::of(values, width);
    let mut bitmap = [0; BLOCK / 8];
    for position in exceptions.positions() {
        bitmap[usize::from(position / 8)] |= 1 << (position % 8);
    }
    out.extend_from_slice(&bitmap[..bitmap_len(values.len())]);
    bitpack::pack_horizontal(exceptions.highs(), high_width, out);
    bitpack::pack(values, width, layout, out);
}

/// The values wider than the low parts: their high parts and where they are.
struct Exceptions {
    highs: [u32; BLOCK],
    positions: [u8; BLOCK],
    count: usize,
}

impl Exceptions {
    fn of(values: &[u32], width: u32) -> Exceptions {
        let mut found = Exceptions { highs: [0; BLOCK], positions: [0; BLOCK], count: 0 };
        for (position, value) in values.iter().enumerate() {
            let high = value >> width;
            // Written in any case, kept if it is one: no branch on the data.
            found.highs[found.count] = high;
            found.positions[found.count] = position as u8;
            found.count += usize::from(high != 0);
        }
        found
    }

    fn highs(&self) -> &[u32] {
        &self.highs[..self.count]
    }

    fn positions(&self) -> &[u8] {
        &self.positions[..self.count]
    }
}
