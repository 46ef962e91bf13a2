//! Blocks of 64-bit values: encoders, decoders and comparisons access nothing outside their slices.
//!
//! Every kernel runs on blocks of every width and length, directly after a guard page and directly before
//! one. That the guards work is checked in `guard_pages`.

mod pages;
mod samples;

use pages::{Guarded, Pages, Side};
use samples::Random;
use tierdex_codec::{BLOCK, Kernel, WideBlock};

#[global_allocator]
static ALLOCATOR: Guarded = Guarded;

/// Guarded pages for the bytes and for the values of a block.
struct WidePages {
    bytes: Pages,
    values: Pages,
}

impl WidePages {
    /// Encodes a copy of `values`, which is adjacent to a guard, to a vector that ends at one.
    fn encode(&mut self, kernel: Kernel, side: Side, values: &[u64], block: WideBlock, expect: &[u8]) {
        let copy = self.values.keys(side, values.len());
        copy.copy_from_slice(values);
        Guarded::vectors(|| {
            let mut bytes = Vec::new();
            let found = WideBlock::encode_with(kernel, copy, &mut bytes);
            assert!(expect.is_empty() || Guarded::holds(&bytes), "the vector was not guarded");
            assert!(found == block && bytes == expect, "{kernel:?}, {side:?}, {block:?}");
        });
    }

    /// Reads a copy of the block, which is adjacent to a guard, in each way. Decoded values are adjacent to a
    /// guard on the same side.
    fn read(&mut self, kernel: Kernel, side: Side, values: &[u64], block: WideBlock, bytes: &[u8]) {
        let copy = self.bytes.bytes(side, bytes.len());
        copy.copy_from_slice(bytes);
        let view = block.view(copy).expect("a block");
        let out = self.values.keys(side, values.len());
        out.fill(0x5555_5555_5555_5555);
        view.decode_with(kernel, out);
        assert!(out == values, "{kernel:?}, {side:?}, {block:?}");
        assert!((0..block.len).all(|k| view.value(k) == values[k]), "{side:?}, {block:?}");
        let (low, high) = (values[0].min(values[block.len / 2]), values[0].max(values[block.len / 2]));
        let mut expect = [0; 4];
        for (k, value) in values.iter().enumerate() {
            expect[k / 64] |= u64::from((low..=high).contains(value)) << (k % 64);
        }
        assert_eq!(view.between_with(kernel, low, high), expect, "{kernel:?}, {side:?}, {block:?}");
    }
}

#[test]
fn every_width_and_length_stays_between_guard_pages() {
    let mut pages = WidePages { bytes: Pages::new(8 * BLOCK), values: Pages::new(8 * BLOCK) };
    let (mut random, kernels, mut widths) = (Random(21), Kernel::available(), [0; 65]);
    for width in 0..=64 {
        let most = u64::MAX.checked_shr(64 - width).unwrap_or(0);
        let mut values: Vec<u64> = (0..BLOCK).map(|_| random.next() & most).collect();
        values[..2].copy_from_slice(&[most, 0]);
        for n in 1..=BLOCK {
            let mut bytes = Vec::new();
            let block = WideBlock::encode_with(Kernel::SCALAR, &values[..n], &mut bytes);
            widths[usize::from(block.width)] += 1;
            for kernel in &kernels {
                for side in Side::ALL {
                    pages.encode(*kernel, side, &values[..n], block, &bytes);
                    pages.read(*kernel, side, &values[..n], block, &bytes);
                }
            }
        }
    }
    assert!(widths.iter().all(|count| *count >= BLOCK - 1), "{widths:?}");
}
