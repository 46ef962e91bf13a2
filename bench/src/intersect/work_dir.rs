//! The directory for list files.

use crate::intersect::request::IntersectRequest;
use crate::intersection::{PagedList, PagedListsWriter};
use crate::{Error, Result, seek_disk::SeekDisk};
use std::fs;
use tempfile::{Builder, TempDir};
use tierdex::{StopSignal, codec::Codec, io::Disk, io::PosixDisk};

/// A directory of this run, removed when it is dropped.
pub(super) struct WorkDir {
    disk: PosixDisk,
    /// The directory on an emulated hard disk, and that disk.
    seek_disk: Option<(PosixDisk, SeekDisk)>,
    /// Dropped after the disk on which it is mounted.
    _dir: TempDir,
}

impl WorkDir {
    pub(super) fn new(request: &IntersectRequest) -> Result<WorkDir> {
        let parent = &request.work;
        let made = fs::create_dir_all(parent)
            .and_then(|()| Builder::new().prefix("tierdex-lists-").tempdir_in(parent));
        let dir = made.map_err(Error::failed(format!("cannot make a directory in {}", parent.display())))?;
        let disk = PosixDisk::open(dir.path())?;
        let mut seek_disk = None;
        if request.hdd {
            let mounted = SeekDisk::mount(&[dir.path().to_path_buf()])?;
            seek_disk = Some((PosixDisk::open(&mounted.directory_path(0))?, mounted));
        }
        Ok(WorkDir { disk, seek_disk, _dir: dir })
    }

    /// The disk that lists are read from.
    pub(super) fn read_disk(&self) -> &PosixDisk {
        self.seek_disk.as_ref().map_or(&self.disk, |(reads, _)| reads)
    }

    /// Writes lists into a new file and opens it.
    ///
    /// # Errors
    /// If the file cannot be written; [`Error::Interrupted`] if the stop signal is raised.
    pub(super) fn write(&self, codec: Codec, lists: &[&[u32]], stop: &StopSignal) -> Result<Vec<PagedList>> {
        let name = format!("{}-{}", codec.name(), self.disk.list()?.len());
        let mut writer = PagedListsWriter::create(&self.disk, &name, codec)?;
        for list in lists {
            stop.check()?;
            writer.add(list)?;
        }
        Ok(writer.finish(self.read_disk())?)
    }
}
