//! Reads the external ids of hits, with bounded memory, and finds documents by their external ids.

use super::{
    search_result::{HitIds, SearchHit},
    searcher::Searcher,
};
use crate::{
    Error, Result,
    limits::ID_BYTES_MAX,
    segment::read::{BlockSource, FILES},
};

/// Maximum bytes of external ids that are read at a time after a search.
pub(crate) const IDS_READ_BYTES: usize = 64 << 10;

/// Bytes that an external id is expected to take; if ids are longer, they are read in more steps.
const ID_BYTES_TYPICAL: usize = 32;

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
            segment.ids().for_each(|id| {
                if accepts(id) {
                    body(document, id)?;
                }
                document += 1;
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Calls `body` with each hit and its external id, in the order of the hits. Ids that are not in `known`
    /// are read from the files; at most 64 KiB of them, or a single longer one, are in memory at a time.
    pub fn for_each_id<E: From<Error>>(
        &self,
        hits: &[SearchHit],
        known: &HitIds,
        mut body: impl FnMut(SearchHit, &str) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let (mut rest, mut count) = (hits, IDS_READ_BYTES / ID_BYTES_TYPICAL);
        while !rest.is_empty() {
            count = count.clamp(1, rest.len());
            let (chunk, after) = rest.split_at(count);
            let missing: Vec<u32> = chunk
                .iter()
                .map(|hit| hit.document)
                .filter(|document| known.get(*document).is_none())
                .collect();
            let read =
                self.read_ids(missing, if count == 1 { ID_BYTES_MAX } else { IDS_READ_BYTES }, &FILES)?;
            let id = |hit: &SearchHit| known.get(hit.document).or_else(|| read.get(hit.document));
            if chunk.iter().any(|hit| id(hit).is_none()) {
                count /= 2;
                continue;
            }
            for hit in chunk {
                body(*hit, id(hit).unwrap_or_default())?;
            }
            rest = after;
            count *= 2;
        }
        Ok(())
    }

    /// Reads the external ids of documents, in increasing order of documents, as long as all ids together
    /// have at most `bytes_max` bytes.
    pub(crate) fn read_ids(
        &self,
        mut documents: Vec<u32>,
        bytes_max: usize,
        source: &dyn BlockSource,
    ) -> Result<HitIds> {
        documents.sort_unstable();
        documents.dedup();
        let bytes_max = bytes_max.min(u32::MAX as usize);
        let expected = documents.len().saturating_mul(ID_BYTES_TYPICAL);
        let mut ids = HitIds {
            text: String::with_capacity(bytes_max.min(expected)),
            starts: Vec::with_capacity(documents.len()),
        };
        let (mut rest, mut fits) = (documents.as_mut_slice(), true);
        while fits && let Some(first) = rest.first() {
            let (segment, local) = self.locate(*first)?;
            let base = first - local;
            let (here, after) =
                rest.split_at_mut(rest.partition_point(|document| document - base < segment.documents()));
            here.iter_mut().for_each(|document| *document -= base);
            segment.ids().read_ids(here, source, |at, id| {
                fits = ids.text.len() + id.len() <= bytes_max;
                if fits {
                    ids.starts.push((base + here[at], ids.text.len() as u32));
                    ids.text.push_str(id);
                }
                fits
            })?;
            rest = after;
        }
        ids.text.shrink_to_fit();
        Ok(ids)
    }

    /// The external id of a document.
    pub fn id(&self, document: u32) -> Result<String> {
        let mut found = String::new();
        self.for_each_id(&[SearchHit { document, score: 0.0 }], &HitIds::default(), |_, id| {
            found.push_str(id);
            Ok::<(), Error>(())
        })?;
        Ok(found)
    }
}
