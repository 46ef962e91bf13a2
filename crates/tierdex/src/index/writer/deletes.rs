//! Deletes: documents whose ids were deleted or written again are found when a segment is finished; the next
//! commit writes, for each segment that it does not merge, the set of all its deleted documents and a layer
//! of statistics of the new ones.

use super::super::deleted::{PART_BYTES, statistics_of};
use super::super::input_files::InputFilesWriter;
use super::super::replaced::{deleted_in, repeated_in, replaced_in};
use super::pending_deletes::{PendingDeletes, merge_layers};
use super::{BATCH_MEMORY_BYTES, IndexWriter};
use crate::limits::ID_BYTES_MAX;
use crate::segment::layout::{self, KEY_BYTES, KeySeed};
use crate::segment::read::{Segment, open_deleted_documents, open_deletes};
use crate::segment::write::{KeysWriter, write_deleted_statistics, write_deletes};
use crate::segment::{DeletedDocuments, DeletesMeta, ManifestSegment};
use crate::{Error, Result, index::reader::Index};

/// Bytes of ids to delete that are collected before their documents are looked up, at most. More would
/// seldom save a pass over the keys of a segment.
const DELETED_IDS_BYTES_MAX: usize = 16 << 20;

/// Ids to delete have at most 1/`DELETED_IDS_DIVISOR` of the memory of a writer, and less than three times as
/// much while their buffers grow.
const DELETED_IDS_DIVISOR: usize = 16;

impl IndexWriter {
    /// Whether the index is updatable: its documents can be deleted by their ids, and a document that is
    /// added replaces one with the same id.
    pub fn is_updatable(&self) -> bool {
        self.key_seed.is_some()
    }

    /// Makes the index updatable by the next commit: adds keys to its segments, and of documents with the
    /// same id deletes all but the last. Returns the number of documents deleted. Takes 8 bytes of memory a
    /// document of the largest segment.
    ///
    /// # Errors
    /// [`Error::Usage`] if the memory of the writer is too little for the keys: nothing is changed, and the
    /// writer stays usable. Other errors stop the writer.
    pub fn make_updatable(&mut self) -> Result<u64> {
        if self.key_seed.is_some() {
            return Ok(0);
        }
        self.seal_batch()?;
        self.run_step(IndexWriter::finish_segment)?;
        let largest = self.segments.iter().map(|segment| segment.documents).max().unwrap_or(0);
        let (needed, memory) = (KEY_BYTES * largest as usize, self.options.memory);
        if needed > memory {
            return Err(Error::Usage(format!(
                "keys of {largest} documents need {needed} bytes of memory; the writer has {memory}"
            )));
        }
        self.run_step(|writer| {
            let seed = KeySeed::default();
            for at in 0..writer.segments.len() {
                writer.options.stop.check()?;
                let segment = writer.open_segment(&writer.segments[at])?;
                let mut keys = KeysWriter::new(seed);
                segment.ids().for_each(|id| {
                    keys.add(id.as_bytes());
                    Ok(())
                })?;
                let id = writer.segments[at].id;
                let file = keys.finish(writer.disk.as_ref(), id)?;
                writer.segments[at].meta.files.push(file);
            }
            writer.key_seed = Some(seed);
            (0..writer.segments.len()).try_for_each(|at| writer.resolve_ids_of(at))?;
            Ok(writer.pending_documents())
        })
    }

    /// Deletes the document with an id that was added before, if there is one, by the next commit.
    ///
    /// ```
    /// use tierdex::{Index, IndexWriter, Merge, Schema, WriterOptions};
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let dir = dir.path().join("index");
    ///
    /// let options = WriterOptions { updatable: true, ..WriterOptions::default() };
    /// let mut writer = IndexWriter::create(&dir, Schema::default(), options)?;
    /// writer.add("1", [("text", "old")])?;
    /// writer.add("2", [("text", "other")])?;
    /// writer.commit(Merge::Keep)?;
    /// writer.add("1", [("text", "new")])?;
    /// writer.delete("2")?;
    /// writer.commit(Merge::Keep)?;
    /// assert_eq!(Index::open(&dir)?.documents(), 1);
    /// # Ok::<(), tierdex::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Usage`] if the index is not updatable, [`Error::TooLarge`] if the id is too long: nothing is
    /// deleted, and the writer stays usable. Other errors stop the writer.
    pub fn delete(&mut self, id: &str) -> Result<()> {
        self.delete_before(id, self.documents())
    }

    /// As [`IndexWriter::delete`] was called when the writer had this number of documents
    /// ([`IndexWriter::documents`]), since the last commit: later documents with the id stay.
    ///
    /// # Errors
    /// As [`IndexWriter::delete`].
    #[doc(hidden)]
    pub fn delete_before(&mut self, id: &str, documents: u64) -> Result<()> {
        self.check_poisoned()?;
        let seed = self.key_seed.ok_or_else(not_updatable)?;
        if id.len() > ID_BYTES_MAX {
            return Err(layout::id_too_long(id.len()));
        }
        // The limit of documents is that of their numbers.
        self.deleted_ids.add(seed, id, documents as u32);
        let bytes_max = self.deleted_ids_bytes_max();
        if self.deleted_ids.memory() < bytes_max {
            return Ok(());
        }
        self.resolve_all_ids()
    }

    /// Deletes the documents of the last commit with these ids, unless this writer has written a document
    /// with the id since. Returns their number. Looks the documents up at once.
    ///
    /// # Errors
    /// As [`IndexWriter::delete`]; the documents of ids before one that is too long are deleted.
    pub fn delete_committed<'i>(&mut self, ids: impl IntoIterator<Item = &'i str>) -> Result<u64> {
        self.resolve_all_ids()?;
        let before = self.pending_documents();
        let committed = if self.replaces { 0 } else { self.committed.documents() };
        ids.into_iter().try_for_each(|id| self.delete_before(id, committed))?;
        self.resolve_all_ids()?;
        Ok(self.pending_documents() - before)
    }

    /// Finishes the segment under construction, and looks up the documents of all ids that were written or
    /// deleted.
    fn resolve_all_ids(&mut self) -> Result<()> {
        self.seal_batch()?;
        self.run_step(|writer| {
            writer.finish_segment()?;
            writer.resolve_deleted_ids()
        })
    }

    fn deleted_ids_bytes_max(&self) -> usize {
        (self.options.memory / DELETED_IDS_DIVISOR).min(DELETED_IDS_BYTES_MAX)
    }

    /// Number of documents that the next commit deletes, before it merges segments.
    fn pending_documents(&self) -> u64 {
        self.pending_deletes.values().map(|pending| u64::from(pending.new_documents().len())).sum()
    }

    /// Begins the list of the files from which documents were read. `settings` say how they are read: one
    /// line in a form that the caller chooses.
    ///
    /// # Errors
    /// [`Error::Usage`] if the index is not updatable; [`Error::Storage`] if the file cannot be written.
    pub fn create_input_files(&mut self, settings: &str) -> Result<InputFilesWriter> {
        self.check_poisoned()?;
        self.key_seed.ok_or_else(not_updatable)?;
        self.run_step(|writer| {
            let number = writer.allocate_file_number()?;
            writer.unfinished_input_files = Some(number);
            InputFilesWriter::create(writer.disk.as_ref(), number, settings)
        })
    }

    /// Makes the list of files a part of the next commit, in place of the one before.
    ///
    /// # Errors
    /// [`Error::Usage`] if the list was not the last that this writer has begun since its last commit;
    /// [`Error::Storage`] if writing fails.
    pub fn set_input_files(&mut self, input_files: InputFilesWriter) -> Result<()> {
        self.check_poisoned()?;
        if self.unfinished_input_files.take() != Some(input_files.number()) {
            return Err(Error::Usage(
                "a list of files that was begun before the last commit, or elsewhere".to_string(),
            ));
        }
        self.run_step(|writer| {
            writer.input_files = Some(input_files.finish()?);
            Ok(())
        })
    }

    /// Deletes documents of the newest commit, numbered as hits are, by the next commit. Returns the number
    /// of those that were not deleted before. The index need not be updatable.
    ///
    /// # Errors
    /// [`Error::Usage`] if `index` is not the commit on which the writer builds, or has no such document:
    /// nothing is deleted, and the writer stays usable. Other errors stop the writer.
    pub fn delete_documents(&mut self, index: &Index, documents: &[u32]) -> Result<u64> {
        self.check_poisoned()?;
        if index.manifests().count() != 1 || *index.manifest() != self.committed {
            return Err(Error::Usage("documents of another commit cannot be deleted".to_string()));
        }
        let mut sorted = documents.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        let all = self.committed.documents();
        if let Some(last) = sorted.last().filter(|last| u64::from(**last) >= all) {
            return Err(Error::Usage(format!("the index has no document {last}")));
        }
        self.run_step(|writer| {
            let (mut rest, mut base, mut deleted) = (&sorted[..], 0, 0);
            for at in 0..writer.committed.segments.len() {
                let segment = &writer.committed.segments[at];
                let (id, end) = (segment.id, base + segment.documents);
                let (own, others) = rest.split_at(rest.partition_point(|document| *document < end));
                let own: Vec<u32> = own.iter().map(|document| document - base).collect();
                deleted += writer.delete_in_segment(id, &own)?;
                (rest, base) = (others, end);
            }
            Ok(deleted)
        })
    }

    /// Deletes documents of a segment of the next commit. Returns the number of those that were not deleted
    /// before.
    pub(super) fn delete_in_segment(&mut self, segment: u64, documents: &[u32]) -> Result<u64> {
        if documents.is_empty() {
            return Ok(0);
        }
        let Some(of) = self.segments.iter().find(|of| of.id == segment) else { return Ok(0) };
        if !self.pending_deletes.contains_key(&segment) {
            let pending = PendingDeletes::open(self.disk.as_ref(), of)?;
            self.pending_deletes.insert(segment, pending);
        }
        let pending = self.pending_deletes.get_mut(&segment).expect("inserted above");
        Ok(pending.delete(documents))
    }

    /// Deletes the documents of older segments that the newest segment replaces, those that it replaces
    /// itself, and those whose ids were deleted.
    pub(super) fn resolve_written_ids(&mut self) -> Result<()> {
        if self.key_seed.is_some() {
            self.resolve_ids_of(self.segments.len() - 1)?;
            self.resolve_deleted_ids()?;
        }
        Ok(())
    }

    /// Deletes the documents of older segments whose ids a segment has, and those that the segment replaces
    /// itself.
    fn resolve_ids_of(&mut self, at: usize) -> Result<()> {
        let (newest, older) = (&self.segments[at], &self.segments[..at]);
        let (newer, of_newer) = (self.open_segment(newest)?, self.deleted_of(newest)?);
        let mut found = Vec::new();
        let repeated = repeated_in(&newer, |document| is_live(&of_newer, document))?;
        let is_last = |document| is_live(&of_newer, document) && repeated.binary_search(&document).is_err();
        for of_older in older {
            self.options.stop.check()?;
            let (segment, deleted) = (self.open_segment(of_older)?, self.deleted_of(of_older)?);
            let replaced = replaced_in(&segment, |document| is_live(&deleted, document), &newer, is_last)?;
            found.push((of_older.id, replaced));
        }
        found.push((newest.id, repeated));
        for (segment, documents) in found {
            self.delete_in_segment(segment, &documents)?;
        }
        Ok(())
    }

    /// Deletes the documents of finished segments whose ids were deleted after they were written. No
    /// documents but those of finished segments were.
    pub(super) fn resolve_deleted_ids(&mut self) -> Result<()> {
        if self.deleted_ids.is_empty() {
            return Ok(());
        }
        let mut ids = std::mem::take(&mut self.deleted_ids);
        ids.prepare();
        let mut base = 0;
        for at in 0..self.segments.len() {
            self.options.stop.check()?;
            let of = &self.segments[at];
            let (segment, deleted) = (self.open_segment(of)?, self.deleted_of(of)?);
            let documents = deleted_in(&segment, base, |document| is_live(&deleted, document), &ids)?;
            base += of.documents;
            self.delete_in_segment(of.id, &documents)?;
        }
        Ok(())
    }

    /// Opens the files of a segment of the next commit.
    pub(super) fn open_segment(&self, segment: &ManifestSegment) -> Result<Segment> {
        Segment::open(self.disk.as_ref(), &self.schema, segment.meta.clone())
    }

    /// All deleted documents of a segment of the next commit so far.
    pub(super) fn deleted_of(&self, segment: &ManifestSegment) -> Result<Option<DeletedDocuments>> {
        match self.pending_deletes.get(&segment.id) {
            Some(pending) => Ok(Some(pending.documents().clone())),
            None => open_deleted_documents(self.disk.as_ref(), segment),
        }
    }

    /// Drops the segments whose documents are all deleted.
    pub(super) fn drop_empty_segments(&mut self) {
        let pending = &self.pending_deletes;
        self.segments.retain(|segment| {
            pending.get(&segment.id).is_none_or(|pending| pending.documents().len() < segment.documents)
        });
    }

    /// Writes the files of the deletes since the last commit of the segments that were not merged.
    pub(super) fn write_deletes(&mut self) -> Result<()> {
        for (id, pending) in std::mem::take(&mut self.pending_deletes) {
            let at = self.segments.iter().position(|segment| segment.id == id);
            let Some(at) = at.filter(|_| !pending.new_documents().is_empty()) else { continue };
            self.options.stop.check()?;
            let segment = self.open_segment(&self.segments[at])?;
            // Postings have been written, so that the analysis has the memory.
            let threads = self.options.threads.min(self.options.memory / (BATCH_MEMORY_BYTES + PART_BYTES));
            let new: Vec<u32> = pending.new_documents().iter().collect();
            let statistics = statistics_of(&segment, &self.schema, &new, threads, &self.options.stop)?;
            let deletes = open_deletes(self.disk.as_ref(), &self.segments[at])?;
            let layers = deletes.as_ref().map_or(&[][..], |deletes| deletes.layers());
            let (kept, layer) = merge_layers(layers, statistics)?;
            let layers = self.segments[at].deletes.take().map_or_else(Vec::new, |deletes| deletes.layers);
            let mut layers: Vec<_> = layers.into_iter().take(kept).collect();
            let (number, of_layer) = (self.allocate_file_number()?, self.allocate_file_number()?);
            let file = write_deletes(self.disk.as_ref(), number, id, pending.documents())?;
            layers.push(write_deleted_statistics(self.disk.as_ref(), of_layer, id, &layer)?);
            let documents = pending.documents().len();
            self.segments[at].deletes = Some(DeletesMeta { documents, file, layers });
        }
        Ok(())
    }
}

fn is_live(deleted: &Option<DeletedDocuments>, document: u32) -> bool {
    !deleted.as_ref().is_some_and(|deleted| deleted.contains(document))
}

fn not_updatable() -> Error {
    Error::Usage(
        "the index is not updatable: its documents cannot be found by their ids; make it updatable first"
            .to_string(),
    )
}
