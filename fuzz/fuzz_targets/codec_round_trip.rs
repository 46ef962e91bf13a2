//! Encodes and decodes arbitrary values.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    _ = tierdex_fuzz::check_round_trip(data);
});
