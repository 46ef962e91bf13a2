//! Emulation of a hard disk that seeks: a file system in user space (FUSE) over directories, which delays
//! each read by the time of a disk with one head. Figures measured this way are reported as emulated.
//!
//! 1. Each file takes a range of positions of the disk, in the order in which files are first found. The
//!    directories are mounted below one mount point, so their readers compete for the head.
//! 2. Reads are served one after the other, in the order in which they arrive. A read at the position of the
//!    head takes the time of its transfer. Any other one takes a seek and half a rotation too, or the time to
//!    pass over the gap if that is shorter.
//! 3. The page cache of the system works as for other files, and reads past it are delayed as well.
//! 4. A write to the file `delay` below the mount point starts the delays after `SeekDisk::delay_later`.

use crate::{Error, Result};
use clap::Args;
use fuser::{
    BackgroundSession, Errno, FileAttr, FileHandle, FileType, Filesystem, Generation, INodeNo, LockOwner,
    MountOption, OpenFlags, ReplyAttr, ReplyData, ReplyDirectory, ReplyEntry, ReplyWrite, Request,
    WriteFlags,
};
use rustix::mount::{UnmountFlags, unmount};
use serde_json::json;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::AtomicBool, atomic::Ordering};
use std::time::{Duration, Instant, UNIX_EPOCH};
use std::{ffi::OsStr, ffi::OsString, fs, fs::File, io::Read, io::Write, os::unix::fs::FileExt};
use std::{path::PathBuf, thread};
use tierdex::StopSignal;

/// Shortest and longest time of a seek: assumptions of this benchmark, usual for disks of 7,200 rotations a
/// minute. The mean over random seeks is 9 ms.
const SEEK_TIMES: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(15));

/// Time of a short seek to a random position, without the transfer.
pub(crate) const SHORT_SEEK_TIME: Duration = HALF_ROTATION.saturating_add(SEEK_TIMES.0);

/// Half a rotation at 7,200 rotations a minute: the average latency in table 5.2 of the APCache thesis.
const HALF_ROTATION: Duration = Duration::from_micros(4_167);

/// Bytes per second of the transfer: the sequential read bandwidth that the APCache thesis measured (table
/// 5.2 and section 8.2.3).
pub(crate) const HDD_BYTES_PER_SECOND: u64 = 181_000_000;

/// Size of the disk in bytes: a seek takes longer, the larger its distance is relative to this.
const DISK_BYTES: f64 = 1e12;

/// Flags of the command that mounts the disk for other processes.
#[derive(Args, Clone, Debug)]
pub struct SeekDiskFlags {
    /// Directories of indexes
    #[arg(required = true, value_name = "DIR")]
    pub dirs: Vec<PathBuf>,
}

/// Pause between two checks whether the disk is still needed.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Mounts the disk and prints one line of JSON: the mounted `directories`, and the file `delay`, into which a
/// process writes to start the delays. Unmounts the disk when `input` ends.
///
/// # Errors
/// If a directory cannot be read, or the file system cannot be mounted; [`Error::Interrupted`] if `stop` is
/// raised.
pub fn run(
    flags: &SeekDiskFlags,
    mut input: impl Read + Send + 'static,
    stop: &StopSignal,
    output: &mut dyn Write,
) -> Result<()> {
    for dir in &flags.dirs {
        fs::read_dir(dir).map_err(Error::failed(format!("cannot read {}", dir.display())))?;
    }
    let disk = SeekDisk::mount(&flags.dirs)?;
    let directory = |number| disk.directory_path(number).display().to_string();
    let directories: Vec<String> = (0..flags.dirs.len()).map(directory).collect();
    let mounted = json!({ "directories": directories, "delay": disk.delay_later().display().to_string() });
    writeln!(output, "{mounted}").and_then(|()| output.flush()).map_err(Error::Output)?;
    // Reading the input blocks, also after a signal.
    let reader = thread::Builder::new().spawn(move || std::io::copy(&mut input, &mut std::io::sink()));
    let reader = reader.map_err(Error::failed("cannot start a thread"))?;
    while !reader.is_finished() {
        stop.check()?;
        thread::sleep(POLL_INTERVAL);
    }
    Ok(())
}

/// A mounted disk. Dropping it unmounts it.
pub(crate) struct SeekDisk {
    mount: PathBuf,
    is_delayed: Arc<AtomicBool>,
    session: Option<BackgroundSession>,
}

impl SeekDisk {
    /// Mounts the disk with `dirs`, whose files are read only.
    ///
    /// # Errors
    /// One line, if the file system cannot be mounted.
    pub(crate) fn mount(dirs: &[PathBuf]) -> Result<SeekDisk> {
        let failed = Error::failed("a disk that seeks cannot be emulated by a file system in user space");
        let mount = tempfile::Builder::new().prefix("tierdex-disk-").tempdir().map_err(&failed)?.keep();
        let nodes = SeekDiskNodes::new(dirs);
        let mut disk = SeekDisk { mount, is_delayed: nodes.is_delayed.clone(), session: None };
        let mut config = fuser::Config::default();
        config.mount_options = vec![MountOption::FSName("tierdex-disk".to_string())];
        let session = fuser::spawn_mount(nodes, &disk.mount, &config).map_err(failed)?;
        disk.session = Some(session);
        Ok(disk)
    }

    /// The path on the disk of the directory `number`.
    pub(crate) fn directory_path(&self, number: usize) -> PathBuf {
        self.mount.join(number.to_string())
    }

    /// Serves reads without delay from now on. They are delayed again after a process has written to the
    /// file whose path is returned.
    pub(crate) fn delay_later(&self) -> PathBuf {
        self.is_delayed.store(false, Ordering::Relaxed);
        self.mount.join(DELAY_FILE_NAME)
    }
}

impl Drop for SeekDisk {
    fn drop(&mut self) {
        // Also if a file is still open: the file system ends when it is closed. If this fails, the name of
        // the directory says what it is.
        let _ = unmount(&self.mount, UnmountFlags::DETACH);
        drop(self.session.take());
        let _ = fs::remove_dir(&self.mount);
    }
}

/// The read head of the disk: the position after its last read.
#[derive(Default)]
struct DiskHead {
    position: u64,
}

impl DiskHead {
    /// Moves the head to a position and over `bytes`; returns how long that takes.
    fn read(&mut self, position: u64, bytes: u64) -> Duration {
        let transfer = |bytes: u64| Duration::from_secs_f64(bytes as f64 / HDD_BYTES_PER_SECOND as f64);
        let distance = position.abs_diff(self.position);
        let part = (distance as f64 / DISK_BYTES).min(1.0).sqrt();
        let seek = SEEK_TIMES.0 + (SEEK_TIMES.1 - SEEK_TIMES.0).mul_f64(part) + HALF_ROTATION;
        let moved = if position >= self.position { seek.min(transfer(distance)) } else { seek };
        self.position = position + bytes;
        moved + transfer(bytes)
    }
}

/// A file that a process has looked up on the disk.
struct SeekDiskNode {
    /// Number of the directory that contains the file.
    dir: usize,
    name: OsString,
    file: File,
    /// Position on the disk of the first byte of the file.
    position: u64,
    bytes: u64,
}

/// The file system. Inode 1 is the root; the inodes after it are the directories, and then the files.
struct SeekDiskNodes {
    dirs: Vec<PathBuf>,
    files: Mutex<Vec<SeekDiskNode>>,
    head: Mutex<DiskHead>,
    is_delayed: Arc<AtomicBool>,
}

const ROOT_INODE: u64 = 1;

/// The file that starts delays when it is written to, and its inode.
const DELAY_FILE_NAME: &str = "delay";
const DELAY_FILE_INODE: u64 = u64::MAX;

/// How long the system may use attributes without asking again. Files do not change while they are mounted.
const ATTRIBUTES_VALID_FOR: Duration = Duration::from_secs(1);

impl SeekDiskNodes {
    fn new(dirs: &[PathBuf]) -> SeekDiskNodes {
        let is_delayed = Arc::new(AtomicBool::new(true));
        SeekDiskNodes { dirs: dirs.to_vec(), files: Mutex::default(), head: Mutex::default(), is_delayed }
    }

    /// The number of a directory.
    fn directory_number(&self, inode: INodeNo) -> Option<usize> {
        let number = u64::from(inode).checked_sub(ROOT_INODE + 1)? as usize;
        (number < self.dirs.len()).then_some(number)
    }

    fn first_file_inode(&self) -> u64 {
        ROOT_INODE + 1 + self.dirs.len() as u64
    }

    fn attributes_of(&self, inode: INodeNo) -> Option<FileAttr> {
        if u64::from(inode) == ROOT_INODE || self.directory_number(inode).is_some() {
            return Some(file_attributes(inode, None));
        }
        if u64::from(inode) == DELAY_FILE_INODE {
            return Some(FileAttr { perm: 0o222, ..file_attributes(inode, Some(0)) });
        }
        let file = u64::from(inode).checked_sub(self.first_file_inode())? as usize;
        Some(file_attributes(inode, Some(lock_mutex(&self.files).get(file)?.bytes)))
    }

    /// The file of a directory, which is opened if it has not been found before.
    fn find_file(&self, dir: usize, name: &OsStr) -> std::io::Result<FileAttr> {
        let mut files = lock_mutex(&self.files);
        let known = files.iter().position(|file| file.dir == dir && file.name == name);
        let number = match known {
            Some(number) => number,
            None => {
                let file = File::open(self.dirs[dir].join(name))?;
                let position = files.last().map_or(0, |last| last.position + last.bytes);
                let bytes = file.metadata()?.len();
                files.push(SeekDiskNode { dir, name: name.to_os_string(), file, position, bytes });
                files.len() - 1
            }
        };
        Ok(file_attributes(INodeNo(self.first_file_inode() + number as u64), Some(files[number].bytes)))
    }

    /// Reads bytes of a file, and returns after the time that the emulated disk takes.
    fn read_at(&self, inode: INodeNo, offset: u64, bytes: usize) -> std::io::Result<Vec<u8>> {
        let began = Instant::now();
        let missing = || std::io::Error::from(std::io::ErrorKind::NotFound);
        let number = u64::from(inode).checked_sub(self.first_file_inode()).ok_or_else(missing)? as usize;
        let (file, position, end) = {
            let files = lock_mutex(&self.files);
            let node = files.get(number).ok_or_else(missing)?;
            (node.file.try_clone()?, node.position, node.bytes)
        };
        let mut data = vec![0; bytes.min(end.saturating_sub(offset) as usize)];
        // Other reads wait for this lock, because the disk has one head.
        let mut head = lock_mutex(&self.head);
        file.read_exact_at(&mut data, offset)?;
        let takes = head.read(position + offset, data.len() as u64);
        if self.is_delayed.load(Ordering::Relaxed) {
            thread::sleep(takes.saturating_sub(began.elapsed()));
        }
        Ok(data)
    }

    /// Types and names of the entries of a directory, without `.` and `..`.
    fn directory_entries(&self, inode: INodeNo) -> std::io::Result<Vec<(FileType, OsString)>> {
        let Some(dir) = self.directory_number(inode) else {
            let names = (0..self.dirs.len()).map(|number| (FileType::Directory, number.to_string().into()));
            return Ok(names.collect());
        };
        let files = fs::read_dir(&self.dirs[dir])?;
        files.map(|entry| Ok((FileType::RegularFile, entry?.file_name()))).collect()
    }
}

/// Attributes of a directory, or of a file of `bytes`.
fn file_attributes(ino: INodeNo, bytes: Option<u64>) -> FileAttr {
    let (kind, perm) = match bytes {
        Some(_) => (FileType::RegularFile, 0o444),
        None => (FileType::Directory, 0o555),
    };
    let size = bytes.unwrap_or(0);
    let [atime, mtime, ctime, crtime] = [UNIX_EPOCH; 4];
    let (blocks, blksize) = (size.div_ceil(512), 4096);
    let (nlink, uid, gid, rdev, flags) = (1, 0, 0, 0, 0);
    FileAttr {
        ino,
        size,
        blocks,
        atime,
        mtime,
        ctime,
        crtime,
        kind,
        perm,
        nlink,
        uid,
        gid,
        rdev,
        blksize,
        flags,
    }
}

impl Filesystem for SeekDiskNodes {
    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let found = match self.directory_number(parent) {
            Some(dir) => self.find_file(dir, name).map_err(Errno::from),
            None if name == DELAY_FILE_NAME => {
                self.attributes_of(INodeNo(DELAY_FILE_INODE)).ok_or(Errno::ENOENT)
            }
            None => {
                let number = name.to_str().and_then(|name| name.parse::<u64>().ok());
                let inode = number.filter(|number| *number < self.dirs.len() as u64);
                inode.map(|at| file_attributes(INodeNo(ROOT_INODE + 1 + at), None)).ok_or(Errno::ENOENT)
            }
        };
        match found {
            Ok(found) => reply.entry(&ATTRIBUTES_VALID_FOR, &found, Generation(0)),
            Err(error) => reply.error(error),
        }
    }

    fn getattr(&self, _: &Request, inode: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.attributes_of(inode) {
            Some(found) => reply.attr(&ATTRIBUTES_VALID_FOR, &found),
            None => reply.error(Errno::ENOENT),
        }
    }

    #[allow(clippy::too_many_arguments, reason = "the signature of the trait")]
    fn read(
        &self,
        _: &Request,
        inode: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        match self.read_at(inode, offset, size as usize) {
            Ok(data) => reply.data(&data),
            Err(error) => reply.error(error.into()),
        }
    }

    #[allow(clippy::too_many_arguments, reason = "the signature of the trait")]
    fn write(
        &self,
        _: &Request,
        inode: INodeNo,
        _: FileHandle,
        _: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        if u64::from(inode) != DELAY_FILE_INODE {
            return reply.error(Errno::EROFS);
        }
        self.is_delayed.store(true, Ordering::Relaxed);
        reply.written(data.len() as u32);
    }

    fn readdir(&self, _: &Request, inode: INodeNo, _: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        let entries = match self.directory_entries(inode) {
            Ok(entries) => entries,
            Err(error) => return reply.error(error.into()),
        };
        let dots = [".", ".."].map(|name| (FileType::Directory, OsString::from(name)));
        for (number, (kind, name)) in dots.into_iter().chain(entries).enumerate().skip(offset as usize) {
            // The inode of an entry is found by `lookup`.
            if reply.add(inode, number as u64 + 1, kind, name) {
                break;
            }
        }
        reply.ok();
    }
}

fn lock_mutex<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_elsewhere_takes_a_seek() {
        let mut head = DiskHead::default();
        let millis = |time: Duration| (time.as_secs_f64() * 1e5).round() / 1e2;
        assert_eq!(millis(head.read(0, HDD_BYTES_PER_SECOND / 100)), 10.0);
        // Reads at the head, a little after it, far after it, and before it.
        let at = HDD_BYTES_PER_SECOND / 100;
        assert_eq!(millis(head.read(at, HDD_BYTES_PER_SECOND / 1000)), 1.0);
        assert_eq!(
            millis(head.read(at + 2 * (HDD_BYTES_PER_SECOND / 1000), HDD_BYTES_PER_SECOND / 1000)),
            2.0
        );
        assert_eq!(millis(head.read(at + 250_000_000_000, 0)), 1.0 + 7.0 + 4.17);
        assert_eq!(millis(head.read(0, 0)), 1.0 + 7.0 + 4.17);
        assert_eq!(millis(head.read(DISK_BYTES as u64, 0)), 15.0 + 4.17);
    }

    #[test]
    fn files_are_read_through_the_mounted_disk() {
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let bytes: Vec<u8> = (0..300_000u32).map(|number| (number % 251) as u8).collect();
        fs::write(one.path().join("a"), &bytes).unwrap();
        fs::write(other.path().join("b"), &bytes[..10]).unwrap();
        let disk = match SeekDisk::mount(&[one.path().to_path_buf(), other.path().to_path_buf()]) {
            Ok(disk) => disk,
            // Not permitted in most containers.
            Err(error) => return assert!(!error.to_string().contains('\n'), "{error}"),
        };
        assert_eq!(fs::read(disk.directory_path(0).join("a")).unwrap(), bytes);
        assert_eq!(fs::read(disk.directory_path(1).join("b")).unwrap(), bytes[..10]);
        let names: Vec<OsString> =
            fs::read_dir(disk.directory_path(0)).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["a"]);
        assert!(
            File::open(disk.directory_path(0).join("none")).is_err()
                && File::open(disk.directory_path(2)).is_err()
        );
        assert!(fs::write(disk.directory_path(0).join("c"), "").is_err());
        assert!(
            File::options().write(true).open(disk.directory_path(0).join("a")).unwrap().write(b"b").is_err()
        );
        let is_delayed = || disk.is_delayed.load(Ordering::Relaxed);
        assert!(is_delayed());
        let delay = disk.delay_later();
        assert!(!is_delayed());
        assert_eq!(File::options().write(true).open(delay).unwrap().write(b"7").unwrap(), 1);
        assert!(is_delayed());
        let (mount, open) = (disk.mount.clone(), File::open(disk.directory_path(0).join("a")).unwrap());
        drop(disk);
        assert!(!mount.exists());
        drop(open);
    }
}
