//! Reading an enveloped file.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use super::checksum::Checksums;
use super::layout::{
    ENTRY_LEN, End, FOOTER_LEN, Footer, GROUP, Layout, Refusal, decode_footer, entries, header,
};
use super::{FORMAT_VERSION, HEADER_LEN, Identity, PAGE, Seal};
use crate::disk::{Disk, ReadFile};
use crate::error::{Error, ErrorKind, Result};
use crate::memory::{Arena, Kept};

const PAGE_LEN: usize = PAGE as usize;

/// How many pages [`SealedFile::verify`] reads at once: 256 KiB.
const VERIFY_PAGES: u64 = 64;

/// Files opened so far by this process.
static OPENED: AtomicU64 = AtomicU64::new(0);

/// A sealed file, open for reading by any number of threads. No byte leaves it unchecked.
///
/// Memory: the top table (1 MiB for each TiB), 24 bytes for each group of 4 MiB, and the groups that were needed so
/// far, 4 KiB each. Nothing is allocated before its size has been checked against the file's real length.
pub struct SealedFile {
    number: u64,
    file: Arc<dyn ReadFile>,
    name: String,
    identity: Identity,
    checksums: Checksums,
    footer: Footer,
    top_table: Box<[u32]>,
    /// The page table, group by group, each from the first time it is needed.
    groups: Box<[OnceLock<Box<[u32]>>]>,
    /// The payload, verified, once [`SealedFile::keep`] was called.
    kept: OnceLock<Kept>,
    bytes_read: AtomicU64,
    reads: AtomicU64,
}

impl SealedFile {
    /// Opens the file that was written as `identity` and sealed as `seal`; reads its footer and top table.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`]; [`ErrorKind::Corrupt`] when it is damaged, or whole but another file;
    /// [`ErrorKind::Unsupported`] when it has another version of the format.
    pub fn open(disk: &dyn Disk, name: &str, identity: Identity, seal: Seal) -> Result<Self> {
        let file = disk.open(name)?;
        if file.len() != seal.len {
            let what = format!("the file has {} bytes and should have {}", file.len(), seal.len);
            return Err(Error::corrupt(name, file.len().min(seal.len), what));
        }
        let opened = SealedFile::start(file, name, identity)?;
        if opened.seal() != seal {
            let offset = opened.layout().footer_start;
            return Err(Error::corrupt(name, offset, "the file is whole, but not the one that was sealed"));
        }
        Ok(opened)
    }

    /// Opens a file whose seal is not known: the manifest. It proves itself to be whole, but not to be the newest.
    ///
    /// # Errors
    /// As [`SealedFile::open`].
    pub fn open_unsealed(disk: &dyn Disk, name: &str, identity: Identity) -> Result<Self> {
        SealedFile::start(disk.open(name)?, name, identity)
    }

    /// A number that no other file has which this process has opened: the same file, opened again, has
    /// another.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The seal of this file.
    pub fn seal(&self) -> Seal {
        self.footer.seal
    }

    /// The name under which it was opened.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The file offsets of the payload.
    pub fn payload(&self) -> Range<u64> {
        HEADER_LEN..self.layout().payload_end
    }

    /// The `len` bytes from file offset `offset` on.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`] when the range is not within [`SealedFile::payload`] or a page does not match its checksum,
    /// else what the disk reports.
    pub fn read(&self, offset: u64, len: usize) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.read_into(offset, len, &mut bytes)?;
        Ok(bytes)
    }

    /// As [`SealedFile::read`], into `out`, whose content is replaced; it is empty after an error.
    ///
    /// The pages that cover the range are read with one [`ReadFile::read_at`]. `out` grows to hold them: up to two pages more than `len`.
    pub fn read_into(&self, offset: u64, len: usize, out: &mut Vec<u8>) -> Result<()> {
        let read = self.read_range(offset, len, out);
        if read.is_err() {
            out.clear();
        }
        read
    }

    /// Reads the whole payload, checks it and keeps it in memory: from then on [`SealedFile::kept`] gives it, and reads
    /// are copies of it. It takes as much memory as the payload is long.
    ///
    /// # Errors
    /// As [`SealedFile::read`]; then nothing is kept.
    pub fn keep(&self) -> Result<()> {
        self.keep_in(None)
    }

    /// As [`SealedFile::keep`], in `arena` if there is one.
    ///
    /// # Errors
    /// As [`SealedFile::keep`]; [`ErrorKind::NoSpace`] when the arena has not so much left.
    pub fn keep_in(&self, arena: Option<&mut Arena>) -> Result<()> {
        if self.kept.get().is_some() {
            return Ok(());
        }
        let len = self.in_memory(self.layout().payload_end - HEADER_LEN)?;
        let fill = |payload: &mut [u8]| self.read_payload(payload);
        let kept = match arena {
            Some(arena) => arena.take(len, fill, &self.name)?,
            None => Kept::own(len, fill, &self.name)?,
        };
        // Another thread may have kept it in the meantime: both are the same bytes.
        let _ = self.kept.set(kept);
        Ok(())
    }

    /// Reads the whole payload and checks it.
    fn read_payload(&self, payload: &mut [u8]) -> Result<()> {
        let mut pages = Vec::new();
        for first in (0..self.layout().pages).step_by(VERIFY_PAGES as usize) {
            let end = self.layout().pages.min(first + VERIFY_PAGES);
            self.read_pages(first..end, &mut pages)?;
            self.check_pages(first, &pages)?;
            let header = if first == 0 { HEADER_LEN as usize } else { 0 };
            let place = (first * PAGE).saturating_sub(HEADER_LEN) as usize;
            payload[place..place + pages.len() - header].copy_from_slice(&pages[header..]);
        }
        Ok(())
    }

    /// The payload, if it is kept in memory.
    #[inline]
    pub fn kept(&self) -> Option<&Kept> {
        self.kept.get()
    }

    /// Some bytes of the payload, if it is kept in memory and has them.
    #[inline]
    pub fn kept_range(&self, offset: u64, len: usize) -> Option<&[u8]> {
        let from = usize::try_from(offset.checked_sub(self.payload().start)?).ok()?;
        self.kept()?.get(from..from.checked_add(len)?)
    }

    /// Begins to load `len` bytes from `offset` on into the caches of the processor, if the payload is kept in
    /// memory and has them.
    #[inline]
    pub fn load_lines(&self, offset: u64, len: usize) {
        let from = offset.checked_sub(self.payload().start).and_then(|from| usize::try_from(from).ok());
        if let (Some(kept), Some(from)) = (self.kept(), from) {
            kept.load_lines(from..from.saturating_add(len));
        }
    }

    /// The file itself, for an engine. What is read from it is unchecked until [`SealedFile::check`] has seen it, and not
    /// counted in [`SealedFile::bytes_read`].
    pub fn file(&self) -> &Arc<dyn ReadFile> {
        &self.file
    }

    /// Checks pages that were read by other means: `bytes` is what stands in the file from page `first_page` on
    /// ([`PAGE`] bytes each, the header at the beginning of page 0). The payload's last page may be short, and what
    /// stands behind the payload is not looked at.
    ///
    /// Makes no read once [`SealedFile::load_tables`] was called.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`] when a page does not match its checksum or is not all there, or when `bytes` holds no payload.
    pub fn check(&self, first_page: u64, bytes: &[u8]) -> Result<()> {
        let payload_end = self.layout().payload_end;
        let start = first_page.checked_mul(PAGE).filter(|start| *start < payload_end && !bytes.is_empty());
        let Some(start) = start else {
            return Err(self.corrupt(first_page.saturating_mul(PAGE), "there is no payload here"));
        };
        let left = usize::try_from(payload_end - start).unwrap_or(usize::MAX);
        if bytes.len() < left && !bytes.len().is_multiple_of(PAGE_LEN) {
            return Err(self.corrupt(start + bytes.len() as u64, "only a part of the page was read"));
        }
        self.check_pages(first_page, &bytes[..left.min(bytes.len())])
    }

    /// Reads the page table, so that no check has to: 4 bytes of memory for each page of [`PAGE`] bytes.
    ///
    /// # Errors
    /// As [`SealedFile::read`].
    pub fn load_tables(&self) -> Result<()> {
        (0..self.layout().groups).try_for_each(|group| self.group(group).map(drop))
    }

    /// Reads the whole file anew and checks it: both ends, both tables, every page, and that nothing else is there.
    ///
    /// # Errors
    /// The first damage found, or the disk's error.
    pub fn verify(&self) -> Result<()> {
        let footer = self.read_footer()?;
        if footer != self.footer {
            return Err(
                self.corrupt(footer.layout.footer_start, "the footer changed after the file was opened")
            );
        }
        self.read_top_table(&footer)?;
        let mut pages = Vec::new();
        for group in 0..self.layout().groups {
            let table = self.read_group(group)?;
            self.verify_pages(group, &table, &mut pages)?;
        }
        Ok(())
    }

    /// How many bytes were read from the disk through this file so far, tables included.
    pub fn bytes_read(&self) -> u64 {
        self.bytes_read.load(Ordering::Relaxed)
    }

    /// How many times the disk was asked for them.
    pub fn reads(&self) -> u64 {
        self.reads.load(Ordering::Relaxed)
    }

    fn start(file: Box<dyn ReadFile>, name: &str, identity: Identity) -> Result<SealedFile> {
        let nothing = Layout::of(HEADER_LEN).expect("an empty payload fits");
        let mut opened = SealedFile {
            number: OPENED.fetch_add(1, Ordering::Relaxed),
            file: Arc::from(file),
            name: name.to_owned(),
            identity,
            checksums: Checksums::new(identity),
            footer: Footer { layout: nothing, top_crc: 0, seal: Seal { len: 0, crc: 0 } },
            top_table: Box::default(),
            groups: Box::default(),
            kept: OnceLock::new(),
            bytes_read: AtomicU64::new(0),
            reads: AtomicU64::new(0),
        };
        opened.footer = opened.read_footer()?;
        opened.top_table = opened.read_top_table(&opened.footer)?;
        opened.groups = opened.top_table.iter().map(|_| OnceLock::new()).collect();
        Ok(opened)
    }

    fn layout(&self) -> &Layout {
        &self.footer.layout
    }

    fn corrupt(&self, offset: u64, what: &str) -> Error {
        Error::corrupt(&*self.name, offset, what)
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.bytes_read.fetch_add(buf.len() as u64, Ordering::Relaxed);
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.file.read_at(offset, buf)
    }

    /// Reads a part whose length is bounded by the file's own.
    fn read_part(&self, part: Range<u64>) -> Result<Vec<u8>> {
        let mut bytes = vec![0; self.in_memory(part.end - part.start)?];
        self.read_at(part.start, &mut bytes)?;
        Ok(bytes)
    }

    fn read_footer(&self) -> Result<Footer> {
        let file_len = self.file.len();
        let Some(footer_start) = file_len.checked_sub(FOOTER_LEN) else {
            return Err(self.corrupt(file_len, "the file is shorter than a footer"));
        };
        let mut bytes: End = [0; 64];
        self.read_at(footer_start, &mut bytes)?;
        decode_footer(&bytes, self.identity, file_len).map_err(|refusal| match refusal {
            Refusal::Damaged(what) => self.corrupt(footer_start, &what),
            Refusal::Version(version) => self.other_version(version),
        })
    }

    fn other_version(&self, version: u16) -> Error {
        let detail = format!(
            "it has format version {version}, and this program reads version {FORMAT_VERSION}: index again"
        );
        Error::new(ErrorKind::Unsupported, "open", &*self.name, detail)
    }

    fn read_top_table(&self, footer: &Footer) -> Result<Box<[u32]>> {
        let Layout { top_start, footer_start, .. } = footer.layout;
        let bytes = self.read_part(top_start..footer_start)?;
        if self.checksums.top(&bytes) != footer.top_crc {
            return Err(self.corrupt(top_start, "the top table's checksum does not match"));
        }
        Ok(entries(&bytes))
    }

    fn read_group(&self, group: u64) -> Result<Box<[u32]>> {
        let part = self.layout().group(group);
        let start = part.start;
        let bytes = self.read_part(part)?;
        if self.checksums.group(group, &bytes) != self.top_table[self.in_memory(group)?] {
            return Err(self.corrupt(start, "the page table's checksum does not match"));
        }
        Ok(entries(&bytes))
    }

    /// The checked entries of a group. Threads that need it at the same time may each read it; errors are not kept.
    fn group(&self, group: u64) -> Result<&[u32]> {
        let slot = &self.groups[self.in_memory(group)?];
        match slot.get() {
            Some(table) => Ok(table),
            None => {
                let table = self.read_group(group)?;
                Ok(slot.get_or_init(|| table))
            }
        }
    }

    fn read_range(&self, offset: u64, len: usize, out: &mut Vec<u8>) -> Result<()> {
        let end = offset.checked_add(len as u64).filter(|end| *end <= self.layout().payload_end);
        let Some(end) = end.filter(|_| offset >= HEADER_LEN) else {
            return Err(self.corrupt(offset, &format!("{len} bytes from here on are not all payload")));
        };
        if let Some(payload) = self.kept() {
            let start = (offset - HEADER_LEN) as usize;
            out.clear();
            out.extend_from_slice(&payload[start..start + len]);
            return Ok(());
        }
        if len == 0 {
            out.clear();
            return Ok(());
        }
        let first = offset / PAGE;
        self.read_pages(first..end.div_ceil(PAGE), out)?;
        self.check_pages(first, out)?;
        let skipped = (offset - first * PAGE) as usize;
        out.truncate(skipped + len);
        out.drain(..skipped);
        Ok(())
    }

    /// Replaces `out` by these pages, unchecked.
    fn read_pages(&self, pages: Range<u64>, out: &mut Vec<u8>) -> Result<()> {
        let start = pages.start * PAGE;
        let end = self.layout().payload_end.min(pages.end * PAGE);
        let len = self.in_memory(end - start)?;
        // Memory is counted: no more than is asked for.
        out.reserve_exact(len.saturating_sub(out.len()));
        out.resize(len, 0);
        self.read_at(start, out)
    }

    fn check_pages(&self, first: u64, bytes: &[u8]) -> Result<()> {
        for (page, number) in bytes.chunks(PAGE_LEN).zip(first..) {
            let table = self.group(number / GROUP)?;
            self.check_page(number, page, table)?;
        }
        Ok(())
    }

    /// `table` is the group of page `number`.
    fn check_page(&self, number: u64, page: &[u8], table: &[u32]) -> Result<()> {
        if self.checksums.page(number, page) == table[(number % GROUP) as usize] {
            return Ok(());
        }
        Err(self.corrupt(number * PAGE, "the page's checksum does not match"))
    }

    fn verify_pages(&self, group: u64, table: &[u32], pages: &mut Vec<u8>) -> Result<()> {
        let end = group * GROUP + table.len() as u64;
        for first in (group * GROUP..end).step_by(VERIFY_PAGES as usize) {
            self.read_pages(first..end.min(first + VERIFY_PAGES), pages)?;
            for (page, number) in pages.chunks(PAGE_LEN).zip(first..) {
                self.check_page(number, page, table)?;
            }
            if first == 0 && !pages.starts_with(&header(self.identity)) {
                return Err(self.corrupt(0, "the header is not this file's"));
            }
        }
        Ok(())
    }

    /// A length or number within the file, as one of memory: fails where addresses are shorter than files.
    fn in_memory(&self, number: u64) -> Result<usize> {
        let what = "the part does not fit the address space";
        usize::try_from(number).map_err(|_| Error::new(ErrorKind::Unsupported, "read", &*self.name, what))
    }
}

const _: () = assert!(PAGE == GROUP * ENTRY_LEN);

#[cfg(test)]
mod tests {
    use super::super::SealedWriter;
    use super::super::layout::footer;
    use super::*;
    use crate::mem::MemDisk;

    const IDENTITY: Identity = Identity { kind: 3, field: 1, segment: 77 };

    /// A file of `identity` whose first bytes are `start` and whose checksums are all right.
    fn crafted(start: &End, identity: Identity) -> SealedFile {
        let checksums = Checksums::new(identity);
        let page_table = checksums.page(0, start).to_le_bytes();
        let top_table = checksums.group(0, &page_table).to_le_bytes();
        let layout = Layout::of(HEADER_LEN).unwrap();
        let (footer, seal) = footer(identity, layout, checksums.top(&top_table));
        let disk = MemDisk::new();
        let mut file = disk.create("a").unwrap();
        file.append(&[&start[..], &page_table, &top_table, &footer].concat()).unwrap();
        SealedFile::open(&disk, "a", identity, seal).unwrap()
    }

    #[test]
    fn a_kept_payload_is_what_reads_give() {
        let disk = MemDisk::new();
        for len in [0, 1, 4031, 4032, 4033, 300_000] {
            let payload: Vec<u8> = (0..len).map(|k| (k * 7 + k / 256) as u8).collect();
            let mut writer = SealedWriter::create(&disk, "b", IDENTITY).unwrap();
            writer.write(&payload).unwrap();
            let seal = writer.finish().unwrap();
            let file = SealedFile::open(&disk, "b", IDENTITY, seal).unwrap();
            assert!(file.kept().is_none());
            file.keep().unwrap();
            assert_eq!(file.kept().map(|kept| &**kept), Some(&payload[..]));
            let read = file.bytes_read();
            let middle = payload.len() / 3..payload.len() / 2;
            let found = file.read(HEADER_LEN + middle.start as u64, middle.len()).unwrap();
            assert_eq!((found, file.bytes_read()), (payload[middle].to_vec(), read));
            assert!(file.read(HEADER_LEN, payload.len() + 1).is_err());
            disk.remove("b").unwrap();
        }
    }

    #[test]
    fn pages_from_elsewhere_are_checked() {
        let disk = MemDisk::new();
        let payload: Vec<u8> = (0..5 << 20).map(|k: u32| (k * 7 + k / 256) as u8).collect();
        let mut writer = SealedWriter::create(&disk, "b", IDENTITY).unwrap();
        writer.write(&payload).unwrap();
        let seal = writer.finish().unwrap();
        let file = SealedFile::open(&disk, "b", IDENTITY, seal).unwrap();
        file.load_tables().unwrap();
        let reads = file.reads();
        let mut bytes = disk.bytes("b").unwrap();
        let last = file.payload().end / PAGE;
        for (from, to) in
            [(0, 1), (0, 3), (1023, 1025), (last, last + 1), (last - 2, last + 1), (0, last + 1)]
        {
            let (start, end) = ((from * PAGE) as usize, ((to * PAGE) as usize).min(bytes.len()));
            file.check(from, &bytes[start..end]).unwrap();
            bytes[start + 63] ^= 1;
            let error = file.check(from, &bytes[start..end]).unwrap_err();
            assert_eq!((error.kind(), error.offset()), (ErrorKind::Corrupt, Some(start as u64)));
            bytes[start + 63] ^= 1;
            assert!(file.check(from + 1, &bytes[start..end]).is_err(), "another page");
        }
        for (first, len) in
            [(0, 0), (0, 1), (0, 4095), (0, 4097), (last, 1), (last + 1, 4096), (u64::MAX, 4096)]
        {
            assert!(file.check(first, &bytes[..len]).is_err(), "{first} {len}");
        }
        assert_eq!(file.reads(), reads);
    }

    #[test]
    fn files_of_other_versions_are_refused() {
        for version in [1, FORMAT_VERSION - 1, FORMAT_VERSION + 1] {
            let disk = MemDisk::new();
            let seal = SealedWriter::create(&disk, "b", IDENTITY).unwrap().finish().unwrap();
            disk.corrupt("b", |bytes| {
                let footer = bytes.len() - FOOTER_LEN as usize;
                bytes[footer + 8..][..2].copy_from_slice(&version.to_le_bytes());
                let crc = crc32c::crc32c(&bytes[footer..bytes.len() - 4]);
                let end = bytes.len() - 4;
                bytes[end..].copy_from_slice(&crc.to_le_bytes());
            });
            let error = SealedFile::open(&disk, "b", IDENTITY, seal).err().unwrap();
            let words =
                format!("it has format version {version}, and this program reads version {FORMAT_VERSION}");
            assert_eq!(error.kind(), ErrorKind::Unsupported);
            assert!(error.to_string().contains(&words), "{error}");
        }
    }

    #[test]
    fn a_foreign_header_under_right_checksums_is_found() {
        crafted(&header(IDENTITY), IDENTITY).verify().unwrap();
        let foreign = crafted(&header(Identity { segment: 78, ..IDENTITY }), IDENTITY);
        let error = foreign.verify().unwrap_err();
        assert_eq!(error.to_string(), "a is damaged at byte 0: the header is not this file's");
        let mut unclean = header(IDENTITY);
        unclean[63] = 1;
        assert!(crafted(&unclean, IDENTITY).verify().is_err());
    }
}
