//! The manifest: the file that names the schema and the segments of a commit.

use crate::bytes::{ByteReader, push_varint};
use crate::limits::{DOCUMENTS_MAX, MANIFEST_BYTES_MAX, SEGMENTS_MAX};
use crate::segment::manifest_segment::NamedFile;
use crate::segment::{FileKind, KeySeed, ManifestSegment, NumberedFile};
use crate::{Error, Result, schema::Schema, segment::layout::parse_file_name};
use std::collections::HashSet;
use tierdex_io::{Disk, ErrorKind, FORMAT_VERSION, Identity, SealedFile, SealedWriter};

/// A manifest has the name `manifest-GENERATION`, or `manifest-GENERATION.LOCK.tmp` until it is published.
const NAME_PREFIX: &str = "manifest-";
const TEMPORARY_SUFFIX: &str = ".tmp";

/// Upper bound of generations and of segment numbers, so that incrementing them cannot overflow.
pub(super) const NUMBER_MAX: u64 = u64::MAX / 2;

/// Name of the file that a writer locks.
pub(super) const LOCK_FILE: &str = "write.lock";

/// The manifest of a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// Number of the commit; 0 for an index without a commit.
    pub generation: u64,
    /// The schema.
    pub schema: Schema,
    /// Number of the next file: every file but a manifest has a number in its name, so no name is used twice.
    /// The files of a segment share one.
    pub next_file: u64,
    /// The format version in which the manifest and the segments are written.
    pub version: u16,
    /// The seed of the hashes of external ids, if the index is updatable: then every segment has keys.
    pub key_seed: Option<KeySeed>,
    /// Segments in document order.
    pub segments: Vec<ManifestSegment>,
    /// The files from which the documents of an updatable index were read, if they are known
    /// ([`InputFilesReader`](crate::input_files::InputFilesReader)).
    pub input_files: Option<NumberedFile>,
}

/// The first version in which an index may be updatable.
const UPDATABLE_VERSION: u16 = 8;

impl Manifest {
    /// An index before its first commit.
    pub fn empty(schema: Schema) -> Manifest {
        let (version, segments) = (FORMAT_VERSION, Vec::new());
        Manifest { generation: 0, schema, next_file: 1, version, key_seed: None, segments, input_files: None }
    }

    /// Name of the manifest of a generation.
    pub fn file_name(generation: u64) -> String {
        format!("{NAME_PREFIX}{generation:016x}")
    }

    /// Temporary name of the manifest of a generation. As it contains the id of the writer's lock, no other
    /// writer writes or renames this file, not even one that has lost its lock and does not know it yet.
    pub(super) fn temporary_name(generation: u64, lock: u64) -> String {
        Manifest::temporary_name_of(generation, &format!("{lock:x}"))
    }

    /// A temporary name of a manifest of a generation.
    pub(super) fn temporary_name_of(generation: u64, of: &str) -> String {
        format!("{}.{of}{TEMPORARY_SUFFIX}", Manifest::file_name(generation))
    }

    /// The newest generation on a disk.
    pub fn newest(disk: &dyn Disk) -> Result<Option<u64>> {
        Ok(disk.list()?.iter().filter_map(|name| parse_generation(name)).max())
    }

    /// Reads the newest manifest; `None` when the disk has none.
    pub fn read_newest(disk: &dyn Disk) -> Result<Option<Manifest>> {
        loop {
            // A listing during a commit may contain neither the old manifest nor the new one: list again.
            let newest =
                Manifest::newest(disk)?.map_or_else(|| Manifest::newest(disk), |newest| Ok(Some(newest)));
            let Some(generation) = newest? else { return Ok(None) };
            match Manifest::read(disk, generation) {
                // A commit in the meantime replaced the manifest: read the newer one.
                Err(Error::Storage(error))
                    if error.kind() == ErrorKind::NotFound && Manifest::newest(disk)? > Some(generation) => {}
                other => return other.map(Some),
            }
        }
    }

    /// Whether an index has files of this name; the file may be of another format version.
    pub fn is_index_file(name: &str) -> bool {
        name == LOCK_FILE || is_removable(name)
    }

    /// Number of documents in all segments, with those that are deleted.
    pub fn documents(&self) -> u64 {
        self.segments.iter().map(|segment| u64::from(segment.documents)).sum()
    }

    /// Number of documents that are not deleted.
    pub fn live_documents(&self) -> u64 {
        self.segments.iter().map(|segment| u64::from(segment.live_documents())).sum()
    }

    /// Reads the manifest of a generation.
    pub fn read(disk: &dyn Disk, generation: u64) -> Result<Manifest> {
        let name = Manifest::file_name(generation);
        let file = SealedFile::open_unsealed(disk, &name, manifest_identity(generation))?;
        let payload = file.payload();
        if payload.end > MANIFEST_BYTES_MAX {
            return Err(Error::corrupt(&name, 0, "impossibly large"));
        }
        file.verify()?;
        let bytes = file.read(payload.start, (payload.end - payload.start) as usize)?;
        let mut view = ByteReader::new(&name, payload.start, &bytes);
        let version = file.version();
        let schema = Schema::read(&mut view, version)?;
        let next_file = view.varint()?;
        let key_seed = if version < UPDATABLE_VERSION { None } else { read_key_seed(&mut view)? };
        let count = view.varint()?;
        if count > SEGMENTS_MAX as u64 {
            return Err(view.corrupt("too many segments"));
        }
        let segments = (0..count)
            .map(|_| ManifestSegment::read(&mut view, &schema, version))
            .collect::<Result<Vec<_>>>()?;
        let input_files = if version < UPDATABLE_VERSION { None } else { read_input_files(&mut view)? };
        view.finish()?;
        let manifest = Manifest { generation, schema, next_file, version, key_seed, segments, input_files };
        match manifest.find_violation() {
            Some(what) => Err(Error::corrupt(&name, payload.start, what)),
            None => Ok(manifest),
        }
    }

    /// What is impossible in this manifest; `None` if it is valid.
    fn find_violation(&self) -> Option<&'static str> {
        let mut numbers: Vec<u64> = self.segments.iter().flat_map(ManifestSegment::numbers).collect();
        numbers.extend(self.input_files.map(|file| file.number));
        numbers.sort_unstable();
        let has_keys = |segment: &ManifestSegment| segment.file(0, FileKind::Keys).is_some();
        if self.documents() > DOCUMENTS_MAX {
            Some("more documents than an index can hold")
        } else if self
            .segments
            .iter()
            .any(|s| s.documents == 0 || s.fields.iter().any(|field| !field.fits(s.documents)))
        {
            Some("a segment with impossible numbers")
        } else if numbers.windows(2).any(|pair| pair[0] == pair[1]) || numbers.last() >= Some(&self.next_file)
        {
            Some("numbers of files that are not unique")
        } else if self.next_file > NUMBER_MAX || self.generation > NUMBER_MAX {
            Some("numbers that are too large")
        } else if self.segments.iter().any(|segment| has_keys(segment) != self.key_seed.is_some()) {
            Some("a segment without keys in an updatable index, or with keys in another")
        } else if self.input_files.is_some() && self.key_seed.is_none() {
            Some("a list of input files of an index that is not updatable")
        } else {
            None
        }
    }

    /// Writes the manifest under a temporary name. All files of its segments must have been sealed and
    /// synced.
    ///
    /// # Errors
    /// [`Error::TooLarge`] when the commit exceeds a limit; [`Error::Storage`] when writing fails.
    pub fn prepare(&self, disk: &dyn Disk, temporary: &str) -> Result<()> {
        if let Some(what) = self.find_violation() {
            return Err(Error::TooLarge(format!("the commit would have {what}")));
        }
        disk.sync_dir()?;
        let mut file = SealedWriter::create(disk, temporary, manifest_identity(self.generation))?;
        let mut bytes = Vec::new();
        self.write(&mut bytes);
        if bytes.len() as u64 > MANIFEST_BYTES_MAX / 2 {
            return Err(Error::TooLarge(format!(
                "the manifest would have {} bytes: too many stop words or synonyms",
                bytes.len()
            )));
        }
        file.write(&bytes)?;
        file.finish()?;
        Ok(())
    }

    /// Renames the prepared manifest to its final name, with which the commit is made. Fails if there is a
    /// manifest of the same generation.
    pub fn publish(&self, disk: &dyn Disk, temporary: &str) -> Result<()> {
        disk.rename(temporary, &Manifest::file_name(self.generation))?;
        disk.sync_dir()?;
        Ok(())
    }

    fn write(&self, out: &mut Vec<u8>) {
        self.schema.write(out);
        push_varint(out, self.next_file);
        out.push(u8::from(self.key_seed.is_some()));
        out.extend(self.key_seed.iter().flat_map(|seed| seed.0));
        push_varint(out, self.segments.len() as u64);
        for segment in &self.segments {
            segment.write(out);
        }
        out.push(u8::from(self.input_files.is_some()));
        self.input_files.iter().for_each(|file| file.write(out));
    }

    /// Names of all files, with that of the manifest.
    pub fn file_names(&self) -> impl Iterator<Item = String> + '_ {
        let manifest = Manifest::file_name(self.generation);
        self.named_files().map(|file| file.name).chain([manifest])
    }

    /// All files but the manifest itself.
    pub fn named_files(&self) -> impl Iterator<Item = NamedFile> + '_ {
        let of_segments = self.segments.iter().flat_map(ManifestSegment::named_files);
        of_segments.chain(self.input_files.map(|file| file.named(FileKind::InputFiles)))
    }

    /// Index files on `disk` that do not belong to this commit; none if there is a newer commit, to which
    /// they may belong.
    pub fn orphans(&self, disk: &dyn Disk) -> Result<Vec<String>> {
        let names = disk.list()?;
        if names.iter().filter_map(|name| parse_generation(name)).max() > Some(self.generation) {
            return Ok(Vec::new());
        }
        let named: HashSet<String> = self.file_names().collect();
        Ok(names.into_iter().filter(|name| is_removable(name) && !named.contains(name)).collect())
    }
}

/// Decodes whether the index is updatable, and the seed if it is.
fn read_key_seed(view: &mut ByteReader<'_>) -> Result<Option<KeySeed>> {
    match view.u8()? {
        0 => Ok(None),
        1 => Ok(view.bytes(16)?.first_chunk().copied().map(KeySeed)),
        _ => Err(view.corrupt("neither updatable nor not")),
    }
}

fn read_input_files(view: &mut ByteReader<'_>) -> Result<Option<NumberedFile>> {
    match view.u8()? {
        0 => Ok(None),
        1 => NumberedFile::read(view).map(Some),
        _ => Err(view.corrupt("neither with a list of input files nor without")),
    }
}

/// Whether a file of this name belongs to an index and is not its lock file.
fn is_removable(name: &str) -> bool {
    parse_generation(name).is_some()
        || is_temporary(name)
        || parse_file_name(name).is_some()
        || is_format_3_name(name)
}

/// Whether formats up to 3 have files of this name: for blocks of documents, and for blocks of frequencies.
fn is_format_3_name(name: &str) -> bool {
    let stem = name.strip_suffix("docs").or_else(|| name.strip_suffix("freqs"));
    stem.is_some_and(|stem| parse_file_name(&format!("{stem}{}", FileKind::Postings.name())).is_some())
}

/// Whether a name is the temporary name of a manifest.
pub(super) fn is_temporary(name: &str) -> bool {
    let stem = name.strip_suffix(TEMPORARY_SUFFIX);
    let manifest = stem.map(|stem| stem.split_once('.').map_or(stem, |(manifest, _)| manifest));
    manifest.is_some_and(|manifest| parse_generation(manifest).is_some())
}

/// The generation of the manifest with this name; `None` for other names.
pub(super) fn parse_generation(name: &str) -> Option<u64> {
    let number = name.strip_prefix(NAME_PREFIX).filter(|number| is_hexadecimal(number))?;
    u64::from_str_radix(number, 16).ok()
}

fn is_hexadecimal(text: &str) -> bool {
    text.len() == 16 && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

fn manifest_identity(generation: u64) -> Identity {
    Identity { kind: FileKind::Manifest as u8, field: 0, segment: generation }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_a_writer_may_remove_are_recognized_by_name() {
        let removable = "\
            manifest-000000000000000a manifest-000000000000000a.tmp \
            manifest-000000000000000a.1f3.tmp 0000000000000001.0.terms \
            0000000000000001.63.positions 0000000000000001.255.column 0000000000000001.0.docs 0000000000000001.0.freqs \
            00000000000000ff.ids 0000000000000001.stored 0000000000000001.keys \
            0000000000000002.deletes 0000000000000003.deleted-statistics 0000000000000004.input-files";
        for name in removable.split(' ') {
            assert!(is_removable(name), "{name}");
        }
        let kept = "\
            0000000000000001.64.positions 0000000000000001.256.column 0000000000000001.column \
            0000000000000001.0.keys 0000000000000002.0.deletes 0000000000000003.1.deleted-statistics \
            write.lock notes.txt manifest-a manifest-a.1.tmp manifest-000000000000000a.1f3 \
            0000000000000001 0000000000000001.x.terms 0000000000000001.0.0.terms \
            manifest-000000000000000A x.0000000000000001.0.terms";
        for name in kept.split(' ') {
            assert!(!is_removable(name), "{name}");
        }
    }
}
