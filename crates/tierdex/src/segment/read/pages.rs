//! The term index: maps a term to its page of the dictionary.

use crate::bytes::{ByteReader, prefix_key, u32_at};
use crate::{Result, limits::TERM_BYTES_MAX};
use tierdex_io::{Arena, ResidentBytes};

/// The separators of the pages of the dictionary. A separator is at least the last term of its page and less
/// than the first term of the next. Binary search runs over an array of eight-byte prefixes and compares
/// whole separators only where prefixes are equal.
pub(super) struct PageIndex {
    pages: usize,
    /// Three arrays: [`prefix_key`] of each separator, as little-endian `u64`; the end of each separator in
    /// the third array, as little-endian `u32`; and all separators, concatenated.
    content: ResidentBytes,
}

/// Bytes of an element of the first array and of the second array of [`PageIndex::content`].
const PREFIX_KEY_BYTES: usize = size_of::<u64>();
const SEPARATOR_END_BYTES: usize = size_of::<u32>();

impl PageIndex {
    /// Bytes in memory of the index of `pages` pages. Checks that the separators in `view` strictly increase
    /// and that no bytes follow.
    pub(super) fn memory(view: ByteReader<'_>, pages: u64) -> Result<usize> {
        let mut bytes = 0;
        for_each_separator(view.clone(), pages, |separator| {
            bytes += separator.len();
            Ok(())
        })?;
        if u32::try_from(bytes).is_err() {
            return Err(view.corrupt("separators of over 4 GiB"));
        }
        Ok((PREFIX_KEY_BYTES + SEPARATOR_END_BYTES) * pages as usize + bytes)
    }

    /// Decodes the separators of `pages` pages, into `arena` if given. `memory` is what [`PageIndex::memory`]
    /// returned.
    pub(super) fn read(
        view: ByteReader<'_>,
        pages: u64,
        memory: usize,
        arena: Option<&mut Arena>,
    ) -> Result<PageIndex> {
        let name = view.file();
        let pages_len = pages as usize;
        let fill = |content: &mut [u8]| {
            let (keys, rest) = content.split_at_mut(PREFIX_KEY_BYTES * pages_len);
            let (ends, bytes) = rest.split_at_mut(SEPARATOR_END_BYTES * pages_len);
            let (mut page, mut end) = (0, 0);
            for_each_separator(view.clone(), pages, |separator| {
                let out = bytes.get_mut(end..end + separator.len());
                let out = out.ok_or_else(|| view.corrupt("longer separators than when it was opened"))?;
                out.copy_from_slice(separator);
                end += separator.len();
                keys.as_chunks_mut().0[page] = prefix_key(separator).to_le_bytes();
                ends.as_chunks_mut().0[page] = (end as u32).to_le_bytes();
                page += 1;
                Ok(())
            })
        };
        Ok(PageIndex { pages: pages_len, content: ResidentBytes::allocate(arena, memory, fill, name)? })
    }

    /// The first page whose separator is at least `term`.
    pub(super) fn find(&self, term: &[u8]) -> Option<u64> {
        let prefix_key = prefix_key(term);
        let prefix_keys = self.content[..PREFIX_KEY_BYTES * self.pages].as_chunks().0;
        let mut page = prefix_keys.partition_point(|other| u64::from_le_bytes(*other) < prefix_key);
        let same = prefix_keys[page..].partition_point(|other| u64::from_le_bytes(*other) == prefix_key);
        if same > 0 {
            let (mut low, mut high) = (page, page + same);
            while low < high {
                let middle = (low + high) / 2;
                if self.separator(middle) < term { low = middle + 1 } else { high = middle }
            }
            page = low;
        }
        (page < self.pages).then_some(page as u64)
    }

    pub(super) fn separator(&self, page: usize) -> &[u8] {
        let (ends, bytes) =
            self.content[PREFIX_KEY_BYTES * self.pages..].split_at(SEPARATOR_END_BYTES * self.pages);
        let end = |page| u32_at(ends, page).expect("each page has an end") as usize;
        &bytes[page.checked_sub(1).map_or(0, end)..end(page)]
    }
}

/// Calls `body` with the separator of each page.
fn for_each_separator(
    mut view: ByteReader<'_>,
    pages: u64,
    mut body: impl FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    // A separator takes at least three bytes: two lengths and one byte of its own.
    if pages > view.remaining() as u64 / 3 {
        return Err(view.corrupt("more pages than separators"));
    }
    let mut separator = Vec::with_capacity(TERM_BYTES_MAX);
    for _ in 0..pages {
        read_separator(&mut view, &mut separator)?;
        body(&separator)?;
    }
    view.finish()
}

/// Decodes the next separator into `separator`, which contains the previous one.
fn read_separator(view: &mut ByteReader<'_>, separator: &mut Vec<u8>) -> Result<()> {
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
        let view = ByteReader::new("terms", 0, bytes);
        PageIndex::read(view.clone(), pages, PageIndex::memory(view, pages)?, None)
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
            prop_assert_eq!(index.pages, terms.len());
            for term in &asked {
                let expected = terms.iter().position(|last| *last >= term.as_bytes()).map(|page| page as u64);
                prop_assert_eq!(index.find(term.as_bytes()), expected);
            }
        }

        #[test]
        fn arbitrary_bytes_are_decoded_or_rejected(bytes in prop::collection::vec(0u8..6, 0..60), pages in 0u64..20) {
            if let Ok(index) = read(&bytes, pages) {
                prop_assert_eq!(index.pages as u64, pages);
                let separators: Vec<_> = (0..pages as usize).map(|page| index.separator(page)).collect();
                prop_assert!(separators.is_sorted_by(|a, b| a < b));
            }
        }
    }

    #[test]
    fn separators_out_of_order_are_rejected() {
        let message =
            |bytes: &[u8], pages| read(bytes, pages).err().map(|error| error.to_string()).unwrap_or_default();
        assert_eq!(message(&encode(&[b"a", b"ab", b"b"], 255), 3), "");
        assert!(
            message(&encode(&[b"a", b"ab"], 0), 2).contains("do not rise"),
            "the shared prefix is too short"
        );
        for wrong in [[b"b".as_slice(), b"a"], [b"ab", b"a"], [b"b", b"ab"]] {
            assert!(message(&encode(&wrong, 255), 2).contains("do not rise"), "{wrong:?}");
        }
        assert!(!message(&encode(&[b"a", b"a"], 255), 2).is_empty());
        assert!(message(&[0, 0], 0).contains("follow"));
        assert!(message(&[0, 1, b'a', 2, 1, b'b'], 2).contains("impossible lengths"));
        assert!(message(&[0, 1, b'a', 1, 255, b'b'], 2).contains("impossible lengths"));
        assert!(message(&[0, 1, b'a'], u64::MAX).contains("more pages"));
        assert!(!message(&encode(&[b"a", b"b"], 255)[..5], 2).is_empty());
    }
}
