//! Finds the documents that later writes of the same external id replace or delete.
//!
//! For a new segment, in an index in which each id has at most one document that is not deleted:
//!
//! 1. Of documents of the segment with equal ids all but the last are replaced ([`repeated_in`]).
//! 2. Documents of older segments are replaced whose id a document of the new segment has ([`replaced_in`]).
//! 3. Documents of all segments are deleted whose id was deleted after they were written ([`deleted_in`]).
//!
//! Candidates are found by the hashes in `keys`: one by one if they are few, else by reading all keys in
//! order. Then their ids are read, in order of documents, and compared.

use crate::segment::layout::{KeyEntry, KeySeed};
use crate::segment::read::{FILES, KeysReader, KeysWalk, OpenSegment, Segment};
use crate::{Error, Result};
use std::collections::HashMap;

/// Number of candidates whose ids are compared at a time, unless more have the same hash.
const CANDIDATES_MAX: usize = 1 << 15;

/// Keys are looked up one by one if this number of look-ups is less than the number of pages: a page is read
/// at random for each, instead of all in order.
const PAGES_PER_LOOK_UP: usize = 4;

/// External ids to delete, each as it was when a number of documents had been written.
#[derive(Default)]
pub(super) struct DeletedIds {
    text: String,
    ids: Vec<DeletedId>,
}

struct DeletedId {
    hash: u32,
    /// Number in the index of the first document that was written after the delete.
    before: u32,
    start: u32,
    end: u32,
}

impl DeletedIds {
    /// Adds an id; documents below the number `before` are deleted.
    pub(super) fn add(&mut self, seed: KeySeed, id: &str, before: u32) {
        let start = self.text.len() as u32;
        self.text.push_str(id);
        let end = self.text.len() as u32;
        self.ids.push(DeletedId { hash: seed.hash(id.as_bytes()), before, start, end });
    }

    /// Bytes of memory.
    pub(super) fn memory(&self) -> usize {
        self.text.capacity() + self.ids.capacity() * size_of::<DeletedId>()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// Sorts by hash, and keeps the last delete of each id.
    pub(super) fn prepare(&mut self) {
        let text = &self.text;
        let id = |of: &DeletedId| &text[of.start as usize..of.end as usize];
        self.ids.sort_unstable_by(|a, b| (a.hash, id(a), b.before).cmp(&(b.hash, id(b), a.before)));
        self.ids.dedup_by(|later, first| id(later) == id(first));
    }

    fn id(&self, number: usize) -> &str {
        &self.text[self.ids[number].start as usize..self.ids[number].end as usize]
    }
}

/// The documents of a segment, ascending, whose id a later document of the segment has, among those for which
/// `is_live` is true.
pub(super) fn repeated_in(segment: &Segment, is_live: impl Fn(u32) -> bool) -> Result<Vec<u32>> {
    let (mut repeated, mut candidates) = (Vec::new(), Vec::new());
    let mut walk = keys_of(segment)?.walk(&FILES);
    // Entries of the current hash, which are candidates if there are several.
    let (mut run, mut next) = (Vec::new(), walk.next()?);
    while let Some(KeyEntry { hash, document }) = next {
        if is_live(document) {
            run.push(document);
        }
        next = walk.next()?;
        if next.is_none_or(|next| next.hash != hash) {
            if run.len() > 1 {
                candidates.append(&mut run);
            }
            run.clear();
        }
        if next.is_none() || candidates.len() >= CANDIDATES_MAX && run.is_empty() {
            candidates.sort_unstable();
            let mut last: HashMap<String, u32> = HashMap::new();
            for_each_id(segment, &candidates, |document, id| match last.get_mut(id) {
                Some(before) => repeated.push(std::mem::replace(before, document)),
                None => drop(last.insert(id.to_string(), document)),
            })?;
            candidates.clear();
        }
    }
    repeated.sort_unstable();
    Ok(repeated)
}

/// The documents of the segment `older`, ascending, whose id a document of `newer` has, among those for which
/// the functions are true.
pub(super) fn replaced_in(
    older: &Segment,
    is_live: impl Fn(u32) -> bool,
    newer: &Segment,
    is_written: impl Fn(u32) -> bool,
) -> Result<Vec<u32>> {
    let mut finder = PairFinder::new(older, newer.documents() as usize)?;
    let (mut replaced, mut pairs) = (Vec::new(), Vec::new());
    let mut walk = keys_of(newer)?.walk(&FILES);
    loop {
        let next = walk.next()?;
        if let Some(KeyEntry { hash, document }) = next.filter(|entry| is_written(entry.document)) {
            finder.find(hash, |of_older| {
                if is_live(of_older) {
                    pairs.push((document, of_older));
                }
            })?;
        }
        if next.is_none() || pairs.len() >= CANDIDATES_MAX {
            pairs.sort_unstable();
            let mut documents: Vec<u32> = pairs.iter().map(|(document, _)| *document).collect();
            documents.dedup();
            let mut ids = HashMap::with_capacity(documents.len());
            for_each_id(newer, &documents, |document, id| drop(ids.insert(document, id.to_string())))?;
            keep_equal(older, &mut pairs, |document, id| ids.get(&document).is_some_and(|of| of == id))?;
            replaced.extend(pairs.drain(..).map(|(_, document)| document));
        }
        if next.is_none() {
            replaced.sort_unstable();
            replaced.dedup();
            return Ok(replaced);
        }
    }
}

/// The documents of a segment, ascending, that are deleted by their ids ([`DeletedIds::prepare`]), among
/// those for which `is_live` is true. `base` is the number in the index of its first document.
pub(super) fn deleted_in(
    segment: &Segment,
    base: u32,
    is_live: impl Fn(u32) -> bool,
    ids: &DeletedIds,
) -> Result<Vec<u32>> {
    let mut finder = PairFinder::new(segment, ids.ids.len())?;
    let (mut deleted, mut pairs) = (Vec::new(), Vec::new());
    for (number, DeletedId { hash, before, .. }) in ids.ids.iter().enumerate() {
        finder.find(*hash, |document| {
            if base + document < *before && is_live(document) {
                pairs.push((number as u32, document));
            }
        })?;
        if number + 1 == ids.ids.len() || pairs.len() >= CANDIDATES_MAX {
            keep_equal(segment, &mut pairs, |number, id| ids.id(number as usize) == id)?;
            deleted.extend(pairs.drain(..).map(|(_, document)| document));
        }
    }
    deleted.sort_unstable();
    Ok(deleted)
}

/// The document of a segment with an external id that is not deleted.
pub(super) fn find_id(segment: &OpenSegment, seed: KeySeed, id: &str) -> Result<Option<u32>> {
    let mut candidates = Vec::new();
    keys_of(segment)?.look_up(seed.hash(id.as_bytes()), &FILES, &mut candidates)?;
    candidates.retain(|document| segment.is_live(*document));
    let mut found = None;
    for_each_id(segment, &candidates, |document, of| {
        if of == id {
            found = Some(document);
        }
    })?;
    Ok(found)
}

/// Finds the documents of a segment with the hashes of others, which ascend.
struct PairFinder<'a> {
    keys: &'a KeysReader,
    /// Whether hashes are looked up one by one.
    looks_up: bool,
    walk: KeysWalk<'a>,
    /// The entry of the walk that was read last and not used.
    next: Option<KeyEntry>,
    /// The hash found last, and its documents.
    found: (Option<u32>, Vec<u32>),
}

impl<'a> PairFinder<'a> {
    /// Finds the documents of this number of hashes.
    fn new(segment: &'a Segment, hashes: usize) -> Result<PairFinder<'a>> {
        let keys = keys_of(segment)?;
        let looks_up = hashes.saturating_mul(PAGES_PER_LOOK_UP) < keys.pages();
        Ok(PairFinder { keys, looks_up, walk: keys.walk(&FILES), next: None, found: (None, Vec::new()) })
    }

    /// Calls `body` with the documents of a hash, which is not less than the one before.
    fn find(&mut self, hash: u32, body: impl FnMut(u32)) -> Result<()> {
        let (last, documents) = &mut self.found;
        if *last != Some(hash) {
            *last = Some(hash);
            if self.looks_up {
                self.keys.look_up(hash, &FILES, documents)?;
            } else {
                documents.clear();
                if self.next.is_none() {
                    self.next = self.walk.next()?;
                }
                while let Some(entry) = self.next.filter(|entry| entry.hash <= hash) {
                    if entry.hash == hash {
                        documents.push(entry.document);
                    }
                    self.next = self.walk.next()?;
                }
            }
        }
        documents.iter().copied().for_each(body);
        Ok(())
    }
}

/// Keeps the pairs for which `is_equal` is true, given their first member and the external id of their
/// second, a document of the segment.
fn keep_equal(
    segment: &Segment,
    pairs: &mut Vec<(u32, u32)>,
    is_equal: impl Fn(u32, &str) -> bool,
) -> Result<()> {
    pairs.sort_unstable_by_key(|(_, document)| *document);
    let mut documents: Vec<u32> = pairs.iter().map(|(_, document)| *document).collect();
    documents.dedup();
    let (mut at, mut kept) = (0, 0);
    for_each_id(segment, &documents, |document, id| {
        while let Some((first, _)) = pairs.get(at).filter(|pair| pair.1 == document) {
            if is_equal(*first, id) {
                pairs[kept] = pairs[at];
                kept += 1;
            }
            at += 1;
        }
    })?;
    pairs.truncate(kept);
    Ok(())
}

/// Calls `body` with each of these documents, which ascend, and its external id.
fn for_each_id(segment: &Segment, documents: &[u32], mut body: impl FnMut(u32, &str)) -> Result<()> {
    segment.ids().read_ids(documents, &FILES, |at, id| {
        body(documents[at], id);
        true
    })
}

fn keys_of(segment: &Segment) -> Result<&KeysReader> {
    segment
        .keys()
        .ok_or_else(|| Error::Usage("the index is not updatable: its documents have no keys".to_string()))
}
