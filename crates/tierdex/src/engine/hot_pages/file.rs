//! The file of hot pages: `docs/format/hot-pages.md`.

use crate::bytes::{ByteReader, push_varint};
use crate::index::Manifest;
use crate::limits::HOT_PAGES_BYTES_MAX;
use crate::segment::FileKind;
use crate::{Error, Result};
use std::path::Path;
use tierdex_cache::HEAT_CLASSES;
use tierdex_io::{Disk, ErrorKind, Identity, PAGE, PosixDisk, Seal, SealedFile, SealedWriter};

const IDENTITY: Identity = Identity { kind: FileKind::HotPages as u8, field: 0, segment: 0 };

/// The bits of a [`HotPage`] below its class.
const CLASS_SHIFT: u32 = 61;

/// Temporary names that are tried, if files of killed processes have the first ones.
const NAMES_MAX: usize = 1000;

/// Bytes that are read at a time, and maximum bytes of a part that is decoded at a time.
const CHUNK_BYTES: u64 = 64 << 10;
const PART_BYTES_MAX: usize = 20;

/// The class of a page, in the highest bits, and its number in the order of [`PageNumbers`].
pub(super) type HotPage = u64;

/// The entry of a page.
pub(super) fn hot_page(class: usize, number: u64) -> HotPage {
    (class as u64) << CLASS_SHIFT | number
}

/// Numbers the pages of several files: those of the first file, one number that is not used, those of the
/// second file, and so on. So the pages of two files are never adjacent.
#[derive(Default)]
pub(super) struct PageNumbers {
    next: u64,
}

impl PageNumbers {
    /// The number of the first page of the next file.
    pub(super) fn add(&mut self, seal: Seal) -> u64 {
        let first = self.next;
        self.next = first.saturating_add(seal.len.div_ceil(PAGE) + 1);
        first
    }
}

/// The directory and the name of a file of hot pages.
pub(super) struct HotPagesFile {
    disk: PosixDisk,
    name: String,
}

impl HotPagesFile {
    /// Checks that the file can be written: creates a temporary file in its directory, and removes it.
    ///
    /// # Errors
    /// [`Error::Storage`] with the path.
    pub(super) fn new(path: &Path) -> Result<HotPagesFile> {
        let created = HotPagesFile::try_new(path).map_err(|error| {
            let path = path.display().to_string();
            tierdex_io::Error::new(error.kind(), "write hot pages to", path, error.to_string())
        });
        Ok(created?)
    }

    fn try_new(path: &Path) -> tierdex_io::Result<HotPagesFile> {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if Manifest::is_index_file(&name) {
            let why = "it is the name of a file of an index";
            return Err(tierdex_io::Error::new(ErrorKind::Denied, "use", name, why));
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let file = HotPagesFile { disk: PosixDisk::open(folder.unwrap_or(Path::new(".")))?, name };
        match file.disk.open(&file.name) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let (temporary, writer) = file.create()?;
        drop(writer);
        file.disk.remove(&temporary)?;
        Ok(file)
    }

    /// Creates a temporary file; returns its name.
    fn create(&self) -> tierdex_io::Result<(String, SealedWriter)> {
        let mut number = 0;
        loop {
            let name = format!("{}.{}-{number}.tmp", self.name, std::process::id());
            match SealedWriter::create(&self.disk, &name, IDENTITY) {
                Err(error) if error.kind() == ErrorKind::Exists && number < NAMES_MAX => number += 1,
                created => return created.map(|writer| (name, writer)),
            }
        }
    }

    /// Replaces the file: by the files of these seals, and their pages in increasing order.
    pub(super) fn write(&self, seals: &[Seal], pages: &[HotPage]) -> Result<()> {
        let (temporary, writer) = self.create()?;
        let written = write_payload(writer, seals, pages);
        let written = written.and_then(|()| self.disk.replace(&temporary, &self.name));
        if written.is_err() {
            // The error that is returned says what is wrong.
            let _ = self.disk.remove(&temporary);
        }
        Ok(written?)
    }

    /// Opens the file and verifies its checksums.
    pub(super) fn read(&self) -> Result<HotPagesReader> {
        let file = SealedFile::open_unsealed(&self.disk, &self.name, IDENTITY)?;
        if file.seal().len > HOT_PAGES_BYTES_MAX {
            return Err(Error::TooLarge(format!("{} is larger than a file of hot pages", self.name)));
        }
        file.verify()?;
        Ok(HotPagesReader { at: file.payload().start, file, chunk: Vec::new(), used: 0 })
    }
}

/// Decodes a file of hot pages in chunks, from front to end. After an error the rest is not decoded.
pub(super) struct HotPagesReader {
    file: SealedFile,
    /// Offset in the file of the next chunk.
    at: u64,
    /// The bytes that were read last, of which the first `used` were decoded.
    chunk: Vec<u8>,
    used: usize,
}

impl HotPagesReader {
    /// The number of files; first.
    pub(super) fn files(&mut self) -> Result<u64> {
        self.decode(|view| view.varint())
    }

    /// The next file.
    pub(super) fn seal(&mut self) -> Result<Seal> {
        self.decode(|view| Ok(Seal { len: view.varint()?, crc: view.u32()? }))
    }

    /// The next run: the pages between it and the one before in its class, and its pages. Without pages it is
    /// the end of the class.
    pub(super) fn run(&mut self) -> Result<(u64, u64)> {
        self.decode(|view| Ok((view.varint()?, view.varint()?)))
    }

    fn decode<T>(&mut self, part: impl FnOnce(&mut ByteReader<'_>) -> Result<T>) -> Result<T> {
        let left = self.file.payload().end - self.at;
        if self.chunk.len() - self.used < PART_BYTES_MAX && left > 0 {
            self.chunk.drain(..self.used);
            self.used = 0;
            let len = left.min(CHUNK_BYTES);
            self.chunk.extend_from_slice(&self.file.read(self.at, len as usize)?);
            self.at += len;
        }
        let mut view = ByteReader::new(self.file.name(), 0, &self.chunk[self.used..]);
        let decoded = part(&mut view)?;
        self.used += view.offset() as usize;
        Ok(decoded)
    }
}

fn write_payload(mut writer: SealedWriter, seals: &[Seal], pages: &[HotPage]) -> tierdex_io::Result<()> {
    let mut bytes = Vec::new();
    push_varint(&mut bytes, seals.len() as u64);
    for seal in seals {
        push_varint(&mut bytes, seal.len);
        bytes.extend_from_slice(&seal.crc.to_le_bytes());
    }
    let mut pages = pages.iter().copied().peekable();
    for class in 0..HEAT_CLASSES {
        let mut end = hot_page(class, 0);
        while let Some(first) = pages.next_if(|page| *page < hot_page(class + 1, 0)) {
            let mut run = 1;
            while pages.next_if_eq(&(first + run)).is_some() {
                run += 1;
            }
            push_varint(&mut bytes, first - end);
            push_varint(&mut bytes, run);
            end = first + run;
            writer.write(&bytes)?;
            bytes.clear();
        }
        bytes.extend_from_slice(&[0, 0]);
    }
    writer.write(&bytes)?;
    writer.finish().map(drop)
}
