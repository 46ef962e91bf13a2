//! Reader of sealed files: returns bytes only after their checksum was verified.

use super::checksum::Checksums;
use super::identity::{Identity, Seal};
use super::layout::{
    ENTRY_LEN, EndBlock, EnvelopeLayout, FOOTER_LEN, FORMAT_VERSION, FORMAT_VERSION_MIN, Footer, FooterError,
    GROUP_ENTRIES, HEADER_LEN, PAGE, decode_entries, decode_footer, encode_header,
};
use crate::memory::{Arena, ResidentBytes};
use crate::{Disk, Error, ErrorKind, ReadFile, Result};
use std::collections::HashMap;
use std::ops::{Deref, Range};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

const PAGE_LEN: usize = PAGE as usize;

/// Pages of one read of [`SealedFile::verify`] and [`SealedFile::load`]: 256 KiB.
const SEQUENTIAL_READ_PAGES: u64 = 64;

/// Number of sealed files that this process has opened, which is the number of the next one.
static OPENED_FILES: AtomicU64 = AtomicU64::new(0);

/// A sealed file, open for reading by any number of threads.
///
/// Memory: the top table (1 MiB per TiB), and either the whole page table or the groups of it that were used
/// so far, 4 KiB for each 4 MiB of the file. The size of an allocation is first checked against the actual
/// length of the file.
pub struct SealedFile {
    number: u64,
    file: Arc<dyn ReadFile>,
    name: String,
    identity: Identity,
    checksums: Checksums,
    footer: Footer,
    top_table: Box<[u32]>,
    /// The groups of the page table that were read, until the whole table is loaded.
    groups: Mutex<HashMap<u64, Arc<[u8]>>>,
    /// The whole page table, after [`SealedFile::load_tables`].
    page_table: OnceLock<ResidentBytes>,
    /// The checked payload, after [`SealedFile::load`].
    resident: OnceLock<ResidentBytes>,
    bytes_read: AtomicU64,
    reads: AtomicU64,
}

/// The entries of a group of the page table: a part of the loaded page table, or read by itself.
enum GroupEntries<'a> {
    OfTable(&'a [u8]),
    Own(Arc<[u8]>),
}

impl Deref for GroupEntries<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            GroupEntries::OfTable(entries) => entries,
            GroupEntries::Own(entries) => entries,
        }
    }
}

impl SealedFile {
    /// Opens the file that was written as `identity` and sealed as `seal`; reads its footer and top table.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`]; [`ErrorKind::Corrupt`] when it is damaged, or intact but not the sealed
    /// file; [`ErrorKind::Unsupported`] when it has another version of the format.
    pub fn open(disk: &dyn Disk, name: &str, identity: Identity, seal: Seal) -> Result<Self> {
        let file = disk.open(name)?;
        if file.len() != seal.len {
            let detail = format!("the file has {} bytes and should have {}", file.len(), seal.len);
            return Err(Error::corrupt(name, file.len().min(seal.len), detail));
        }
        let opened = SealedFile::open_file(file, name, identity)?;
        if opened.seal() != seal {
            let offset = opened.layout().footer_start;
            return Err(Error::corrupt(name, offset, "the file is whole, but not the one that was sealed"));
        }
        Ok(opened)
    }

    /// Opens a file whose seal is not stored elsewhere: the manifest. Checks that it is intact, but not that
    /// it is the newest.
    ///
    /// # Errors
    /// As [`SealedFile::open`].
    pub fn open_unsealed(disk: &dyn Disk, name: &str, identity: Identity) -> Result<Self> {
        SealedFile::open_file(disk.open(name)?, name, identity)
    }

    /// A number unique among the files that this process opens. Each opening of a file gets a new number.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The version of the format in which it was written.
    pub fn version(&self) -> u16 {
        self.footer.version
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
    /// [`ErrorKind::Corrupt`] when the range is not within [`SealedFile::payload`] or a page does not match
    /// its checksum, else the error of the disk.
    pub fn read(&self, offset: u64, len: usize) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.read_into(offset, len, &mut bytes)?;
        Ok(bytes)
    }

    /// As [`SealedFile::read`], into `out`, whose content is replaced; it is empty after an error.
    ///
    /// The pages that cover the range are read with one [`ReadFile::read_at`]. `out` grows to hold them: up
    /// to two pages more than `len`.
    pub fn read_into(&self, offset: u64, len: usize, out: &mut Vec<u8>) -> Result<()> {
        let read = self.read_range(offset, len, out);
        if read.is_err() {
            out.clear();
        }
        read
    }

    /// The end of the `len` bytes from file offset `offset` on; an error if they are not all payload.
    fn range_end(&self, offset: u64, len: usize) -> Result<u64> {
        let end = offset.checked_add(len as u64).filter(|end| *end <= self.layout().payload_end);
        end.filter(|_| offset >= HEADER_LEN)
            .ok_or_else(|| self.damage(offset, &format!("{len} bytes from here on are not all payload")))
    }

    /// Loads the whole payload into memory and checks it: then [`SealedFile::resident`] returns it, and
    /// reads copy from it. Uses as much memory as the length of the payload.
    ///
    /// # Errors
    /// As [`SealedFile::read`]; then the payload is not resident.
    pub fn load(&self) -> Result<()> {
        self.load_into(None)
    }

    /// As [`SealedFile::load`], into memory of `arena` if there is one.
    ///
    /// # Errors
    /// As [`SealedFile::load`]; [`ErrorKind::NoSpace`] when the arena has too little memory left.
    pub fn load_into(&self, arena: Option<&mut Arena>) -> Result<()> {
        if self.resident.get().is_some() {
            return Ok(());
        }
        let len = self.to_usize(self.layout().payload_end - HEADER_LEN)?;
        let fill = |payload: &mut [u8]| self.read_payload(payload);
        let resident = match arena {
            Some(arena) => arena.allocate(len, fill, &self.name)?,
            None => ResidentBytes::anonymous(len, fill, &self.name)?,
        };
        // Fails if another thread was faster; both have loaded the same bytes.
        let _ = self.resident.set(resident);
        Ok(())
    }

    /// Reads the whole payload and verifies its checksums.
    fn read_payload(&self, payload: &mut [u8]) -> Result<()> {
        let mut pages = Vec::new();
        for first in (0..self.layout().pages).step_by(SEQUENTIAL_READ_PAGES as usize) {
            let end = self.layout().pages.min(first + SEQUENTIAL_READ_PAGES);
            self.read_pages(first..end, &mut pages)?;
            self.check_pages(first, &pages)?;
            let header = if first == 0 { HEADER_LEN as usize } else { 0 };
            let start = (first * PAGE).saturating_sub(HEADER_LEN) as usize;
            payload[start..start + pages.len() - header].copy_from_slice(&pages[header..]);
        }
        Ok(())
    }

    /// The payload, if it is resident.
    #[inline]
    pub fn resident(&self) -> Option<&ResidentBytes> {
        self.resident.get()
    }

    /// The `len` bytes from file offset `offset` on, if the payload is resident and contains them.
    #[inline]
    pub fn resident_range(&self, offset: u64, len: usize) -> Option<&[u8]> {
        let from = usize::try_from(offset.checked_sub(self.payload().start)?).ok()?;
        self.resident()?.get(from..from.checked_add(len)?)
    }

    /// Prefetches the CPU cache lines of the `len` bytes from file offset `offset` on, if the payload is
    /// resident.
    #[inline]
    pub fn load_lines(&self, offset: u64, len: usize) {
        let from = offset.checked_sub(self.payload().start).and_then(|from| usize::try_from(from).ok());
        if let (Some(payload), Some(from)) = (self.resident(), from) {
            payload.load_lines(from..from.saturating_add(len));
        }
    }

    /// The file on the disk, for a read queue. Bytes that are read from it directly must be checked by
    /// [`SealedFile::check`], and are not counted in [`SealedFile::bytes_read`].
    pub fn file(&self) -> &Arc<dyn ReadFile> {
        &self.file
    }

    /// Verifies the checksums of pages that were read by a read queue. `bytes` are the bytes of the file from
    /// page `first_page` on ([`PAGE`] bytes each; page 0 begins with the header). The last page of the
    /// payload may be short; bytes after the payload are ignored.
    ///
    /// After [`SealedFile::load_tables`] this needs no read.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`] when a page does not match its checksum or is incomplete, or when `bytes` has
    /// no payload.
    pub fn check(&self, first_page: u64, bytes: &[u8]) -> Result<()> {
        let payload_end = self.layout().payload_end;
        let start = first_page.checked_mul(PAGE).filter(|start| *start < payload_end && !bytes.is_empty());
        let Some(start) = start else {
            return Err(self.damage(first_page.saturating_mul(PAGE), "there is no payload here"));
        };
        let left = usize::try_from(payload_end - start).unwrap_or(usize::MAX);
        if bytes.len() < left && !bytes.len().is_multiple_of(PAGE_LEN) {
            return Err(self.damage(start + bytes.len() as u64, "only a part of the page was read"));
        }
        self.check_pages(first_page, &bytes[..left.min(bytes.len())])
    }

    /// Loads the whole page table, into memory of `arena` if there is one, so that later checks need no read.
    /// The table has [`SealedFile::table_bytes`].
    ///
    /// # Errors
    /// As [`SealedFile::read`]; [`ErrorKind::NoSpace`] when the arena has too little memory left.
    pub fn load_tables(&self, arena: Option<&mut Arena>) -> Result<()> {
        if self.page_table.get().is_some() {
            return Ok(());
        }
        let fill = |table: &mut [u8]| {
            let mut groups = table.chunks_mut(PAGE_LEN).zip(0..);
            groups.try_for_each(|(entries, group)| self.read_group(group, entries))
        };
        let len = self.to_usize(self.table_bytes())?;
        let table = ResidentBytes::allocate(arena, len, fill, &self.name)?;
        // Fails if another thread was faster; both have loaded the same bytes.
        let _ = self.page_table.set(table);
        *self.groups.lock().unwrap_or_else(PoisonError::into_inner) = HashMap::new();
        Ok(())
    }

    /// Bytes of the page table: 4 for each page of [`PAGE`] bytes.
    pub fn table_bytes(&self) -> u64 {
        self.layout().pages * ENTRY_LEN
    }

    /// Reads the whole file again and verifies header, footer, both tables and every page, which are all its
    /// bytes.
    ///
    /// # Errors
    /// The first damage found, or the error of the disk.
    pub fn verify(&self) -> Result<()> {
        let footer = self.read_footer()?;
        if footer != self.footer {
            return Err(
                self.damage(footer.layout.footer_start, "the footer changed after the file was opened")
            );
        }
        self.load_top_table(&footer)?;
        let mut pages = Vec::new();
        for group in 0..self.layout().groups {
            let table = self.load_group(group)?;
            self.verify_pages(group, &table, &mut pages)?;
        }
        Ok(())
    }

    /// Bytes read from the disk through this file so far, including tables.
    pub fn bytes_read(&self) -> u64 {
        self.bytes_read.load(Ordering::Relaxed)
    }

    /// Number of reads from the disk through this file so far.
    pub fn reads(&self) -> u64 {
        self.reads.load(Ordering::Relaxed)
    }

    fn open_file(file: Box<dyn ReadFile>, name: &str, identity: Identity) -> Result<SealedFile> {
        let nothing = EnvelopeLayout::of(HEADER_LEN).expect("an empty payload fits");
        let mut opened = SealedFile {
            number: OPENED_FILES.fetch_add(1, Ordering::Relaxed),
            file: Arc::from(file),
            name: name.to_owned(),
            identity,
            checksums: Checksums::new(identity),
            footer: Footer {
                version: FORMAT_VERSION,
                layout: nothing,
                top_crc: 0,
                seal: Seal { len: 0, crc: 0 },
            },
            top_table: Box::default(),
            groups: Mutex::default(),
            page_table: OnceLock::new(),
            resident: OnceLock::new(),
            bytes_read: AtomicU64::new(0),
            reads: AtomicU64::new(0),
        };
        opened.footer = opened.read_footer()?;
        opened.top_table = opened.load_top_table(&opened.footer)?;
        Ok(opened)
    }

    fn layout(&self) -> &EnvelopeLayout {
        &self.footer.layout
    }

    fn damage(&self, offset: u64, detail: &str) -> Error {
        Error::corrupt(&*self.name, offset, detail)
    }

    fn read_counted(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.bytes_read.fetch_add(buf.len() as u64, Ordering::Relaxed);
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.file.read_at(offset, buf)
    }

    /// Reads a part of the file, which must be within the file.
    fn read_part(&self, part: Range<u64>) -> Result<Vec<u8>> {
        let mut bytes = vec![0; self.to_usize(part.end - part.start)?];
        self.read_counted(part.start, &mut bytes)?;
        Ok(bytes)
    }

    fn read_footer(&self) -> Result<Footer> {
        let file_len = self.file.len();
        let Some(footer_start) = file_len.checked_sub(FOOTER_LEN) else {
            return Err(self.damage(file_len, "the file is shorter than a footer"));
        };
        let mut bytes: EndBlock = [0; 64];
        self.read_counted(footer_start, &mut bytes)?;
        decode_footer(&bytes, self.identity, file_len).map_err(|error| match error {
            FooterError::Damaged(detail) => self.damage(footer_start, &detail),
            FooterError::Version(version) => self.unsupported_version(version),
        })
    }

    fn unsupported_version(&self, version: u16) -> Error {
        let advice = match version {
            FORMAT_VERSION.. => "a newer version of tierdex has written it and reads it",
            _ => "index again, or read it with the version of tierdex that has written it",
        };
        let detail = format!(
            "it has format version {version}, and this program reads versions {FORMAT_VERSION_MIN} to \
             {FORMAT_VERSION}: {advice}"
        );
        Error::new(ErrorKind::Unsupported, "open", &*self.name, detail)
    }

    /// Reads and verifies the top table.
    fn load_top_table(&self, footer: &Footer) -> Result<Box<[u32]>> {
        let EnvelopeLayout { top_start, footer_start, .. } = footer.layout;
        let bytes = self.read_part(top_start..footer_start)?;
        if self.checksums.top(&bytes) != footer.top_crc {
            return Err(self.damage(top_start, "the top table's checksum does not match"));
        }
        Ok(decode_entries(&bytes))
    }

    /// Reads and verifies the entries of a group. `entries` has the length of the group.
    fn read_group(&self, group: u64, entries: &mut [u8]) -> Result<()> {
        let start = self.layout().group(group).start;
        self.read_counted(start, entries)?;
        if self.checksums.group(group, entries) != self.top_table[self.to_usize(group)?] {
            return Err(self.damage(start, "the page table's checksum does not match"));
        }
        Ok(())
    }

    fn load_group(&self, group: u64) -> Result<Arc<[u8]>> {
        let part = self.layout().group(group);
        let mut entries = vec![0; self.to_usize(part.end - part.start)?];
        self.read_group(group, &mut entries)?;
        Ok(entries.into())
    }

    /// The verified entries of a group, which is read on its first use. Threads that use it first at the same
    /// time each read it. Errors are not cached.
    fn group(&self, group: u64) -> Result<GroupEntries<'_>> {
        if let Some(table) = self.page_table.get() {
            let start = self.to_usize(group)? * PAGE_LEN;
            return Ok(GroupEntries::OfTable(&table[start..table.len().min(start + PAGE_LEN)]));
        }
        let groups = || self.groups.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(entries) = groups().get(&group) {
            return Ok(GroupEntries::Own(entries.clone()));
        }
        let entries = self.load_group(group)?;
        let mut groups = groups();
        // Not if the whole page table was loaded in the meantime.
        if self.page_table.get().is_none() {
            groups.insert(group, entries.clone());
        }
        Ok(GroupEntries::Own(entries))
    }

    fn read_range(&self, offset: u64, len: usize, out: &mut Vec<u8>) -> Result<()> {
        let end = self.range_end(offset, len)?;
        if let Some(payload) = self.resident() {
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

    /// Replaces the content of `out` by these pages, unchecked.
    fn read_pages(&self, pages: Range<u64>, out: &mut Vec<u8>) -> Result<()> {
        let start = pages.start * PAGE;
        let end = self.layout().payload_end.min(pages.end * PAGE);
        let len = self.to_usize(end - start)?;
        // Not more, because callers count this memory in their budget.
        out.reserve_exact(len.saturating_sub(out.len()));
        out.resize(len, 0);
        self.read_counted(start, out)
    }

    fn check_pages(&self, first: u64, bytes: &[u8]) -> Result<()> {
        let mut group = self.group(first / GROUP_ENTRIES)?;
        for (page, number) in bytes.chunks(PAGE_LEN).zip(first..) {
            if number > first && number.is_multiple_of(GROUP_ENTRIES) {
                group = self.group(number / GROUP_ENTRIES)?;
            }
            self.check_page(number, page, &group)?;
        }
        Ok(())
    }

    /// Verifies the checksum of page `number`. `group` has the entries of its group of the page table.
    fn check_page(&self, number: u64, page: &[u8], group: &[u8]) -> Result<()> {
        let expected = group[((number % GROUP_ENTRIES) * ENTRY_LEN) as usize..].first_chunk();
        if expected.copied().map(u32::from_le_bytes) == Some(self.checksums.page(number, page)) {
            return Ok(());
        }
        Err(self.damage(number * PAGE, "the page's checksum does not match"))
    }

    /// Reads and verifies the pages of a group, whose part of the page table is `table`.
    fn verify_pages(&self, group: u64, table: &[u8], pages: &mut Vec<u8>) -> Result<()> {
        let end = group * GROUP_ENTRIES + table.len() as u64 / ENTRY_LEN;
        for first in (group * GROUP_ENTRIES..end).step_by(SEQUENTIAL_READ_PAGES as usize) {
            self.read_pages(first..end.min(first + SEQUENTIAL_READ_PAGES), pages)?;
            for (page, number) in pages.chunks(PAGE_LEN).zip(first..) {
                self.check_page(number, page, table)?;
            }
            if first == 0 && !pages.starts_with(&encode_header(self.identity, self.footer.version)) {
                return Err(self.damage(0, "the header is not this file's"));
            }
        }
        Ok(())
    }

    /// Converts a length or an offset within the file; fails if it exceeds the address space.
    fn to_usize(&self, number: u64) -> Result<usize> {
        let why = "the part does not fit the address space";
        usize::try_from(number).map_err(|_| Error::new(ErrorKind::Unsupported, "read", &*self.name, why))
    }
}

const _: () = assert!(PAGE == GROUP_ENTRIES * ENTRY_LEN);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{envelope::SealedWriter, envelope::layout::encode_footer, mem::MemDisk};

    const IDENTITY: Identity = Identity { kind: 3, field: 1, segment: 77 };

    /// Writes a sealed file `b` with this payload, and opens it.
    fn seal_and_open(disk: &MemDisk, payload: &[u8]) -> SealedFile {
        let mut writer = SealedWriter::create(disk, "b", IDENTITY).unwrap();
        writer.write(payload).unwrap();
        let seal = writer.finish().unwrap();
        SealedFile::open(disk, "b", IDENTITY, seal).unwrap()
    }

    /// A file with valid checksums and an empty payload whose header is `start`.
    fn open_with_header(start: &EndBlock, identity: Identity) -> SealedFile {
        let checksums = Checksums::new(identity);
        let page_table = checksums.page(0, start).to_le_bytes();
        let top_table = checksums.group(0, &page_table).to_le_bytes();
        let layout = EnvelopeLayout::of(HEADER_LEN).unwrap();
        let (footer, seal) = encode_footer(identity, FORMAT_VERSION, layout, checksums.top(&top_table));
        let disk = MemDisk::new();
        let mut file = disk.create("a").unwrap();
        file.append(&[&start[..], &page_table, &top_table, &footer].concat()).unwrap();
        SealedFile::open(&disk, "a", identity, seal).unwrap()
    }

    #[test]
    fn a_resident_payload_equals_the_reads() {
        let disk = MemDisk::new();
        for len in [0, 1, 4031, 4032, 4033, 300_000] {
            let payload: Vec<u8> = (0..len).map(|k| (k * 7 + k / 256) as u8).collect();
            let file = seal_and_open(&disk, &payload);
            assert!(file.resident().is_none());
            file.load().unwrap();
            assert_eq!(file.resident().map(|resident| &**resident), Some(&payload[..]));
            let read = file.bytes_read();
            let middle = payload.len() / 3..payload.len() / 2;
            let found = file.read(HEADER_LEN + middle.start as u64, middle.len()).unwrap();
            assert_eq!((found, file.bytes_read()), (payload[middle].to_vec(), read));
            assert!(file.read(HEADER_LEN, payload.len() + 1).is_err());
            disk.remove("b").unwrap();
        }
    }

    #[test]
    fn pages_of_a_read_queue_are_checked() {
        let disk = MemDisk::new();
        let payload: Vec<u8> = (0..5 << 20).map(|k: u32| (k * 7 + k / 256) as u8).collect();
        let file = seal_and_open(&disk, &payload);
        file.load_tables(None).unwrap();
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
    fn files_of_other_versions_are_rejected() {
        for version in [1, FORMAT_VERSION_MIN - 1, FORMAT_VERSION + 1] {
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
            let message = format!(
                "it has format version {version}, and this program reads versions {FORMAT_VERSION_MIN} to"
            );
            assert_eq!(error.kind(), ErrorKind::Unsupported);
            assert!(error.to_string().contains(&message), "{error}");
        }
    }

    #[test]
    fn a_foreign_header_with_valid_checksums_is_detected() {
        open_with_header(&encode_header(IDENTITY, FORMAT_VERSION), IDENTITY).verify().unwrap();
        let foreign =
            open_with_header(&encode_header(Identity { segment: 78, ..IDENTITY }, FORMAT_VERSION), IDENTITY);
        let error = foreign.verify().unwrap_err();
        assert_eq!(error.to_string(), "a is damaged at byte 0: the header is not this file's");
        let mut unclean = encode_header(IDENTITY, FORMAT_VERSION);
        unclean[63] = 1;
        assert!(open_with_header(&unclean, IDENTITY).verify().is_err());
    }
}
