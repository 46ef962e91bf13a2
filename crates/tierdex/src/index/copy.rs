//! Copies a commit to another directory, while writers may work on the index.
//!
//! 1. Open all files of the newest commit: they stay readable, whatever a writer removes. If one is missing,
//!    a newer commit has replaced it: start again with that.
//! 2. Copy each file under a temporary name, sync it, and verify the copy by its checksums. If the process is
//!    killed, the next copy or writer removes these files.
//! 3. Rename the files, sync the directory; rename the manifest, and sync the directory again.

use super::manifest::Manifest;
use super::recovery::{OpenMode, choose_base, lock_index, no_index};
use super::stop::StopSignal;
use crate::segment::manifest_segment::NamedFile;
use crate::{Error, Result};
use std::path::Path;
use tierdex_io::{Disk, ErrorKind, PosixDisk, ReadFile};

/// Bytes that are copied at a time.
const COPY_BYTES: u64 = 1 << 20;

/// Copies the newest commit of the index in the directory `from` to the directory `to`, which is created if
/// it does not exist. Readers and a writer of the index may be at work. The copy has the same bytes. Returns
/// its manifest.
///
/// ```
/// use tierdex::{Index, StopSignal, copy_index};
/// # use tierdex::{IndexWriter, Merge, Schema, WriterOptions};
/// # let dir = tempfile::tempdir().unwrap();
/// # let (index, backup) = (dir.path().join("index"), dir.path().join("backup"));
/// # let mut writer = IndexWriter::create(&index, Schema::default(), WriterOptions::default())?;
/// # writer.add("1", [("text", "a solid state disk")])?;
/// # writer.commit(Merge::Keep)?;
///
/// copy_index(&index, &backup, &StopSignal::default())?;
/// assert_eq!(Index::open(&backup)?.documents(), 1);
/// # Ok::<(), tierdex::Error>(())
/// ```
///
/// # Errors
/// [`Error::Usage`] when `from` holds no index, or `to` holds one; [`Error::Failed`] when `to` has too little
/// space; [`Error::Storage`] when a file is damaged, cannot be read or written; [`Error::Busy`] when a writer
/// is at work on `to`; [`Error::Interrupted`] when `stop` is raised. After an error `to` holds no index.
pub fn copy_index(from: impl AsRef<Path>, to: impl AsRef<Path>, stop: &StopSignal) -> Result<Manifest> {
    let from = PosixDisk::open(from.as_ref())?;
    let to = PosixDisk::create(to.as_ref())?;
    copy_on(&from, &to, stop).inspect_err(|_| to.remove_created())
}

/// As [`copy_index`], between disks.
pub fn copy_on(from: &dyn Disk, to: &dyn Disk, stop: &StopSignal) -> Result<Manifest> {
    let lock = lock_index(to)?;
    let opened = OpenedCommit::open_newest(from)?;
    let manifest = &opened.manifest;
    choose_base(to, &manifest.schema, OpenMode::New)?;
    let needed: u64 = opened.files.iter().map(|(_, file)| file.len()).sum();
    if let Some(available) = to.available_bytes()?.filter(|available| *available < needed) {
        return Err(Error::Failed(format!(
            "the copy needs {needed} bytes of disk space in {}; {available} are free",
            to.describe()
        )));
    }
    let temporary = Manifest::temporary_name(manifest.generation, lock.id());
    let copied = opened.copy(to, &temporary, stop).and_then(|()| {
        lock.check()?;
        manifest.publish(to, &temporary)
    });
    if let Err(error) = copied {
        // Without the lock the files may be those of another writer.
        lock.check()?;
        let published = Manifest::file_name(manifest.generation);
        let names =
            opened.files.iter().flat_map(|(named, _)| [opened.temporary_name(named), named.name.clone()]);
        [published, temporary].into_iter().chain(names).for_each(|name| drop(to.remove(&name)));
        return Err(error);
    }
    Ok(opened.manifest)
}

/// The open files of a commit.
struct OpenedCommit {
    manifest: Manifest,
    manifest_file: Box<dyn ReadFile>,
    files: Vec<(NamedFile, Box<dyn ReadFile>)>,
}

impl OpenedCommit {
    fn open_newest(from: &dyn Disk) -> Result<OpenedCommit> {
        loop {
            let Some(manifest) = Manifest::read_newest(from)? else { return Err(no_index(from)) };
            let generation = manifest.generation;
            match OpenedCommit::open(from, manifest) {
                Err(Error::Storage(error))
                    if error.kind() == ErrorKind::NotFound && Manifest::newest(from)? > Some(generation) => {}
                opened => return opened,
            }
        }
    }

    fn open(from: &dyn Disk, manifest: Manifest) -> Result<OpenedCommit> {
        let manifest_file = from.open(&Manifest::file_name(manifest.generation))?;
        let open = |named: NamedFile| {
            let file = from.open(&named.name)?;
            Ok((named, file))
        };
        let files = manifest.named_files().map(open).collect::<Result<_>>()?;
        Ok(OpenedCommit { manifest, manifest_file, files })
    }

    /// Copies all files, the manifest under a temporary name.
    fn copy(&self, to: &dyn Disk, temporary: &str, stop: &StopSignal) -> Result<()> {
        for (named, file) in &self.files {
            let copy = NamedFile { name: self.temporary_name(named), ..named.clone() };
            copy_file(file.as_ref(), to, &copy.name, stop)?;
            copy.open(to)?.verify()?;
        }
        copy_file(self.manifest_file.as_ref(), to, temporary, stop)?;
        for (named, _) in &self.files {
            to.rename(&self.temporary_name(named), &named.name)?;
        }
        Ok(to.sync_dir()?)
    }

    /// The name under which a file is copied: that of a temporary manifest, which any writer removes.
    fn temporary_name(&self, named: &NamedFile) -> String {
        Manifest::temporary_name_of(self.manifest.generation, &named.name)
    }
}

fn copy_file(from: &dyn ReadFile, to: &dyn Disk, name: &str, stop: &StopSignal) -> Result<()> {
    let mut copy = to.create(name)?;
    let (mut at, mut bytes) = (0, vec![0; COPY_BYTES.min(from.len()) as usize]);
    while at < from.len() {
        stop.check()?;
        let bytes = &mut bytes[..COPY_BYTES.min(from.len() - at) as usize];
        from.read_at(at, bytes)?;
        copy.append(bytes)?;
        at += bytes.len() as u64;
    }
    Ok(copy.sync()?)
}
