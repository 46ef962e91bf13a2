//! Encoders and decoders access nothing outside their slices: a byte before or after would cause a fault.
//!
//! Every codec and kernel runs on lists of every width and of every length up to 1,024, directly after a
//! guard page and directly before one.

mod pages;
mod samples;

use pages::{Guarded, Pages, Side};
use samples::{Random, START, as_input, mixed};
use std::{env, os::unix::process::ExitStatusExt, process::Command};
use tierdex_codec::{BLOCK, Codec, Kernel};

#[global_allocator]
static ALLOCATOR: Guarded = Guarded;

/// The longest list.
const LEN_MAX: usize = 4 * BLOCK;

/// Environment variable of a child process that is expected to fault: the side of the guard page that it
/// touches.
const TOUCH: &str = "TIERDEX_TEST_TOUCH";

/// Guarded pages for the two slices of a decoder or an encoder.
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
        let (mut used, mut last) = (0, START);
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
        let prev = before.checked_sub(1).map_or(START, |k| values[k]);
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

/// The combinations of form and width of the PFor blocks written.
struct Forms([[bool; 33]; 4]);

impl Forms {
    fn note(&mut self, codec: Codec, list: &[u8]) {
        if matches!(codec, Codec::Pfor256 | Codec::Pfor256Delta) && !list.is_empty() {
            self.0[usize::from(list[0] >> 6)][usize::from(list[0] & 0x3f)] = true;
        }
    }

    /// All combinations but the impossible ones: a bitmap saves nothing at 31 bits, no exception is wider
    /// than 32, and zeros are plain.
    fn check(&self) {
        for (form, widths) in [(0, 0..33), (1, 0..32), (2, 0..31), (3, 1..33)] {
            for width in widths {
                assert!(self.0[form][width], "no PFor block of form {form} at {width} bits");
            }
        }
    }
}

/// Lists whose blocks are plain, sparse, bitmap and constant at a width; so are those of their prefixes.
fn lists(width: u32) -> [Vec<u32>; 4] {
    let mut random = Random(u64::from(width));
    let widest = u32::MAX.checked_shr(32 - width).unwrap_or(0);
    let mut plain = mixed(&mut random, LEN_MAX, width, 0, 0);
    plain[0] = widest;
    let few = mixed(&mut random, LEN_MAX, width, 40, 32);
    let many = mixed(&mut random, LEN_MAX, width, 5, 32);
    [plain, few, many, vec![widest; LEN_MAX]]
}

/// Encodes the list with the scalar kernel, block by block.
fn encode(codec: Codec, values: &[u32]) -> Vec<u8> {
    let (mut bytes, mut last) = (Vec::new(), START);
    for block in values.chunks(BLOCK) {
        codec.encode_with(Kernel::SCALAR, block, last, &mut bytes);
        last = block[block.len() - 1];
    }
    bytes
}

/// Calls `check` with every list of every length: the codec, the values and the bytes.
fn each_list(mut check: impl FnMut(Codec, &[u32], &[u8])) {
    for width in 0..=32 {
        for gaps in lists(width) {
            for &codec in Codec::ALL {
                let values = as_input(codec, &gaps);
                for n in 0..=LEN_MAX {
                    check(codec, &values[..n], &encode(codec, &values[..n]));
                }
            }
        }
    }
}

#[test]
fn every_width_and_length_is_decoded_between_guard_pages() {
    let (mut pages, mut forms, kernels) = (CodecPages::new(), Forms([[false; 33]; 4]), Kernel::available());
    each_list(|codec, values, bytes| {
        forms.note(codec, bytes);
        for kernel in &kernels {
            for side in Side::ALL {
                pages.decode(*kernel, codec, side, bytes, values);
            }
        }
    });
    forms.check();
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

/// The canary: without working guard pages all other tests here would pass.
#[test]
fn an_access_outside_faults() {
    if let Some(wanted) = env::var_os(TOUCH) {
        let side = Side::ALL.into_iter().find(|side| wanted == *format!("{side:?}"));
        _ = Pages::new(1).touch_guard(side.expect("the name of a side"));
        return;
    }
    for side in Side::ALL {
        let mut command = Command::new(env::current_exe().expect("the test is a program"));
        command.args(["--exact", "an_access_outside_faults"]).env(TOUCH, format!("{side:?}"));
        let signal = command.output().expect("the test starts").status.signal();
        // A segmentation fault, on some systems a bus error.
        assert!(matches!(signal, Some(7 | 10 | 11)), "{side:?}: {signal:?}");
    }
}
