//! The term index: maps a term to its page of the dictionary.

use crate::bytes::View;
use crate::error::Result;
use crate::limits::TERM_BYTES_MAX;

/// The separator that ends each page, for a search that touches little memory: the first eight bytes of each
/// are kept apart.
pub(super) struct PageIndex {
    /// As big-endian numbers, with zeros behind shorter separators.
    heads: Vec<u64>,
    /// Where each separator ends in `bytes`.
    ends: Vec<u32>,
    bytes: Vec<u8>,
}

impl PageIndex {
    /// Reads the separators of `pages` pages: the last term of each page, or a string between it and the next
    /// page's first. They rise, and nothing follows them.
    pub(super) fn read(mut view: View<'_>, pages: u64) -> Result<PageIndex> {
        // Each takes at least two bytes for its lengths and one of its own.
        if pages > view.remaining() as u64 / 3 {
            return Err(view.corrupt("more pages than separators"));
        }
        let mut index =
            PageIndex { heads: Vec::with_capacity(pages as usize), ends: Vec::new(), bytes: Vec::new() };
        index.ends.reserve(pages as usize);
        let mut separator = Vec::with_capacity(TERM_BYTES_MAX);
        for _ in 0..pages {
            read_separator(&mut view, &mut separator)?;
            index.bytes.extend_from_slice(&separator);
            let end =
                u32::try_from(index.bytes.len()).map_err(|_| view.corrupt("separators of over 4 GiB"))?;
            index.heads.push(head(&separator));
            index.ends.push(end);
        }
        view.finish()?;
        Ok(index)
    }

    /// Bytes in memory.
    pub(super) fn memory(&self) -> usize {
        12 * self.heads.len() + self.bytes.len()
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
                if self.separator(middle) < term { low = middle + 1 } else { high = middle }
            }
            page = low;
        }
        (page < self.heads.len()).then_some(page as u64)
    }

    fn separator(&self, page: usize) -> &[u8] {
        let start = page.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start as usize..self.ends[page] as usize]
    }
}

/// The first eight bytes of a term as a big-endian number, with zeros behind a shorter one.
pub(super) fn head(term: &[u8]) -> u64 {
    let mut head = [0; 8];
    let len = term.len().min(8);
    head[..len].copy_from_slice(&term[..len]);
    u64::from_be_bytes(head)
}

/// Reads the separator behind the one that `separator` holds.
fn read_separator(view: &mut View<'_>, separator: &mut Vec<u8>) -> Result<()> {
    let (shared, own) = (usize::from(view.u8()?), usize::from(view.u8()?));
    if shared > separator.len() || shared + own > TERM_BYTES_MAX {
        return Err(view.corrupt("impossible lengths of a separator"));
    }
    let suffix = view.bytes(own)?;
    // The first byte that is not shared decides; where there is none before, any byte is greater.
    if suffix.first() <= separator.get(shared) {
        return Err(view.corrupt("separators do not rise"));
    }
    separator.truncate(shared);
    separator.extend_from_slice(suffix);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Separators as they are written, each with what it shares with the one before cut to `shared_max`
    /// bytes.
    fn encode(separators: &[&[u8]], shared_max: usize) -> Vec<u8> {
        let mut out = Vec::new();
        let mut last: &[u8] = &[];
        for separator in separators {
            let shared = last.iter().zip(*separator).take_while(|(a, b)| a == b).count().min(shared_max);
            out.extend([shared as u8, (separator.len() - shared) as u8]);
            out.extend_from_slice(&separator[shared..]);
            last = separator;
        }
        out
    }

    fn read(bytes: &[u8], pages: u64) -> Result<PageIndex> {
        PageIndex::read(View::new("terms", 0, bytes), pages)
    }

    proptest! {
        #[test]
        fn the_first_page_that_does_not_end_before_is_found(
            terms in prop::collection::btree_set("[a-c\\x00]{1,12}", 0..60),
            asked in prop::collection::vec("[a-c\\x00]{0,12}", 20),
        ) {
            let terms: Vec<&[u8]> = terms.iter().map(String::as_bytes).collect();
            let bytes = encode(&terms, 255);
            let index = read(&bytes, terms.len() as u64).unwrap();
            prop_assert_eq!(index.heads.len(), terms.len());
            for term in &asked {
                let expected = terms.iter().position(|last| *last >= term.as_bytes()).map(|page| page as u64);
                prop_assert_eq!(index.find(term.as_bytes()), expected);
            }
        }

        #[test]
        fn any_bytes_are_read_or_rejected(bytes in prop::collection::vec(0u8..6, 0..60), pages in 0u64..20) {
            if let Ok(index) = read(&bytes, pages) {
                prop_assert_eq!(index.heads.len() as u64, pages);
                let separators: Vec<_> = (0..pages as usize).map(|page| index.separator(page)).collect();
                prop_assert!(separators.is_sorted_by(|a, b| a < b));
            }
        }
    }

    #[test]
    fn separators_that_do_not_rise_are_rejected() {
        let says =
            |bytes: &[u8], pages| read(bytes, pages).err().map(|error| error.to_string()).unwrap_or_default();
        assert_eq!(says(&encode(&[b"a", b"ab", b"b"], 255), 3), "");
        assert!(says(&encode(&[b"a", b"ab"], 0), 2).contains("do not rise"), "shares less than it could");
        for wrong in [[b"b".as_slice(), b"a"], [b"ab", b"a"], [b"b", b"ab"]] {
            assert!(says(&encode(&wrong, 255), 2).contains("do not rise"), "{wrong:?}");
        }
        assert!(!says(&encode(&[b"a", b"a"], 255), 2).is_empty());
        assert!(says(&[0, 0], 0).contains("follow"));
        assert!(says(&[0, 1, b'a', 2, 1, b'b'], 2).contains("impossible lengths"));
        assert!(says(&[0, 1, b'a', 1, 255, b'b'], 2).contains("impossible lengths"));
        assert!(says(&[0, 1, b'a'], u64::MAX).contains("more pages"));
        assert!(!says(&encode(&[b"a", b"b"], 255)[..5], 2).is_empty());
    }
}
