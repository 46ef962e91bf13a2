//! A script of commits that add and delete documents, with the live ids after each.

use super::corpus::{TestDocument, random_documents};
use super::deleted::{set_input_files, updatable_writer};
use super::script::{ScriptOutcome, check_no_orphans};
use super::{add_document, add_documents, schema};
use std::{collections::BTreeSet, ops::Range, sync::Arc};
use tierdex::commit::Manifest;
use tierdex::internal::{index::check_on, segment::deletes::open_deletes};
use tierdex::io::{Disk, FaultDisk, FaultPlan, MemDisk, OpClass};
use tierdex::{Error, Index, Merge, OpenMode};

/// What two writers do, one after the other.
pub struct DeleteScript {
    docs: Vec<TestDocument>,
    commits: Vec<DeleteCommit>,
}

struct DeleteCommit {
    added: Range<usize>,
    /// Numbers in `docs` of the documents that are deleted.
    deleted: Vec<usize>,
    merge: Merge,
}

/// The ids of the documents of the newest commit that are not deleted.
pub fn live_ids(disk: &MemDisk) -> tierdex::Result<Vec<String>> {
    let index = Index::open_on(Arc::new(disk.clone()))?;
    let (searcher, mut first, mut live) = (index.searcher(), 0, Vec::new());
    for segment in &index.manifest().segments {
        let deletes = open_deletes(disk, segment)?;
        let is_deleted = |number| deletes.as_ref().is_some_and(|of| of.documents().contains(number));
        for number in (0..segment.documents).filter(|number| !is_deleted(*number)) {
            live.push(searcher.id(first + number)?);
        }
        first += segment.documents;
    }
    assert_eq!(live.len() as u64, index.manifest().live_documents());
    Ok(live)
}

impl DeleteScript {
    /// Seven commits: deletes in one segment and then in several, also of all documents of one; additions,
    /// and a merge.
    pub fn new() -> DeleteScript {
        let commit =
            |added, deleted: &[usize], merge| DeleteCommit { added, deleted: deleted.to_vec(), merge };
        use Merge::{Keep, One};
        let commits = vec![
            commit(0..10, &[], Keep),
            commit(10..13, &[1, 2, 9], Keep),
            commit(0..0, &[0, 11], Keep),
            commit(13..15, &[3, 10, 12], Keep),
            commit(15..16, &[5, 14], One),
            commit(0..0, &[6], Keep),
            commit(16..18, &[15], Keep),
        ];
        DeleteScript { docs: random_documents(5, 19), commits }
    }

    /// Number of operations of a class, without faults.
    pub fn count_operations(&self, class: OpClass) -> u64 {
        let disk = FaultDisk::new(MemDisk::new(), FaultPlan::none());
        let outcome = self.run(&disk);
        assert!(outcome.error.is_none() && outcome.acknowledged == self.commits.len() as u64);
        disk.operations(class)
    }

    /// Runs all commits until an operation fails.
    pub fn run(&self, disk: &FaultDisk<MemDisk>) -> ScriptOutcome {
        let mut outcome = ScriptOutcome { acknowledged: 0, error: None };
        outcome.error = self.try_run(disk, &mut outcome.acknowledged).err();
        outcome
    }

    fn try_run(&self, disk: &FaultDisk<MemDisk>, acknowledged: &mut u64) -> tierdex::Result<()> {
        let shared: Arc<dyn Disk> = Arc::new(disk.clone());
        let (first, second) = self.commits.split_at(3);
        for (mode, commits) in [(OpenMode::New, first), (OpenMode::Append, second)] {
            let mut writer = updatable_writer(&shared, &schema(), mode)?;
            for commit in commits {
                let added = &self.docs[commit.added.clone()];
                added.iter().try_for_each(|doc| add_document(&mut writer, doc))?;
                commit.deleted.iter().try_for_each(|number| writer.delete(&self.docs[*number].id))?;
                if !added.is_empty() {
                    set_input_files(&mut writer, &[added])?;
                }
                *acknowledged = writer.commit(commit.merge)?;
            }
        }
        Ok(())
    }

    /// The ids after a commit.
    fn expected(&self, generation: u64) -> BTreeSet<String> {
        let mut ids = BTreeSet::new();
        for commit in &self.commits[..generation as usize] {
            ids.extend(self.docs[commit.added.clone()].iter().map(|doc| doc.id.clone()));
            commit.deleted.iter().for_each(|number| assert!(ids.remove(&self.docs[*number].id)));
        }
        ids
    }

    /// Checks that the index is the last acknowledged commit or the next one. Returns its generation.
    pub fn verify(&self, disk: &MemDisk, acknowledged: u64) -> Result<u64, String> {
        let generation = Manifest::read_newest(disk).map_err(|error| error.to_string())?;
        let generation = generation.map_or(0, |manifest| manifest.generation);
        if !(acknowledged..=acknowledged + 1).contains(&generation) {
            return Err(format!("generation {generation} after {acknowledged} was acknowledged"));
        }
        if generation > 0 {
            check_live(disk, &self.expected(generation))?;
        }
        Ok(generation)
    }

    /// A new writer removes leftover files and commits; then nothing but its commit is on the disk.
    pub fn check_recovery(&self, disk: &MemDisk, generation: u64) -> Result<(), String> {
        let shared: Arc<dyn Disk> = Arc::new(disk.clone());
        let recover = || -> tierdex::Result<()> {
            let mode = if generation == 0 { OpenMode::Replace } else { OpenMode::Append };
            let mut writer = updatable_writer(&shared, &schema(), mode)?;
            add_documents(&mut writer, &self.docs[18..]);
            writer.commit(Merge::None)?;
            check_no_orphans(disk, Some(&Index::open_on(shared.clone())?))
        };
        recover().map_err(|error: Error| format!("recovery: {error}"))?;
        let mut expected = self.expected(generation);
        expected.insert(self.docs[18].id.clone());
        check_live(disk, &expected).map_err(|what| format!("after recovery: {what}"))
    }
}

/// Checks an index, and that it has these ids.
fn check_live(disk: &MemDisk, expected: &BTreeSet<String>) -> Result<(), String> {
    let ids = live_ids(disk).map_err(|error| error.to_string())?;
    if ids.len() != expected.len() || !ids.iter().all(|id| expected.contains(id)) {
        return Err(format!("{ids:?}, not {expected:?}"));
    }
    match check_on(disk).map_err(|error| error.to_string())?.problems.first() {
        Some(problem) => Err(problem.to_string()),
        None => Ok(()),
    }
}
