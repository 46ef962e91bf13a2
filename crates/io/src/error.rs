//! Storage errors. They can be cloned, because several callers may wait for the same read.

use std::{any::Any, fmt, io, path::Path, sync::Arc};

/// Result of a storage operation.
pub type Result<T> = std::result::Result<T, Error>;

/// A storage error: its kind, the attempted operation, the file, and the offset where it is known.
///
/// `Display` is one line for users, and includes the message of the operating system. The source is the
/// error of the operating system, if there is one.
#[derive(Debug, Clone)]
pub struct Error {
    kind: ErrorKind,
    op: &'static str,
    file: String,
    offset: Option<u64>,
    detail: String,
    source: Option<Arc<io::Error>>,
}

/// The classes of failure that callers treat differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The file or directory does not exist.
    NotFound,
    /// The file exists already.
    Exists,
    /// The lock or resource is held by another owner.
    Busy,
    /// A held lock no longer excludes others: its file or its directory was moved, removed or replaced.
    LockLost,
    /// The device, the memory or the quota is full. May be temporary.
    NoSpace,
    /// Forbidden by the system or by the rules of this crate, for example for file names.
    Denied,
    /// The bytes differ from those that were written.
    Corrupt,
    /// This program does not support the kind or version of the file or the system.
    Unsupported,
    /// Any other error, mostly device errors.
    Other,
}

impl Error {
    /// An error without an operating-system error. `op` is a verb: "cannot `op` `file`: `detail`".
    pub fn new(
        kind: ErrorKind,
        op: &'static str,
        file: impl Into<String>,
        detail: impl Into<String>,
    ) -> Error {
        Error { kind, op, file: file.into(), offset: None, detail: detail.into(), source: None }
    }

    /// The error of damage: the bytes of `file` at `offset` differ from those that were written. The message
    /// ends with `detail`.
    pub fn corrupt(file: impl Into<String>, offset: u64, detail: impl Into<String>) -> Error {
        Error { offset: Some(offset), ..Error::new(ErrorKind::Corrupt, "read", file, detail) }
    }

    /// An error of the operating system while it did `op` (a verb) to `file`.
    pub fn from_os(op: &'static str, file: impl Into<String>, source: &io::Error) -> Error {
        let error = Error::new(classify(source), op, file, lower_first(&source.to_string()));
        Error { source: Some(Arc::new(clone_io_error(source))), ..error }
    }

    /// The same error with this file offset, unless it has an offset already.
    pub(crate) fn at_offset(self, offset: u64) -> Error {
        Error { offset: self.offset.or(Some(offset)), ..self }
    }

    /// The same error with the directory joined to the file name.
    pub fn in_folder(self, folder: &Path) -> Error {
        Error { file: folder.join(&self.file).display().to_string(), ..self }
    }

    /// The class of the failure.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The file or directory of the failed operation.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The file offset in bytes, which is known for damage and for reads by a read queue.
    pub fn offset(&self) -> Option<u64> {
        self.offset
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Error { op, file, detail, .. } = self;
        match self.offset {
            Some(offset) if self.kind == ErrorKind::Corrupt => {
                write!(f, "{file} is damaged at byte {offset}: {detail}")
            }
            Some(offset) => write!(f, "cannot {op} {file} at byte {offset}: {detail}"),
            None => write!(f, "cannot {op} {file}: {detail}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

/// One line with the message of a panic, from the payload that [`std::panic::catch_unwind`] returned.
pub fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    let line: Vec<&str> = text.unwrap_or("it says no more").lines().map(str::trim).collect();
    format!("a defect, it panicked: {}", line.join(" "))
}

fn classify(source: &io::Error) -> ErrorKind {
    match source.kind() {
        io::ErrorKind::NotFound => ErrorKind::NotFound,
        io::ErrorKind::AlreadyExists => ErrorKind::Exists,
        io::ErrorKind::WouldBlock | io::ErrorKind::ResourceBusy => ErrorKind::Busy,
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::OutOfMemory => {
            ErrorKind::NoSpace
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => ErrorKind::Denied,
        io::ErrorKind::Unsupported => ErrorKind::Unsupported,
        _ => ErrorKind::Other,
    }
}

/// An error with the same number, or with the same kind and message if it has no number.
fn clone_io_error(error: &io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(number) => io::Error::from_raw_os_error(number),
        None => io::Error::new(error.kind(), error.to_string()),
    }
}

/// Makes the first letter of a message of the system lower case, as it follows a colon.
fn lower_first(message: &str) -> String {
    let mut chars = message.chars();
    chars.next().map(|first| first.to_lowercase().chain(chars).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::errno::*;

    #[test]
    fn system_errors_are_classified() {
        let pairs = [
            (ENOENT, ErrorKind::NotFound),
            (ENOSPC, ErrorKind::NoSpace),
            (EDQUOT, ErrorKind::NoSpace),
            (EACCES, ErrorKind::Denied),
            (EPERM, ErrorKind::Denied),
            (EROFS, ErrorKind::Denied),
            (EIO, ErrorKind::Other),
            (EMFILE, ErrorKind::Other),
            (EFBIG, ErrorKind::Other),
        ];
        for (number, kind) in pairs {
            let error = Error::from_os("read", "a", &io::Error::from_raw_os_error(number));
            assert_eq!(error.kind(), kind, "{error}");
        }
    }

    #[test]
    fn messages_are_one_line() {
        let full = Error::from_os("write", "0000000000000001.0.docs", &io::Error::from_raw_os_error(ENOSPC));
        assert_eq!(
            full.to_string(),
            "cannot write 0000000000000001.0.docs: no space left on device (os error 28)"
        );
        assert_eq!((full.file(), full.offset()), ("0000000000000001.0.docs", None));
        let torn = Error::corrupt("1.docs", 4096, "page checksum does not match");
        assert_eq!(torn.to_string(), "1.docs is damaged at byte 4096: page checksum does not match");
        assert_eq!((torn.kind(), torn.offset()), (ErrorKind::Corrupt, Some(4096)));
        assert_eq!(torn.at_offset(8192).offset(), Some(4096));
        let unread = Error::from_os("read", "1.docs", &io::Error::from_raw_os_error(EIO)).at_offset(8192);
        assert_eq!(unread.to_string(), "cannot read 1.docs at byte 8192: input/output error (os error 5)");
    }

    #[test]
    fn the_source_is_the_system_error() {
        use std::error::Error as _;
        let code = |error: &Error| error.source()?.downcast_ref::<io::Error>()?.raw_os_error();
        let full = Error::from_os("write", "a", &io::Error::from_raw_os_error(ENOSPC));
        assert_eq!((code(&full), code(&full.clone().at_offset(1))), (Some(ENOSPC), Some(ENOSPC)));
        let short = Error::from_os("read", "a", &io::Error::new(io::ErrorKind::NotFound, "no node"));
        assert_eq!(short.source().map(|source| source.to_string()).as_deref(), Some("no node"));
        assert!(Error::corrupt("a", 0, "torn").source().is_none());
    }

    #[test]
    fn a_panic_message_is_one_line() {
        let (with, without): (Box<dyn Any + Send>, Box<dyn Any + Send>) =
            (Box::new("why:\n  1".to_owned()), Box::new(7));
        assert_eq!(panic_message(&*with), "a defect, it panicked: why: 1");
        assert_eq!(panic_message(&"why"), "a defect, it panicked: why");
        assert_eq!(panic_message(&*without), "a defect, it panicked: it says no more");
    }
}
