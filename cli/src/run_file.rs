//! Where a run is written to: a file of another name in the same directory, which gets the name of the run
//! when it is whole. So a reader finds an old run or a new one, and of two that are written at once the later
//! one stays.

use crate::interrupt::{self, Watched};
use std::fs::{self, File};
use std::io::{self, Write, stderr, stdout};
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

/// Maximum depth of symbolic links.
const LINKS_MAX: usize = 40;

/// A run that is being written.
pub enum RunFile {
    /// What is no regular file, such as a pipe: it is written as it is.
    AsItIs(File),
    /// A file under a name of its own.
    Temporary(Temporary),
}

/// Removed on drop unless it was renamed to its final path.
pub struct Temporary {
    file: File,
    path: PathBuf,
    whole: PathBuf,
    renamed: bool,
    _watched: Watched,
}

impl RunFile {
    /// Begins to write what `path` names, behind links. A new run may be read by those who could read the old
    /// one.
    pub fn create(path: &Path) -> io::Result<RunFile> {
        if let Some(opened) = descriptor(path) {
            return opened.map(RunFile::AsItIs);
        }
        let old = match fs::metadata(path) {
            Ok(old) if !old.is_file() => return File::create(path).map(RunFile::AsItIs),
            Ok(old) => Some(old),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let whole = target(path);
        let folder = folder(&whole);
        let mut options = File::options();
        options.write(true).create_new(true);
        if let Some(old) = &old {
            // What may not be written is not replaced either; and nobody else may read the new run meanwhile.
            File::options().write(true).open(&whole)?;
            options.mode(old.permissions().mode() & 0o777);
        }
        let created = interrupt::removes(|| new_in(folder, ".tierdex-run", |path| options.open(path)));
        let (_watched, path, file) = created.map_err(|error| {
            io::Error::new(error.kind(), format!("{error}, in the folder {}", folder.display()))
        })?;
        let run = Temporary { file, path, whole, renamed: false, _watched };
        if let Some(old) = old {
            run.file.set_permissions(old.permissions())?;
            // Only root may give files away.
            let _ = fchown(&run.file, Some(old.uid()), Some(old.gid()));
        }
        Ok(RunFile::Temporary(run))
    }

    /// Gives the run its name.
    pub fn finish(self) -> io::Result<()> {
        match self {
            RunFile::AsItIs(_) => Ok(()),
            RunFile::Temporary(mut run) => {
                // Else a loss of power could leave an empty file of this name.
                run.file.sync_data()?;
                fs::rename(&run.path, &run.whole)?;
                run.renamed = true;
                Ok(())
            }
        }
    }
}

impl Write for RunFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let (RunFile::AsItIs(file) | RunFile::Temporary(Temporary { file, .. })) = self;
        file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.renamed {
            // The error that is reported says why it is not whole.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Creates an entry with a unique name in `folder`; `create` must fail where there is one, also a link.
pub fn new_in<T>(
    folder: &Path,
    name: &str,
    create: impl Fn(&Path) -> io::Result<T>,
) -> io::Result<(PathBuf, T)> {
    let mut number = 0;
    loop {
        let path = folder.join(format!("{name}-{}-{number}", std::process::id()));
        match create(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
            created => return created.map(|created| (path, created)),
        }
    }
}

/// Opens a name of an open file, such as `/dev/stdout`: the file behind it is written on, and not replaced.
/// None for any other path.
pub fn descriptor(path: &Path) -> Option<io::Result<File>> {
    let mut at = path.to_path_buf();
    for _ in 0..LINKS_MAX {
        let name = at.to_str()?;
        let number = ["/dev/fd/", "/proc/self/fd/"].iter().find_map(|folder| name.strip_prefix(folder));
        match (name, number) {
            ("/dev/stdout", _) | (_, Some("1")) => {
                return Some(stdout().as_fd().try_clone_to_owned().map(File::from));
            }
            ("/dev/stderr", _) | (_, Some("2")) => {
                return Some(stderr().as_fd().try_clone_to_owned().map(File::from));
            }
            (_, Some(_)) => return Some(File::options().append(true).open(&at)),
            _ => at = folder(&at).join(fs::read_link(&at).ok()?),
        }
    }
    None
}

/// Whether `path` names a file in a folder.
pub fn is_in(path: &Path, folder_path: &Path) -> bool {
    let (parent, folder) = (fs::metadata(folder(&target(path))), fs::metadata(folder_path));
    matches!((parent, folder), (Ok(a), Ok(b)) if (a.dev(), a.ino()) == (b.dev(), b.ino()))
}

/// Whether writing one would destroy the other: the same regular file, by whatever names, or a file to be
/// made.
pub fn are_same(one: &Path, other: &Path) -> bool {
    match (fs::metadata(one), fs::metadata(other)) {
        (Ok(one), Ok(other)) => one.is_file() && (one.dev(), one.ino()) == (other.dev(), other.ino()),
        (Err(_), Err(_)) => target(one) == target(other),
        _ => false,
    }
}

/// The file that `path` names behind links, also if it is not there yet; in a folder without links.
fn target(path: &Path) -> PathBuf {
    let mut path = path.to_path_buf();
    for _ in 0..LINKS_MAX {
        let Ok(next) = fs::read_link(&path) else { break };
        path = folder(&path).join(next);
    }
    match (folder(&path).canonicalize(), path.file_name()) {
        (Ok(folder), Some(name)) => folder.join(name),
        _ => path,
    }
}

fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
