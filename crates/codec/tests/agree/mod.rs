//! Comparison of all kernels with the scalar one. Used by tests and by the fuzz targets.
//!
//! Each function runs every kernel that the CPU supports on values or on bytes. It panics if a kernel
//! differs from the scalar one in a byte, a value, a length or an error, or writes after its output.

#![allow(dead_code, reason = "each test binary uses its own part")]

pub mod wide;

use tierdex_codec::{BLOCK, Codec, DecodeError, Kernel};

/// The values and the number of bytes consumed, or the error.
pub type Decoded = Result<(Vec<u32>, usize), DecodeError>;

/// The value after the output of a decoder, which must not change.
const OUTPUT_CANARY: u32 = 0x5eed_cafe;

/// Number of values after the output that are checked for [`OUTPUT_CANARY`]: more than a vector has.
const SLACK: usize = 64;

/// Encodes and decodes values with every kernel; bytes and values must be equal. Returns the bytes.
#[track_caller]
pub fn round_trip(codec: Codec, values: &[u32], prev: u32) -> Vec<u8> {
    let (n, name) = (values.len(), codec.name());
    let mut bytes = encode(codec, values, prev);
    let len = bytes.len();
    assert!(len <= codec.max_len(n), "{name}: {len} bytes for {n} values");
    let back = Ok((values.to_vec(), len));
    assert_eq!(decode(codec, &bytes, prev, n), back, "{name} after {prev}");
    assert_eq!(codec.encoded_len(&bytes, n), Ok(len), "{name} after {prev}: {values:?}");
    // Bytes after the block must not matter.
    bytes.extend([0x80; SLACK]);
    assert_eq!(decode(codec, &bytes, prev, n), back, "{name} after {prev}, bytes follow");
    assert_eq!(codec.encoded_len(&bytes, n), Ok(len), "{name} after {prev}, bytes follow: {values:?}");
    bytes.truncate(len);
    bytes
}

/// Encodes values with every kernel. Returns the block, which must be the same for all.
#[track_caller]
pub fn encode(codec: Codec, values: &[u32], prev: u32) -> Vec<u8> {
    let mut expect = Vec::new();
    codec.encode_with(Kernel::SCALAR, values, prev, &mut expect);
    for kernel in Kernel::available() {
        let mut bytes = vec![0xee];
        codec.encode_with(kernel, values, prev, &mut bytes);
        let same = bytes[0] == 0xee && bytes[1..] == expect;
        assert!(
            same,
            "{kernel:?}, {} after {prev} of {values:?}: {bytes:02x?}, not {expect:02x?}",
            codec.name()
        );
    }
    expect
}

/// Decodes any bytes with all kernels, and checks that lengths and truncations are consistent. Returns the
/// result.
#[track_caller]
pub fn decode_hostile(codec: Codec, bytes: &[u8], prev: u32, n: usize) -> Decoded {
    let name = codec.name();
    let decoded = decode(codec, bytes, prev, n);
    let len = codec.encoded_len(bytes, n);
    if let Ok((_, used)) = decoded {
        assert_eq!(len, Ok(used), "{name}, {n} values of {bytes:02x?}");
        assert_eq!(decode(codec, &bytes[..used], prev, n), decoded, "{name}, no bytes after");
        if used > 0 {
            let short = decode(codec, &bytes[..used - 1], prev, n);
            assert_eq!(
                short,
                Err(DecodeError::Truncated),
                "{name}, {n} values of all but the last of {bytes:02x?}"
            );
        }
    }
    assert!(len.is_err() || len.is_ok_and(|len| len <= bytes.len()), "{name}, {n} values of {bytes:02x?}");
    decoded
}

/// Decodes `bytes` with every kernel. Returns the result, which must be the same for all.
#[track_caller]
pub fn decode(codec: Codec, bytes: &[u8], prev: u32, n: usize) -> Decoded {
    let expect = decode_by(Kernel::SCALAR, codec, bytes, prev, n);
    if !codec.is_delta() {
        check_sums(codec, bytes, prev, &expect, n);
    }
    for kernel in vector_kernels() {
        let decoded = decode_by(kernel, codec, bytes, prev, n);
        let name = codec.name();
        assert_eq!(decoded, expect, "{kernel:?}, {name}, {n} values after {prev} of {bytes:02x?}");
    }
    expect
}

/// Checks that all kernels decode to the same prefix sums, or return the same error.
#[track_caller]
fn check_sums(codec: Codec, bytes: &[u8], before: u32, values: &Decoded, n: usize) {
    let expect = values.clone().map(|(mut values, used)| {
        let mut sum = before;
        for value in &mut values {
            sum = sum.wrapping_add(*value).wrapping_add(1);
            *value = sum;
        }
        (values, used)
    });
    for kernel in Kernel::available() {
        let mut out = [OUTPUT_CANARY; BLOCK + SLACK];
        let decoded = codec.decode_sums_with(kernel, bytes, before, &mut out[..n]);
        let decoded = decoded.map(|used| (out[..n].to_vec(), used));
        let name = codec.name();
        assert_eq!(decoded, expect, "{kernel:?}, {name}, sums of {n} values after {before} of {bytes:02x?}");
        assert!(
            out[n..].iter().all(|value| *value == OUTPUT_CANARY),
            "{kernel:?}, {name} writes after {n} sums"
        );
    }
}

/// Decodes `bytes` with one kernel.
#[track_caller]
pub fn decode_by(kernel: Kernel, codec: Codec, bytes: &[u8], prev: u32, n: usize) -> Decoded {
    let mut out = [OUTPUT_CANARY; BLOCK + SLACK];
    let decoded = codec.decode_with(kernel, bytes, prev, &mut out[..n]);
    let kept = out[n..].iter().all(|value| *value == OUTPUT_CANARY);
    assert!(kept, "{kernel:?}, {} writes after {n} values of {bytes:02x?}", codec.name());
    let used = decoded?;
    assert!(used <= bytes.len(), "{kernel:?}, {}: {used} bytes of {}", codec.name(), bytes.len());
    Ok((out[..n].to_vec(), used))
}

/// The kernels other than the scalar one.
fn vector_kernels() -> impl Iterator<Item = Kernel> {
    Kernel::available().into_iter().filter(|kernel| *kernel != Kernel::SCALAR)
}
