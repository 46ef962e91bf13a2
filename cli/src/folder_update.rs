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
//! Files are compared by their absolute paths. An id should be in one file only: of several the one that was
//! read last decides.
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
use tierdex::input_files::{InputFile, InputFilePosition, InputFilesReader, InputFilesWriter};

/// A file that changed less than this time before it was found may change again without another time, in
/// nanoseconds: file systems round times, the coarsest of them to two seconds.
const SETTLING_NANOSECONDS: i64 = 2_000_000_000;

/// How many documents a run may delete because files no longer hold them.
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
    committed: BTreeMap<Vec<u8>, CommittedFile>,
    reader: Option<InputFilesReader>,
    /// The files that are read, by number.
    files: Vec<InputFile>,
    /// For each of these, whether it was added to the new list.
    is_added: Vec<bool>,
    input_files: Option<InputFilesWriter>,
    /// The file whose documents are read now.
    current: Option<RecordedFile>,
    /// Ids of the last commit that files no longer hold.
    stale_ids: BTreeSet<String>,
    /// Ids of the last commit that stay, as files with problems may still hold them.
    kept_ids: Vec<String>,
    is_any_gone: bool,
    /// Number of files that were skipped.
    pub unchanged: u64,
    /// Number of documents that were deleted.
    pub deleted: u64,
}

/// A file of the last commit.
struct CommittedFile {
    bytes: u64,
    modified: Option<i64>,
    ids: InputFilePosition,
    state: FileState,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum FileState {
    /// It was not found, or not yet, and may be in a folder that this run does not read.
    NotFound,
    /// It has not changed.
    Unchanged,
    /// It is read again.
    Read,
    /// It is no longer in its folder.
    Gone,
}

impl FolderUpdate {
    /// Compares the files of folders with those of the last commit, and leaves in `inputs` those that are to
    /// be read. `last` lists those. `None` if the index is not updatable or no input is a folder.
    pub fn plan(
        options: FolderOptions,
        last: Option<InputFilesReader>,
        inputs: &mut InputSource,
        writer: &mut IndexWriter,
    ) -> Outcome<Option<FolderUpdate>> {
        if !writer.is_updatable() || inputs.folders().is_empty() {
            return Ok(None);
        }
        // Another run may have changed the index and the folders while this one waited for the lock.
        inputs.list_again().map_err(Failure::Usage)?;
        let mut update = FolderUpdate::of_last_commit(options, last)?;
        update.compare_files(inputs)?;
        update.find_gone(inputs);
        if !update.files.is_empty() || update.is_any_gone && update.options.prune.is_some() {
            update.input_files = Some(writer.create_input_files(&update.options.settings)?);
        }
        Ok(Some(update))
    }

    /// Whether a run that adds no document is right: files are unchanged, or documents were deleted.
    pub fn has_result(&self) -> bool {
        self.unchanged > 0 || self.deleted > 0
    }

    fn of_last_commit(options: FolderOptions, mut reader: Option<InputFilesReader>) -> Outcome<FolderUpdate> {
        let mut committed = BTreeMap::new();
        if let Some(reader) = &mut reader {
            while let Some(InputFile { path, bytes, modified }) = reader.next_file()? {
                let (ids, state) = (reader.position(), FileState::NotFound);
                if committed.insert(path, CommittedFile { bytes, modified, ids, state }).is_some() {
                    let what = "the index names a file of a folder twice; check it with `tierdex check`";
                    return Err(Failure::Failed(what.to_string()));
                }
            }
        }
        Ok(FolderUpdate {
            options,
            committed,
            reader,
            files: Vec::new(),
            is_added: Vec::new(),
            input_files: None,
            current: None,
            stale_ids: BTreeSet::new(),
            kept_ids: Vec::new(),
            is_any_gone: false,
            unchanged: 0,
            deleted: 0,
        })
    }

    fn compare_files(&mut self, inputs: &mut InputSource) -> Outcome {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let settled_before = i64::try_from(now).unwrap_or(i64::MAX) - SETTLING_NANOSECONDS;
        let same_settings = self.has_same_settings();
        let mut empty: Vec<PathBuf> = inputs.folders().to_vec();
        let mut found = HashSet::new();
        inputs.select_files(|path, bytes, modified| {
            empty.retain(|folder| !path.starts_with(folder));
            let absolute = absolute_path(path);
            // A file of several arguments is read once.
            if !found.insert(absolute.clone()) {
                return None;
            }
            if let Some(file) = self.committed.get_mut(&absolute) {
                let is_same = (file.bytes, file.modified) == (bytes, Some(modified));
                if same_settings && is_same && self.options.skips_unchanged {
                    self.unchanged += 1;
                    file.state = FileState::Unchanged;
                    return None;
                }
                file.state = FileState::Read;
            }
            let modified = Some(modified).filter(|modified| *modified < settled_before);
            self.files.push(InputFile { path: absolute, bytes, modified });
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

    fn find_gone(&mut self, inputs: &InputSource) {
        let absolute = |paths: &[PathBuf]| -> Vec<PathBuf> {
            paths.iter().map(|path| PathBuf::from(OsString::from_vec(absolute_path(path)))).collect()
        };
        let (folders, unreadable) = (absolute(inputs.folders()), absolute(inputs.unreadable()));
        for (path, file) in &mut self.committed {
            let path = Path::new(OsStr::from_bytes(path));
            let is_under = |paths: &[PathBuf]| paths.iter().any(|folder| path.starts_with(folder));
            let is_missing = file.state == FileState::NotFound;
            if is_missing && is_under(&folders) && !is_under(&unreadable) {
                file.state = FileState::Gone;
                self.is_any_gone = true;
            }
        }
    }

    /// Adds what was read from files. The parts of a file follow one another.
    pub fn add(&mut self, recorded: Vec<RecordedFile>) -> tierdex::Result<()> {
        for part in recorded {
            match &mut self.current {
                Some(current) if current.number == part.number => {
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

    /// Adds a file to the new list. Documents of the last commit that it no longer holds are to be deleted;
    /// or they stay in its entry, if no documents are deleted, or the file has problems.
    fn add_file(&mut self, read: RecordedFile) -> tierdex::Result<()> {
        let number = read.number as usize;
        let Some(input_files) = &mut self.input_files else { return Ok(()) };
        if std::mem::replace(&mut self.is_added[number], true) {
            return Err(tierdex::Error::Failed("the parts of a file do not follow one another".to_string()));
        }
        let file = &self.files[number];
        input_files.add_file(&InputFile {
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
        if let (Some(reader), Some(committed)) = (&mut self.reader, self.committed.get(&file.path)) {
            reader.seek(&file.path, committed.ids);
            while let Some(id) = reader.next_id()? {
                while let Some(smaller) = ids.next_if(|next| *next < id) {
                    input_files.add_id(smaller)?;
                }
                match ids.peek().map(|next| (*next).cmp(id)) {
                    Some(Ordering::Equal) => {}
                    _ if keeps_ids => {
                        if read.is_loss {
                            self.kept_ids.push(id.to_string());
                        }
                        input_files.add_id(id)?;
                    }
                    _ => drop(self.stale_ids.insert(id.to_string())),
                }
            }
        }
        ids.try_for_each(|id| input_files.add_id(id))
    }

    /// Deletes documents, and makes the new list of files a part of the next commit. `documents` is the
    /// number of documents of the last commit.
    pub fn finish(&mut self, writer: &mut IndexWriter, documents: u64) -> tierdex::Result<()> {
        self.add_current()?;
        for number in 0..self.files.len() {
            if !self.is_added[number] {
                // Nothing was found in the file.
                self.add_file(RecordedFile { number: number as u32, ..RecordedFile::default() })?;
            }
        }
        let same_settings = self.has_same_settings();
        let Some(mut input_files) = self.input_files.take() else { return Ok(()) };
        if let Some(reader) = &mut self.reader {
            let is_pruned =
                |file: &CommittedFile| self.options.prune.is_some() && file.state == FileState::Gone;
            for (path, file) in self.committed.iter().filter(|(_, file)| is_pruned(file)) {
                reader.seek(path, file.ids);
                while let Some(id) = reader.next_id()? {
                    self.stale_ids.insert(id.to_string());
                }
            }
            let kept: BTreeSet<&String> = self.kept_ids.iter().collect();
            self.stale_ids.retain(|id| !kept.contains(id));
            let is_kept = |file: &CommittedFile| file.state != FileState::Read && !is_pruned(file);
            for (path, file) in self.committed.iter().filter(|(_, file)| is_kept(file)) {
                writer.stop().check()?;
                let mut modified = file.modified.filter(|_| same_settings);
                if !self.stale_ids.is_empty() {
                    reader.seek(path, file.ids);
                    while let Some(id) = reader.next_id()? {
                        if self.stale_ids.remove(id) {
                            // This file holds the id as well: the next run takes its document.
                            modified = None;
                        }
                    }
                }
                input_files.add_file(&InputFile { path: path.clone(), bytes: file.bytes, modified })?;
                reader.seek(path, file.ids);
                while let Some(id) = reader.next_id()? {
                    input_files.add_id(id)?;
                }
            }
        }
        self.deleted = writer.delete_committed(self.stale_ids.iter().map(String::as_str))?;
        if self.deleted > documents / 2 && self.options.prune != Some(Prune::All) {
            return Err(tierdex::Error::Usage(format!(
                "{} of {} would be deleted, more than half; nothing was changed; give --prune=all to delete them",
                self.deleted,
                size::show_count(documents, "document", "documents")
            )));
        }
        writer.set_input_files(input_files)
    }
}

/// The absolute path of a file, in the bytes of the operating system.
fn absolute_path(path: &Path) -> Vec<u8> {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    absolute.into_os_string().into_vec()
}
