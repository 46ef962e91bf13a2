//! A reader of an index: one whole commit, whose files stay open as long as the reader lives. Several indexes
//! may be read as one: the commits of several directories, one after the other.

use super::{manifest::Manifest, recovery::no_index};
use crate::{
    Error, Result,
    limits::DOCUMENTS_MAX,
    schema::Schema,
    segment::KeySeed,
    segment::ManifestSegment,
    segment::read::{OpenSegment, Segment, open_deletes, open_deletes_sharing},
};
use std::{path::Path, sync::Arc};
use tierdex_codec::Kernel;
use tierdex_io::{Disk, ErrorKind, PosixDisk};

/// One commit of an index, open for reading. Writers do not change it. Clones share its files and memory.
///
/// [`Engine`](crate::Engine) searches it.
#[derive(Clone)]
pub struct Index(Arc<OpenCommit>);

/// An open commit of each directory.
struct OpenCommit {
    /// At least one.
    parts: Vec<OpenPart>,
    /// The segments of all parts.
    segments: Vec<OpenSegment>,
}

/// The open commit of one directory.
#[derive(Clone)]
struct OpenPart {
    disk: Arc<dyn Disk>,
    manifest: Manifest,
    segments: Vec<OpenSegment>,
}

impl Index {
    /// Opens the newest commit of the index in a directory.
    ///
    /// # Errors
    /// [`Error::Usage`] when the directory holds no index; [`Error::Storage`] when a file cannot be read or
    /// is damaged.
    pub fn open(dir: impl AsRef<Path>) -> Result<Index> {
        Index::open_on(Arc::new(PosixDisk::open(dir.as_ref())?))
    }

    /// Opens the newest commits of the indexes in several directories, to search them as one index: their
    /// documents are numbered one directory after the other. Scores, counts and order are those of one index
    /// with all documents. [`Index::part_of`] tells the directory of a document.
    ///
    /// ```
    /// use tierdex::{Engine, EngineOptions, Index, Query, SearchRequest};
    /// # use tierdex::{IndexWriter, Merge, Schema, WriterOptions};
    /// # let temporary = tempfile::tempdir().unwrap();
    /// # let dirs = [temporary.path().join("2024"), temporary.path().join("2025")];
    /// # for dir in &dirs {
    /// #     let mut writer = IndexWriter::create(dir, Schema::default(), WriterOptions::default())?;
    /// #     writer.add("1", [("title", "Disks"), ("text", "A solid state disk.")])?;
    /// #     writer.commit(Merge::Keep)?;
    /// # }
    /// let index = Index::open_all(&dirs)?;
    /// let engine = Engine::new(&index, &EngineOptions::new())?;
    /// let hits = engine.search(SearchRequest::new(Query::parse("disk", index.schema())?))?;
    /// assert_eq!(index.part_of(hits.hits[1].document), 1);
    /// # Ok::<(), tierdex::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Index::open`]; [`Error::Usage`] if there is no directory, or the indexes have different schemas;
    /// [`Error::TooLarge`] if they have more documents than an index.
    pub fn open_all<D: AsRef<Path>>(dirs: &[D]) -> Result<Index> {
        let disks = dirs.iter().map(|dir| Ok(Arc::new(PosixDisk::open(dir.as_ref())?) as Arc<dyn Disk>));
        Index::open_all_on(disks.collect::<Result<_>>()?)
    }

    /// Opens the newest commit on a disk: a directory, or another implementation of [`Disk`].
    ///
    /// # Errors
    /// As [`Index::open`].
    pub fn open_on(disk: Arc<dyn Disk>) -> Result<Index> {
        Index::open_all_on(vec![disk])
    }

    /// As [`Index::open_all`], on disks.
    ///
    /// # Errors
    /// As [`Index::open_all`].
    pub fn open_all_on(disks: Vec<Arc<dyn Disk>>) -> Result<Index> {
        // Rejects an unsupported TIERDEX_KERNEL before anything is decoded.
        Kernel::from_env()?;
        let parts = disks.into_iter().map(|disk| OpenPart::open_sharing(disk, None));
        Index::join(parts.collect::<Result<_>>()?)
    }

    /// Joins the commits of several directories.
    fn join(parts: Vec<OpenPart>) -> Result<Index> {
        let Some(first) = parts.first() else {
            return Err(Error::Usage("no index is named".to_string()));
        };
        if let Some(other) = parts.iter().find(|part| part.manifest.schema != first.manifest.schema) {
            let differences = first.manifest.schema.differences(&other.manifest.schema);
            return Err(Error::Usage(format!(
                "the indexes in {} and {} cannot be searched as one: {}",
                first.disk.describe(),
                other.disk.describe(),
                if differences.is_empty() { "their synonyms differ" } else { &differences }
            )));
        }
        let documents: u64 = parts.iter().map(|part| part.manifest.documents()).sum();
        if documents > DOCUMENTS_MAX {
            return Err(Error::TooLarge(format!(
                "the indexes have {documents} documents, and at most {DOCUMENTS_MAX} are searched as one"
            )));
        }
        let segments = parts.iter().flat_map(|part| part.segments.iter().cloned()).collect();
        Ok(Index(Arc::new(OpenCommit { parts, segments })))
    }

    /// Opens the newest commit. It shares the open files and the memory of the segments that it has in common
    /// with this one: only new segments are opened. If this is the newest commit, returns a clone.
    ///
    /// # Errors
    /// As [`Index::open`]. This commit stays open in any case.
    pub fn reopen(&self) -> Result<Index> {
        let newest = |part: &OpenPart| OpenPart::open_sharing(part.disk.clone(), Some(part));
        let newest = self.0.parts.iter().map(newest).collect::<Result<Vec<_>>>()?;
        let is_same = self.0.parts.iter().zip(&newest).all(|(own, new)| own.manifest == new.manifest);
        if is_same { Ok(self.clone()) } else { Index::join(newest) }
    }

    /// Whether there is a newer commit. Lists the files of the directories, and opens none.
    pub(crate) fn has_newer(&self) -> Result<bool> {
        for part in &self.0.parts {
            if Manifest::newest(part.disk.as_ref())? > Some(part.manifest.generation) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Opens the newest commit with files and memory of its own, so that one index can be held in memory and
    /// the other not.
    pub(crate) fn open_unshared(&self) -> Result<Index> {
        let parts = self.0.parts.iter().map(|part| OpenPart::open_sharing(part.disk.clone(), None));
        Index::join(parts.collect::<Result<_>>()?)
    }

    /// The number of the commit; each commit increments it. Of several directories: the sum of their numbers.
    pub fn generation(&self) -> u64 {
        self.0.parts.iter().map(|part| part.manifest.generation).sum()
    }

    /// The manifest: the segments of the commit, and the sizes of their files and fields. Of several
    /// directories: that of the first ([`Index::manifests`]).
    pub fn manifest(&self) -> &Manifest {
        &self.0.parts[0].manifest
    }

    /// The manifest of each directory.
    pub fn manifests(&self) -> impl Iterator<Item = &Manifest> {
        self.0.parts.iter().map(|part| &part.manifest)
    }

    /// The number of the directory, from 0, that has a document of this index; of a document that the index
    /// does not have, that of the last.
    pub fn part_of(&self, document: u32) -> usize {
        let mut next = 0;
        let ends = self.manifests().map(|manifest| {
            next += manifest.documents();
            next
        });
        ends.take(self.0.parts.len() - 1).take_while(|end| *end <= u64::from(document)).count()
    }

    /// The schema.
    pub fn schema(&self) -> &Schema {
        &self.manifest().schema
    }

    /// Open segments in document order.
    #[doc(hidden)]
    pub fn segments(&self) -> &[OpenSegment] {
        &self.0.segments
    }

    /// Whether documents can be found, replaced and deleted by their ids. Of several directories: in all.
    pub fn is_updatable(&self) -> bool {
        self.manifests().all(|manifest| manifest.key_seed.is_some())
    }

    /// Number of deleted documents in segments whose document frequencies count them, since their terms are
    /// not known: without stored values scores are approximate until a merge.
    #[doc(hidden)]
    pub fn inexact_deletes(&self) -> u64 {
        let inexact = self.segments().iter().filter(|segment| !segment.are_frequencies_exact());
        inexact.filter_map(|segment| Some(u64::from(segment.deleted()?.len()))).sum()
    }

    /// The segments, each with the seed of its keys; none of an index that is not updatable.
    pub(super) fn segments_with_seeds(&self) -> impl Iterator<Item = (KeySeed, &OpenSegment)> {
        self.0.parts.iter().flat_map(|part| {
            let seed = part.manifest.key_seed.into_iter();
            seed.flat_map(|seed| part.segments.iter().map(move |segment| (seed, segment)))
        })
    }

    /// The name of the directory, for messages.
    #[doc(hidden)]
    pub fn describe(&self) -> String {
        self.0.parts.iter().map(|part| part.disk.describe()).collect::<Vec<_>>().join(", ")
    }

    /// Number of documents that are not deleted.
    pub fn documents(&self) -> u64 {
        self.0.segments.iter().map(|segment| u64::from(segment.live_documents())).sum()
    }

    /// Bytes of all blocks of documents and frequencies: the most that a page cache of them can use.
    pub fn postings_bytes(&self) -> u64 {
        let fields = self.0.segments.iter().flat_map(|segment| segment.fields());
        fields.map(|field| field.postings_file().payload()).map(|payload| payload.end - payload.start).sum()
    }

    /// The disk of the first directory.
    #[doc(hidden)]
    pub fn disk(&self) -> &dyn Disk {
        self.0.parts[0].disk.as_ref()
    }

    /// Whether this and `other` are clones of the same reader.
    pub(crate) fn is_same(&self, other: &Index) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Bytes that were read from the files of the index so far, in whole pages.
    #[doc(hidden)]
    pub fn bytes_read(&self) -> u64 {
        self.0.segments.iter().map(|segment| segment.bytes_read()).sum()
    }
}

impl OpenPart {
    /// Opens the newest commit of a directory; segments that `other` has open are shared.
    fn open_sharing(disk: Arc<dyn Disk>, other: Option<&OpenPart>) -> Result<OpenPart> {
        loop {
            let manifest = Manifest::read_newest(disk.as_ref())?;
            let Some(mut manifest) = manifest else { return Err(no_index(disk.as_ref())) };
            if let Some(other) = other.filter(|other| other.manifest.schema == manifest.schema) {
                // What was found out about its synonyms is kept.
                manifest.schema = other.manifest.schema.clone();
            }
            // An open segment is read in the same way with a schema that has further fields and members.
            let other = other.filter(|other| manifest.schema.extends(&other.manifest.schema));
            match open_segments(disk.as_ref(), &manifest, other) {
                Ok(segments) => return Ok(OpenPart { disk, manifest, segments }),
                // A newer commit has removed a segment: start again with that commit.
                Err(Error::Storage(error))
                    if error.kind() == ErrorKind::NotFound
                        && Manifest::newest(disk.as_ref())? > Some(manifest.generation) => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// Opens the segments of a commit. Files that `other` has open are shared.
fn open_segments(disk: &dyn Disk, manifest: &Manifest, other: Option<&OpenPart>) -> Result<Vec<OpenSegment>> {
    let open = |entry: &ManifestSegment| {
        let mut of_other =
            other.into_iter().flat_map(|other| other.manifest.segments.iter().zip(&other.segments));
        let Some((older, open)) = of_other.find(|(older, _)| older.meta == entry.meta) else {
            let segment = Segment::open(disk, &manifest.schema, entry.meta.clone())?;
            return Ok(OpenSegment::new(Arc::new(segment), open_deletes(disk, entry)?.map(Arc::new)));
        };
        if older.deletes == entry.deletes {
            return Ok(open.clone());
        }
        let older = older.deletes.as_ref().zip(open.deletes().map(|deletes| &**deletes));
        let deletes = open_deletes_sharing(disk, entry, older)?.map(Arc::new);
        Ok(OpenSegment::new(open.segment().clone(), deletes))
    };
    manifest.segments.iter().map(open).collect()
}
