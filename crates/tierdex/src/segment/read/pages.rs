//! Which page of the term dictionary a term stands in.

use crate::error::{Error, Result};
use fst::{Map, Streamer};

/// The term that ends each page, for a search that touches little memory: the first eight bytes of each stand apart.
pub(super) struct PageIndex {
    /// As big-endian numbers, with zeros behind shorter terms.
    heads: Vec<u64>,
    /// Where each term ends in `terms`.
    ends: Vec<u32>,
    terms: Vec<u8>,
}

impl PageIndex {
    /// Reads the FST that maps the last term of each page, or one between it and the next page's first, to the page.
    /// `corrupt` makes errors.
    pub(super) fn read(fst: Vec<u8>, corrupt: impl Fn(String) -> Error) -> Result<PageIndex> {
        let damaged = |error: fst::Error| corrupt(format!("term index: {error}"));
        let map = Map::new(fst).map_err(damaged)?;
        map.as_fst().verify().map_err(damaged)?;
        let mut index = PageIndex { heads: Vec::new(), ends: Vec::new(), terms: Vec::new() };
        let mut stream = map.stream();
        while let Some((term, page)) = stream.next() {
            let end = u32::try_from(index.terms.len() + term.len());
            let (Ok(end), true) = (end, page == index.heads.len() as u64) else {
                return Err(corrupt("the term index does not number the pages in order".to_string()));
            };
            index.heads.push(head(term));
            index.ends.push(end);
            index.terms.extend_from_slice(term);
        }
        Ok(index)
    }

    /// Number of pages.
    pub(super) fn len(&self) -> u64 {
        self.heads.len() as u64
    }

    /// Bytes in memory.
    pub(super) fn memory(&self) -> usize {
        12 * self.heads.len() + self.terms.len()
    }

    /// The first page that ends with `term` or a greater one.
    pub(super) fn find(&self, term: &[u8]) -> Option<u64> {
        let head = head(term);
        let mut page = self.heads.partition_point(|other| *other < head);
        let same = self.heads[page..].partition_point(|other| *other == head);
        if same > 0 {
            let (mut low, mut high) = (page, page + same);
            while low < high {
                let middle = (low + high) / 2;
                if self.term(middle) < term { low = middle + 1 } else { high = middle }
            }
            page = low;
        }
        (page < self.heads.len()).then_some(page as u64)
    }

    fn term(&self, page: usize) -> &[u8] {
        let start = page.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.terms[start as usize..self.ends[page] as usize]
    }
}

/// The first eight bytes of a term as a big-endian number, with zeros behind a shorter one.
pub(super) fn head(term: &[u8]) -> u64 {
    let mut head = [0; 8];
    let len = term.len().min(8);
    head[..len].copy_from_slice(&term[..len]);
    u64::from_be_bytes(head)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_first_page_that_does_not_end_before_is_found(
            terms in prop::collection::btree_set("[a-c\\x00]{1,12}", 0..60),
            asked in prop::collection::vec("[a-c\\x00]{0,12}", 20),
        ) {
            let terms: Vec<&String> = terms.iter().collect();
            let map = Map::from_iter(terms.iter().zip(0u64..)).unwrap();
            let bytes = map.into_fst().into_inner();
            let index = PageIndex::read(bytes, |what| Error::corrupt("terms", 0, what)).unwrap();
            prop_assert_eq!(index.len(), terms.len() as u64);
            for term in &asked {
                let expected = terms.iter().position(|last| *last >= term).map(|page| page as u64);
                prop_assert_eq!(index.find(term.as_bytes()), expected);
            }
        }
    }
}
