//! Writes a TREC run to a temporary file in the directory of the target, and renames it when the run is
//! complete. A concurrent reader sees the old run or the new one. Of two runs that are written at the same
//! time, the one that finishes later remains.

use crate::interrupt::{self, SignalGuard};
use std::fs::{self, File};
use std::io::{self, Write, stderr, stdout};
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

/// Maximum number of symbolic links that are followed.
const FOLLOWED_LINKS_MAX: usize = 40;

/// The file of a TREC run while it is written.
pub enum RunFile {
    /// Written in place: a pipe, a device or an open descriptor.
    Direct(File),
    /// A temporary file that replaces the target.
    Temporary(TemporaryRun),
}

/// A temporary run, removed on drop unless it was renamed to its target.
pub struct TemporaryRun {
    file: File,
    path: PathBuf,
    target: PathBuf,
    renamed: bool,
    _guard: SignalGuard,
}

impl RunFile {
    /// Creates the file for a run at `path`, following symbolic links. The new run gets owner and
    /// permissions of the file that it replaces.
    pub fn create(path: &Path) -> io::Result<RunFile> {
        if let Some(opened) = open_descriptor(path) {
            return opened.map(RunFile::Direct);
        }
        let old = match fs::metadata(path) {
            Ok(old) if !old.is_file() => return File::create(path).map(RunFile::Direct),
            Ok(old) => Some(old),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let target = resolve_links(path);
        let folder = parent_directory(&target);
        let mut options = File::options();
        options.write(true).create_new(true);
        if let Some(old) = &old {
            // A file without write permission is not replaced. The temporary file has the permissions of the
            // old one from the start, so that no other user can read it.
            File::options().write(true).open(&target)?;
            options.mode(old.permissions().mode() & 0o777);
        }
        let open = |path: &Path| {
            interrupt::register_unfinished_file(path);
            options.open(path)
        };
        let created = interrupt::remove_on_signal(|| create_unique(folder, ".tierdex-run", open));
        let (_guard, path, file) = created.map_err(|error| {
            io::Error::new(error.kind(), format!("{error}, in the directory {}", folder.display()))
        })?;
        let run = TemporaryRun { file, path, target, renamed: false, _guard };
        if let Some(old) = old {
            run.file.set_permissions(old.permissions())?;
            // Fails unless the process is root.
            let _ = fchown(&run.file, Some(old.uid()), Some(old.gid()));
        }
        Ok(RunFile::Temporary(run))
    }

    /// Syncs the run and renames it to its target.
    pub fn finish(self) -> io::Result<()> {
        match self {
            RunFile::Direct(_) => Ok(()),
            RunFile::Temporary(mut run) => {
                // Without the sync, a power loss after the rename could leave an empty file.
                run.file.sync_data()?;
                fs::rename(&run.path, &run.target)?;
                run.renamed = true;
                Ok(())
            }
        }
    }
}

impl Write for RunFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let (RunFile::Direct(file) | RunFile::Temporary(TemporaryRun { file, .. })) = self;
        file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for TemporaryRun {
    fn drop(&mut self) {
        if !self.renamed {
            // The caller reports the error that left the run incomplete.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Creates a directory entry with a unique name in `folder`. `create` must fail if the name exists, also as
/// a symbolic link.
pub fn create_unique<T>(
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

/// Opens a path that names an open descriptor, such as `/dev/stdout`: its file is appended to, not replaced.
/// `None` for any other path.
fn open_descriptor(path: &Path) -> Option<io::Result<File>> {
    let mut link = path.to_path_buf();
    for _ in 0..FOLLOWED_LINKS_MAX {
        let name = link.to_str()?;
        let number = ["/dev/fd/", "/proc/self/fd/"].iter().find_map(|folder| name.strip_prefix(folder));
        match (name, number) {
            ("/dev/stdout", _) | (_, Some("1")) => {
                return Some(stdout().as_fd().try_clone_to_owned().map(File::from));
            }
            ("/dev/stderr", _) | (_, Some("2")) => {
                return Some(stderr().as_fd().try_clone_to_owned().map(File::from));
            }
            (_, Some(_)) => return Some(File::options().append(true).open(&link)),
            _ => link = parent_directory(&link).join(fs::read_link(&link).ok()?),
        }
    }
    None
}

/// Whether `path` names a file in the directory `folder_path`, after symbolic links.
pub fn is_in_directory(path: &Path, folder_path: &Path) -> bool {
    let (parent, folder) = (fs::metadata(parent_directory(&resolve_links(path))), fs::metadata(folder_path));
    matches!((parent, folder), (Ok(a), Ok(b)) if (a.dev(), a.ino()) == (b.dev(), b.ino()))
}

/// Whether writing one path would overwrite the other: both name the same regular file, or the same file
/// that does not exist yet.
pub fn are_same_file(one: &Path, other: &Path) -> bool {
    match (fs::metadata(one), fs::metadata(other)) {
        (Ok(one), Ok(other)) => one.is_file() && (one.dev(), one.ino()) == (other.dev(), other.ino()),
        (Err(_), Err(_)) => resolve_links(one) == resolve_links(other),
        _ => false,
    }
}

/// Resolves symbolic links of `path`, whose file need not exist, and canonicalizes its directory.
fn resolve_links(path: &Path) -> PathBuf {
    let mut path = path.to_path_buf();
    for _ in 0..FOLLOWED_LINKS_MAX {
        let Ok(next) = fs::read_link(&path) else { break };
        path = parent_directory(&path).join(next);
    }
    match (parent_directory(&path).canonicalize(), path.file_name()) {
        (Ok(folder), Some(name)) => folder.join(name),
        _ => path,
    }
}

fn parent_directory(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
