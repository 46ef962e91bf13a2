//! Writing an enveloped file.

use super::checksum::Checksums;
use super::layout::{Layout, footer, header};
use super::{Identity, PAGE, Seal};
use crate::disk::{Disk, WriteFile};
use crate::error::{Error, ErrorKind, Result};

/// Bytes that are gathered before they are handed to the disk. A multiple of [`PAGE`], so that what is handed over
/// always begins with a page.
const BUFFER_LEN: usize = 128 << 10;

const PAGE_LEN: usize = PAGE as usize;

const _: () = assert!(BUFFER_LEN.is_multiple_of(PAGE_LEN));

/// Appends a payload to a new file and seals it.
///
/// Memory: a buffer of 128 KiB, and the page table, 4 bytes for each 4 KiB written (1 MiB for each GiB), because it
/// follows the payload. A writer that is dropped before [`SealedWriter::finish`] leaves a file that no reader accepts.
pub struct SealedWriter {
    file: Box<dyn WriteFile>,
    name: String,
    identity: Identity,
    checksums: Checksums,
    buffer: Vec<u8>,
    /// Bytes handed to the disk: whole pages, until the last flush.
    flushed: u64,
    page_table: Vec<u8>,
    /// The error after which nothing is known about the file's end.
    failed: Option<Error>,
}

impl SealedWriter {
    /// Begins a new file; see [`Disk::create`] for the errors.
    pub fn create(disk: &dyn Disk, name: &str, identity: Identity) -> Result<Self> {
        let file = disk.create(name)?;
        let mut buffer = Vec::with_capacity(BUFFER_LEN);
        buffer.extend_from_slice(&header(identity));
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

    /// The file offset of the next byte; [`super::HEADER_LEN`] at first.
    pub fn position(&self) -> u64 {
        self.flushed + self.buffer.len() as u64
    }

    /// Appends `bytes` to the payload. After an error all later calls give that error again.
    pub fn write(&mut self, mut bytes: &[u8]) -> Result<()> {
        self.check()?;
        while bytes.len() >= BUFFER_LEN - self.buffer.len() {
            let (fitting, rest) = bytes.split_at(BUFFER_LEN - self.buffer.len());
            self.buffer.extend_from_slice(fitting);
            self.flush()?;
            bytes = rest;
        }
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    /// Appends zeros until [`SealedWriter::position`] is a multiple of [`PAGE`]. They are part of the payload.
    pub fn pad_to_page(&mut self) -> Result<()> {
        let missing = self.position().next_multiple_of(PAGE) - self.position();
        self.write(&[0; PAGE_LEN][..missing as usize])
    }

    /// Writes what is left, the tables and the footer, and syncs the file. Its name needs [`Disk::sync_dir`] yet.
    pub fn finish(mut self) -> Result<Seal> {
        self.check()?;
        let layout = Layout::of(self.position()).ok_or_else(|| self.too_long())?;
        self.flush()?;
        let (end, seal) = self.top_table_and_footer(layout);
        self.file.append(&self.page_table)?;
        self.file.append(&end)?;
        self.file.sync()?;
        Ok(seal)
    }

    fn check(&self) -> Result<()> {
        self.failed.clone().map_or(Ok(()), Err)
    }

    /// Hands the buffer to the disk and notes its pages' checksums.
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

    fn top_table_and_footer(&self, layout: Layout) -> (Vec<u8>, Seal) {
        let mut bytes = Vec::new();
        for (group, number) in self.page_table.chunks(PAGE_LEN).zip(0..) {
            bytes.extend_from_slice(&self.checksums.group(number, group).to_le_bytes());
        }
        let (footer, seal) = footer(self.identity, layout, self.checksums.top(&bytes));
        bytes.extend_from_slice(&footer);
        (bytes, seal)
    }

    fn too_long(&self) -> Error {
        Error::new(ErrorKind::Unsupported, "write", &*self.name, "the file would be longer than 2^64 bytes")
    }
}
