//! The term index: maps a term to its page of the dictionary.

use crate::bytes::{View, prefix_key};
use crate::error::Result;
use crate::limits::TERM_BYTES_MAX;

/// The separator at the end of each page. Binary search runs over an array of eight-byte prefixes and
/// compares whole separators only where prefixes are equal.
pub(super) struct PageIndex {
    /// [`prefix_key`] of each separator.
    prefix_keys: Vec<u64>,
    /// End of each separator in `bytes`.
    ends: Vec<u32>,
    bytes: Vec<u8>,
}

impl PageIndex {
    /// Decodes the separators of `pages` pages. A separator is at least the last term of its page and less
    /// than the first term of the next. Checks that they strictly increase and that no bytes follow.
    pub(super) fn read(mut view: View<'_>, pages: u64) -> Result<PageIndex> {
        // Each takes at least three bytes: two lengths and one byte of its own.
        if pages > view.remaining() as u64 / 3 {
            return Err(view.corrupt("more pages than separators"));
        }
        let mut index = PageIndex {
            prefix_keys: Vec::with_capacity(pages as usize),
            ends: Vec::new(),
            bytes: Vec::new(),
        };
        index.ends.reserve(pages as usize);
        let mut separator = Vec::with_capacity(TERM_BYTES_MAX);
        for _ in 0..pages {
            read_separator(&mut view, &mut separator)?;
            index.bytes.extend_from_slice(&separator);
            let end =
                u32::try_from(index.bytes.len()).map_err(|_| view.corrupt("separators of over 4 GiB"))?;
            index.prefix_keys.push(prefix_key(&separator));
            index.ends.push(end);
        }
        view.finish()?;
        Ok(index)
    }

    /// Bytes in memory.
    pub(super) fn memory(&self) -> usize {
        12 * self.prefix_keys.len() + self.bytes.len()
    }

    /// The first page whose separator is at least `term`.
    pub(super) fn find(&self, term: &[u8]) -> Option<u64> {
        let prefix_key = prefix_key(term);
        let mut page = self.prefix_keys.partition_point(|other| *other < prefix_key);
        let same = self.prefix_keys[page..].partition_point(|other| *other == prefix_key);
        if same > 0 {
            let (mut low, mut high) = (page, page + same);
            while low < high {
                let middle = (low + high) / 2;
                if self.separator(middle) < term { low = middle + 1 } else { high = middle }
            }
            page = low;
        }
        (page < self.prefix_keys.len()).then_some(page as u64)
    }

    fn separator(&self, page: usize) -> &[u8] {
        let start = page.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start as usize..self.ends[page] as usize]
    }
}

/// Decodes the next separator; `separator` is the previous one on entry.
fn read_separator(view: &mut View<'_>, separator: &mut Vec<u8>) -> Result<()> {
    let (shared, own) = (usize::from(view.u8()?), usize::from(view.u8()?));
    if shared > separator.len() || shared + own > TERM_BYTES_MAX {
        return Err(view.corrupt("impossible lengths of a separator"));
    }
    let suffix = view.bytes(own)?;
    // The first byte after the shared prefix decides; if the previous separator ends there, any byte is
    // greater.
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

    /// Encodes separators, each with a shared prefix of at most `shared_max` bytes.
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
        fn find_returns_the_first_page_whose_separator_is_not_less(
            terms in prop::collection::btree_set("[a-c\\x00]{1,12}", 0..60),
            asked in prop::collection::vec("[a-c\\x00]{0,12}", 20),
        ) {
            let terms: Vec<&[u8]> = terms.iter().map(String::as_bytes).collect();
            let bytes = encode(&terms, 255);
            let index = read(&bytes, terms.len() as u64).unwrap();
            prop_assert_eq!(index.prefix_keys.len(), terms.len());
            for term in &asked {
                let expected = terms.iter().position(|last| *last >= term.as_bytes()).map(|page| page as u64);
                prop_assert_eq!(index.find(term.as_bytes()), expected);
            }
        }

        #[test]
        fn arbitrary_bytes_are_decoded_or_rejected(bytes in prop::collection::vec(0u8..6, 0..60), pages in 0u64..20) {
            if let Ok(index) = read(&bytes, pages) {
                prop_assert_eq!(index.prefix_keys.len() as u64, pages);
                let separators: Vec<_> = (0..pages as usize).map(|page| index.separator(page)).collect();
                prop_assert!(separators.is_sorted_by(|a, b| a < b));
            }
        }
    }

    #[test]
    fn separators_out_of_order_are_rejected() {
        let says =
            |bytes: &[u8], pages| read(bytes, pages).err().map(|error| error.to_string()).unwrap_or_default();
        assert_eq!(says(&encode(&[b"a", b"ab", b"b"], 255), 3), "");
        assert!(
            says(&encode(&[b"a", b"ab"], 0), 2).contains("do not rise"),
            "the shared prefix is too short"
        );
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
