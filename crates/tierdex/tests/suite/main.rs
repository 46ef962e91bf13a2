//! Tests of the library that can share a process: one binary compiles faster than one for each file.

#[path = "../support/mod.rs"]
mod support;

mod access;
mod advise;
mod attached;
mod batches;
mod callers;
mod ciff;
mod columns;
mod concurrency;
mod copies;
mod crash;
mod damage;
mod delete_files;
mod deletes;
mod determinism;
mod engine;
mod evaluation;
mod expansion;
mod explain;
mod faults;
mod fields;
mod format;
mod fuzz_bodies;
mod hot_pages;
mod import;
mod large;
mod limits;
mod lost_lock;
mod metamorphic;
mod oracle;
mod prefixes;
mod previews;
mod pruning;
mod public_api;
mod scheduling;
mod shards;
mod shown;
mod suggestions;
mod synonyms;
mod update_scenarios;
mod updates;
mod values;
mod versions;
mod words;
