//! Encoders and decoders touch nothing outside of their slices: a byte before or behind would be a fault.
//!
//! Lists of every width and of every length up to 1,024 by every codec and kernel, flush against a guard page
//! before and behind.

mod pages;
mod samples;

use pages::{Guarded, Pages, Side};
use samples::{Random, START, as_input, mixed};
use std::env;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use tierdex_codec::{BLOCK, Codec, Kernel};

#[global_allocator]
static ALLOCATOR: Guarded = Guarded;

/// The longest list.
const LEN_MAX: usize = 4 * BLOCK;

/// Set for a process of which nothing is expected but a fault: the guard that it shall touch.
const TOUCH: &str = "TIERDEX_TEST_TOUCH";

/// Pages for the two slices of a decoder or an encoder.
struct Rooms {
    bytes: Pages,
    values: Pages,
}

impl Rooms {
    fn new() -> Rooms {
        let len = Codec::ALL.iter().map(|codec| codec.max_len(BLOCK)).max().expect("there are codecs");
        Rooms { bytes: Pages::new(LEN_MAX / BLOCK * len), values: Pages::new(size_of::<u32>() * LEN_MAX) }
    }

    /// Decodes a list from a copy of `bytes` to values, both flush against the same guard, and compares.
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

    /// Encodes a copy of the last block of `values`, which is flush against a guard, to a vector that ends at one.
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

/// Which forms of PFor blocks were written at which widths.
struct Forms([[bool; 33]; 4]);

impl Forms {
    fn note(&mut self, codec: Codec, list: &[u8]) {
        if matches!(codec, Codec::Pfor256 | Codec::Pfor256Delta) && !list.is_empty() {
            self.0[usize::from(list[0] >> 6)][usize::from(list[0] & 0x3f)] = true;
        }
    }

    /// A bitmap can save nothing at 31 bits, no exception is wider than 32, and zeros are plain.
    fn check(&self) {
        for (form, widths) in [(0, 0..33), (1, 0..32), (2, 0..31), (3, 1..33)] {
            for width in widths {
                assert!(self.0[form][width], "no PFor block of form {form} at {width} bits");
            }
        }
    }
}

/// Lists that make plain, sparse, bitmap and constant blocks of a width. Their beginnings are such lists as well.
fn lists(width: u32) -> [Vec<u32>; 4] {
    let mut random = Random(u64::from(width));
    let widest = u32::MAX.checked_shr(32 - width).unwrap_or(0);
    let mut plain = mixed(&mut random, LEN_MAX, width, 0, 0);
    plain[0] = widest;
    let few = mixed(&mut random, LEN_MAX, width, 40, 32);
    let many = mixed(&mut random, LEN_MAX, width, 5, 32);
    [plain, few, many, vec![widest; LEN_MAX]]
}

/// The list as the scalar kernel writes it, block after block.
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
    let (mut rooms, mut forms, kernels) = (Rooms::new(), Forms([[false; 33]; 4]), Kernel::available());
    each_list(|codec, values, bytes| {
        forms.note(codec, bytes);
        for kernel in &kernels {
            for side in Side::ALL {
                rooms.decode(*kernel, codec, side, bytes, values);
            }
        }
    });
    forms.check();
}

#[test]
fn every_width_and_length_is_encoded_between_guard_pages() {
    let (mut rooms, kernels) = (Rooms::new(), Kernel::available());
    each_list(|codec, values, bytes| {
        for kernel in kernels.iter().filter(|_| !values.is_empty()) {
            for side in Side::ALL {
                rooms.encode(*kernel, codec, side, values, bytes);
            }
        }
    });
}

/// The canary: if the guards were no guards, all else here would pass whatever is read.
#[test]
fn a_byte_outside_is_a_fault() {
    if let Some(wanted) = env::var_os(TOUCH) {
        let side = Side::ALL.into_iter().find(|side| wanted == *format!("{side:?}"));
        _ = Pages::new(1).touch_guard(side.expect("the name of a side"));
        return;
    }
    for side in Side::ALL {
        let mut command = Command::new(env::current_exe().expect("the test is a program"));
        command.args(["--exact", "a_byte_outside_is_a_fault"]).env(TOUCH, format!("{side:?}"));
        let signal = command.output().expect("the test starts").status.signal();
        // A bad access is a segmentation fault, on some systems a bus error.
        assert!(matches!(signal, Some(7 | 10 | 11)), "{side:?}: {signal:?}");
    }
}
