//! Decodes arbitrary bytes.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    _ = tierdex_fuzz::check_hostile_bytes(data);
});
