//! tierdex: full-text search for indexes larger than memory.
//!
//! Text goes in through [`index::IndexWriter`], a commit makes it durable, and [`index::Index`] answers
//! ranked queries over what was committed. Documents added after the last commit are lost when the process
//! dies: there is no hidden log.
//!
//! The rooms stand in dependency order; each uses only those named before it.
#![forbid(unsafe_code)]

pub mod bytes;
pub mod error;
pub mod limits;
pub mod schema;

pub mod text;

pub mod memtable;

pub mod transform;

pub mod segment;

pub mod cursor;

pub mod rank;

pub mod query;

mod eval;

pub mod index;

pub mod engine;

pub use error::{Error, Result};
pub use tierdex_cache as cache;
pub use tierdex_codec as codec;
pub use tierdex_io as io;
