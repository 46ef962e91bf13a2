//! A regular file open for reading: buffered, or with direct I/O.

use crate::{
    Error, ErrorKind, ReadFile, Result, end_of_file_error, memory::PAGE_LEN, memory::mapping::Mapping,
};
use std::fs::{File, OpenOptions};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::{io, sync::OnceLock};

/// An open file with up to two descriptors: buffered, and with O_DIRECT from its first use on.
pub(super) struct PosixFile {
    file: File,
    len: u64,
    name: String,
    /// The descriptor with O_DIRECT, or the error if the file system does not support it. Transient errors
    /// are not stored.
    direct: OnceLock<Result<File>>,
}

impl PosixFile {
    pub(super) fn new(file: File, name: &str) -> io::Result<PosixFile> {
        let len = file.metadata()?.len();
        Ok(PosixFile { file, len, name: name.to_owned(), direct: OnceLock::new() })
    }

    /// The descriptor with O_DIRECT, which is tested by a read of a page. Its offsets, lengths and addresses
    /// must be multiples of [`PAGE_LEN`].
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] with the reason.
    pub(super) fn direct_file(&self) -> Result<&File> {
        if let Some(opened) = self.direct.get() {
            return opened.as_ref().map_err(Clone::clone);
        }
        let unsupported = |error: io::Error| {
            let why = format!("O_DIRECT is refused: {error}");
            Error::new(ErrorKind::Unsupported, "read past the page cache", &*self.name, why)
        };
        match self.open_direct() {
            Err(error) if is_transient(&error) => Err(unsupported(error)),
            opened => self.direct.get_or_init(|| opened.map_err(unsupported)).as_ref().map_err(Clone::clone),
        }
    }

    /// Opens the same file a second time, even if it was renamed or removed.
    fn open_direct(&self) -> io::Result<File> {
        let path = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        let file = OpenOptions::new().read(true).custom_flags(libc::O_DIRECT).open(path)?;
        let mut page = Mapping::anonymous(PAGE_LEN, 0)?;
        file.read_at(page.bytes_mut(), 0)?;
        Ok(file)
    }
}

impl ReadFile for PosixFile {
    fn name(&self) -> &str {
        &self.name
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.file.read_exact_at(buf, offset).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => end_of_file_error(&self.name, offset),
            _ => Error::from_os("read", &*self.name, &error),
        })
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.file.as_fd())
    }

    fn direct_descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.direct_file().ok().map(File::as_fd)
    }
}

/// Whether opening or reading the file may succeed next time: too few descriptors, too little memory, or a
/// page that the device could not read.
fn is_transient(error: &io::Error) -> bool {
    let transient = [libc::EMFILE, libc::ENFILE, libc::ENOMEM, libc::EINTR, libc::EAGAIN, libc::EIO];
    error.raw_os_error().is_some_and(|number| transient.contains(&number))
}
