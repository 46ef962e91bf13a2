//! Encodes and decodes arbitrary values.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    _ = tierdex_fuzz::round_trip(data);
});
