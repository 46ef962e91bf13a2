//! The manifest: the file that names the schema and the segments of a commit.

use crate::bytes::{View, push_varint};
use crate::limits::{DOCUMENTS_MAX, MANIFEST_BYTES_MAX, SEGMENTS_MAX};
use crate::segment::{FileKind, SegmentMeta};
use crate::{Error, Result, schema::Schema, segment::layout::parse_file_name};
use std::collections::HashSet;
use tierdex_io::{Disk, ErrorKind, Identity, SealedFile, SealedWriter};

const PREFIX: &str = "manifest-";
const TEMPORARY: &str = ".tmp";

/// The largest generation, and the largest segment number.
pub(super) const NUMBER_MAX: u64 = u64::MAX / 2;

/// Name of the file that a writer locks.
pub(super) const LOCK: &str = "write.lock";

/// The manifest of a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// Number of the commit; 0 for an index without a commit.
    pub generation: u64,
    /// The schema.
    pub schema: Schema,
    /// Number of the next segment.
    pub next_segment: u64,
    /// Segments in document order.
    pub segments: Vec<SegmentMeta>,
}

impl Manifest {
    /// An index before its first commit.
    pub fn empty(schema: Schema) -> Manifest {
        Manifest { generation: 0, schema, next_segment: 1, segments: Vec::new() }
    }

    /// Name of the manifest of a generation.
    pub fn file_name(generation: u64) -> String {
        format!("{PREFIX}{generation:016x}")
    }

    /// Temporary name of the manifest of a generation, for the writer with this lock. No other writer writes
    /// or renames a file of this name, not even one that runs although it does not hold the lock.
    pub(super) fn temporary_name(generation: u64, lock: u64) -> String {
        format!("{}.{lock:x}{TEMPORARY}", Manifest::file_name(generation))
    }

    /// The generation whose manifest has this name.
    pub(super) fn generation_of(name: &str) -> Option<u64> {
        generation_of(name)
    }

    /// The newest generation on a disk.
    pub fn newest(disk: &dyn Disk) -> Result<Option<u64>> {
        Ok(disk.list()?.iter().filter_map(|name| generation_of(name)).max())
    }

    /// Reads the newest manifest; `None` when the disk has none.
    pub fn read_newest(disk: &dyn Disk) -> Result<Option<Manifest>> {
        loop {
            // A listing during a commit may contain neither the old manifest nor the new one.
            let newest =
                Manifest::newest(disk)?.map_or_else(|| Manifest::newest(disk), |newest| Ok(Some(newest)));
            let Some(generation) = newest? else { return Ok(None) };
            match Manifest::read(disk, generation) {
                // A commit in the meantime replaced it.
                Err(Error::Storage(error))
                    if error.kind() == ErrorKind::NotFound && Manifest::newest(disk)? > Some(generation) => {}
                other => return other.map(Some),
            }
        }
    }

    /// Whether a name is that of an index file.
    pub fn is_index_file(name: &str) -> bool {
        name == LOCK || is_index_file(name)
    }

    /// Documents in all segments.
    pub fn documents(&self) -> u64 {
        self.segments.iter().map(|segment| u64::from(segment.documents)).sum()
    }

    /// Reads the manifest of a generation.
    pub fn read(disk: &dyn Disk, generation: u64) -> Result<Manifest> {
        let name = Manifest::file_name(generation);
        let file = SealedFile::open_unsealed(disk, &name, identity(generation))?;
        let payload = file.payload();
        if payload.end > MANIFEST_BYTES_MAX {
            return Err(Error::corrupt(&name, 0, "impossibly large"));
        }
        file.verify()?;
        let bytes = file.read(payload.start, (payload.end - payload.start) as usize)?;
        let mut view = View::new(&name, payload.start, &bytes);
        let schema = Schema::read(&mut view)?;
        let next_segment = view.varint()?;
        let count = view.varint()?;
        if count > SEGMENTS_MAX as u64 {
            return Err(view.corrupt("too many segments"));
        }
        let fields = schema.fields.len();
        let segments =
            (0..count).map(|_| SegmentMeta::read(&mut view, fields)).collect::<Result<Vec<_>>>()?;
        view.finish()?;
        let manifest = Manifest { generation, schema, next_segment, segments };
        match manifest.impossible() {
            Some(what) => Err(Error::corrupt(&name, payload.start, what)),
            None => Ok(manifest),
        }
    }

    /// The first violated invariant of a manifest.
    fn impossible(&self) -> Option<&'static str> {
        let mut numbers: Vec<u64> = self.segments.iter().map(|segment| segment.id).collect();
        numbers.sort_unstable();
        if self.documents() > DOCUMENTS_MAX {
            Some("more documents than an index can hold")
        } else if self
            .segments
            .iter()
            .any(|s| s.documents == 0 || s.fields.iter().any(|field| !field.fits(s.documents)))
        {
            Some("a segment with impossible numbers")
        } else if numbers.windows(2).any(|pair| pair[0] == pair[1])
            || numbers.last() >= Some(&self.next_segment)
        {
            Some("numbers of segments are not unique")
        } else if self.next_segment > NUMBER_MAX || self.generation > NUMBER_MAX {
            Some("numbers that are too large")
        } else {
            None
        }
    }

    /// Writes the manifest under its temporary name. All files of its segments must be sealed and synced
    /// before.
    ///
    /// # Errors
    /// [`Error::TooLarge`] when the commit exceeds a limit; [`Error::Storage`] when writing fails.
    pub fn prepare(&self, disk: &dyn Disk, temporary: &str) -> Result<()> {
        if let Some(what) = self.impossible() {
            return Err(Error::TooLarge(format!("the commit would have {what}")));
        }
        disk.sync_dir()?;
        let mut file = SealedWriter::create(disk, temporary, identity(self.generation))?;
        let mut bytes = Vec::new();
        self.write(&mut bytes);
        if bytes.len() as u64 > MANIFEST_BYTES_MAX / 2 {
            return Err(Error::TooLarge(format!(
                "the manifest would have {} bytes: too many stop words",
                bytes.len()
            )));
        }
        file.write(&bytes)?;
        file.finish()?;
        Ok(())
    }

    /// Renames the prepared manifest to its final name; fails if there is one of its generation.
    pub fn publish(&self, disk: &dyn Disk, temporary: &str) -> Result<()> {
        disk.rename(temporary, &Manifest::file_name(self.generation))?;
        disk.sync_dir()?;
        Ok(())
    }

    fn write(&self, out: &mut Vec<u8>) {
        self.schema.write(out);
        push_varint(out, self.next_segment);
        push_varint(out, self.segments.len() as u64);
        for segment in &self.segments {
            segment.write(out);
        }
    }

    /// Index files on `disk` that this commit does not name; none when there is a newer commit, whose files
    /// they may be.
    pub fn orphans(&self, disk: &dyn Disk) -> Result<Vec<String>> {
        let names = disk.list()?;
        if names.iter().filter_map(|name| generation_of(name)).max() > Some(self.generation) {
            return Ok(Vec::new());
        }
        let mut named: HashSet<String> = self.segments.iter().flat_map(SegmentMeta::file_names).collect();
        named.insert(Manifest::file_name(self.generation));
        Ok(names.into_iter().filter(|name| is_index_file(name) && !named.contains(name)).collect())
    }
}

/// Whether a name is that of an index file, the lock excepted.
fn is_index_file(name: &str) -> bool {
    generation_of(name).is_some()
        || is_temporary(name)
        || parse_file_name(name).is_some()
        || is_former_name(name)
}

/// Whether a file is named like those with blocks of documents and of frequencies in formats up to 3.
fn is_former_name(name: &str) -> bool {
    let stem = name.strip_suffix("docs").or_else(|| name.strip_suffix("freqs"));
    stem.is_some_and(|stem| parse_file_name(&format!("{stem}{}", FileKind::Postings.name())).is_some())
}

/// Whether a name is the temporary name of a manifest.
pub(super) fn is_temporary(name: &str) -> bool {
    let stem = name.strip_suffix(TEMPORARY);
    let manifest = stem.map(|stem| stem.split_once('.').map_or(stem, |(manifest, _)| manifest));
    manifest.is_some_and(|manifest| generation_of(manifest).is_some())
}

fn generation_of(name: &str) -> Option<u64> {
    let number = name.strip_prefix(PREFIX).filter(|number| is_number(number))?;
    u64::from_str_radix(number, 16).ok()
}

fn is_number(text: &str) -> bool {
    text.len() == 16 && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

fn identity(generation: u64) -> Identity {
    Identity { kind: FileKind::Manifest as u8, field: 0, segment: generation }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn index_files_are_recognized_by_name() {
        for name in [
            "manifest-000000000000000a",
            "manifest-000000000000000a.tmp",
            "manifest-000000000000000a.1f3.tmp",
            "0000000000000001.0.terms",
            "0000000000000001.63.positions",
            "0000000000000001.0.docs",
            "0000000000000001.0.freqs",
            "00000000000000ff.ids",
            "0000000000000001.stored",
        ] {
            assert!(is_index_file(name), "{name}");
        }
        for name in [
            "write.lock",
            "notes.txt",
            "manifest-a",
            "manifest-a.1.tmp",
            "manifest-000000000000000a.1f3",
            "0000000000000001",
            "0000000000000001.x.terms",
            "0000000000000001.0.0.terms",
            "manifest-000000000000000A",
            "x.0000000000000001.0.terms",
        ] {
            assert!(!is_index_file(name), "{name}");
        }
    }
}
