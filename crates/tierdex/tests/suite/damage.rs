//! Damages a small index: flips each byte, truncates each file at each length, appends to files, zeroes parts
//! of them, and swaps them.
//!
//! A check must report the damage. An index that can still be opened must return correct results or report a
//! damaged file: never a wrong result, an older commit or a panic.

use crate::support::corpus::{SchemaOptions, TestDocument, random_documents};
use crate::support::deleted::build_deleted;
use crate::support::grown::GrownCase;
use crate::support::{
    AddMethod, Answer, AnswerOptions, add_documents, answer_text, assert_sound, build, on_two_threads,
    open_writer, random::Random, read_files, schema, test_size,
};
use std::sync::Arc;
use tierdex::io::{Disk, ErrorKind, MemDisk};
use tierdex::{Error, Index, Merge, OpenMode, commit::Manifest, internal::index::check_on};

/// Queries, separated by semicolons.
const QUERIES: &str = "\
    all; w0 w3; w4; w0 AND prefix2; \"w0 w0\"; \"all über1\"; title:w0; title:\"w0 prefix2\"; \
    NOT all; +w0 -w3 w4; only5 only8; absent";

/// An intact index, and its results for all queries.
struct DamageSample {
    disk: MemDisk,
    answers: Vec<Answer>,
}

fn answer_options() -> AnswerOptions {
    AnswerOptions { shown: 2, ..AnswerOptions::default() }
}

fn answer_all_queries(index: &Index) -> tierdex::Result<Vec<Answer>> {
    QUERIES.split("; ").map(|text| answer_text(index, text, answer_options())).collect()
}

/// Two segments of two fields with positions and stored text, lists of more than a block among them.
fn intact_sample(docs: &[TestDocument]) -> DamageSample {
    let disk = MemDisk::new();
    let shared: Arc<dyn Disk> = Arc::new(disk.clone());
    build(&shared, &schema(), docs, &[docs.len() - 6], AddMethod::Commits, Merge::None);
    let answers = answer_all_queries(&Index::open_on(shared).unwrap()).unwrap();
    assert_sound(&disk);
    DamageSample { disk, answers }
}

/// Four segments, of which the first two lack a field; members have several values.
fn grown_sample(docs: Vec<TestDocument>) -> DamageSample {
    let older = docs.len() / 2;
    let disk = GrownCase::new(SchemaOptions::default(), docs, older).build_in_steps(Merge::None);
    let answers = answer_all_queries(&Index::open_on(Arc::new(disk.clone())).unwrap()).unwrap();
    assert_sound(&disk);
    DamageSample { disk, answers }
}

/// Two segments of an updatable index, with deletes in both; the second has two layers of their statistics.
fn deleted_sample(docs: &[TestDocument]) -> DamageSample {
    let disk = build_deleted(&schema(), docs, docs.len() - 60, &[0..30, 31..33]);
    let answers = answer_all_queries(&Index::open_on(Arc::new(disk.clone())).unwrap()).unwrap();
    assert_sound(&disk);
    DamageSample { disk, answers }
}

fn small_documents(seed: u64) -> Vec<TestDocument> {
    let mut docs = random_documents(seed, 290);
    let start = |text: &str, words| text.split(' ').take(words).collect::<Vec<_>>().join(" ");
    docs.iter_mut().for_each(|doc| (doc.title, doc.text) = (start(&doc.title, 2), start(&doc.text, 3)));
    docs
}

impl DamageSample {
    /// What is wrong in how the engine treats `disk`, a damaged copy of this index; `None` if nothing is.
    fn find_defect(&self, disk: &MemDisk) -> Option<String> {
        match check_on(disk) {
            Ok(report) if report.problems.is_empty() => return Some("check finds nothing".to_string()),
            Ok(report) if !report.problems.iter().all(is_clear_error) => {
                return Some(format!("{:?}", report.problems));
            }
            Err(error) if !is_no_index_error(&error) => return Some(format!("check: {error}")),
            _ => {}
        }
        let index = match Index::open_on(Arc::new(disk.clone())) {
            Ok(index) => index,
            Err(error) if is_clear_error(&error) || is_no_index_error(&error) => return None,
            Err(error) => return Some(format!("open: {error}")),
        };
        QUERIES.split("; ").zip(&self.answers).find_map(|(text, expected)| {
            match answer_text(&index, text, answer_options()) {
                Ok(found) if found == *expected => None,
                Ok(found) => Some(format!("{text}: {found:?}, not {expected:?}")),
                Err(error) if is_clear_error(&error) => None,
                Err(error) => Some(format!("{text}: {error}")),
            }
        })
    }

    /// Damages a copy of a file up to `count` times, and checks how the engine treats each. `damage` changes
    /// the bytes of the file; it returns false if they are unchanged. Returns the number of damaged copies.
    fn run_trials(
        &self,
        name: &str,
        bytes: &[u8],
        count: usize,
        damage: impl Fn(usize, &mut Vec<u8>) -> bool + Sync,
    ) -> usize {
        let done = on_two_threads(2, |half| {
            let disk = self.disk.snapshot();
            let mut done = 0;
            for trial in (half..count).step_by(2) {
                let mut damaged = bytes.to_vec();
                if !damage(trial, &mut damaged) {
                    continue;
                }
                disk.corrupt(name, |bytes| *bytes = damaged);
                let verdict = self.find_defect(&disk);
                assert!(verdict.is_none(), "{name}, trial {trial}: {}", verdict.unwrap_or_default());
                done += 1;
            }
            done
        });
        done.into_iter().sum()
    }

    /// [`DamageSample::run_trials`] on all files.
    fn run_trials_on_all_files(
        &self,
        count: impl Fn(&[u8]) -> usize,
        damage: impl Fn(usize, &mut Vec<u8>) -> bool + Sync,
    ) -> usize {
        let files = read_files(&self.disk);
        let trials =
            files.iter().map(|(name, bytes)| self.run_trials(name, bytes, count(bytes), &damage)).sum();
        println!("injected {trials}, crashes 0, states {trials}");
        trials
    }
}

/// Whether an error is one line, and names a file that is damaged, missing or of another version.
fn is_clear_error(error: &Error) -> bool {
    let clear = matches!(error, Error::Storage(error)
        if matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::NotFound | ErrorKind::Unsupported)
            && !error.file().is_empty());
    clear && !error.to_string().contains('\n')
}

fn is_no_index_error(error: &Error) -> bool {
    matches!(error, Error::Usage(message) if message.contains("holds no tierdex index"))
}

/// The offset of a trial, if one byte in `step` is tried: each time another of them.
fn stepped(trial: usize, step: usize, bytes: &[u8]) -> usize {
    (trial * step + trial % step).min(bytes.len() - 1)
}

#[test]
fn flipped_bytes_are_detected() {
    let sample = intact_sample(&small_documents(1));
    let size: usize = read_files(&sample.disk).values().map(|bytes| bytes.len()).sum();
    println!("{size} bytes in {} files", read_files(&sample.disk).len());
    assert!((18_000..64_000).contains(&size) && read_files(&sample.disk).len() == 31, "{size}");
    let step = test_size(3, 1);
    let trials = sample.run_trials_on_all_files(
        |bytes| bytes.len().div_ceil(step),
        |trial, bytes| {
            let at = stepped(trial, step, bytes);
            bytes[at] ^= if at.is_multiple_of(2) { 0xFF } else { 1 << Random::new(at as u64).below(8) };
            true
        },
    );
    assert!(trials >= size / step, "{trials}");
}

#[test]
fn damage_to_segments_that_lack_a_field_is_detected() {
    let sample = grown_sample(small_documents(9));
    let manifest = Manifest::newest(&sample.disk).unwrap().unwrap();
    let (name, bytes) = (Manifest::file_name(manifest), |name: &str| sample.disk.bytes(name).unwrap());
    let flipped = |trial: usize, bytes: &mut Vec<u8>| {
        bytes[trial / 8] ^= 1 << (trial % 8);
        true
    };
    assert!(sample.run_trials(&name, &bytes(&name), 8 * bytes(&name).len(), flipped) > 2000);
    let trials = sample.run_trials_on_all_files(
        |bytes| bytes.len().div_ceil(13),
        |trial, bytes| {
            bytes[13 * trial] ^= 0xFF;
            true
        },
    );
    assert!(trials > 2000, "{trials}");
}

#[test]
fn damage_to_keys_and_deletes_is_detected() {
    let sample = deleted_sample(&small_documents(10));
    let files = read_files(&sample.disk);
    let step = test_size(3, 1);
    let kinds = ["keys", "deletes", "deleted-statistics", "input-files"];
    let is_of_kind = |name: &str| kinds.iter().any(|kind| name.ends_with(&format!(".{kind}")));
    let names: Vec<&String> = files.keys().filter(|name| is_of_kind(name)).collect();
    assert_eq!(names.len(), 2 + 2 + 3 + 1, "{names:?}");
    for name in names.into_iter().chain(files.keys().filter(|name| name.starts_with("manifest"))) {
        let bytes = &files[name];
        let flip = |trial: usize, bytes: &mut Vec<u8>| {
            let at = stepped(trial, step, bytes);
            bytes[at] ^= if at.is_multiple_of(2) { 0xFF } else { 1 << (at / 2 % 8) };
            true
        };
        let trials = bytes.len().div_ceil(step);
        assert_eq!(sample.run_trials(name, bytes, trials, flip), trials);
        let cut = |trial: usize, bytes: &mut Vec<u8>| {
            bytes.truncate(7 * trial);
            true
        };
        sample.run_trials(name, bytes, bytes.len().div_ceil(7), cut);
        for (from, foreign) in files.iter().filter(|(_, foreign)| *foreign != bytes) {
            let disk = sample.disk.snapshot();
            disk.corrupt(name, |bytes| bytes.clone_from(foreign));
            let verdict = sample.find_defect(&disk);
            assert!(verdict.is_none(), "{from} as {name}: {}", verdict.unwrap_or_default());
        }
        let disk = sample.disk.snapshot();
        disk.remove(name).unwrap();
        let verdict = sample.find_defect(&disk);
        assert!(verdict.is_none(), "without {name}: {}", verdict.unwrap_or_default());
    }
}

#[test]
fn truncations_are_detected() {
    let sample = intact_sample(&small_documents(2));
    let step = test_size(3, 1);
    let trials = sample.run_trials_on_all_files(
        |bytes| bytes.len().div_ceil(step),
        |trial, bytes| {
            bytes.truncate(stepped(trial, step, bytes));
            true
        },
    );
    assert!(trials > 18_000 / step, "{trials}");
}

#[test]
fn appended_garbage_is_detected() {
    let sample = intact_sample(&small_documents(3));
    let trials = sample.run_trials_on_all_files(
        |_| 60,
        |trial, bytes| {
            let len =
                [1, 2, 3, 4, 8, 63, 64, 65, 127, 128, 136, 200, 512, 513, 1000, 2048, 4032, 4095, 4096, 4097];
            let len = len[trial / 3];
            match trial % 3 {
                0 => bytes.extend(std::iter::repeat_n(0, len)),
                1 => bytes.extend((0..len as u64).map(|seed| Random::new(seed).next() as u8)),
                // The end of the file written twice.
                _ => bytes.extend_from_within(bytes.len().saturating_sub(len)..),
            }
            true
        },
    );
    assert!(trials > 1000, "{trials}");
}

#[test]
fn zeroed_sectors_and_pages_are_detected() {
    let sample = intact_sample(&small_documents(4));
    let mut trials = 0;
    for unit in [64, 512, 4096, usize::MAX] {
        trials += sample.run_trials_on_all_files(
            |bytes| bytes.len().div_ceil(unit),
            |trial, bytes| {
                let end = bytes.len().min((trial + 1).saturating_mul(unit));
                let zeroed = &mut bytes[trial * unit..end];
                let changed = zeroed.iter().any(|&byte| byte != 0);
                zeroed.fill(0);
                changed
            },
        );
    }
    assert!(trials > 150, "{trials}");
}

/// Each file replaced by every other file of the index, and by the file of the same name of another index.
#[test]
fn swapped_files_are_detected() {
    let (one, other) = (intact_sample(&small_documents(5)), intact_sample(&small_documents(6)));
    let (files, others) = (read_files(&one.disk), read_files(&other.disk));
    let mut trials = 0;
    for (name, bytes) in &files {
        let strangers = others.iter().filter(|(other, _)| *other == name);
        for (from, foreign) in files.iter().chain(strangers).filter(|(_, foreign)| *foreign != bytes) {
            let disk = one.disk.snapshot();
            disk.corrupt(name, |bytes| bytes.clone_from(foreign));
            let verdict = one.find_defect(&disk);
            assert!(verdict.is_none(), "{from} as {name}: {}", verdict.unwrap_or_default());
            trials += 1;
        }
    }
    println!("injected {trials}, crashes 0, states {trials}");
    assert!(trials > 600, "{trials}");
}

/// A page replaced by a page of another file of the same kind, or by another page of the same file.
#[test]
fn misdirected_pages_are_detected() {
    let (one, other) = (intact_sample(&random_documents(5, 1200)), intact_sample(&random_documents(6, 1200)));
    let others = read_files(&other.disk);
    let mut trials = 0;
    for (name, bytes) in read_files(&one.disk) {
        let twin = &others.iter().find(|(other, _)| **other == name).unwrap().1;
        for (number, page) in bytes.chunks(4096).enumerate() {
            let neighbour = bytes.chunks(4096).nth(number + 1);
            for foreign in [twin.chunks(4096).nth(number), neighbour].into_iter().flatten() {
                if foreign.len() != page.len() || foreign == page {
                    continue;
                }
                let disk = one.disk.snapshot();
                disk.corrupt(&name, |bytes| bytes[number * 4096..][..page.len()].copy_from_slice(foreign));
                let verdict = one.find_defect(&disk);
                assert!(verdict.is_none(), "{name}, page {number}: {}", verdict.unwrap_or_default());
                trials += 1;
            }
        }
    }
    println!("injected {trials}, crashes 0, states {trials}");
    assert!(trials > 20, "{trials}");
}

/// An older commit on the disk is never opened in place of a newer one whose manifest is damaged.
#[test]
fn a_damaged_manifest_does_not_uncover_an_older_one() {
    let docs = small_documents(7);
    let older = intact_sample(&docs[..270]);
    let disk = older.disk.snapshot();
    let shared: Arc<dyn Disk> = Arc::new(disk.clone());
    let mut writer = open_writer(&shared, &schema(), OpenMode::Append);
    add_documents(&mut writer, &docs[270..]);
    let generation = writer.commit(Merge::None).unwrap();
    drop(writer);
    // The state after a crash between the commit and the removal of the files that it replaced.
    let (old, new) = (Manifest::file_name(generation - 1), Manifest::file_name(generation));
    let old_bytes = older.disk.bytes(&old).unwrap();
    shared.create(&old).unwrap().append(&old_bytes).unwrap();
    assert_eq!(Index::open_on(shared.clone()).unwrap().manifest().generation, generation);

    let bytes = disk.bytes(&new).unwrap();
    let mut trials = 0;
    let mut rejected = |damage: &dyn Fn(&mut Vec<u8>)| {
        let damaged = disk.snapshot();
        damaged.corrupt(&new, |bytes| damage(bytes));
        trials += 1;
        match Index::open_on(Arc::new(damaged)) {
            Ok(index) => panic!("generation {} is served", index.manifest().generation),
            Err(error) => assert!(is_clear_error(&error) && error.is_corrupt(), "{error}"),
        }
    };
    for at in 0..bytes.len() {
        rejected(&|bytes| bytes[at] ^= 0xFF);
        rejected(&|bytes| bytes.truncate(at));
        // A byte that changes the first one in any case.
        rejected(&|bytes| {
            let other = !bytes[at];
            bytes[at..].fill(other);
        });
    }
    for start in (0..bytes.len()).step_by(64) {
        rejected(&|bytes| bytes[start..].fill(0));
    }
    rejected(&|bytes| bytes.clone_from(&old_bytes));
    println!("injected {trials}, crashes 0, states {trials}");
    assert!(trials > 1000, "{trials}");
}

/// Without its manifest a disk has no index; the error for any other missing file names the file.
#[test]
fn a_missing_file_is_named() {
    let sample = intact_sample(&small_documents(8));
    for (name, _) in read_files(&sample.disk) {
        let disk = sample.disk.snapshot();
        disk.remove(&name).unwrap();
        let error = Index::open_on(Arc::new(disk.clone())).err().expect("a file is missing");
        if name.starts_with("manifest") {
            assert!(is_no_index_error(&error) && is_no_index_error(&check_on(&disk).unwrap_err()), "{error}");
        } else {
            assert!(error.to_string().contains(&name), "{error}");
            assert!(check_on(&disk).unwrap().problems[0].to_string().contains(&name));
        }
    }
}
