//! Circular imports that exist: a group of clauses is a node, and has nodes.

/// Sorted pairs of files. Entries may be removed, but not added.
#[rustfmt::skip]
pub const ACCEPTED: &[(&str, &str)] = &[
    ("crates/tierdex/src/eval/group.rs", "crates/tierdex/src/eval/node.rs"),
];
