//! Concurrent readers and writers on a directory of the file system.

use crate::support::corpus::{TestDocument, random_documents};
use crate::support::{
    AddMethod, Answer, AnswerOptions, add_documents, answer_query, answer_text, assert_sound, build,
    directory_disk, model::Model, open_writer, schema,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tierdex::io::{Disk, MemDisk};
use tierdex::schema::{Field, Schema};
use tierdex::{Error, Index, IndexWriter, Merge, OpenMode, Query, WriterOptions};

const QUERIES: [&str; 6] =
    ["all", "w0 AND prefix2", "\"all w0\"", "title:w0 -w3", "NOT w0", "only7 only12 w8"];

fn answer_all_queries(index: &Index) -> Vec<Answer> {
    QUERIES.iter().map(|text| answer_text(index, text, AnswerOptions::default()).unwrap()).collect()
}

fn expected_answers(docs: &[TestDocument]) -> Vec<Answer> {
    let model = Model::new(&schema(), docs);
    let queries = QUERIES.iter().map(|text| Query::parse(text, &schema()).unwrap());
    queries.map(|query| model.answer(&query, AnswerOptions::default())).collect()
}

#[test]
fn a_second_writer_is_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let disks: [Arc<dyn Disk>; 2] = [Arc::new(MemDisk::new()), directory_disk(folder.path())];
    for disk in disks {
        let first = open_writer(&disk, &schema(), OpenMode::New);
        for mode in [OpenMode::New, OpenMode::Append, OpenMode::Replace] {
            let second = IndexWriter::open(disk.clone(), schema(), mode, WriterOptions::default());
            let error = second.err().expect("the lock is held").to_string();
            assert!(error.contains("another writer is at work") && !error.contains('\n'), "{error}");
        }
        drop(first);
        let mut writer = open_writer(&disk, &schema(), OpenMode::New);
        add_documents(&mut writer, &random_documents(1, 5));
        writer.commit(Merge::None).unwrap();
        drop(writer);
        drop(open_writer(&disk, &schema(), OpenMode::Append));
    }
}

#[test]
fn one_of_many_writers_gets_the_lock() {
    let folder = tempfile::tempdir().unwrap();
    for _ in 0..20 {
        let disk = directory_disk(folder.path());
        let barrier = std::sync::Barrier::new(4);
        let open = || {
            barrier.wait();
            let writer = IndexWriter::open(disk.clone(), schema(), OpenMode::New, WriterOptions::default());
            // The lock is not released before all threads have tried to take it.
            barrier.wait();
            writer.is_ok()
        };
        let won = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(open)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).filter(|won| *won).count()
        });
        assert_eq!(won, 1);
    }
}

/// Writers that add fields at the same time get the lock one after the other, and lose no field.
#[test]
fn fields_that_are_added_at_the_same_time_are_all_kept() {
    let folder = tempfile::tempdir().unwrap();
    let disk = directory_disk(folder.path());
    let missing = IndexWriter::open_extended(disk.clone(), WriterOptions::default(), |_| Ok(schema()));
    let message = missing.err().unwrap().to_string();
    assert!(message.contains("holds no tierdex index") && !message.contains("at work"), "{message}");
    open_writer(&disk, &schema(), OpenMode::New).commit(Merge::None).unwrap();
    let add_field = |name: &str| {
        let extend = |existing: &Schema| {
            let mut schema = existing.clone();
            schema.members.push(name.to_string());
            schema.fields.push(Field::new(name, &[name]));
            Ok(schema)
        };
        loop {
            match IndexWriter::open_extended(disk.clone(), WriterOptions::default(), extend) {
                Err(Error::Busy(_)) => std::thread::yield_now(),
                opened => {
                    let mut writer = opened.unwrap();
                    writer.add("id", [(name, name)]).unwrap();
                    writer.commit(Merge::None).unwrap();
                    break;
                }
            }
        }
    };
    std::thread::scope(|scope| {
        for half in 0..2 {
            let add_field = &add_field;
            scope.spawn(move || (0..8).for_each(|number| add_field(&format!("field{half}_{number}"))));
        }
    });
    let index = Index::open_on(disk.clone()).unwrap();
    assert_eq!((index.schema().fields.len(), index.documents()), (18, 16));
    for field in &index.schema().fields[2..] {
        let found = answer_text(&index, &format!("{0}:{0}", field.name), AnswerOptions::default()).unwrap();
        assert_eq!(found.total, 1, "{}", field.name);
    }
    // A schema that is not an extension is rejected, and the lock released.
    let other = IndexWriter::open_extended(disk.clone(), WriterOptions::default(), |_| Ok(schema()));
    assert!(other.err().unwrap().to_string().contains("made with other settings"));
    drop(open_writer(&disk, index.schema(), OpenMode::Append));
}

/// A reader still reads its commit after its files have been merged, replaced and removed.
#[test]
fn a_reader_keeps_its_commit() {
    let folder = tempfile::tempdir().unwrap();
    let disk = directory_disk(folder.path());
    let docs = random_documents(2, 500);
    build(&disk, &schema(), &docs[..300], &[100, 200], AddMethod::Commits, Merge::None);
    let reader = Index::open_on(disk.clone()).unwrap();
    let (generation, before) = (reader.manifest().generation, disk.list().unwrap());
    let mut writer = open_writer(&disk, &schema(), OpenMode::Append);
    add_documents(&mut writer, &docs[300..400]);
    writer.commit(Merge::One).unwrap();
    drop(writer);
    let mut writer = open_writer(&disk, &schema(), OpenMode::Replace);
    add_documents(&mut writer, &docs[400..]);
    writer.commit(Merge::None).unwrap();
    drop(writer);
    let after = disk.list().unwrap();
    assert!(before.iter().all(|name| !after.contains(name)), "nothing was removed: {after:?}");
    // The first query runs after all of its files have been removed.
    assert_eq!(answer_all_queries(&reader), expected_answers(&docs[..300]));
    assert_eq!(reader.manifest().generation, generation);
    assert_eq!(answer_all_queries(&Index::open_on(disk.clone()).unwrap()), expected_answers(&docs[400..]));
    assert_sound(disk.as_ref());
}

/// Readers are opened again and again during commits, merges and removals. Each sees one complete commit,
/// which is not older than the last one that was acknowledged before the reader was opened.
#[test]
fn readers_always_see_a_whole_commit() {
    const COMMITS: usize = 24;
    const STEP: usize = 12;
    let folder = tempfile::tempdir().unwrap();
    let disk = directory_disk(folder.path());
    let docs = random_documents(3, COMMITS * STEP);
    let generations: Vec<Vec<Answer>> =
        (0..=COMMITS).map(|commits| expected_answers(&docs[..commits * STEP])).collect();
    build(&disk, &schema(), &docs[..STEP], &[], AddMethod::Commits, Merge::None);
    let acknowledged = AtomicU64::new(1);

    let read = || {
        let (mut seen, mut opened) = (0, 0);
        while seen < COMMITS as u64 {
            let floor = acknowledged.load(Ordering::SeqCst);
            let index = Index::open_on(disk.clone()).unwrap();
            let generation = index.manifest().generation;
            assert!(generation >= floor.max(seen), "generation {generation} after {floor}");
            let answers = answer_all_queries(&index);
            assert_eq!(answers, generations[generation as usize], "generation {generation}");
            seen = generation;
            opened += 1;
        }
        opened
    };
    let opened: u64 = std::thread::scope(|scope| {
        let readers: Vec<_> = (0..3).map(|_| scope.spawn(read)).collect();
        let mut writer = open_writer(&disk, &schema(), OpenMode::Append);
        for commit in 1..COMMITS {
            add_documents(&mut writer, &docs[commit * STEP..(commit + 1) * STEP]);
            let merge = if commit % 3 == 0 { Merge::One } else { Merge::None };
            acknowledged.store(writer.commit(merge).unwrap(), Ordering::SeqCst);
        }
        readers.into_iter().map(|reader| reader.join().unwrap()).sum()
    });
    println!("{opened} readers opened during {COMMITS} commits");
    assert!(opened > 10);
    assert_sound(disk.as_ref());
}

/// Many threads that share an index get the results of a single thread.
#[test]
fn many_threads_share_an_index() {
    let disk: Arc<dyn Disk> = Arc::new(MemDisk::new());
    let docs = random_documents(4, 600);
    build(&disk, &schema(), &docs, &[250], AddMethod::Commits, Merge::None);
    let wanted = expected_answers(&docs);
    for _ in 0..5 {
        let index = Index::open_on(disk.clone()).unwrap();
        std::thread::scope(|scope| {
            for first in 0..8 {
                let (index, wanted) = (&index, &wanted);
                scope.spawn(move || {
                    for number in (first..first + 12).map(|number| number % QUERIES.len()) {
                        let query = Query::parse(QUERIES[number], index.schema()).unwrap();
                        assert_eq!(
                            answer_query(index, &query, AnswerOptions::default()).unwrap(),
                            wanted[number]
                        );
                    }
                });
            }
        });
    }
}
