//! Options of a read queue, as chosen by the user.

use crate::error::{Error, ErrorKind, Result};
use std::{fmt, str::FromStr};

/// A read method, as users write it: `auto`, `pread` or `uring`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadKind {
    /// `uring` where the system supports it, with direct I/O if requested; otherwise `pread`.
    Auto,
    /// A thread pool.
    Pread,
    /// The kernel's submission and completion queues, io_uring.
    Uring,
}

/// Options of a read queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadOptions {
    /// The read method.
    pub kind: ReadKind,
    /// Maximum reads in flight, 1 to [`ReadOptions::DEPTH_MAX`]; for `pread` also the number of threads,
    /// up to 64.
    pub depth: usize,
    /// Whether to use direct I/O (O_DIRECT).
    pub direct: bool,
}

impl ReadOptions {
    /// Maximum of the depth.
    pub const DEPTH_MAX: usize = 4096;

    /// Maximum number of threads of `pread`. At a larger depth, reads wait for a thread.
    pub(super) const THREADS_MAX: usize = 64;
}

impl fmt::Display for ReadKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ReadKind::Auto => "auto",
            ReadKind::Pread => "pread",
            ReadKind::Uring => "uring",
        })
    }
}

impl FromStr for ReadKind {
    type Err = Error;

    fn from_str(text: &str) -> Result<ReadKind> {
        let kinds = [ReadKind::Auto, ReadKind::Pread, ReadKind::Uring];
        let found = kinds.into_iter().find(|kind| kind.to_string() == text);
        found.ok_or_else(|| queue_error(text, "a read method is auto, pread or uring"))
    }
}

/// The error of a read queue that cannot be configured like this.
pub(super) fn queue_error(kind: impl fmt::Display, why: &str) -> Error {
    Error::new(ErrorKind::Denied, "use", format!("read method {kind}"), why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_read_methods_are_parsed_and_displayed() {
        for text in ["auto", "pread", "uring"] {
            assert_eq!(text.parse::<ReadKind>().unwrap().to_string(), text);
        }
        let error = "io_uring".parse::<ReadKind>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "cannot use read method io_uring: a read method is auto, pread or uring"
        );
    }
}
