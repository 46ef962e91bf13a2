//! Errors that several files of this crate return.

use tierdex_io::{Error, ErrorKind};

/// The worker has stopped; `panic` is the message of its panic, if it panicked.
pub(crate) fn stopped_error(panic: Option<&str>) -> Error {
    let why = "the prefetcher has stopped";
    let why = panic.map_or(why.to_owned(), |panic| format!("{why}: {panic}"));
    Error::new(ErrorKind::Other, "read", "postings", why)
}
