//! Reads by copying from mapped files, through the page cache: the baseline of the thesis (section 7.2.2)
//! and of most other engines. For comparison only: a mapping cannot report an error.
//!
//! A device error, and a file that is truncated while it is mapped, end the process by a signal (SIGBUS).

use memmap2::{Advice, Mmap, MmapOptions};
use std::sync::{Arc, OnceLock, atomic::AtomicU64, atomic::Ordering};
use std::{fs::File, io, ops::Range, os::fd::BorrowedFd};
use tierdex::{Result, internal::segment::read::BlockSource};
use tierdex_io::{Error, PAGE, SealedFile};

/// Files, each mapped when it is read first. A page is checked when it is read first, so
/// later damage is not found. A file without a descriptor is read by `read_at`.
pub struct MappedFiles {
    /// The files, in the order of their numbers.
    files: Vec<MappedFile>,
    bytes_read: AtomicU64,
}

/// A mapping and the pages of it that were checked.
struct MappedFile {
    /// [`SealedFile::number`].
    number: u64,
    /// The mapping once it was tried; `None` inside if the file has no descriptor.
    mapping: OnceLock<Option<Mmap>>,
    /// A bit for each page.
    checked: Box<[AtomicU64]>,
}

impl MappedFiles {
    /// Files of which none is mapped yet. Takes a bit for each page.
    pub fn new<'f>(files: impl Iterator<Item = &'f SealedFile>) -> MappedFiles {
        let mut files: Vec<MappedFile> = files.map(MappedFile::new).collect();
        files.sort_unstable_by_key(|file| file.number);
        MappedFiles { files, bytes_read: AtomicU64::new(0) }
    }

    /// Maps a file, and turns off the read-ahead of the system in its mapping. No effect where the system
    /// rejects it.
    ///
    /// # Errors
    /// The error of the mapping.
    pub fn disable_readahead(&self, file: &SealedFile) -> Result<()> {
        if let Some(mapping) = self.find_file(file).map(|mapped| mapped.mapping(file)).transpose()?.flatten()
        {
            let _ = mapping.advise(Advice::Random);
        }
        Ok(())
    }

    /// Bytes of the pages that were read.
    pub fn bytes_read(&self) -> u64 {
        self.bytes_read.load(Ordering::Relaxed)
    }

    fn find_file(&self, file: &SealedFile) -> Option<&MappedFile> {
        let at = self.files.binary_search_by_key(&file.number(), |file| file.number).ok()?;
        Some(&self.files[at])
    }

    fn read_pages(&self, file: &SealedFile, range: &Range<u64>, out: &mut Vec<u8>) -> tierdex_io::Result<()> {
        let payload = file.payload();
        let mapped =
            self.find_file(file).filter(|_| range.start >= payload.start && range.end <= payload.end);
        let Some(mapped) = mapped else {
            return Err(Error::corrupt(file.name(), range.start, "these bytes are not all payload"));
        };
        let pages = range.start / PAGE..range.end.div_ceil(PAGE);
        self.bytes_read.fetch_add((pages.end - pages.start) * PAGE, Ordering::Relaxed);
        let mapping = mapped.mapping(file)?;
        pages.into_iter().try_for_each(|page| mapped.check_page(file, mapping, page))?;
        let len = (range.end - range.start) as usize;
        // Exact, because callers count this memory in their budget.
        out.reserve_exact(len.saturating_sub(out.len()));
        out.resize(len, 0);
        copy_mapped(file, mapping, range.start, out)
    }
}

impl BlockSource for MappedFiles {
    fn read(&self, file: &Arc<SealedFile>, range: Range<u64>, out: &mut Vec<u8>) -> Result<()> {
        if file.resident().is_some() || range.is_empty() {
            let len = usize::try_from(range.end.saturating_sub(range.start)).unwrap_or(usize::MAX);
            return Ok(file.read_into(range.start, len, out)?);
        }
        let read = self.read_pages(file, &range, out);
        if read.is_err() {
            out.clear();
        }
        Ok(read?)
    }
}

impl MappedFile {
    fn new(file: &SealedFile) -> MappedFile {
        let pages = file.payload().end.div_ceil(PAGE);
        let checked = (0..pages.div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
        MappedFile { number: file.number(), mapping: OnceLock::new(), checked }
    }

    /// The mapping of the file, which is created on first use.
    fn mapping(&self, file: &SealedFile) -> tierdex_io::Result<Option<&Mmap>> {
        if let Some(mapping) = self.mapping.get() {
            return Ok(mapping.as_ref());
        }
        let (name, len) = (file.name(), file.file().len());
        let mapping =
            file.file().descriptor().map(|descriptor| map_file(descriptor, name, len)).transpose()?;
        // Another thread may have mapped it in the meantime; both mappings have the same bytes.
        Ok(self.mapping.get_or_init(|| mapping).as_ref())
    }

    /// Checks a page, unless it was checked before.
    fn check_page(&self, file: &SealedFile, mapping: Option<&Mmap>, number: u64) -> tierdex_io::Result<()> {
        let (word, bit) = (&self.checked[(number / 64) as usize], 1 << (number % 64));
        if word.load(Ordering::Relaxed) & bit != 0 {
            return Ok(());
        }
        let mut page = [0; PAGE as usize];
        let left = file.payload().end - number * PAGE;
        let page = &mut page[..left.min(PAGE) as usize];
        copy_mapped(file, mapping, number * PAGE, page)?;
        file.check(number, page)?;
        word.fetch_or(bit, Ordering::Relaxed);
        Ok(())
    }
}

/// Fills `out` with the bytes from `offset` on.
fn copy_mapped(file: &SealedFile, map: Option<&Mmap>, offset: u64, out: &mut [u8]) -> tierdex_io::Result<()> {
    let Some(mapping) = map else { return file.file().read_at(offset, out) };
    let start = offset as usize;
    let bytes = mapping.get(start..start + out.len()).ok_or_else(|| ends_early_error(file.name(), offset))?;
    out.copy_from_slice(bytes);
    Ok(())
}

/// Maps a file of `len` bytes.
fn map_file(descriptor: BorrowedFd<'_>, name: &str, len: u64) -> tierdex_io::Result<Mmap> {
    let failed = |error: io::Error| Error::from_os("map", name, &error);
    let file = File::from(descriptor.try_clone_to_owned().map_err(failed)?);
    let len_now = file.metadata().map_err(failed)?.len();
    if len_now < len {
        return Err(ends_early_error(name, len_now));
    }
    let len = usize::try_from(len).map_err(|_| failed(io::ErrorKind::FileTooLarge.into()))?;
    // SAFETY: the file is a sealed file of an index: no process writes to it after its commit, so the bytes
    // do not change while they are borrowed. If it is truncated nevertheless, the process ends by a signal.
    unsafe { MmapOptions::new().len(len).map(&file) }.map_err(failed)
}

fn ends_early_error(name: &str, offset: u64) -> Error {
    Error::corrupt(name, offset, "the file ends early")
}
