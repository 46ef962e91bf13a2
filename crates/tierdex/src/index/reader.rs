//! The reader: one whole commit for as long as it lives.

use super::manifest::Manifest;
use super::recovery::no_index;
use super::searcher::Searcher;
use crate::error::{Error, Result};
use crate::schema::Schema;
use crate::segment::read::Segment;
use std::sync::Arc;
use tierdex_codec::Kernel;
use tierdex_io::{Arena, Disk, ErrorKind, Region, RegionKind};

/// An open commit of an index. Many threads may search it at once; writers do not disturb it. Clones share
/// its files and memory.
#[derive(Clone)]
pub struct Index(Arc<Opened>);

/// The files of a commit.
struct Opened {
    disk: Arc<dyn Disk>,
    manifest: Manifest,
    segments: Vec<Segment>,
}

impl Index {
    /// Opens the newest commit.
    pub fn open(disk: Arc<dyn Disk>) -> Result<Index> {
        // Before anything is decoded: what the environment asks for may not be possible.
        Kernel::from_env()?;
        loop {
            let manifest = Manifest::read_newest(disk.as_ref())?;
            let Some(manifest) = manifest else { return Err(no_index(disk.as_ref())) };
            match open_segments(disk.as_ref(), &manifest) {
                Ok(segments) => return Ok(Index(Arc::new(Opened { disk, manifest, segments }))),
                // A commit in between merged the segments away: start again from the newer one.
                Err(Error::Storage(error))
                    if error.kind() == ErrorKind::NotFound
                        && Manifest::newest(disk.as_ref())? > Some(manifest.generation) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// What the commit consists of.
    pub fn manifest(&self) -> &Manifest {
        &self.0.manifest
    }

    /// The schema.
    pub fn schema(&self) -> &Schema {
        &self.0.manifest.schema
    }

    /// Open segments in document order.
    pub fn segments(&self) -> &[Segment] {
        &self.0.segments
    }

    /// Where the index lives, for messages.
    pub fn describe(&self) -> String {
        self.0.disk.describe()
    }

    /// Documents.
    pub fn documents(&self) -> u64 {
        self.0.manifest.documents()
    }

    /// Reads all that queries need into memory, and verifies it, so that they read nothing more. It takes as much
    /// memory as the index has bytes but for ids and stored texts, in one piece: many small segments stand on
    /// huge pages together.
    pub fn keep_in_memory(&self) -> Result<()> {
        let bytes: u64 = self.0.segments.iter().map(Segment::bytes_in_memory).sum();
        let mut arena = Arena::new(Region::new(&RegionKind::Dram, bytes.max(1))?);
        self.0.segments.iter().try_for_each(|segment| segment.keep_in_memory(&mut arena))
    }

    /// Bytes of all documents and frequencies in blocks.
    pub fn postings_bytes(&self) -> u64 {
        let fields = self.0.segments.iter().flat_map(Segment::fields);
        let files = fields.flat_map(|field| [field.docs(), field.freqs()]);
        files.map(|file| file.payload().end - file.payload().start).sum()
    }

    /// Where the index lives.
    pub(super) fn disk(&self) -> &dyn Disk {
        self.0.disk.as_ref()
    }

    /// Answers queries.
    pub fn searcher(&self) -> Searcher {
        Searcher::new(self.clone())
    }

    /// Bytes read from the index's files so far, as whole pages.
    pub fn bytes_read(&self) -> u64 {
        self.0.segments.iter().map(Segment::bytes_read).sum()
    }
}

fn open_segments(disk: &dyn Disk, manifest: &Manifest) -> Result<Vec<Segment>> {
    let metas = manifest.segments.iter().cloned();
    metas.map(|meta| Segment::open(disk, &manifest.schema, meta)).collect()
}
