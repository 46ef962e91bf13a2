//! Checks the keys of segments, and that ids are unique in an index that is updatable.

use crate::segment::SegmentDeletes;
use crate::segment::layout::{KeyEntry, KeySeed};
use crate::segment::read::{FILES, IdsReader, KeysInput, KeysReader, MergedKeys, Segment};
use crate::{Error, Result};
use std::collections::BTreeSet;

/// An open segment, and its deletes if it has any.
pub(super) struct CheckedSegment {
    pub(super) segment: Segment,
    pub(super) deletes: Option<SegmentDeletes>,
}

/// Compares the keys of a segment with its ids: each document has one entry, with the hash of its id.
pub(super) fn check_keys(keys: &KeysReader, ids: &IdsReader, seed: &KeySeed, documents: u32) -> Result<()> {
    let mut hashes = Vec::with_capacity(documents as usize);
    ids.for_each(|id| {
        hashes.push(seed.hash(id.as_bytes()));
        Ok(())
    })?;
    let mut walk = keys.walk(&FILES);
    while let Some(entry) = walk.next()? {
        // Entries are in order and as many as documents: if all hashes are right, no document has two.
        if hashes.get(entry.document as usize) != Some(&entry.hash) {
            let what = format!("document {} has another hash", entry.document);
            return Err(Error::corrupt(keys.file().name(), keys.file().payload().start, what));
        }
    }
    Ok(())
}

/// Checks that no two documents that are not deleted have the same id.
pub(super) fn check_unique_ids(segments: &[CheckedSegment]) -> Result<()> {
    let (mut inputs, mut bases, mut next) = (Vec::new(), Vec::new(), 0);
    for CheckedSegment { segment, deletes } in segments {
        let Some(keys) = segment.keys() else { continue };
        let base = next;
        let is_deleted = move |document| deletes.as_ref().is_some_and(|of| of.documents().contains(document));
        let document = Box::new(move |document| (!is_deleted(document)).then(|| base + document));
        inputs.push(KeysInput { walk: keys.walk(&FILES), document });
        bases.push(base);
        next += segment.documents();
    }
    let mut merged = MergedKeys::new(inputs)?;
    let mut same: Vec<KeyEntry> = Vec::new();
    loop {
        let entry = merged.next()?;
        if same.last().map(|last| last.hash) != entry.map(|entry| entry.hash) {
            if same.len() > 1 {
                check_different_ids(segments, &bases, &same)?;
            }
            same.clear();
        }
        let Some(entry) = entry else { return Ok(()) };
        same.push(entry);
    }
}

/// Checks that documents whose ids have the same hash have different ids.
fn check_different_ids(segments: &[CheckedSegment], bases: &[u32], same: &[KeyEntry]) -> Result<()> {
    let mut seen = BTreeSet::new();
    for entry in same {
        let number = bases.partition_point(|base| *base <= entry.document) - 1;
        let ids = segments[number].segment.ids();
        let (document, mut is_new) = (entry.document - bases[number], true);
        ids.read_ids(&[document], &FILES, |_, id| {
            is_new = seen.insert(id.to_string());
            true
        })?;
        if !is_new {
            let what = format!("document {document} has the id of another document");
            return Err(Error::corrupt(ids.file().name(), ids.file().payload().start, what));
        }
    }
    Ok(())
}
