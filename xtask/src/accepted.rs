//! Circular imports that exist today.

/// Sorted pairs of files. Entries may be removed, but not added.
#[rustfmt::skip]
pub const ACCEPTED: &[(&str, &str)] = &[
    ("bench/peers/search/runner/src/engine/build.rs", "bench/peers/search/runner/src/engine/mod.rs"),
    ("bench/peers/search/runner/src/report/limit.rs", "bench/peers/search/runner/src/report/tables.rs"),
    ("bench/peers/search/seekstorm/src/batch.rs", "bench/peers/search/seekstorm/src/serve.rs"),
    ("bench/peers/search/tantivy/src/batch.rs", "bench/peers/search/tantivy/src/serve.rs"),
    ("bench/peers/search/tantivy/src/main.rs", "bench/peers/search/tantivy/src/serve.rs"),
    ("crates/tierdex/src/eval/group.rs", "crates/tierdex/src/eval/node.rs"),
];
