//! Encoders and decoders access nothing outside their slices: a byte before or after would cause a fault.
//!
//! Every codec and kernel runs on lists of every width and of every length up to 1,024, directly after a
//! guard page and directly before one.

mod pages;
mod samples;

use pages::{Guarded, Pages, Side};
use samples::{Random, VALUE_BEFORE_LIST, encode_list, random_values, values_of_gaps};
use std::{env, os::unix::process::ExitStatusExt, process::Command};
use tierdex_codec::{BLOCK, Codec, Kernel};

#[global_allocator]
static ALLOCATOR: Guarded = Guarded;

/// Maximum length of a list.
const LEN_MAX: usize = 4 * BLOCK;

/// Environment variable of a child process that is expected to fault: the side of the guard page that it
/// touches.
const TOUCH_VARIABLE: &str = "TIERDEX_TEST_TOUCH";

/// Guarded pages for the bytes and for the values of a decoder or an encoder.
struct CodecPages {
    bytes: Pages,
    values: Pages,
}

impl CodecPages {
    fn new() -> CodecPages {
        let len = Codec::ALL.iter().map(|codec| codec.max_len(BLOCK)).max().expect("there are codecs");
        CodecPages {
            bytes: Pages::new(LEN_MAX / BLOCK * len),
            values: Pages::new(size_of::<u32>() * LEN_MAX),
        }
    }

    /// Decodes a list from a copy of `bytes` to values, both adjacent to a guard on the same side, and
    /// compares.
    fn decode(&mut self, kernel: Kernel, codec: Codec, side: Side, bytes: &[u8], expect: &[u32]) {
        let copy = self.bytes.bytes(side, bytes.len());
        copy.copy_from_slice(bytes);
        let out = self.values.values(side, expect.len());
        out.fill(0x5555_5555);
        let (mut used, mut last) = (0, VALUE_BEFORE_LIST);
        for block in out.chunks_mut(BLOCK) {
            used += codec.decode_with(kernel, &copy[used..], last, block).expect("the list is good");
            last = block[block.len() - 1];
        }
        let n = expect.len();
        assert!(used == bytes.len() && out == expect, "{kernel:?}, {}, {side:?}, {n} values", codec.name());
    }

    /// Encodes a copy of the last block of `values`, which is adjacent to a guard, to a vector that ends at
    /// one.
    fn encode(&mut self, kernel: Kernel, codec: Codec, side: Side, values: &[u32], expect: &[u8]) {
        let before = (values.len() - 1) / BLOCK * BLOCK;
        let prev = before.checked_sub(1).map_or(VALUE_BEFORE_LIST, |k| values[k]);
        let copy = self.values.values(side, values.len() - before);
        copy.copy_from_slice(&values[before..]);
        Guarded::vectors(|| {
            let mut bytes = Vec::new();
            codec.encode_with(kernel, copy, prev, &mut bytes);
            assert!(Guarded::holds(&bytes), "the vector was not guarded");
            let n = values.len();
            assert!(expect.ends_with(&bytes), "{kernel:?}, {}, {side:?}, {n} values", codec.name());
        });
    }
}

/// The forms and widths of PFor blocks that were written: `[form][width]`.
struct WrittenForms([[bool; 33]; 4]);

impl WrittenForms {
    fn add_first_block(&mut self, codec: Codec, list: &[u8]) {
        if matches!(codec, Codec::Pfor256 | Codec::Pfor256Delta) && !list.is_empty() {
            self.0[usize::from(list[0] >> 6)][usize::from(list[0] & 0x3f)] = true;
        }
    }

    /// Checks that all possible combinations were written. Impossible are bitmaps at 31 bits, which save
    /// nothing, exceptions of more than 32 bits, and constant zeros, which are plain.
    fn assert_complete(&self) {
        for (form, widths) in [(0, 0..33), (1, 0..32), (2, 0..31), (3, 1..33)] {
            for width in widths {
                assert!(self.0[form][width], "no PFor block of form {form} at {width} bits");
            }
        }
    }
}

/// Four lists of which most blocks are plain, sparse, bitmap and constant, at this width.
fn lists_of_width(width: u32) -> [Vec<u32>; 4] {
    let mut random = Random(u64::from(width));
    let widest = u32::MAX.checked_shr(32 - width).unwrap_or(0);
    let mut plain = random_values(&mut random, LEN_MAX, width, 0, 0);
    plain[0] = widest;
    let few = random_values(&mut random, LEN_MAX, width, 40, 32);
    let many = random_values(&mut random, LEN_MAX, width, 5, 32);
    [plain, few, many, vec![widest; LEN_MAX]]
}

/// Calls `check` with codec, values and bytes, for all codecs, widths, forms and lengths of lists.
fn each_list(mut check: impl FnMut(Codec, &[u32], &[u8])) {
    for width in 0..=32 {
        for gaps in lists_of_width(width) {
            for &codec in Codec::ALL {
                let values = values_of_gaps(codec, &gaps);
                for n in 0..=LEN_MAX {
                    let bytes = encode_list(Kernel::SCALAR, codec, &values[..n], VALUE_BEFORE_LIST);
                    check(codec, &values[..n], &bytes);
                }
            }
        }
    }
}

#[test]
fn every_width_and_length_is_decoded_between_guard_pages() {
    let (mut pages, mut forms, kernels) =
        (CodecPages::new(), WrittenForms([[false; 33]; 4]), Kernel::available());
    each_list(|codec, values, bytes| {
        forms.add_first_block(codec, bytes);
        for kernel in &kernels {
            for side in Side::ALL {
                pages.decode(*kernel, codec, side, bytes, values);
            }
        }
    });
    forms.assert_complete();
}

#[test]
fn every_width_and_length_is_encoded_between_guard_pages() {
    let (mut pages, kernels) = (CodecPages::new(), Kernel::available());
    each_list(|codec, values, bytes| {
        for kernel in kernels.iter().filter(|_| !values.is_empty()) {
            for side in Side::ALL {
                pages.encode(*kernel, codec, side, values, bytes);
            }
        }
    });
}

/// Checks the test itself: without working guard pages all other tests here would pass.
#[test]
fn an_access_outside_faults() {
    if let Some(wanted) = env::var_os(TOUCH_VARIABLE) {
        let side = Side::ALL.into_iter().find(|side| wanted == *format!("{side:?}"));
        _ = Pages::new(1).touch_guard(side.expect("the name of a side"));
        return;
    }
    for side in Side::ALL {
        let mut command = Command::new(env::current_exe().expect("the test is a program"));
        command.args(["--exact", "an_access_outside_faults"]).env(TOUCH_VARIABLE, format!("{side:?}"));
        let signal = command.output().expect("the test starts").status.signal();
        // A segmentation fault, on some systems a bus error.
        assert!(matches!(signal, Some(7 | 10 | 11)), "{side:?}: {signal:?}");
    }
}
