//! Writer of sealed files: splits the payload into pages and appends their checksums.

use super::checksum::Checksums;
use super::identity::{Identity, Seal};
use super::layout::{EnvelopeLayout, FORMAT_VERSION, PAGE, encode_footer, encode_header};
use crate::{Disk, Error, ErrorKind, Result, WriteFile};

/// Bytes of the write buffer: a multiple of [`PAGE`], so that each flush begins at a page.
const BUFFER_LEN: usize = 128 << 10;

const PAGE_LEN: usize = PAGE as usize;

const _: () = assert!(BUFFER_LEN.is_multiple_of(PAGE_LEN));

/// Appends a payload to a new file and seals it.
///
/// Memory: a buffer of 128 KiB, and the page table until it is written behind the payload: 4 bytes per 4 KiB
/// (1 MiB per GiB). Dropping the writer before [`SealedWriter::finish`] leaves a file that no reader accepts.
pub struct SealedWriter {
    file: Box<dyn WriteFile>,
    name: String,
    identity: Identity,
    checksums: Checksums,
    buffer: Vec<u8>,
    /// Bytes appended to the file so far: a multiple of [`PAGE`] until the last flush.
    flushed: u64,
    page_table: Vec<u8>,
    /// The first write error, after which the content of the file is unknown.
    failed: Option<Error>,
}

impl SealedWriter {
    /// Creates a new file; see [`Disk::create`] for the errors.
    pub fn create(disk: &dyn Disk, name: &str, identity: Identity) -> Result<Self> {
        let file = disk.create(name)?;
        let mut buffer = Vec::with_capacity(BUFFER_LEN);
        buffer.extend_from_slice(&encode_header(identity, FORMAT_VERSION));
        Ok(SealedWriter {
            file,
            name: name.to_owned(),
            identity,
            checksums: Checksums::new(identity),
            buffer,
            flushed: 0,
            page_table: Vec::new(),
            failed: None,
        })
    }

    /// The file offset of the next byte; initially [`super::HEADER_LEN`].
    pub fn position(&self) -> u64 {
        self.flushed + self.buffer.len() as u64
    }

    /// Appends `bytes` to the payload. After an error all later calls return the same error.
    pub fn write(&mut self, mut bytes: &[u8]) -> Result<()> {
        self.check_not_failed()?;
        while bytes.len() >= BUFFER_LEN - self.buffer.len() {
            let (fitting, rest) = bytes.split_at(BUFFER_LEN - self.buffer.len());
            self.buffer.extend_from_slice(fitting);
            self.flush()?;
            bytes = rest;
        }
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    /// Appends zeros until [`SealedWriter::position`] is a multiple of [`PAGE`]. They are part of the
    /// payload.
    pub fn pad_to_page(&mut self) -> Result<()> {
        let missing = self.position().next_multiple_of(PAGE) - self.position();
        self.write(&[0; PAGE_LEN][..missing as usize])
    }

    /// Writes the buffered bytes, the tables and the footer, and syncs the file. Its name still needs
    /// [`Disk::sync_dir`].
    pub fn finish(mut self) -> Result<Seal> {
        self.check_not_failed()?;
        let layout = EnvelopeLayout::of(self.position()).ok_or_else(|| self.too_long_error())?;
        self.flush()?;
        let (end, seal) = self.encode_top_table_and_footer(layout);
        self.file.append(&self.page_table)?;
        self.file.append(&end)?;
        self.file.sync()?;
        Ok(seal)
    }

    fn check_not_failed(&self) -> Result<()> {
        self.failed.clone().map_or(Ok(()), Err)
    }

    /// Appends the buffer to the file and the checksums of its pages to the page table.
    fn flush(&mut self) -> Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        for (page, number) in self.buffer.chunks(PAGE_LEN).zip(self.flushed / PAGE..) {
            self.page_table.extend_from_slice(&self.checksums.page(number, page).to_le_bytes());
        }
        let appended = self.file.append(&self.buffer);
        self.failed = appended.as_ref().err().cloned();
        self.flushed += self.buffer.len() as u64;
        self.buffer.clear();
        appended
    }

    fn encode_top_table_and_footer(&self, layout: EnvelopeLayout) -> (Vec<u8>, Seal) {
        let mut bytes = Vec::new();
        for (group, number) in self.page_table.chunks(PAGE_LEN).zip(0..) {
            bytes.extend_from_slice(&self.checksums.group(number, group).to_le_bytes());
        }
        let (footer, seal) = encode_footer(self.identity, FORMAT_VERSION, layout, self.checksums.top(&bytes));
        bytes.extend_from_slice(&footer);
        (bytes, seal)
    }

    fn too_long_error(&self) -> Error {
        Error::new(ErrorKind::Unsupported, "write", &*self.name, "the file would be longer than 2^64 bytes")
    }
}
