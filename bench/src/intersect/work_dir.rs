//! The directory for list files.

use crate::intersect::flags::Flags;
use crate::intersection::{ListsOptions, PagedList, PagedListsWriter, open_lists};
use crate::{Error, Result, seek_disk::SeekDisk};
use std::{fs, path::PathBuf};
use tierdex::{StopSignal, codec::Codec, io::Disk, io::PosixDisk};

/// A directory of this run, removed when it is dropped.
pub(super) struct WorkDir {
    path: PathBuf,
    disk: PosixDisk,
    /// The directory on an emulated hard disk, and that disk, which is dropped last.
    seek_disk: Option<(PosixDisk, SeekDisk)>,
    stop: StopSignal,
}

impl WorkDir {
    pub(super) fn new(flags: &Flags, stop: &StopSignal) -> Result<WorkDir> {
        let parent = flags.work.clone().unwrap_or_else(std::env::temp_dir);
        let path = parent.join(format!("tierdex-lists-{}", std::process::id()));
        let created = fs::create_dir_all(&parent).and_then(|()| fs::create_dir(&path));
        created.map_err(Error::failed(format!("cannot create the directory {}", path.display())))?;
        let disk = PosixDisk::open(&path);
        // Removes the directory also if it cannot be opened.
        let disk = disk.inspect_err(|_| drop(fs::remove_dir(&path)))?;
        let mut work = WorkDir { path, disk, seek_disk: None, stop: stop.clone() };
        if flags.hdd {
            let seek_disk = SeekDisk::mount(std::slice::from_ref(&work.path))?;
            let reads = PosixDisk::open(&seek_disk.directory_path(0))?;
            work.seek_disk = Some((reads, seek_disk));
        }
        Ok(work)
    }

    /// The disk that lists are read from.
    pub(super) fn read_disk(&self) -> &PosixDisk {
        self.seek_disk.as_ref().map_or(&self.disk, |(reads, _)| reads)
    }

    /// Writes lists into a new file and opens it.
    ///
    /// # Errors
    /// If the file cannot be written; [`Error::Interrupted`] if the stop signal is raised.
    pub(super) fn write(&self, codec: Codec, filter_bits: u32, lists: &[&[u32]]) -> Result<Vec<PagedList>> {
        let name = format!("{}-{}", codec.name(), self.disk.list()?.len());
        let mut writer = PagedListsWriter::create(&self.disk, &name, ListsOptions { codec, filter_bits })?;
        for list in lists {
            self.stop.check().map_err(|_| Error::Interrupted)?;
            writer.add(list)?;
        }
        let seal = writer.finish()?;
        Ok(open_lists(self.read_disk(), &name, seal)?)
    }
}

impl Drop for WorkDir {
    fn drop(&mut self) {
        self.seek_disk = None;
        // If this fails, the name of the directory says what it is.
        let _ = fs::remove_dir_all(&self.path);
    }
}
