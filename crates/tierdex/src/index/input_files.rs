//! The file `input-files` (docs/format/input-files.md): the files from which the documents of an updatable
//! index were read, with size and time, and the ids of the documents of each. With it a later run reads only
//! files that have changed, and finds the documents of files that are gone.
//!
//! Both directions are streams: memory does not depend on the number of files and ids.

use super::manifest::Manifest;
use crate::bytes::{common_prefix, push_bytes, push_varint};
use crate::limits::{ID_BYTES_MAX, INPUT_PATH_BYTES_MAX, INPUT_SETTINGS_BYTES_MAX};
use crate::segment::layout::{FileKind, file_name, id_too_long, identity};
use crate::segment::manifest_segment::NumberedFile;
use crate::{Error, Result};
use std::ops::Range;
use tierdex_io::{Disk, SealedFile, SealedWriter};

/// A file from which documents were read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputFile {
    /// Its path, in the bytes of the operating system.
    pub path: Vec<u8>,
    /// Its size in bytes.
    pub bytes: u64,
    /// The time of its last change, in nanoseconds since 1970-01-01 UTC; `None` if the file is to be read
    /// again, because it may have been read only in part or changed while it was read.
    pub modified: Option<i64>,
}

/// The encoded time of a file that is to be read again.
const READ_AGAIN: i64 = i64::MIN;

/// Bytes that a reader reads at a time.
const READ_BYTES: usize = 64 << 10;

/// Writes the files of a commit one after the other, each with the ids of its documents
/// ([`IndexWriter::create_input_files`](crate::IndexWriter::create_input_files)).
pub struct InputFilesWriter {
    file: SealedWriter,
    number: u64,
    /// The encoded end of the payload that is not written yet.
    buffer: Vec<u8>,
    /// The id before, or else the path.
    last: Vec<u8>,
    /// Whether ids may follow, and whether `last` is one.
    in_file: bool,
    has_ids: bool,
}

impl InputFilesWriter {
    pub(super) fn create(disk: &dyn Disk, number: u64, settings: &str) -> Result<InputFilesWriter> {
        if settings.len() > INPUT_SETTINGS_BYTES_MAX {
            let bytes = settings.len();
            return Err(Error::TooLarge(format!(
                "settings of {bytes} bytes; at most {INPUT_SETTINGS_BYTES_MAX} are kept"
            )));
        }
        let (name, identity) =
            (file_name(number, 0, FileKind::InputFiles), identity(number, 0, FileKind::InputFiles));
        let file = SealedWriter::create(disk, &name, identity)?;
        let mut buffer = Vec::new();
        push_bytes(&mut buffer, settings.as_bytes());
        Ok(InputFilesWriter { file, number, buffer, last: Vec::new(), in_file: false, has_ids: false })
    }

    /// Begins a file, whose ids follow.
    ///
    /// # Errors
    /// [`Error::TooLarge`] if the path is empty or too long; [`Error::Storage`] if writing fails.
    pub fn add_file(&mut self, file: &InputFile) -> Result<()> {
        if !(1..=INPUT_PATH_BYTES_MAX).contains(&file.path.len()) {
            let bytes = file.path.len();
            return Err(Error::TooLarge(format!(
                "path of {bytes} bytes; it must have 1 to {INPUT_PATH_BYTES_MAX}"
            )));
        }
        self.end_file()?;
        push_bytes(&mut self.buffer, &file.path);
        push_varint(&mut self.buffer, file.bytes);
        self.buffer.extend_from_slice(&file.modified.unwrap_or(READ_AGAIN).to_le_bytes());
        self.last.clone_from(&file.path);
        (self.in_file, self.has_ids) = (true, false);
        Ok(())
    }

    /// Adds the id of a document of the file begun last. Ids ascend.
    ///
    /// # Errors
    /// [`Error::TooLarge`] if the id is too long; [`Error::Usage`] if it is not greater than the one before,
    /// or no file was begun; [`Error::Storage`] if writing fails.
    pub fn add_id(&mut self, id: &str) -> Result<()> {
        if id.len() > ID_BYTES_MAX {
            return Err(id_too_long(id.len()));
        }
        if !self.in_file || self.has_ids && self.last.as_slice() >= id.as_bytes() {
            return Err(Error::Usage("the ids of a file must ascend".to_string()));
        }
        let shared = common_prefix(&self.last, id.as_bytes());
        push_varint(&mut self.buffer, shared as u64 + 1);
        push_bytes(&mut self.buffer, &id.as_bytes()[shared..]);
        self.last.truncate(shared);
        self.last.extend_from_slice(&id.as_bytes()[shared..]);
        self.has_ids = true;
        self.flush(READ_BYTES)
    }

    /// Number of the file.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    pub(super) fn finish(mut self) -> Result<NumberedFile> {
        self.end_file()?;
        self.flush(0)?;
        Ok(NumberedFile { number: self.number, seal: self.file.finish()? })
    }

    fn end_file(&mut self) -> Result<()> {
        if self.in_file {
            push_varint(&mut self.buffer, 0);
        }
        self.in_file = false;
        self.flush(READ_BYTES)
    }

    /// Writes the buffer if it has at least this number of bytes.
    fn flush(&mut self, bytes: usize) -> Result<()> {
        if self.buffer.len() >= bytes {
            self.file.write(&self.buffer)?;
            self.buffer.clear();
        }
        Ok(())
    }
}

/// Reads the files of a commit one after the other, each with the ids of its documents.
///
/// ```
/// use tierdex::input_files::{InputFile, InputFilesReader};
/// use tierdex::{IndexWriter, Merge, Schema, WriterOptions, commit::Manifest, io::PosixDisk};
/// # let dir = tempfile::tempdir().unwrap();
/// # let dir = dir.path().join("index");
///
/// let options = WriterOptions { updatable: true, ..WriterOptions::default() };
/// let mut writer = IndexWriter::create(&dir, Schema::default(), options)?;
/// writer.add("a.txt", [("text", "one")])?;
/// let mut files = writer.create_input_files("format=text")?;
/// files.add_file(&InputFile { path: b"a.txt".to_vec(), bytes: 3, modified: Some(0) })?;
/// files.add_id("a.txt")?;
/// writer.set_input_files(files)?;
/// writer.commit(Merge::Keep)?;
///
/// let disk = PosixDisk::open(&dir)?;
/// let manifest = Manifest::read_newest(&disk)?.expect("written above");
/// let mut reader = InputFilesReader::open(&disk, &manifest)?.expect("set above");
/// assert_eq!(reader.settings(), "format=text");
/// let file = reader.next_file()?.expect("added above");
/// assert_eq!((file.path.as_slice(), reader.next_id()?), (&b"a.txt"[..], Some("a.txt")));
/// assert_eq!(reader.next_id()?, None);
/// assert_eq!(reader.next_file()?, None);
/// # Ok::<(), tierdex::Error>(())
/// ```
pub struct InputFilesReader {
    file: SealedFile,
    settings: String,
    /// Bytes of the file, the offset in the file of the first, and the number of those that were decoded.
    bytes: Vec<u8>,
    start: u64,
    at: usize,
    /// The id before, or else the path; its bytes are UTF-8 if `has_ids`.
    last: Vec<u8>,
    in_file: bool,
    has_ids: bool,
}

/// Where the ids of a file begin ([`InputFilesReader::position`]).
#[derive(Clone, Copy, Debug)]
pub struct InputFilePosition(u64);

impl InputFilesReader {
    /// Opens the list of files of a commit; `None` if it has none.
    ///
    /// # Errors
    /// [`Error::Storage`] if the file cannot be read, is damaged, or is not that of the commit.
    pub fn open(disk: &dyn Disk, manifest: &Manifest) -> Result<Option<InputFilesReader>> {
        let Some(named) = manifest.input_files.map(|file| file.named(FileKind::InputFiles)) else {
            return Ok(None);
        };
        let file = named.open(disk)?;
        let start = file.payload().start;
        let mut reader = InputFilesReader {
            file,
            settings: String::new(),
            bytes: Vec::new(),
            start,
            at: 0,
            last: Vec::new(),
            in_file: false,
            has_ids: false,
        };
        let len = reader.length(INPUT_SETTINGS_BYTES_MAX)?;
        let settings = String::from_utf8(reader.take(len)?.to_vec());
        reader.settings = settings.map_err(|_| reader.corrupt("settings that are not UTF-8"))?;
        Ok(Some(reader))
    }

    /// What the writer of the file has said about how files are read.
    pub fn settings(&self) -> &str {
        &self.settings
    }

    /// The next file, whose ids follow; `None` after the last. Skips the other ids of the file before.
    ///
    /// # Errors
    /// [`Error::Storage`] if the file cannot be read, or is damaged.
    pub fn next_file(&mut self) -> Result<Option<InputFile>> {
        while self.in_file {
            self.next_id()?;
        }
        if self.offset() == self.file.payload().end {
            return Ok(None);
        }
        let len = self.length(INPUT_PATH_BYTES_MAX)?;
        if len == 0 {
            return Err(self.corrupt("an empty path"));
        }
        let path = self.take(len)?.to_vec();
        let bytes = self.varint()?;
        let modified = self.take(size_of::<i64>())?.first_chunk().copied().map_or(0, i64::from_le_bytes);
        self.last.clone_from(&path);
        (self.in_file, self.has_ids) = (true, false);
        Ok(Some(InputFile { path, bytes, modified: Some(modified).filter(|time| *time != READ_AGAIN) }))
    }

    /// The next id of the file read last, greater than the one before; `None` after the last.
    ///
    /// # Errors
    /// [`Error::Storage`] if the file cannot be read, or is damaged.
    pub fn next_id(&mut self) -> Result<Option<&str>> {
        if !self.in_file {
            return Ok(None);
        }
        let Some(shared) = self.varint()?.checked_sub(1) else {
            self.in_file = false;
            return Ok(None);
        };
        let shared = usize::try_from(shared).unwrap_or(usize::MAX);
        if shared > self.last.len().min(ID_BYTES_MAX) {
            return Err(self.corrupt("an id that shares more bytes than there are"));
        }
        let len = self.length(ID_BYTES_MAX - shared)?;
        let suffix = self.take_range(len)?;
        if self.has_ids && self.last[shared..] >= self.bytes[suffix.clone()] {
            return Err(self.corrupt("ids that do not ascend"));
        }
        self.last.truncate(shared);
        self.last.extend_from_slice(&self.bytes[suffix]);
        self.has_ids = true;
        let id = std::str::from_utf8(&self.last);
        id.map(Some).map_err(|_| self.corrupt("an id that is not UTF-8"))
    }

    /// Where the ids of the file read last begin, before the first is read.
    pub fn position(&self) -> InputFilePosition {
        InputFilePosition(self.offset())
    }

    /// Continues with the ids of the file of this path, which begin at a position.
    pub fn seek(&mut self, path: &[u8], position: InputFilePosition) {
        self.bytes.clear();
        (self.start, self.at) = (position.0, 0);
        self.last.clear();
        self.last.extend_from_slice(path);
        (self.in_file, self.has_ids) = (true, false);
    }

    /// Offset in the file of the next byte.
    fn offset(&self) -> u64 {
        self.start + self.at as u64
    }

    fn corrupt(&self, what: &str) -> Error {
        Error::corrupt(self.file.name(), self.offset(), what)
    }

    /// Decodes a length of at most `max`.
    fn length(&mut self, max: usize) -> Result<usize> {
        let len = self.varint()?;
        usize::try_from(len).ok().filter(|len| *len <= max).ok_or_else(|| self.corrupt("impossibly long"))
    }

    fn varint(&mut self) -> Result<u64> {
        let mut value = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = self.take(1)?[0];
            let bits = u64::from(byte & 0x7f);
            if bits.leading_zeros() < shift {
                break;
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(self.corrupt("a number that is too large"))
    }

    /// Takes the next `len` bytes.
    fn take(&mut self, len: usize) -> Result<&[u8]> {
        let range = self.take_range(len)?;
        Ok(&self.bytes[range])
    }

    /// Takes the next `len` bytes, which are this range of `self.bytes`.
    fn take_range(&mut self, len: usize) -> Result<Range<usize>> {
        if self.bytes.len() - self.at < len {
            let remaining = self.file.payload().end.saturating_sub(self.offset());
            if remaining < len as u64 {
                return Err(self.corrupt("ends early"));
            }
            self.start = self.offset();
            self.at = 0;
            let len = remaining.min(len.max(READ_BYTES) as u64) as usize;
            self.file.read_into(self.start, len, &mut self.bytes)?;
        }
        self.at += len;
        Ok(self.at - len..self.at)
    }
}

/// Reads all files and ids, for `check`.
pub(super) fn check_input_files(disk: &dyn Disk, manifest: &Manifest) -> Result<()> {
    let Some(mut reader) = InputFilesReader::open(disk, manifest)? else { return Ok(()) };
    let mut paths = std::collections::HashSet::new();
    while let Some(file) = reader.next_file()? {
        if !paths.insert(file.path) {
            return Err(reader.corrupt("a path that occurs twice"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Schema;
    use proptest::prelude::*;
    use tierdex_io::MemDisk;

    type Files = Vec<(InputFile, Vec<String>)>;

    fn write(disk: &MemDisk, files: &Files) -> Manifest {
        let mut writer = InputFilesWriter::create(disk, 7, "settings").unwrap();
        for (file, ids) in files {
            writer.add_file(file).unwrap();
            ids.iter().for_each(|id| writer.add_id(id).unwrap());
        }
        Manifest { input_files: Some(writer.finish().unwrap()), ..Manifest::empty(Schema::default()) }
    }

    fn read(reader: &mut InputFilesReader) -> Files {
        let mut files = Vec::new();
        while let Some(file) = reader.next_file().unwrap() {
            let mut ids = Vec::new();
            while let Some(id) = reader.next_id().unwrap() {
                ids.push(id.to_string());
            }
            files.push((file, ids));
        }
        files
    }

    fn file() -> impl Strategy<Value = (InputFile, Vec<String>)> {
        let path = proptest::collection::vec(1..255_u8, 1..40);
        let ids = proptest::collection::btree_set("\\PC{0,20}", 0..20);
        (path, any::<u64>(), proptest::option::of(0..i64::MAX), ids).prop_map(
            |(path, bytes, modified, ids)| (InputFile { path, bytes, modified }, ids.into_iter().collect()),
        )
    }

    proptest! {
        #[test]
        fn files_and_ids_are_read_as_written(files in proptest::collection::vec(file(), 0..20)) {
            let disk = MemDisk::new();
            let manifest = write(&disk, &files);
            let mut reader = InputFilesReader::open(&disk, &manifest).unwrap().unwrap();
            prop_assert_eq!(reader.settings(), "settings");
            prop_assert_eq!(read(&mut reader), files);
        }
    }

    #[test]
    fn many_ids_are_read_in_any_order_of_files() {
        let ids = |file: u32| (0..50_000).map(|id| format!("{file}/{id:06}")).collect::<Vec<_>>();
        let of = |number: u32| InputFile { path: vec![b'a'; number as usize + 1], bytes: 1, modified: None };
        let files: Files = (0..3).map(|number| (of(number), ids(number))).collect();
        let disk = MemDisk::new();
        let mut reader = InputFilesReader::open(&disk, &write(&disk, &files)).unwrap().unwrap();
        let mut positions = Vec::new();
        while let Some(file) = reader.next_file().unwrap() {
            positions.push((file.path, reader.position()));
        }
        for (number, (path, position)) in positions.into_iter().enumerate().rev() {
            reader.seek(&path, position);
            for id in &files[number].1 {
                assert_eq!(reader.next_id().unwrap(), Some(id.as_str()));
            }
            assert_eq!(reader.next_id().unwrap(), None);
        }
    }

    #[test]
    fn misuse_is_an_error() {
        let disk = MemDisk::new();
        let mut writer = InputFilesWriter::create(&disk, 1, "").unwrap();
        assert!(writer.add_id("1").is_err(), "no file");
        let file = |len| InputFile { path: vec![b'p'; len], bytes: 0, modified: None };
        assert!(writer.add_file(&file(0)).is_err());
        assert!(writer.add_file(&file(INPUT_PATH_BYTES_MAX + 1)).is_err());
        writer.add_file(&file(INPUT_PATH_BYTES_MAX)).unwrap();
        writer.add_id("b").unwrap();
        assert!(writer.add_id("a").is_err() && writer.add_id("b").is_err());
        assert!(writer.add_id(&"c".repeat(ID_BYTES_MAX + 1)).is_err());
        writer.add_id("c").unwrap();
    }
}
