//! The writer of an index: collects batches into segments, merges segments, and commits, in the steps that
//! the module `index` lists.

mod deletes;
mod merges;
mod options;
mod pending_deletes;

use super::batch::{BatchBuilder, DocumentRef, SealedBatch, SkippedTokens};
use super::encode::{ENCODING_BYTES, EncodingThreads};
use super::import::{ImportTarget, ListsBuilder, import_segment};
use super::manifest::Manifest;
use super::recovery::{self, OpenMode};
use super::replaced::DeletedIds;
use super::{builder::SegmentBuilder, stop::StopSignal};
use crate::limits::{BATCH_BYTES, DOCUMENT_BYTES_MAX, DOCUMENTS_MAX};
use crate::segment::{KeySeed, ManifestSegment, NumberedFile, layout};
use crate::{Error, Result, schema::Schema, text::check_synonyms};
pub use options::WriterOptions;
use pending_deletes::PendingDeletes;
use std::collections::BTreeMap;
use std::{path::Path, sync::Arc};
use tierdex_codec::Kernel;
use tierdex_io::{Disk, DiskLock, ErrorKind, FORMAT_VERSION, PosixDisk};

/// Which segments a commit merges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merge {
    /// Merge all segments into one: the fastest index to search, but the whole index is written again.
    One,
    /// Keep the segments, but merge five adjacent ones of similar size into one, so that a commit costs what
    /// it adds, and the number of segments grows with the logarithm of the index: at most four for each
    /// factor of five.
    Keep,
    /// Merge none: each commit adds a segment or more, and queries search all of them.
    None,
}

/// Bytes of memory of a thread that analyses a batch: for text, tokens, and the resulting run.
const BATCH_MEMORY_BYTES: usize = 8 * BATCH_BYTES;

/// Adds documents to an index. One writer at a time holds the lock of the index.
///
/// Documents are durable and visible after [`IndexWriter::commit`]. Documents that were not committed are
/// lost when the writer is dropped or the process ends. After an error of [`IndexWriter::commit`] or of the
/// disk the writer rejects all calls: the last commit is intact; open a new writer.
///
/// ```no_run
/// use tierdex::{IndexWriter, Merge, Schema, WriterOptions};
///
/// let mut writer = IndexWriter::create("my-index", Schema::default(), WriterOptions::default())?;
/// writer.add("1", [("title", "Title"), ("text", "The text of a document.")])?;
/// writer.commit(Merge::Keep)?;
/// # Ok::<(), tierdex::Error>(())
/// ```
pub struct IndexWriter {
    disk: Arc<dyn Disk>,
    schema: Arc<Schema>,
    options: WriterOptions,
    /// The last commit of this writer, or else the commit on which it builds.
    committed: Manifest,
    /// Number of the first file that this writer may have written.
    first_file: u64,
    /// Number of the next file.
    next_file: u64,
    /// The seed of the index, if it is updatable.
    key_seed: Option<KeySeed>,
    /// Segments of the next commit, in document order.
    segments: Vec<ManifestSegment>,
    /// Deletes that the next commit writes, by segment.
    pending_deletes: BTreeMap<u64, PendingDeletes>,
    /// Ids that were deleted, whose documents are not looked up yet.
    deleted_ids: DeletedIds,
    /// The list of input files of the next commit.
    input_files: Option<NumberedFile>,
    /// Number of the list of input files that was begun since the last commit.
    unfinished_input_files: Option<u64>,
    /// The segment under construction, which follows those.
    building: Option<SegmentBuilder>,
    /// The batch under construction, of documents that follow the segment.
    batch: Option<BatchBuilder>,
    skipped_tokens: SkippedTokens,
    /// The error after which the writer rejects all calls.
    poisoned: Option<Error>,
    /// Whether the next commit replaces the existing index, even if it has no document.
    replaces: bool,
    /// Whether a commit failed in its last steps, so that it is unknown which manifest is the newest. Only
    /// the next writer, which reads the disk again, may then remove files.
    in_doubt: bool,
    lock: Box<dyn DiskLock>,
}

impl IndexWriter {
    /// Creates an index in a directory, which is created if it does not exist.
    ///
    /// # Errors
    /// [`Error::Usage`] when the directory has an index already, the schema is invalid or the memory too
    /// little; [`Error::Storage`] when the directory cannot be written; [`Error::Busy`] when another writer
    /// holds the lock.
    pub fn create(dir: impl AsRef<Path>, schema: Schema, options: WriterOptions) -> Result<IndexWriter> {
        IndexWriter::open_created(dir.as_ref(), schema, OpenMode::New, options)
    }

    /// Opens the index in a directory to add documents to it.
    ///
    /// # Errors
    /// [`Error::Usage`] when the directory has no index; [`Error::Storage`] when there is no such directory;
    /// else as [`IndexWriter::create`].
    pub fn append(dir: impl AsRef<Path>, options: WriterOptions) -> Result<IndexWriter> {
        let disk = Arc::new(PosixDisk::open(dir.as_ref())?);
        IndexWriter::open_extended(disk, options, |existing| Ok(existing.clone()))
    }

    /// Locks the index on a disk to add documents to it. `extend` gets the schema of the newest commit, and
    /// returns that of the next one: the same, or one with further members and fields. No other writer
    /// commits between the two.
    ///
    /// ```
    /// # use tierdex::{IndexWriter, Merge, Schema, WriterOptions};
    /// use tierdex::{io::PosixDisk, schema::Field};
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let dir = dir.path().join("index");
    /// # IndexWriter::create(&dir, Schema::default(), WriterOptions::default())?.commit(Merge::Keep)?;
    ///
    /// let disk = std::sync::Arc::new(PosixDisk::open(&dir)?);
    /// let mut writer = IndexWriter::open_extended(disk, WriterOptions::default(), |existing| {
    ///     let mut schema = existing.clone();
    ///     schema.members.push("tags".to_string());
    ///     schema.fields.push(Field::new("tags", &["tags"]));
    ///     Ok(schema)
    /// })?;
    /// writer.add("1", [("tags", "disks")])?;
    /// writer.commit(Merge::Keep)?;
    /// # Ok::<(), tierdex::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`IndexWriter::append`]; those of `extend`; [`Error::Usage`] when its schema is another one.
    pub fn open_extended(
        disk: Arc<dyn Disk>,
        options: WriterOptions,
        extend: impl FnOnce(&Schema) -> Result<Schema>,
    ) -> Result<IndexWriter> {
        options.check()?;
        let lock = recovery::lock_index(disk.as_ref())?;
        let Some(newest) = Manifest::read_newest(disk.as_ref())? else {
            // The message depends on whether the file of the lock exists.
            drop(lock);
            return Err(recovery::no_index(disk.as_ref()));
        };
        let schema = extend(&newest.schema)?;
        IndexWriter::open_locked(disk, lock, schema, OpenMode::Append, options)
    }

    /// Opens a directory to write a new index, which replaces the one that is there by its first commit.
    ///
    /// # Errors
    /// As [`IndexWriter::create`]; an index, even a damaged one, may be there.
    pub fn replace(dir: impl AsRef<Path>, schema: Schema, options: WriterOptions) -> Result<IndexWriter> {
        IndexWriter::open_created(dir.as_ref(), schema, OpenMode::Replace, options)
    }

    /// Opens a directory, which is created if it does not exist; on an error a created directory is removed.
    fn open_created(
        dir: &Path,
        schema: Schema,
        mode: OpenMode,
        options: WriterOptions,
    ) -> Result<IndexWriter> {
        let disk = Arc::new(PosixDisk::create(dir)?);
        IndexWriter::open(disk.clone(), schema, mode, options).inspect_err(|_| disk.remove_created())
    }

    /// Locks the disk, reads its newest commit and removes the files that a crash left behind.
    ///
    /// # Errors
    /// As [`IndexWriter::create`], and [`Error::Usage`] when the disk has no index to append to, or one of
    /// another schema.
    pub fn open(
        disk: Arc<dyn Disk>,
        schema: Schema,
        mode: OpenMode,
        options: WriterOptions,
    ) -> Result<IndexWriter> {
        options.check()?;
        schema.validate()?;
        let lock = recovery::lock_index(disk.as_ref())?;
        IndexWriter::open_locked(disk, lock, schema, mode, options)
    }

    fn open_locked(
        disk: Arc<dyn Disk>,
        lock: Box<dyn DiskLock>,
        schema: Schema,
        mode: OpenMode,
        options: WriterOptions,
    ) -> Result<IndexWriter> {
        Kernel::from_env()?;
        schema.validate()?;
        let committed = recovery::choose_base(disk.as_ref(), &schema, mode)?;
        if committed.generation == 0 || committed.schema != schema {
            check_synonyms(&schema)?;
        }
        let segments = if mode == OpenMode::Replace { Vec::new() } else { committed.segments.clone() };
        let input_files = committed.input_files.filter(|_| mode == OpenMode::Append);
        let key_seed = match mode {
            OpenMode::Append => committed.key_seed,
            OpenMode::New | OpenMode::Replace => options.updatable.then(KeySeed::default),
        };
        Ok(IndexWriter {
            disk,
            schema: Arc::new(schema),
            options: WriterOptions { stop: options.stop.child(), ..options },
            first_file: committed.next_file,
            next_file: committed.next_file,
            committed,
            key_seed,
            segments,
            pending_deletes: BTreeMap::new(),
            deleted_ids: DeletedIds::default(),
            input_files,
            unfinished_input_files: None,
            building: None,
            batch: None,
            skipped_tokens: SkippedTokens::default(),
            poisoned: None,
            replaces: mode == OpenMode::Replace,
            in_doubt: false,
            lock,
        })
    }

    /// The schema.
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// Whether the next commit changes the schema of the index, even without documents.
    pub fn changes_schema(&self) -> bool {
        !self.replaces && self.committed.generation > 0 && self.committed.schema != *self.schema
    }

    /// The signal that stops this writer, and no other with the same options.
    pub fn stop(&self) -> &StopSignal {
        &self.options.stop
    }

    /// Threads that may analyse batches at the same time within the memory of the writer.
    pub fn threads_max(&self) -> usize {
        (self.options.memory / 4 / BATCH_MEMORY_BYTES).max(1)
    }

    /// Bytes of the largest document that this writer takes, each value counted for each field that indexes
    /// it: a quarter of its memory.
    pub fn document_bytes_max(&self) -> usize {
        (self.options.memory / 4).min(DOCUMENT_BYTES_MAX)
    }

    /// Number of documents that the next commit will have, with those that are deleted.
    pub fn documents(&self) -> u64 {
        self.batched_documents() + self.batch.as_ref().map_or(0, |batch| batch.documents() as u64)
    }

    /// Numbers of tokens that were not indexed because they exceed a limit, in the batches that were finished
    /// so far; after a commit, in all documents.
    pub fn skipped_tokens(&self) -> SkippedTokens {
        self.skipped_tokens
    }

    /// Whether a commit failed so late that it may be durable. Only the next writer finds out.
    pub fn in_doubt(&self) -> bool {
        self.in_doubt
    }

    /// Number of documents in finished segments and in the one under construction.
    fn batched_documents(&self) -> u64 {
        let flushed: u64 = self.segments.iter().map(|segment| u64::from(segment.documents)).sum();
        flushed + self.building.as_ref().map_or(0, |builder| u64::from(builder.documents()))
    }

    /// Adds a document: its external id, and values of members by their names. A member may have several
    /// values, or none. In an updatable index the document replaces one with its id; in another ids may
    /// repeat.
    ///
    /// # Errors
    /// [`Error::TooLarge`] when the id or the values are too long, or there are too many documents, and
    /// [`Error::Usage`] when the schema has no member of a name: the document is not added, and the writer
    /// stays usable. Other errors stop the writer.
    pub fn add<N: AsRef<str>, V: AsRef<str>>(
        &mut self,
        id: &str,
        values: impl IntoIterator<Item = (N, V)>,
    ) -> Result<()> {
        let numbered =
            values.into_iter().map(|(name, value)| Ok((self.schema.member_named(name.as_ref())?, value)));
        let values = numbered.collect::<Result<Vec<_>>>()?;
        let values: Vec<_> = values.iter().map(|(member, value)| (*member, value.as_ref())).collect();
        self.add_document(DocumentRef { id, values: &values, ..DocumentRef::default() })
    }

    /// As [`IndexWriter::add`], for a document whose members are given by their numbers.
    ///
    /// # Errors
    /// As [`IndexWriter::add`].
    pub fn add_document(&mut self, document: DocumentRef<'_>) -> Result<()> {
        self.check_poisoned()?;
        if self.documents() >= DOCUMENTS_MAX {
            return Err(layout::too_many_documents());
        }
        let (schema, document_max) = (&self.schema, self.document_bytes_max());
        let batch = self.batch.get_or_insert_with(|| BatchBuilder::new(schema.clone(), document_max));
        match batch.add(document) {
            Ok(()) if batch.is_full() => self.seal_batch(),
            Err(error) if !matches!(error, Error::TooLarge(_) | Error::Usage(_)) => {
                self.run_step(|_| Err(error))
            }
            other => other,
        }
    }

    /// Adds a batch after all documents added before.
    #[doc(hidden)]
    pub fn push(&mut self, batch: SealedBatch) -> Result<()> {
        self.seal_batch()?;
        self.run_step(|writer| writer.try_push(batch))
    }

    /// Adds documents by their postings instead of their text, as a separate segment after all documents
    /// added before. `lengths` has the number of tokens of each document; `check` compares it with the sum
    /// of the frequencies. `id` appends the external id of a document to an empty string. `body` adds the
    /// terms in order.
    ///
    /// Memory: five bytes a document until `body` is called, then one.
    ///
    /// # Errors
    /// [`Error::Usage`] if the schema has several fields, positions or stored text, if there is no document,
    /// or if [`ListsBuilder`] rejects terms or postings; [`Error::TooLarge`] if there are too many documents.
    #[doc(hidden)]
    pub fn import(
        &mut self,
        lengths: Vec<u32>,
        id: impl FnMut(u32, &mut String),
        body: impl FnOnce(&mut ListsBuilder<'_, '_>) -> Result<()>,
    ) -> Result<()> {
        self.seal_batch()?;
        self.run_step(|writer| {
            writer.finish_segment()?;
            if writer.batched_documents() + lengths.len() as u64 > DOCUMENTS_MAX {
                return Err(layout::too_many_documents());
            }
            let segment = writer.allocate_file_number()?;
            let target = ImportTarget {
                disk: writer.disk.as_ref(),
                schema: &writer.schema,
                segment,
                key_seed: writer.key_seed,
                stop: &writer.options.stop,
            };
            let meta = import_segment(&target, lengths, id, body)?;
            writer.segments.push(ManifestSegment { meta, deletes: None });
            writer.resolve_written_ids()
        })
    }

    /// Makes all changes durable and visible; returns the generation of the commit. Without changes, and with
    /// a commit before, it does nothing.
    ///
    /// # Errors
    /// [`Error::Storage`] when a file cannot be written; the last commit is then intact.
    pub fn commit(&mut self, merge: Merge) -> Result<u64> {
        self.seal_batch()?;
        self.run_step(|writer| writer.try_commit(merge))
    }

    fn seal_batch(&mut self) -> Result<()> {
        match &mut self.batch {
            Some(batch) if batch.documents() > 0 => {
                let sealed = batch.seal();
                self.run_step(|writer| writer.try_push(sealed?))
            }
            _ => Ok(()),
        }
    }

    /// Runs a step that writes. If it fails, the writer rejects all further calls: after a failed sync,
    /// earlier writes may be lost as well.
    fn run_step<T>(&mut self, step: impl FnOnce(&mut IndexWriter) -> Result<T>) -> Result<T> {
        self.check_poisoned()?;
        step(self).map_err(|error| {
            // If the lock was lost, another writer has probably caused the error.
            let error = match self.check_lock() {
                Err(lost @ Error::Failed(_)) if !self.in_doubt => lost,
                _ => error,
            };
            self.poisoned = Some(error.clone());
            error
        })
    }

    /// An error if the lock was lost, so that another writer may be writing.
    fn check_lock(&self) -> Result<()> {
        match self.lock.check() {
            Err(error) if error.kind() == ErrorKind::LockLost => {
                Err(Error::Failed(format!("{error}; nothing was committed and nothing removed")))
            }
            other => Ok(other?),
        }
    }

    /// Rejects all further calls because of an error.
    pub(super) fn poison(&mut self, error: &Error) {
        self.poisoned.get_or_insert_with(|| error.clone());
    }

    fn check_poisoned(&self) -> Result<()> {
        match &self.poisoned {
            Some(error) => {
                Err(Error::Usage(format!("the writer stopped after an error; open it again ({error})")))
            }
            None => Ok(()),
        }
    }

    fn try_push(&mut self, batch: SealedBatch) -> Result<()> {
        if batch.documents() == 0 {
            return Ok(());
        }
        self.options.stop.check()?;
        self.skipped_tokens.add(batch.skipped_tokens);
        if self.batched_documents() + batch.documents() as u64 > DOCUMENTS_MAX {
            return Err(layout::too_many_documents());
        }
        if self.building.is_none() {
            let id = self.allocate_file_number()?;
            self.building =
                Some(SegmentBuilder::create(self.disk.as_ref(), &self.schema, id, self.key_seed)?);
        }
        let builder = self.building.as_mut().expect("created above");
        builder.push(batch)?;
        let memory = builder.memory() + self.deleted_ids.memory();
        if memory >= self.options.memory / 4 * 3 { self.finish_segment() } else { Ok(()) }
    }

    /// Finishes the segment under construction.
    fn finish_segment(&mut self) -> Result<()> {
        self.check_lock()?;
        if let Some(builder) = self.building.take() {
            let meta = builder.finish(self.disk.as_ref(), &self.schema, self.encoding_threads())?;
            self.segments.push(ManifestSegment { meta, deletes: None });
            self.resolve_written_ids()?;
        }
        Ok(())
    }

    /// The threads that encode a segment. What they have encoded takes up to an eighth of the memory: as much
    /// as batches leave while no thread analyses.
    fn encoding_threads(&self) -> EncodingThreads<'_> {
        let count = self.options.threads.min(self.options.memory / 8 / ENCODING_BYTES);
        EncodingThreads { count, stop: &self.options.stop }
    }

    fn try_commit(&mut self, merge: Merge) -> Result<u64> {
        self.options.stop.check()?;
        self.finish_segment()?;
        self.resolve_deleted_ids()?;
        self.drop_empty_segments();
        self.merge_by(merge)?;
        self.write_deletes()?;
        if !self.replaces
            && self.committed.generation > 0
            && self.committed.segments == self.segments
            && self.committed.schema == *self.schema
            && self.committed.input_files == self.input_files
            && self.committed.key_seed == self.key_seed
        {
            // New segments may have lost all documents before this commit.
            if self.next_file > self.committed.next_file {
                self.remove_orphans(|_| true);
            }
            return Ok(self.committed.generation);
        }
        let manifest = Manifest {
            generation: self.committed.generation + 1,
            schema: (*self.schema).clone(),
            next_file: self.next_file,
            version: FORMAT_VERSION,
            key_seed: self.key_seed,
            segments: self.segments.clone(),
            input_files: self.input_files,
        };
        let temporary = Manifest::temporary_name(manifest.generation, self.lock.id());
        manifest.prepare(self.disk.as_ref(), &temporary)?;
        self.check_newest()?;
        self.in_doubt = true;
        let published = manifest.publish(self.disk.as_ref(), &temporary);
        let kind = |error: &Error| if let Error::Storage(error) = error { Some(error.kind()) } else { None };
        if let Some(ErrorKind::Exists | ErrorKind::NotFound) = published.as_ref().err().and_then(kind) {
            // Another writer has published this generation, or removed the temporary file: nothing was
            // committed.
            self.in_doubt = false;
        }
        published?;
        // If the lock was lost in the meantime, another writer may have started without this commit.
        self.lock.check()?;
        self.in_doubt = false;
        self.replaces = false;
        self.committed = manifest;
        self.unfinished_input_files = None;
        self.remove_orphans(|_| true);
        Ok(self.committed.generation)
    }

    /// An error if another writer has committed since this one started. Called after the next manifest was
    /// written under its temporary name: a writer that starts later removes that file, so that it cannot be
    /// published.
    fn check_newest(&self) -> Result<()> {
        self.check_lock()?;
        match Manifest::newest(self.disk.as_ref())?.unwrap_or(0) {
            newest if newest == self.committed.generation => Ok(()),
            0 => Err(Error::Failed(format!(
                "the manifest of {} was removed while it was being written; nothing was committed",
                self.disk.describe()
            ))),
            newest => Err(Error::Failed(format!(
                "another writer has committed generation {newest} of {}; nothing was committed here",
                self.disk.describe()
            ))),
        }
    }

    /// Removes files that the newest commit does not name and that `is_chosen`, unless the lock was lost:
    /// then they may belong to another writer. The next writer removes those that are left.
    fn remove_orphans(&self, is_chosen: impl Fn(&str) -> bool) {
        if self.check_lock().is_err() {
            return;
        }
        let orphans = self.committed.orphans(self.disk.as_ref()).unwrap_or_default();
        for name in orphans.iter().filter(|name| is_chosen(name)) {
            // The commit is durable: a file that cannot be removed only takes space.
            let _ = self.disk.remove(name);
        }
    }

    /// Whether a file that no commit names was written by this writer.
    fn is_own_file(&self, name: &str) -> bool {
        name == Manifest::temporary_name(self.committed.generation + 1, self.lock.id())
            || layout::parse_file_name(name).is_some_and(|(number, ..)| number >= self.first_file)
    }

    /// Allocates the number of the next file, or of the files of the next segment.
    fn allocate_file_number(&mut self) -> Result<u64> {
        self.check_lock()?;
        let number = self.next_file;
        self.next_file += 1;
        Ok(number)
    }
}

impl Drop for IndexWriter {
    /// Removes files that were never committed.
    fn drop(&mut self) {
        self.building = None;
        if !self.in_doubt {
            self.remove_orphans(|name| self.is_own_file(name));
        }
    }
}
