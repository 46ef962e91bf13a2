//! A reader of an index: one whole commit, whose files stay open as long as the reader lives.

use super::{manifest::Manifest, recovery::no_index};
use crate::{Error, Result, schema::Schema, segment::layout::SegmentMeta, segment::read::Segment};
use std::{path::Path, sync::Arc};
use tierdex_codec::Kernel;
use tierdex_io::{Disk, ErrorKind, PosixDisk};

/// One commit of an index, open for reading. Writers do not change it. Clones share its files and memory.
///
/// [`Engine`](crate::Engine) searches it.
#[derive(Clone)]
pub struct Index(Arc<OpenCommit>);

/// An open commit.
struct OpenCommit {
    disk: Arc<dyn Disk>,
    manifest: Manifest,
    segments: Vec<Arc<Segment>>,
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

    /// Opens the newest commit on a disk: a directory, or another implementation of [`Disk`].
    ///
    /// # Errors
    /// As [`Index::open`].
    pub fn open_on(disk: Arc<dyn Disk>) -> Result<Index> {
        // Rejects an unsupported TIERDEX_KERNEL before anything is decoded.
        Kernel::from_env()?;
        Index::open_sharing(disk, None)
    }

    /// Opens the newest commit. It shares the open files and the memory of the segments that it has in common
    /// with this one: only new segments are opened. If this is the newest commit, returns a clone.
    ///
    /// # Errors
    /// As [`Index::open`]. This commit stays open in any case.
    pub fn reopen(&self) -> Result<Index> {
        let newest = Index::open_sharing(self.0.disk.clone(), Some(self))?;
        Ok(if newest.manifest() == self.manifest() { self.clone() } else { newest })
    }

    /// Opens the newest commit with files and memory of its own, so that one index can be held in memory and
    /// the other not.
    pub(crate) fn open_unshared(&self) -> Result<Index> {
        Index::open_sharing(self.0.disk.clone(), None)
    }

    fn open_sharing(disk: Arc<dyn Disk>, other: Option<&Index>) -> Result<Index> {
        loop {
            let manifest = Manifest::read_newest(disk.as_ref())?;
            let Some(manifest) = manifest else { return Err(no_index(disk.as_ref())) };
            let other = other.filter(|other| *other.schema() == manifest.schema);
            let open = other.map_or(&[][..], Index::segments);
            match open_segments(disk.as_ref(), &manifest, open) {
                Ok(segments) => return Ok(Index(Arc::new(OpenCommit { disk, manifest, segments }))),
                // A newer commit has removed a segment: start again with that commit.
                Err(Error::Storage(error))
                    if error.kind() == ErrorKind::NotFound
                        && Manifest::newest(disk.as_ref())? > Some(manifest.generation) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// The number of the commit; each commit increments it.
    pub fn generation(&self) -> u64 {
        self.0.manifest.generation
    }

    /// The manifest: the segments of the commit, and the sizes of their files and fields.
    pub fn manifest(&self) -> &Manifest {
        &self.0.manifest
    }

    /// The schema.
    pub fn schema(&self) -> &Schema {
        &self.0.manifest.schema
    }

    /// Open segments in document order.
    #[doc(hidden)]
    pub fn segments(&self) -> &[Arc<Segment>] {
        &self.0.segments
    }

    /// The name of the directory, for messages.
    #[doc(hidden)]
    pub fn describe(&self) -> String {
        self.0.disk.describe()
    }

    /// Number of documents.
    pub fn documents(&self) -> u64 {
        self.0.manifest.documents()
    }

    /// Bytes of all blocks of documents and frequencies: the most that a page cache of them can use.
    pub fn postings_bytes(&self) -> u64 {
        let fields = self.0.segments.iter().flat_map(|segment| segment.fields());
        fields.map(|field| field.postings_file().payload()).map(|payload| payload.end - payload.start).sum()
    }

    /// The disk of the index.
    #[doc(hidden)]
    pub fn disk(&self) -> &dyn Disk {
        self.0.disk.as_ref()
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

/// Opens the segments of a commit. Segments that are `open` already, with the same manifest entry, are
/// shared.
fn open_segments(disk: &dyn Disk, manifest: &Manifest, open: &[Arc<Segment>]) -> Result<Vec<Arc<Segment>>> {
    let segment = |meta: &SegmentMeta| match open.iter().find(|open| open.meta() == meta) {
        Some(open) => Ok(open.clone()),
        None => Segment::open(disk, &manifest.schema, meta.clone()).map(Arc::new),
    };
    manifest.segments.iter().map(segment).collect()
}
