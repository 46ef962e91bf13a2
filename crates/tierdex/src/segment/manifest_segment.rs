//! The manifest entry of a segment: its metadata, which does not change, and its deletes, which do.

use super::layout::{FileKind, FileMeta, SegmentMeta, file_name, identity};
use crate::bytes::{ByteReader, push_varint};
use crate::{Result, limits::DELETES_LAYERS_MAX, schema::Schema};
use std::ops::Deref;
use tierdex_io::{Disk, Identity, Seal, SealedFile};

/// A segment as a commit has it. It dereferences to its metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManifestSegment {
    /// What does not change as long as the segment exists.
    pub meta: SegmentMeta,
    /// Its deleted documents, if it has any.
    pub deletes: Option<DeletesMeta>,
}

/// What the manifest says about the deleted documents of a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeletesMeta {
    /// Number of deleted documents: at least one, and fewer than the segment has.
    pub documents: u32,
    /// The file of all deleted documents.
    pub file: NumberedFile,
    /// The files of their statistics, 1 to [`DELETES_LAYERS_MAX`], the oldest first. Each deleted document is
    /// in one of them.
    pub layers: Vec<NumberedFile>,
}

/// A file with a number of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NumberedFile {
    /// The number in its name and its identity.
    pub number: u64,
    /// Its length and checksum.
    pub seal: Seal,
}

/// Name, identity and seal of a file that the manifest names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedFile {
    /// Its name.
    pub name: String,
    /// What it has in its header.
    pub identity: Identity,
    /// Its length and checksum.
    pub seal: Seal,
}

/// The first version with deletes.
const DELETES_VERSION: u16 = 8;

impl ManifestSegment {
    /// Number of documents that are not deleted.
    pub fn live_documents(&self) -> u32 {
        self.meta.documents - self.deletes.as_ref().map_or(0, |deletes| deletes.documents)
    }

    /// All files, those of deletes last.
    pub fn named_files(&self) -> impl Iterator<Item = NamedFile> + '_ {
        let of = |file: &FileMeta| NamedFile::of(self.meta.id, file.field, file.kind, file.seal);
        let numbered = self.numbered_files().map(|(kind, file)| file.named(kind));
        self.meta.files.iter().map(of).chain(numbered)
    }

    /// Names of all files.
    pub fn file_names(&self) -> impl Iterator<Item = String> + '_ {
        self.named_files().map(|file| file.name)
    }

    /// The numbers in the names of all files.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = u64> + '_ {
        [self.meta.id].into_iter().chain(self.numbered_files().map(|(_, file)| file.number))
    }

    /// Appends the encoded manifest entry.
    pub fn write(&self, out: &mut Vec<u8>) {
        self.meta.write(out);
        let Some(deletes) = &self.deletes else { return push_varint(out, 0) };
        push_varint(out, u64::from(deletes.documents));
        deletes.file.write(out);
        push_varint(out, deletes.layers.len() as u64);
        deletes.layers.iter().for_each(|layer| layer.write(out));
    }

    /// Decodes an entry written by [`ManifestSegment::write`], for this schema, in the format of this
    /// version.
    pub fn read(view: &mut ByteReader<'_>, schema: &Schema, version: u16) -> Result<ManifestSegment> {
        let meta = SegmentMeta::read(view, schema, version)?;
        let documents = if version < DELETES_VERSION { 0 } else { view.varint32()? };
        if documents == 0 {
            return Ok(ManifestSegment { meta, deletes: None });
        }
        if documents >= meta.documents {
            return Err(view.corrupt("a segment without documents that are not deleted"));
        }
        let file = NumberedFile::read(view)?;
        let layers = view.varint()?;
        if !(1..=DELETES_LAYERS_MAX as u64).contains(&layers) {
            return Err(view.corrupt("an impossible number of layers of statistics"));
        }
        let layers = (0..layers).map(|_| NumberedFile::read(view)).collect::<Result<_>>()?;
        Ok(ManifestSegment { meta, deletes: Some(DeletesMeta { documents, file, layers }) })
    }

    fn numbered_files(&self) -> impl Iterator<Item = (FileKind, NumberedFile)> + '_ {
        self.deletes.iter().flat_map(|deletes| {
            let layers = deletes.layers.iter().map(|layer| (FileKind::DeletedStatistics, *layer));
            [(FileKind::Deletes, deletes.file)].into_iter().chain(layers)
        })
    }
}

impl Deref for ManifestSegment {
    type Target = SegmentMeta;

    fn deref(&self) -> &SegmentMeta {
        &self.meta
    }
}

impl NumberedFile {
    /// As a file of this kind.
    pub(crate) fn named(self, kind: FileKind) -> NamedFile {
        NamedFile::of(self.number, 0, kind, self.seal)
    }

    pub(crate) fn write(self, out: &mut Vec<u8>) {
        push_varint(out, self.number);
        push_varint(out, self.seal.len);
        out.extend_from_slice(&self.seal.crc.to_le_bytes());
    }

    pub(crate) fn read(view: &mut ByteReader<'_>) -> Result<NumberedFile> {
        Ok(NumberedFile { number: view.varint()?, seal: Seal { len: view.varint()?, crc: view.u32()? } })
    }
}

impl NamedFile {
    fn of(number: u64, field: usize, kind: FileKind, seal: Seal) -> NamedFile {
        NamedFile { name: file_name(number, field, kind), identity: identity(number, field, kind), seal }
    }

    /// Opens the file, and checks that it has this length and checksum.
    pub fn open(&self, disk: &dyn Disk) -> Result<SealedFile> {
        Ok(SealedFile::open(disk, &self.name, self.identity, self.seal)?)
    }
}
