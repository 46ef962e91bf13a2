//! Writers whose lock file, directory or manifest is removed by mistake: they stop, and no acknowledged
//! commit is lost.

use crate::support::corpus::random_documents;
use crate::support::{
    AddMethod, add_documents, assert_sound, build, directory_disk, new_batch, open_writer, read_files, schema,
};
use std::sync::{Arc, Mutex};
use tierdex::commit::Manifest;
use tierdex::internal::index::check_on;
use tierdex::io::{Disk, MemDisk};
use tierdex::{Index, IndexWriter, Merge, OpenMode, WriterOptions};

/// Checks that the index has this number of documents and no damage.
fn assert_documents(disk: &Arc<dyn Disk>, documents: u64) {
    let index = Index::open_on(disk.clone()).unwrap();
    assert_eq!(index.manifest().documents(), documents);
    assert_sound(disk.as_ref());
}

fn try_open(disk: &Arc<dyn Disk>, mode: OpenMode) -> Result<IndexWriter, String> {
    IndexWriter::open(disk.clone(), schema(), mode, WriterOptions::default())
        .map_err(|error| error.to_string())
}

fn assert_commit_fails(writer: &mut IndexWriter, merge: Merge, expected: &str) {
    let error = writer.commit(merge).unwrap_err().to_string();
    assert!(error.contains(expected) && !error.contains('\n'), "{error}");
    let again = writer.commit(merge).unwrap_err().to_string();
    assert!(again.contains("open it again"), "{again}");
}

/// A disk that calls a function once before it renames a file.
struct InterposedDisk {
    disk: MemDisk,
    before_rename: Mutex<Option<RenameCallback>>,
}

type RenameCallback = Box<dyn FnOnce(&Arc<dyn Disk>) + Send>;

impl Disk for InterposedDisk {
    tierdex::io::forward_disk!(self, self.disk; list open create remove sync_dir lock describe);

    fn rename(&self, from: &str, to: &str) -> tierdex::io::Result<()> {
        let interposed = self.before_rename.lock().unwrap().take();
        if let Some(interposed) = interposed {
            interposed(&(Arc::new(self.disk.clone()) as _));
        }
        self.disk.rename(from, to)
    }
}

/// The lock is lost between its check and the rename of the manifest, and another writer commits before the
/// rename or after it. Exactly the acknowledged documents must be in the index.
#[test]
fn a_lock_lost_while_a_commit_is_published_loses_no_acknowledged_commit() {
    let docs = random_documents(7, 60);
    for (second_commits_first, base) in [(true, 0), (false, 0), (true, 10), (false, 10)] {
        let memory = MemDisk::new();
        let shared: Arc<dyn Disk> = Arc::new(memory.clone());
        let mode = if base == 0 { OpenMode::New } else { OpenMode::Append };
        if base > 0 {
            build(&shared, &schema(), &docs[..base], &[], AddMethod::Commits, Merge::None);
        }
        let second = Arc::new(Mutex::new(None));
        let (kept, more) = (second.clone(), docs[30..37].to_vec());
        let interposed = InterposedDisk {
            disk: memory,
            before_rename: Mutex::new(Some(Box::new(move |disk: &Arc<dyn Disk>| {
                disk.remove("write.lock").unwrap();
                // Sealed segments of a first run are rejected; the other writer replaces them.
                let mode = if base == 0 { OpenMode::Replace } else { mode };
                let mut writer = open_writer(disk, &schema(), mode);
                add_documents(&mut writer, &more);
                if second_commits_first {
                    writer.commit(Merge::None).unwrap();
                }
                *kept.lock().unwrap() = Some(writer);
            }))),
        };
        let disk: Arc<dyn Disk> = Arc::new(interposed);
        let mut first = open_writer(&disk, &schema(), mode);
        add_documents(&mut first, &docs[10..15]);
        let error = first.commit(Merge::None).unwrap_err().to_string();
        assert!(!error.contains('\n'), "{error}");
        drop(first);
        let mut second = second.lock().unwrap().take().unwrap();
        if !second_commits_first {
            second.commit(Merge::None).unwrap();
        }
        drop(second);
        assert_documents(&shared, base as u64 + 7);
    }
}

#[test]
fn a_stray_file_with_the_largest_number_blocks_a_replacement() {
    let docs = random_documents(8, 20);
    for stray in ["8000000000000000.ids", "7ffffffffffffffe.0.postings", "manifest-ffffffffffffffff"] {
        let disk: Arc<dyn Disk> = Arc::new(MemDisk::new());
        build(&disk, &schema(), &docs, &[], AddMethod::Commits, Merge::None);
        disk.remove(&Manifest::file_name(1)).unwrap();
        drop(disk.create(stray).unwrap());
        let before = read_files(disk.as_ref());
        let error = try_open(&disk, OpenMode::Replace).err().unwrap();
        assert!(error.contains(stray) && error.contains("remove this file"), "{error}");
        assert!(read_files(disk.as_ref()) == before);
    }
}

#[test]
fn a_writer_whose_lock_file_was_removed_stops_and_removes_nothing() {
    let docs = random_documents(1, 90);
    for round in 0..8 {
        let folder = tempfile::tempdir().unwrap();
        let disk: Arc<dyn Disk> =
            if round % 2 == 0 { Arc::new(MemDisk::new()) } else { directory_disk(folder.path()) };
        let (merge, ends_first) = (if round & 2 == 0 { Merge::One } else { Merge::None }, round & 4 == 0);
        build(&disk, &schema(), &docs[..30], &[10, 20], AddMethod::Commits, Merge::None);
        let mut one = open_writer(&disk, &schema(), OpenMode::Append);
        add_documents(&mut one, &docs[30..50]);
        disk.remove("write.lock").unwrap();
        let mut two = open_writer(&disk, &schema(), OpenMode::Append);
        add_documents(&mut two, &docs[50..70]);
        if !ends_first {
            two.commit(merge).unwrap();
        }
        assert_commit_fails(&mut one, merge, "write.lock was removed or replaced while it was being written");
        drop(one);
        assert!(
            try_open(&disk, OpenMode::Append).err().unwrap().contains("another writer"),
            "two has its lock"
        );
        add_documents(&mut two, &docs[70..]);
        two.commit(merge).unwrap();
        drop(two);
        assert_documents(&disk, 70);
        drop(open_writer(&disk, &schema(), OpenMode::Append));
        assert!(check_on(disk.as_ref()).unwrap().orphans.is_empty());
    }
}

/// The directory is replaced by `mv index index.old; mv new index`, while a writer is open.
#[test]
fn a_writer_whose_directory_was_replaced_changes_neither() {
    let docs = random_documents(2, 60);
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    for flushed in [false, true] {
        let (here, new) = (directory_disk(&path("index")), directory_disk(&path("new")));
        build(&here, &schema(), &docs[..20], &[10], AddMethod::Commits, Merge::None);
        build(&new, &schema(), &docs[..50], &[10, 20, 30], AddMethod::Commits, Merge::None);
        let mut writer = open_writer(&here, &schema(), OpenMode::Append);
        add_documents(&mut writer, &docs[20..40]);
        if flushed {
            writer.commit(Merge::None).unwrap();
            add_documents(&mut writer, &docs[40..]);
        }
        std::fs::rename(path("index"), path("index.old")).unwrap();
        std::fs::rename(path("new"), path("index")).unwrap();
        let before = [read_files(here.as_ref()), read_files(new.as_ref())];
        assert_commit_fails(
            &mut writer,
            Merge::One,
            "the directory was renamed or replaced while it was being written",
        );
        drop(writer);
        assert!(before == [read_files(here.as_ref()), read_files(new.as_ref())]);
        assert_documents(&directory_disk(&path("index")), 50);
        assert_documents(&directory_disk(&path("index.old")), if flushed { 40 } else { 20 });
        for name in ["index", "index.old"] {
            std::fs::remove_dir_all(path(name)).unwrap();
        }
    }
}

/// A writer never removes a manifest that is newer than its own, nor the files of that commit.
#[test]
fn a_newer_manifest_is_kept_with_its_files() {
    let docs = random_documents(3, 40);
    let newer = MemDisk::new();
    let shared: Arc<dyn Disk> = Arc::new(newer.clone());
    build(&shared, &schema(), &docs, &[10, 20, 30], AddMethod::Commits, Merge::One);
    let disk: Arc<dyn Disk> = Arc::new(MemDisk::new());
    build(&disk, &schema(), &docs[..10], &[5], AddMethod::Commits, Merge::None);
    let mut writer = open_writer(&disk, &schema(), OpenMode::Append);
    add_documents(&mut writer, &docs[10..15]);
    for (name, bytes) in read_files(&newer) {
        disk.create(&name).unwrap().append(&bytes).unwrap();
    }
    assert_commit_fails(&mut writer, Merge::None, "another writer has committed generation 4 of memory");
    drop(writer);
    assert_documents(&disk, 40);
}

#[test]
fn segments_whose_manifest_is_lost_are_kept_until_they_are_replaced() {
    let docs = random_documents(4, 40);
    let disk: Arc<dyn Disk> = Arc::new(MemDisk::new());
    build(&disk, &schema(), &docs[..30], &[10, 20], AddMethod::Commits, Merge::None);
    let manifest = Manifest::file_name(3);
    let lost = read_files(disk.as_ref())[&manifest].clone();
    disk.remove(&manifest).unwrap();
    let before = read_files(disk.as_ref());
    for mode in [OpenMode::New, OpenMode::Append] {
        let error = try_open(&disk, mode).err().unwrap();
        assert!(error.contains("no manifest") && error.contains("replace the index"), "{error}");
    }
    let error = Index::open_on(disk.clone()).err().unwrap().to_string();
    assert!(error.contains("holds no tierdex index") && error.contains("no manifest"), "{error}");
    let mut writer = open_writer(&disk, &schema(), OpenMode::Replace);
    add_documents(&mut writer, &docs[30..]);
    assert!(before.iter().all(|(name, bytes)| read_files(disk.as_ref()).get(name) == Some(bytes)));
    drop(writer);
    assert!(read_files(disk.as_ref()) == before, "what was not committed leaves nothing behind");
    disk.create(&manifest).unwrap().append(&lost).unwrap();
    assert_documents(&disk, 30);
    disk.remove(&manifest).unwrap();
    let mut writer = open_writer(&disk, &schema(), OpenMode::Replace);
    add_documents(&mut writer, &docs[30..]);
    writer.commit(Merge::None).unwrap();
    drop(writer);
    assert_documents(&disk, 10);
    assert!(before.keys().all(|name| !disk.list().unwrap().contains(name)));
}

/// The files of a first writer that was killed before it had finished a segment are removed by the next
/// writer.
#[test]
fn unfinished_files_of_a_first_run_are_removed() {
    let docs = random_documents(5, 10);
    let disk = MemDisk::new();
    let shared: Arc<dyn Disk> = Arc::new(disk.clone());
    let mut writer = open_writer(&shared, &schema(), OpenMode::New);
    let mut batch = new_batch(&writer);
    docs.iter().for_each(|doc| {
        doc.with_numbers(&schema(), |document| batch.add(document)).unwrap();
    });
    writer.push(batch.seal().unwrap()).unwrap();
    let killed: Arc<dyn Disk> = Arc::new(disk.snapshot());
    assert!(killed.list().unwrap().len() > 1);
    drop(open_writer(&killed, &schema(), OpenMode::New));
    assert!(killed.list().unwrap().is_empty(), "{:?}", killed.list().unwrap());
}

#[test]
fn a_damaged_manifest_can_only_be_replaced() {
    let docs = random_documents(6, 40);
    let disk = MemDisk::new();
    let shared: Arc<dyn Disk> = Arc::new(disk.clone());
    build(&shared, &schema(), &docs[..30], &[10, 20], AddMethod::Commits, Merge::None);
    disk.corrupt(&Manifest::file_name(3), |bytes| bytes[70] ^= 1);
    let before = read_files(&disk);
    for mode in [OpenMode::New, OpenMode::Append] {
        assert!(try_open(&shared, mode).err().unwrap().contains("is damaged"));
    }
    let mut writer = open_writer(&shared, &schema(), OpenMode::Replace);
    add_documents(&mut writer, &docs[30..]);
    drop(writer);
    assert!(read_files(&disk) == before);
    for documents in [&docs[30..], &[]] {
        let disk: Arc<dyn Disk> = Arc::new(disk.snapshot());
        let mut writer = open_writer(&disk, &schema(), OpenMode::Replace);
        add_documents(&mut writer, documents);
        assert_eq!(writer.commit(Merge::None).unwrap(), 4);
        drop(writer);
        assert_documents(&disk, documents.len() as u64);
        assert!(check_on(disk.as_ref()).unwrap().orphans.is_empty());
    }
}

#[test]
fn appending_requires_an_index() {
    let disk: Arc<dyn Disk> = Arc::new(MemDisk::new());
    let error = try_open(&disk, OpenMode::Append).err().unwrap();
    assert!(error.contains("holds no index to append to"), "{error}");
    assert!(disk.list().unwrap().is_empty());
}
