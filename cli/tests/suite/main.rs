//! Tests of the command: one binary links faster than one for each file.

#[allow(dead_code, reason = "other tests use all of it")]
#[path = "../../../crates/tierdex/tests/support/random.rs"]
mod random;
#[path = "../workspace/mod.rs"]
mod workspace;

mod advise;
mod batch;
mod budget;
mod ciff;
mod column_info;
mod columnar;
mod columns;
mod command;
mod dot;
mod effectiveness;
mod endless;
mod eval;
mod fields;
mod folders;
mod input;
mod kills;
mod limits;
mod messages;
mod query;
mod run_file;
mod safety;
mod serve;
mod shards;
mod signals;
mod updates;
