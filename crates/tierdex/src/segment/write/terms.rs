//! Writes `terms`, the term dictionary: pages of sorted terms, and an index of the pages.
//!
//! Each page is one 4 KiB page of the file, so a lookup reads and verifies one page. The index contains one
//! separator for each page: at least the last term of the page and less than the first term of the next.
//! Separators are prefix-coded like terms: the length of the prefix shared with the previous one, and the
//! suffix.

use super::super::layout::{TERM_PAGE_HEADER_BYTES, TERM_RESTART_BYTES, push_tail};
use crate::limits::{TERM_PAGE, TERM_RESTART_INTERVAL};
use crate::{
    Result,
    bytes::{common_prefix, push_varint},
};
use std::ops::Range;
use tierdex_io::SealedWriter;

/// Sums over a posting list, or over a part of one.
#[derive(Clone, Copy, Debug, Default)]
pub struct ListCounts {
    /// Number of postings.
    pub postings: u32,
    /// Sum of the frequencies.
    pub occurrences: u64,
}

/// Writes the terms of one field, in order.
pub(super) struct TermsWriter {
    file: SealedWriter,
    /// The encoded separators of the pages so far, and the last separator.
    index: Vec<u8>,
    separator: Vec<u8>,
    /// The page under construction: its entries, its restart points, and the number of its terms.
    entries: Vec<u8>,
    restarts: Vec<u8>,
    in_page: usize,
    /// Offsets in `skips`: of the record of the first term of the page, and of the end of the last record.
    page_skips: u64,
    skips_end: u64,
    /// The previous term.
    last: Vec<u8>,
    terms: u64,
    pages: u64,
}

impl TermsWriter {
    /// `skips_start` is the offset in `skips` of the record of the first term.
    pub(super) fn new(mut file: SealedWriter, skips_start: u64) -> Result<TermsWriter> {
        file.pad_to_page()?;
        Ok(TermsWriter {
            file,
            index: Vec::new(),
            separator: Vec::new(),
            entries: Vec::with_capacity(TERM_PAGE),
            restarts: Vec::new(),
            in_page: 0,
            page_skips: skips_start,
            skips_end: skips_start,
            last: Vec::new(),
            terms: 0,
            pages: 0,
        })
    }

    /// Appends a term. Its skip record ends at `skips_end` in `skips`; `blocks` is the byte range of its
    /// blocks in `postings`, `None` for an inline list.
    pub(super) fn add(
        &mut self,
        term: &[u8],
        counts: ListCounts,
        skips_end: u64,
        blocks: Option<Range<u64>>,
    ) -> Result<()> {
        let distance = self.skips_end - self.page_skips;
        // Two lengths and five numbers of an entry, and possibly a restart point.
        let entry_bytes_max = term.len() + 2 + 45 + TERM_RESTART_BYTES;
        let page_bytes = TERM_PAGE_HEADER_BYTES + self.entries.len() + self.restarts.len();
        if self.in_page > 0 && (page_bytes + entry_bytes_max > TERM_PAGE || distance > u64::from(u32::MAX)) {
            self.write_page(Some(term))?;
        }
        let restart = self.in_page.is_multiple_of(TERM_RESTART_INTERVAL);
        let shared = if restart { 0 } else { common_prefix(&self.last, term) };
        if restart {
            self.restarts
                .extend_from_slice(&((TERM_PAGE_HEADER_BYTES + self.entries.len()) as u16).to_le_bytes());
            self.restarts.extend_from_slice(&((self.skips_end - self.page_skips) as u32).to_le_bytes());
        }
        self.entries.push(shared as u8);
        self.entries.push((term.len() - shared) as u8);
        self.entries.extend_from_slice(&term[shared..]);
        push_varint(&mut self.entries, u64::from(counts.postings));
        push_varint(&mut self.entries, counts.occurrences - u64::from(counts.postings));
        push_varint(&mut self.entries, skips_end - self.skips_end);
        if let Some(range) = blocks {
            push_varint(&mut self.entries, range.start);
            push_varint(&mut self.entries, range.end - range.start);
        }
        self.skips_end = skips_end;
        self.last.clear();
        self.last.extend_from_slice(term);
        self.in_page += 1;
        self.terms += 1;
        Ok(())
    }

    /// Writes the index and the tail. Returns the file and the number of terms.
    pub(super) fn finish(mut self) -> Result<(SealedWriter, u64)> {
        if self.in_page > 0 {
            self.write_page(None)?;
        }
        let at = self.file.position();
        self.file.write(&self.index)?;
        let mut tail = Vec::new();
        push_tail(&mut tail, &[self.pages, self.terms, at, self.index.len() as u64]);
        self.file.write(&tail)?;
        Ok((self.file, self.terms))
    }

    /// Writes the page under construction, and adds its separator from the `next` term to the index.
    fn write_page(&mut self, next: Option<&[u8]>) -> Result<()> {
        let mut page = Vec::with_capacity(TERM_PAGE);
        page.extend_from_slice(&(self.in_page as u16).to_le_bytes());
        page.extend_from_slice(&((self.restarts.len() / TERM_RESTART_BYTES) as u16).to_le_bytes());
        page.extend_from_slice(&self.page_skips.to_le_bytes());
        page.extend_from_slice(&self.entries);
        page.resize(TERM_PAGE - self.restarts.len(), 0);
        page.extend_from_slice(&self.restarts);
        self.file.write(&page)?;
        let separator = next.map_or(self.last.as_slice(), |next| shortest_separator(&self.last, next));
        let shared = common_prefix(&self.separator, separator);
        self.index.push(shared as u8);
        self.index.push((separator.len() - shared) as u8);
        self.index.extend_from_slice(&separator[shared..]);
        self.separator.clear();
        self.separator.extend_from_slice(separator);
        self.pages += 1;
        self.in_page = 0;
        self.entries.clear();
        self.restarts.clear();
        self.page_skips = self.skips_end;
        Ok(())
    }
}

/// The shortest string that is at least `last` and less than `next`: `last` itself, or a prefix of `next`
/// that is greater than `last`.
fn shortest_separator<'a>(last: &'a [u8], next: &'a [u8]) -> &'a [u8] {
    let shared = common_prefix(last, next);
    let candidate = &next[..(shared + 1).min(next.len())];
    if candidate.len() < next.len() && candidate.len() < last.len() { candidate } else { last }
}

#[cfg(test)]
mod tests {
    use super::shortest_separator;

    #[test]
    fn separators_are_between_the_terms() {
        for (last, next) in
            [("abc", "abd"), ("a", "ab"), ("abcdef", "abx123"), ("car", "cart"), ("a", "b"), ("ab", "b")]
        {
            let found = shortest_separator(last.as_bytes(), next.as_bytes());
            assert!(found >= last.as_bytes() && found < next.as_bytes(), "{last} {next}");
        }
        assert_eq!(shortest_separator(b"abcdef", b"abx123"), b"abx");
    }
}
