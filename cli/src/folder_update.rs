//! Updates of an index from folders: which files a run reads, which documents it deletes, and what the commit
//! remembers of the files for the next run.
//!
//! 1. Before reading ([`FolderUpdate::plan`]): a file whose size and time are those of the last commit is not
//!    read, and a file that is gone from its folder is noted.
//! 2. While reading ([`FolderUpdate::add`]): the ids of the documents of each file are written to the new
//!    list of files.
//! 3. After reading ([`FolderUpdate::finish`]): with `--prune` documents of files that are gone are deleted,
//!    and those that a changed file no longer holds; the entries of the other files are copied.
//!
//! Files are compared by their absolute paths. An id should be in one file only: of several the one that was read
//! last decides.
//!
//! Memory: about 300 bytes a file, 80 bytes for each id of one file, and the ids of documents to delete.

use crate::failure::{Failure, Outcome};
use crate::input::{InputSource, RecordedFile};
use crate::{messages::make_printable, size};
use clap::ValueEnum;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};
use std::{cmp::Ordering, ffi::OsStr, ffi::OsString};
use tierdex::IndexWriter;
use tierdex::sources::{SourceFile, SourcePosition, SourcesReader, SourcesWriter};

/// A file that changed less than this time before it was found may change again without another time, in
/// nanoseconds: file systems round times, the coarsest of them to two seconds.
const SETTLING_NANOSECONDS: i64 = 2_000_000_000;

/// Which documents a run deletes.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Prune {
    /// At most half of the documents of the index
    Half,
    /// Any number of documents
    All,
}

/// How folders are read.
#[derive(Clone, Default)]
pub struct FolderOptions {
    /// Whether files that have not changed are skipped.
    pub skips_unchanged: bool,
    pub prune: Option<Prune>,
    /// What determines the documents of a file, beside its content. If it changes, all files are read.
    pub settings: String,
}

/// The update of an index by the files of folders.
pub struct FolderUpdate {
    options: FolderOptions,
    /// The files of the last commit, and the file that lists them.
    known: BTreeMap<Vec<u8>, KnownFile>,
    reader: Option<SourcesReader>,
    /// The files that are read, by number.
    files: Vec<SourceFile>,
    /// For each of these, whether it was added to the new list.
    is_added: Vec<bool>,
    sources: Option<SourcesWriter>,
    /// The file whose documents are read now.
    current: Option<RecordedFile>,
    /// Ids of the last commit that files no longer hold.
    lost_ids: BTreeSet<String>,
    /// Ids of the last commit that stay, as files with problems may still hold them.
    kept_ids: Vec<String>,
    has_gone: bool,
    /// Number of files that were skipped.
    pub unchanged: u64,
    /// Number of documents that were deleted.
    pub deleted: u64,
}

/// A file of the last commit.
struct KnownFile {
    bytes: u64,
    modified: Option<i64>,
    ids: SourcePosition,
    state: FileState,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum FileState {
    /// It is in no folder of this run, or cannot be found.
    Unknown,
    /// It has not changed.
    Unchanged,
    /// It is read again.
    Read,
    /// It is no longer in its folder.
    Gone,
}

impl FolderUpdate {
    /// Compares the files of folders with those of the last commit, and leaves in `source` those that are to
    /// be read. `last` lists those. `None` if the index is not updatable or no input is a folder.
    pub fn plan(
        options: FolderOptions,
        last: Option<SourcesReader>,
        source: &mut InputSource,
        writer: &mut IndexWriter,
    ) -> Outcome<Option<FolderUpdate>> {
        if !writer.is_updatable() || source.folders().is_empty() {
            return Ok(None);
        }
        // Another run may have changed the index and the folders while this one waited for the lock.
        source.list_again().map_err(Failure::Usage)?;
        let mut update = FolderUpdate::of_last_commit(options, last)?;
        update.compare_files(source)?;
        update.find_gone(source);
        if !update.files.is_empty() || update.has_gone && update.options.prune.is_some() {
            update.sources = Some(writer.create_sources(&update.options.settings)?);
        }
        Ok(Some(update))
    }

    /// Whether the commit has documents of the folders, although no file was read.
    pub fn is_up_to_date(&self) -> bool {
        self.unchanged > 0 || self.deleted > 0
    }

    fn of_last_commit(options: FolderOptions, mut reader: Option<SourcesReader>) -> Outcome<FolderUpdate> {
        let mut known = BTreeMap::new();
        if let Some(reader) = &mut reader {
            while let Some(SourceFile { path, bytes, modified }) = reader.next_file()? {
                let (ids, state) = (reader.position(), FileState::Unknown);
                if known.insert(path, KnownFile { bytes, modified, ids, state }).is_some() {
                    let what = "the index names a file of a folder twice; check it with `tierdex check`";
                    return Err(Failure::Failed(what.to_string()));
                }
            }
        }
        Ok(FolderUpdate {
            options,
            known,
            reader,
            files: Vec::new(),
            is_added: Vec::new(),
            sources: None,
            current: None,
            lost_ids: BTreeSet::new(),
            kept_ids: Vec::new(),
            has_gone: false,
            unchanged: 0,
            deleted: 0,
        })
    }

    fn compare_files(&mut self, source: &mut InputSource) -> Outcome {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let settled_before = i64::try_from(now).unwrap_or(i64::MAX) - SETTLING_NANOSECONDS;
        let same_settings = self.has_same_settings();
        let mut empty: Vec<PathBuf> = source.folders().to_vec();
        let mut found = HashSet::new();
        source.select_files(|path, bytes, modified| {
            empty.retain(|folder| !path.starts_with(folder));
            let absolute = absolute_path(path);
            // A file of several arguments is read once.
            if !found.insert(absolute.clone()) {
                return None;
            }
            if let Some(known) = self.known.get_mut(&absolute) {
                let is_same = (known.bytes, known.modified) == (bytes, Some(modified));
                if same_settings && is_same && self.options.skips_unchanged {
                    self.unchanged += 1;
                    known.state = FileState::Unchanged;
                    return None;
                }
                known.state = FileState::Read;
            }
            let modified = Some(modified).filter(|modified| *modified < settled_before);
            self.files.push(SourceFile { path: absolute, bytes, modified });
            self.is_added.push(false);
            Some(self.files.len() as u32 - 1)
        });
        match empty.first().filter(|_| self.options.skips_unchanged) {
            Some(folder) => Err(Failure::Failed(format!(
                "{}: the folder has no files; nothing was changed",
                make_printable(&folder.display().to_string())
            ))),
            None => Ok(()),
        }
    }

    /// Whether the files of the last commit were read as in this run.
    fn has_same_settings(&self) -> bool {
        self.reader.as_ref().is_some_and(|reader| reader.settings() == self.options.settings)
    }

    fn find_gone(&mut self, source: &InputSource) {
        let absolute = |paths: &[PathBuf]| -> Vec<PathBuf> {
            paths.iter().map(|path| PathBuf::from(OsString::from_vec(absolute_path(path)))).collect()
        };
        let (folders, unreadable) = (absolute(source.folders()), absolute(source.unreadable()));
        for (path, known) in &mut self.known {
            let path = Path::new(OsStr::from_bytes(path));
            let is_under = |paths: &[PathBuf]| paths.iter().any(|folder| path.starts_with(folder));
            let is_missing = known.state == FileState::Unknown;
            if is_missing && is_under(&folders) && !is_under(&unreadable) {
                known.state = FileState::Gone;
                self.has_gone = true;
            }
        }
    }

    /// Adds what was read from files. The parts of a file follow one another.
    pub fn add(&mut self, recorded: Vec<RecordedFile>) -> tierdex::Result<()> {
        for part in recorded {
            match &mut self.current {
                Some(current) if current.source == part.source => {
                    let before = current.ids.len();
                    current.ids.push_str(&part.ids);
                    current.id_ends.extend(part.id_ends.iter().map(|end| before + end));
                    current.is_loss |= part.is_loss;
                }
                _ => {
                    self.add_current()?;
                    self.current = Some(part);
                }
            }
        }
        Ok(())
    }

    fn add_current(&mut self) -> tierdex::Result<()> {
        match self.current.take() {
            Some(current) => self.add_file(current),
            None => Ok(()),
        }
    }

    /// Adds a file to the new list. Documents of the last commit that it no longer holds are to be deleted; or
    /// they stay in its entry, if documents are not deleted, or were lost in reading.
    fn add_file(&mut self, read: RecordedFile) -> tierdex::Result<()> {
        let number = read.source as usize;
        let Some(sources) = &mut self.sources else { return Ok(()) };
        if std::mem::replace(&mut self.is_added[number], true) {
            return Err(tierdex::Error::Failed("the parts of a file do not follow one another".to_string()));
        }
        let file = &self.files[number];
        sources.add_file(&SourceFile {
            // What has a problem is tried again, and reported again.
            modified: file.modified.filter(|_| !read.is_loss),
            ..file.clone()
        })?;
        let keeps_ids = self.options.prune.is_none() || read.is_loss;
        let starts = std::iter::once(0).chain(read.id_ends.iter().copied());
        let mut ids: Vec<&str> =
            starts.zip(&read.id_ends).map(|(start, end)| &read.ids[start..*end]).collect();
        ids.sort_unstable();
        ids.dedup();
        let mut ids = ids.into_iter().peekable();
        if let (Some(reader), Some(known)) = (&mut self.reader, self.known.get(&file.path)) {
            reader.seek(&file.path, known.ids);
            while let Some(id) = reader.next_id()? {
                while let Some(smaller) = ids.next_if(|next| *next < id) {
                    sources.add_id(smaller)?;
                }
                match ids.peek().map(|next| (*next).cmp(id)) {
                    Some(Ordering::Equal) => {}
                    _ if keeps_ids => {
                        if read.is_loss {
                            self.kept_ids.push(id.to_string());
                        }
                        sources.add_id(id)?;
                    }
                    _ => drop(self.lost_ids.insert(id.to_string())),
                }
            }
        }
        ids.try_for_each(|id| sources.add_id(id))
    }

    /// Deletes documents, and makes the new list of files a part of the next commit. `documents` is the number
    /// of documents of the last commit.
    pub fn finish(&mut self, writer: &mut IndexWriter, documents: u64) -> tierdex::Result<()> {
        self.add_current()?;
        for number in 0..self.files.len() {
            if !self.is_added[number] {
                // Nothing was found in the file.
                self.add_file(RecordedFile { source: number as u32, ..RecordedFile::default() })?;
            }
        }
        let same_settings = self.has_same_settings();
        let Some(mut sources) = self.sources.take() else { return Ok(()) };
        if let Some(reader) = &mut self.reader {
            let is_pruned =
                |known: &KnownFile| self.options.prune.is_some() && known.state == FileState::Gone;
            for (path, known) in self.known.iter().filter(|(_, known)| is_pruned(known)) {
                reader.seek(path, known.ids);
                while let Some(id) = reader.next_id()? {
                    self.lost_ids.insert(id.to_string());
                }
            }
            let kept: BTreeSet<&String> = self.kept_ids.iter().collect();
            self.lost_ids.retain(|id| !kept.contains(id));
            let is_kept = |known: &KnownFile| known.state != FileState::Read && !is_pruned(known);
            for (path, known) in self.known.iter().filter(|(_, known)| is_kept(known)) {
                writer.stop().check()?;
                let mut modified = known.modified.filter(|_| same_settings);
                if !self.lost_ids.is_empty() {
                    reader.seek(path, known.ids);
                    while let Some(id) = reader.next_id()? {
                        if self.lost_ids.remove(id) {
                            // This file holds the id as well: the next run takes its document.
                            modified = None;
                        }
                    }
                }
                sources.add_file(&SourceFile { path: path.clone(), bytes: known.bytes, modified })?;
                reader.seek(path, known.ids);
                while let Some(id) = reader.next_id()? {
                    sources.add_id(id)?;
                }
            }
        }
        self.deleted = writer.delete_committed(self.lost_ids.iter().map(String::as_str))?;
        if self.deleted > documents / 2 && self.options.prune != Some(Prune::All) {
            return Err(tierdex::Error::Usage(format!(
                "{} of {} would be deleted, more than half; nothing was changed; give --prune=all to delete them",
                self.deleted,
                size::show_count(documents, "document", "documents")
            )));
        }
        writer.set_sources(sources)
    }
}

/// The absolute path of a file, in the bytes of the operating system.
fn absolute_path(path: &Path) -> Vec<u8> {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    absolute.into_os_string().into_vec()
}
