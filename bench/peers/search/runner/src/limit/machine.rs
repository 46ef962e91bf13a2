//! Changes of the machine's state for a run: the read-ahead of the device, and the page cache. Also starts a
//! process inside a control group.

use crate::tools;
use nix::fcntl::{PosixFadviseAdvice, posix_fadvise};
use nix::sys::stat::{major, minor};
use std::{ffi::OsString, os::unix::fs::MetadataExt, os::unix::process::CommandExt, process::ExitCode};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use tierdex_bench::{Error, Result, cgroup::Cgroup};

/// The argument that makes this program join a control group and execute another program.
const JOIN: &str = "join-group";

/// The words of a process that joins the group before it runs `words`.
///
/// # Errors
/// If this program is not to be found.
pub fn joining(group: &Cgroup, words: Vec<OsString>) -> Result<Vec<OsString>> {
    let here = std::env::current_exe()
        .map_err(|error| Error::Failed(format!("cannot find this program: {error}")))?;
    Ok([here.into(), JOIN.into(), group.procs().into()].into_iter().chain(words).collect())
}

/// If this process is to become another: does so. Gives an exit code if that cannot be.
pub fn run_child() -> Option<ExitCode> {
    let mut words = std::env::args_os().skip(1);
    if words.next()? != JOIN {
        return None;
    }
    let procs = PathBuf::from(words.next()?);
    let words: Vec<OsString> = words.collect();
    let error = match fs::write(&procs, std::process::id().to_string()) {
        Ok(()) => tools::command(&words).exec(),
        Err(error) => error,
    };
    eprintln!("cannot run {} in {}: {error}", words[0].to_string_lossy(), procs.display());
    Some(ExitCode::FAILURE)
}

/// Takes the pages of a file, or of all files of a directory, out of the page cache; those that a process
/// has mapped stay. Other files keep theirs, for the sake of whoever else uses the machine.
///
/// # Errors
/// If a file cannot be opened.
pub fn drop_pages(path: &Path) -> Result<()> {
    let failed =
        |error: std::io::Error| Error::Failed(format!("cannot drop pages of {}: {error}", path.display()));
    if !path.is_dir() {
        let file = File::open(path).map_err(failed)?;
        // What waits to be written stays otherwise.
        file.sync_data().map_err(failed)?;
        return posix_fadvise(&file, 0, 0, PosixFadviseAdvice::POSIX_FADV_DONTNEED)
            .map_err(|error| failed(error.into()));
    }
    for entry in fs::read_dir(path).map_err(failed)? {
        drop_pages(&entry.map_err(failed)?.path())?;
    }
    Ok(())
}

/// The read-ahead of a device, restored when this is dropped.
pub struct ReadAhead {
    file: PathBuf,
    before: Option<u64>,
}

impl ReadAhead {
    /// That of the device on which a directory is, set to `kb` if there is one.
    ///
    /// # Errors
    /// If it cannot be set.
    pub fn of(dir: &Path, kb: Option<u64>) -> Result<ReadAhead> {
        let device = fs::metadata(dir).map(|data| data.dev()).unwrap_or_default();
        let place = PathBuf::from(format!("/sys/dev/block/{}:{}", major(device), minor(device)));
        // A part of a device has the settings of the whole.
        let whole = if place.join("partition").exists() { "../queue" } else { "queue" };
        ReadAhead::at(place.canonicalize().unwrap_or(place).join(whole).join("read_ahead_kb"), kb)
    }

    fn at(file: PathBuf, kb: Option<u64>) -> Result<ReadAhead> {
        let mut ahead = ReadAhead { file, before: None };
        if let Some(kb) = kb {
            let before = ahead.now();
            fs::write(&ahead.file, kb.to_string()).map_err(|error| {
                let file = ahead.file.display();
                Error::Failed(format!(
                    "cannot write {kb} into {file}: {error}; leave --read-ahead-kb out, or run it as root"
                ))
            })?;
            ahead.before = before;
        }
        Ok(ahead)
    }

    /// Kilobytes; none if the device does not say.
    pub fn now(&self) -> Option<u64> {
        fs::read_to_string(&self.file).ok()?.trim().parse().ok()
    }
}

impl Drop for ReadAhead {
    fn drop(&mut self) {
        let Some(before) = self.before else { return };
        if fs::write(&self.file, before.to_string()).is_err() {
            eprintln!("{} could not be set back to {before}", self.file.display());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reading_ahead_is_set_back() {
        let file = std::env::temp_dir().join(format!("tierdex-read-ahead-{}", std::process::id()));
        fs::write(&file, "8192\n").unwrap();
        let ahead = ReadAhead::at(file.clone(), Some(128)).unwrap();
        assert_eq!(ahead.now(), Some(128));
        drop(ahead);
        assert_eq!(ReadAhead::at(file.clone(), None).unwrap().now(), Some(8192));
        fs::remove_file(&file).unwrap();
        assert!(ReadAhead::at(file.join("none"), Some(1)).is_err());
    }
}
