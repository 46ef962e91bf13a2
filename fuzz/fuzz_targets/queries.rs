//! Evaluates arbitrary queries over a small index.

#![no_main]

#[path = "../src/queries.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    _ = body::queries(data);
});
