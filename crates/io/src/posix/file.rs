//! A file of a directory, open for reading in each of the ways that the engines have.

use std::fs::{File, OpenOptions};
use std::io::{self, IoSliceMut};
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::sync::OnceLock;

use crate::disk::{ReadFile, ends_early};
use crate::error::{Error, ErrorKind, Result};
use crate::memory::PAGE_LEN;
use crate::memory::mapping::Mapping;

/// An open file: through the page cache, past it ([`PosixFile::direct`]), or mapped ([`PosixFile::mapped`]).
pub struct PosixFile {
    file: File,
    len: u64,
    name: String,
    /// Also that it cannot be, and why. That there were too few descriptors or too little memory is not kept: it passes.
    direct: OnceLock<Result<File>>,
    mapping: OnceLock<Mapping>,
}

/// How a range of a file will be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Advice {
    /// As the system sees fit.
    Normal,
    /// Here and there: nothing is read ahead.
    Random,
    /// From front to end: more is read ahead.
    Sequential,
    /// Soon: begin to read it.
    WillNeed,
    /// Not again: it may leave the page cache.
    DontNeed,
}

/// The most places that one system call reads into.
pub(crate) const PIECES_MAX: usize = libc::UIO_MAXIOV as usize;

/// Reads from `offset` on into one place after the other, by one system call. Returns how many bytes.
pub(crate) fn read_vectored_at(file: &File, pieces: &mut [IoSliceMut], offset: u64) -> io::Result<usize> {
    let count = pieces.len().min(PIECES_MAX) as libc::c_int;
    // SAFETY: `IoSliceMut` is an iovec, and each is memory that only this call has.
    let read =
        unsafe { libc::preadv(file.as_raw_fd(), pieces.as_mut_ptr().cast(), count, offset as libc::off_t) };
    usize::try_from(read).map_err(|_| io::Error::last_os_error())
}

impl PosixFile {
    pub(super) fn new(file: File, name: &str) -> io::Result<PosixFile> {
        let len = file.metadata()?.len();
        Ok(PosixFile { file, len, name: name.to_owned(), direct: OnceLock::new(), mapping: OnceLock::new() })
    }

    /// Whether it can be read past the page cache (O_DIRECT), found out by reading a page.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] with the reason.
    pub fn check_direct(&self) -> Result<()> {
        self.direct().map(drop)
    }

    /// The whole file, mapped through the page cache; the kernel reads a page when it is first touched.
    ///
    /// A page that cannot be read, and one that was cut off after the length was checked here, is a signal (SIGBUS) that
    /// ends the process: a mapped file cannot report an error. No byte is checked, and the memory is not counted.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`] when the file is shorter than when it was opened, else why it cannot be mapped.
    pub fn mapped(&self) -> Result<&[u8]> {
        if let Some(mapping) = self.mapping.get() {
            return Ok(mapping.bytes());
        }
        let failed = |error: io::Error| Error::from_os("map", &*self.name, &error);
        let len_now = self.file.metadata().map_err(failed)?.len();
        if len_now < self.len {
            return Err(ends_early(&self.name, len_now));
        }
        let len = usize::try_from(self.len).map_err(|_| failed(io::ErrorKind::FileTooLarge.into()))?;
        let mapping = Mapping::of_file(&self.file, len).map_err(failed)?;
        // Another thread may have mapped it in the meantime: both are the same bytes.
        Ok(self.mapping.get_or_init(|| mapping).bytes())
    }

    /// Tells the system how the bytes of `range` will be read, through the page cache and, if it is mapped, there.
    ///
    /// # Errors
    /// What the system reports; nothing depends on the advice.
    pub fn advise(&self, range: Range<u64>, advice: Advice) -> Result<()> {
        let failed = |error: io::Error| Error::from_os("advise on", &*self.name, &error);
        let range = range.start.min(self.len)..range.end.min(self.len);
        if range.is_empty() {
            return Ok(());
        }
        let (file_advice, memory_advice) = advice.numbers();
        if let Some(mapping) = self.mapping.get() {
            // Both fit, because the whole file is mapped.
            let range = range.start as usize..range.end as usize;
            mapping.advise_file(range, memory_advice).map_err(failed)?;
        }
        let fd = self.file.as_raw_fd();
        let (start, len) = (range.start as libc::off_t, (range.end - range.start) as libc::off_t);
        // SAFETY: touches no memory of this process.
        match unsafe { libc::posix_fadvise(fd, start, len, file_advice) } {
            0 => Ok(()),
            error => Err(failed(io::Error::from_raw_os_error(error))),
        }
    }

    /// Through the page cache.
    pub(crate) fn buffered(&self) -> &File {
        &self.file
    }

    /// Past the page cache: offsets, lengths and memory must be multiples of [`PAGE_LEN`].
    pub(crate) fn direct(&self) -> Result<&File> {
        if let Some(known) = self.direct.get() {
            return known.as_ref().map_err(Clone::clone);
        }
        let refused = |error: io::Error| {
            let why = format!("O_DIRECT is refused: {error}");
            Error::new(ErrorKind::Unsupported, "read past the page cache", &*self.name, why)
        };
        match self.open_direct() {
            Err(error) if is_passing(&error) => Err(refused(error)),
            opened => self.direct.get_or_init(|| opened.map_err(refused)).as_ref().map_err(Clone::clone),
        }
    }

    /// Opens the same file a second time, whatever its name is now.
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
            io::ErrorKind::UnexpectedEof => ends_early(&self.name, offset),
            _ => Error::from_os("read", &*self.name, &error),
        })
    }

    fn posix(&self) -> Option<&PosixFile> {
        Some(self)
    }
}

/// Reads and writes of a file that was opened with O_NONBLOCK wait from now on: on some file systems the kernel's queue
/// would give up instead.
pub(super) fn wait_again(file: &File) -> io::Result<()> {
    // SAFETY: touches no memory of this process. Of the flags that can be set no other was asked for.
    match unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETFL, 0) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Whether what kept a file from being opened or read once says nothing of the next time: too few descriptors, too little
/// memory, or a page that the device could not read.
fn is_passing(error: &io::Error) -> bool {
    let passing = [libc::EMFILE, libc::ENFILE, libc::ENOMEM, libc::EINTR, libc::EAGAIN, libc::EIO];
    error.raw_os_error().is_some_and(|number| passing.contains(&number))
}

impl Advice {
    /// As posix_fadvise and madvise have it.
    fn numbers(self) -> (i32, i32) {
        match self {
            Advice::Normal => (libc::POSIX_FADV_NORMAL, libc::MADV_NORMAL),
            Advice::Random => (libc::POSIX_FADV_RANDOM, libc::MADV_RANDOM),
            Advice::Sequential => (libc::POSIX_FADV_SEQUENTIAL, libc::MADV_SEQUENTIAL),
            Advice::WillNeed => (libc::POSIX_FADV_WILLNEED, libc::MADV_WILLNEED),
            Advice::DontNeed => (libc::POSIX_FADV_DONTNEED, libc::MADV_DONTNEED),
        }
    }
}
