//! Reads the external ids of hits, with bounded memory, and finds documents by their external ids.

use super::{
    replaced::find_id,
    search_result::{HitIds, SearchHit},
    searcher::Searcher,
};
use crate::{
    Error, Result,
    limits::ID_BYTES_MAX,
    segment::read::{BlockSource, FILES},
};
use std::collections::HashMap;

const _: () = assert!(ID_BYTES_MAX < HitIds::UNREAD as usize);

/// Maximum bytes of external ids that are read at a time after a search.
pub(crate) const IDS_READ_BYTES: usize = 64 << 10;

/// Number of external ids that are read at a time: where each is stored takes memory.
const IDS_READ_MAX: usize = 512;

/// Bytes that an external id is expected to take; hashes and short paths do. If ids are longer, they are read
/// in more steps.
const ID_BYTES_TYPICAL: usize = 40;

/// Maximum bytes of the external ids that are stored in a result of `hits` hits.
pub(crate) fn result_ids_bytes(hits: usize) -> usize {
    hits.saturating_mul(ID_BYTES_TYPICAL).max(4 << 10)
}

impl Searcher {
    /// Calls `body` with each document whose external id `accepts`, in order of documents. Reads all ids.
    pub fn scan_ids(
        &self,
        mut accepts: impl FnMut(&str) -> bool,
        mut body: impl FnMut(u32, &str) -> Result<()>,
    ) -> Result<()> {
        for (segment, mut document) in self.index().segments().iter().zip(self.bases().iter().copied()) {
            let base = document;
            segment.ids().for_each(|id| {
                if accepts(id) && segment.is_live(document - base) {
                    body(document, id)?;
                }
                document += 1;
                Ok(())
            })?;
        }
        Ok(())
    }

    /// The last document with an external id; `None` if there is none. In an updatable index it is the only
    /// one of its directory, and a page of the keys of each segment is read; in another all ids are.
    ///
    /// # Errors
    /// [`Error::Storage`] when a file cannot be read or is damaged.
    pub fn find_id(&self, id: &str) -> Result<Option<u32>> {
        Ok(self.find_ids(&[id])?[0])
    }

    /// The last document with each external id, in the order of `ids`, as [`Searcher::find_id`]. In an index
    /// that is not updatable all ids are read once.
    ///
    /// # Errors
    /// As [`Searcher::find_id`].
    pub fn find_ids(&self, ids: &[impl AsRef<str>]) -> Result<Vec<Option<u32>>> {
        let ids = ids.iter().map(AsRef::as_ref);
        if self.index().is_updatable() {
            return ids.map(|id| self.find_by_keys(id)).collect();
        }
        let slots: HashMap<&str, usize> = ids.clone().zip(0..).collect();
        let mut found = vec![None; ids.len()];
        self.scan_ids(
            |id| slots.contains_key(id),
            |document, id| {
                found[slots[id]] = Some(document);
                Ok(())
            },
        )?;
        Ok(ids.map(|id| found[slots[id]]).collect())
    }

    fn find_by_keys(&self, id: &str) -> Result<Option<u32>> {
        let mut found = None;
        for ((seed, segment), base) in self.index().segments_with_seeds().zip(self.bases()) {
            let document = find_id(segment, seed, id)?;
            found = document.map(|document| base + document).or(found);
        }
        Ok(found)
    }

    /// Calls `body` with each hit and its external id, in the order of the hits. Ids that `known` does not
    /// have at the index of their hit are read from the files; at most 64 KiB of them, or a single longer
    /// one, are in memory at a time.
    pub fn for_each_id<E: From<Error>>(
        &self,
        hits: &[SearchHit],
        known: &HitIds,
        mut body: impl FnMut(SearchHit, &str) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let (mut begin, mut count) = (0, IDS_READ_BYTES / ID_BYTES_TYPICAL);
        while begin < hits.len() {
            count = count.clamp(1, hits.len() - begin);
            let chunk = begin..begin + count;
            let missing = hits[chunk.clone()].iter().zip(begin..).map(|(hit, at)| (at, hit.document));
            let missing = missing.filter(|(at, document)| known.get(*at, *document).is_none());
            let bytes_max = if count == 1 { ID_BYTES_MAX } else { IDS_READ_BYTES };
            let read = self.read_ids(missing.map(|(_, document)| document), bytes_max, &FILES)?;
            // Ids of this mean length take three quarters of the memory.
            let ids = read.lengths.iter().filter(|bytes| **bytes != HitIds::UNREAD).count();
            let next = ids.max(1).saturating_mul(IDS_READ_BYTES / 4 * 3) / read.text.len().max(1);
            if ids < read.lengths.len() {
                count = next.min(count / 2);
                continue;
            }
            let mut indexes = 0..;
            for at in chunk {
                let document = hits[at].document;
                let id = known.get(at, document).or_else(|| read.get(indexes.next()?, document));
                body(hits[at], id.unwrap_or_default())?;
            }
            begin += count;
            count = next.min(2 * count);
        }
        Ok(())
    }

    /// Reads the external ids of documents, in increasing order of documents, as long as all ids together
    /// have at most `bytes_max` bytes.
    pub(crate) fn read_ids(
        &self,
        documents: impl Iterator<Item = u32>,
        bytes_max: usize,
        source: &dyn BlockSource,
    ) -> Result<HitIds> {
        let bytes_max = bytes_max.min(u32::MAX as usize);
        let mut order: Vec<(u32, u32)> = documents.zip(0..).collect();
        order.sort_unstable();
        let expected = order.len().saturating_mul(ID_BYTES_TYPICAL);
        let mut ids = HitIds {
            text: String::with_capacity(bytes_max.min(expected)),
            starts: vec![(0, 0); order.len()],
            lengths: vec![HitIds::UNREAD; order.len()],
        };
        let (mut rest, mut fits) = (order.as_slice(), true);
        while fits && let Some((first, _)) = rest.first() {
            let (segment, local) = self.locate(*first)?;
            let base = first - local;
            let some = &rest[..rest.len().min(IDS_READ_MAX)];
            let count = some.partition_point(|(document, _)| document - base < segment.documents());
            let here: Vec<u32> = some[..count].iter().map(|(document, _)| document - base).collect();
            segment.ids().read_ids(&here, source, |at, id| {
                fits = ids.text.len() + id.len() <= bytes_max;
                if fits {
                    let (document, index) = some[at];
                    ids.starts[index as usize] = (document, ids.text.len() as u32);
                    ids.lengths[index as usize] = id.len() as u16;
                    ids.text.push_str(id);
                }
                fits
            })?;
            rest = &rest[count..];
        }
        ids.text.shrink_to_fit();
        Ok(ids)
    }

    /// The external id of a document.
    pub fn id(&self, document: u32) -> Result<String> {
        let mut found = String::new();
        self.for_each_id(&[SearchHit { document, ..SearchHit::default() }], &HitIds::default(), |_, id| {
            found.push_str(id);
            Ok::<(), Error>(())
        })?;
        Ok(found)
    }
}
