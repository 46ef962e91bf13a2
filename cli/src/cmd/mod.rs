//! Subcommands: one file each.

pub mod advise;
pub mod batch;
pub mod check;
pub mod ciff;
pub mod completions;
pub mod copy;
pub mod delete;
pub mod demo;
pub mod eval;
pub mod explain;
pub mod get;
pub mod hits;
pub mod index;
pub mod info;
pub mod man;
pub mod merge;
pub mod search;
pub mod serve;
pub mod stats;
pub mod suggest;
