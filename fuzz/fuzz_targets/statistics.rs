//! Decodes and merges arbitrary statistics of queries.

#![no_main]

#[path = "../src/statistics.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    _ = body::statistics(data);
});
