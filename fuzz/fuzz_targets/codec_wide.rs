//! Reads arbitrary bytes as a block of 64-bit values.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    _ = tierdex_fuzz::check_wide_bytes(data);
});
