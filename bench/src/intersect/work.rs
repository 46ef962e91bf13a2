//! The directory that files of lists are made in.

use super::flags::Flags;
use crate::intersection::{ListsOptions, ListsWriter, PagedList, PagedLists};
use crate::{Error, Result};
use std::fs;
use std::path::{Path, PathBuf};
use tierdex::codec::Codec;
use tierdex::io::{Disk, PosixDisk};

/// A directory of this run's own, removed when it is dropped.
pub(super) struct Work {
    path: PathBuf,
    pub(super) disk: PosixDisk,
}

impl Work {
    pub(super) fn new(flags: &Flags) -> Result<Work> {
        let parent = flags.work.clone().or_else(|| flags.out.clone()).unwrap_or_else(std::env::temp_dir);
        let path = parent.join(format!("tierdex-lists-{}", std::process::id()));
        fs::create_dir_all(&parent).and_then(|()| fs::create_dir(&path)).map_err(|error| {
            Error::Failed(format!("cannot make the directory {}: {error}", path.display()))
        })?;
        let disk = PosixDisk::open(&path);
        // The directory is removed also if it cannot be opened.
        let disk = disk.inspect_err(|_| drop(fs::remove_dir(&path)))?;
        Ok(Work { path, disk })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes lists into a file and opens it.
    pub(super) fn file(&self, codec: Codec, filter_bits: u32, lists: &[&[u32]]) -> Result<Vec<PagedList>> {
        let name = format!("{}-{}", codec.name(), self.disk.list()?.len());
        let mut writer = ListsWriter::create(&self.disk, &name, ListsOptions { codec, filter_bits })?;
        for list in lists {
            writer.add(list)?;
        }
        let seal = writer.finish()?;
        let file = PagedLists::open(&self.disk, &name, seal)?;
        Ok((0..file.len() as u32).filter_map(|number| file.get(number).cloned()).collect())
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        // What is left behind is named so that one sees what it was.
        let _ = fs::remove_dir_all(&self.path);
    }
}
