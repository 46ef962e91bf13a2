//! What went wrong, in which file, and where.
//!
//! An [`Error`] can be cloned, because one failed read may have several waiting callers.

use std::any::Any;
use std::fmt;
use std::io;
use std::path::Path;

/// The result of everything that touches storage.
pub type Result<T> = std::result::Result<T, Error>;

/// A failure of storage: its kind, the attempted operation, the file, and the byte where that is known.
///
/// `Display` gives one line for a person.
#[derive(Debug, Clone)]
pub struct Error {
    kind: ErrorKind,
    op: &'static str,
    file: String,
    offset: Option<u64>,
    detail: String,
}

/// The classes of failure that callers treat differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// There is no such file or directory.
    NotFound,
    /// There is such a file already.
    Exists,
    /// Somebody else holds the lock or the resource.
    Busy,
    /// A held lock keeps nobody out any more: its file or its directory was moved, removed or replaced.
    LockLost,
    /// The device, the memory or the quota is full. It may pass.
    NoSpace,
    /// The system, or the rule for file names, forbids it.
    Denied,
    /// The bytes are not those that were written.
    Corrupt,
    /// The file or the system is of a kind or version that this program cannot use.
    Unsupported,
    /// Anything else; above all, errors of the device.
    Other,
}

impl Error {
    /// An error that has no operating-system error behind it. `op` is a verb: "cannot `op` `file`: `detail`".
    pub fn new(
        kind: ErrorKind,
        op: &'static str,
        file: impl Into<String>,
        detail: impl Into<String>,
    ) -> Error {
        Error { kind, op, file: file.into(), offset: None, detail: detail.into() }
    }

    /// Damage: byte `offset` of `file`, or what begins there, is not what was written.
    pub fn corrupt(file: impl Into<String>, offset: u64, what: impl Into<String>) -> Error {
        Error { offset: Some(offset), ..Error::new(ErrorKind::Corrupt, "read", file, what) }
    }

    /// An error of the operating system while it did `op` (a verb) to `file`.
    pub fn from_os(op: &'static str, file: impl Into<String>, source: &io::Error) -> Error {
        Error::new(kind_of(source), op, file, lower_first(&source.to_string()))
    }

    /// The same error, with the file offset where it happened, unless it has one.
    pub(crate) fn at(self, offset: u64) -> Error {
        Error { offset: self.offset.or(Some(offset)), ..self }
    }

    /// The same error, with the folder in front of the file.
    pub fn in_folder(self, folder: &Path) -> Error {
        Error { file: folder.join(&self.file).display().to_string(), ..self }
    }

    /// The class of the failure.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The file or directory that the failure concerns.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The file offset, in bytes, where it was seen: for damage, and for reads by an engine.
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

impl std::error::Error for Error {}

/// One line on a panic, of which there is what [`std::panic::catch_unwind`] gave: what it says.
pub fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    let line: Vec<&str> = text.unwrap_or("it says no more").lines().map(str::trim).collect();
    format!("a defect, it panicked: {}", line.join(" "))
}

fn kind_of(source: &io::Error) -> ErrorKind {
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

/// System messages begin with a capital; here they stand after a colon.
fn lower_first(message: &str) -> String {
    let mut chars = message.chars();
    chars.next().map(|first| first.to_lowercase().chain(chars).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::errno::*;

    #[test]
    fn system_errors_have_their_kinds() {
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
        assert_eq!(torn.at(8192).offset(), Some(4096));
        let unread = Error::from_os("read", "1.docs", &io::Error::from_raw_os_error(EIO)).at(8192);
        assert_eq!(unread.to_string(), "cannot read 1.docs at byte 8192: input/output error (os error 5)");
    }

    #[test]
    fn a_panic_is_told_in_one_line() {
        let (with, without): (Box<dyn Any + Send>, Box<dyn Any + Send>) =
            (Box::new("why:\n  1".to_owned()), Box::new(7));
        assert_eq!(panic_message(&*with), "a defect, it panicked: why: 1");
        assert_eq!(panic_message(&"why"), "a defect, it panicked: why");
        assert_eq!(panic_message(&*without), "a defect, it panicked: it says no more");
    }
}
