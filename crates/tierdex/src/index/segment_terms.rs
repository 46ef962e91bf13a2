//! Visits the terms of a field in several segments, in order of the terms.

use crate::segment::read::{FieldReader, Segment, TermInfo, TermStream};
use crate::{Result, cursor::ListsInTermOrder};

/// A cursor over the terms of a field in one segment, for a merge of several.
pub(crate) struct SegmentTerms<'a> {
    pub(crate) field: &'a FieldReader,
    /// Number of the segment.
    pub(crate) number: usize,
    /// First document of the segment, in the numbers of all segments.
    pub(crate) base: u32,
    /// Opens the posting lists of the terms.
    pub(crate) lists: ListsInTermOrder<'static>,
    stream: TermStream<'a>,
    /// The entry of the current term of the stream, unless it was taken.
    info: Option<TermInfo>,
}

impl<'a> SegmentTerms<'a> {
    /// Cursors at the first terms of a field in adjacent segments, those that have the field.
    pub(crate) fn open(
        segments: impl Iterator<Item = &'a Segment>,
        field: usize,
    ) -> Result<Vec<SegmentTerms<'a>>> {
        SegmentTerms::open_from(segments, field, &[])
    }

    /// As [`SegmentTerms::open`], at the terms from `first` on.
    pub(crate) fn open_from(
        segments: impl Iterator<Item = &'a Segment>,
        field: usize,
        first: &[u8],
    ) -> Result<Vec<SegmentTerms<'a>>> {
        let mut base = 0;
        let mut opened = Vec::new();
        for (number, segment) in segments.enumerate() {
            if let Some(field) = segment.field(field) {
                let (stream, lists) = (field.terms().stream_from(first)?, ListsInTermOrder::default());
                let mut terms = SegmentTerms { field, number, base, lists, stream, info: None };
                terms.info = terms.stream.advance()?;
                while terms.info.is_some() && terms.stream.term() < first {
                    terms.info = terms.stream.advance()?;
                }
                opened.push(terms);
            }
            base += segment.documents();
        }
        Ok(opened)
    }

    /// Copies the smallest current term of all cursors; false if all are at their end.
    pub(crate) fn copy_smallest(all: &[SegmentTerms<'_>], term: &mut Vec<u8>) -> bool {
        let current = all.iter().filter(|terms| terms.info.is_some()).map(|terms| terms.stream.term());
        let Some(smallest) = current.min() else { return false };
        term.clear();
        term.extend_from_slice(smallest);
        true
    }

    /// If the cursor is at `term`, returns its entry and moves to the next term.
    pub(crate) fn take(&mut self, term: &[u8]) -> Result<Option<TermInfo>> {
        let taken = if self.stream.term() == term { self.info.take() } else { None };
        if taken.is_some() {
            self.info = self.stream.advance()?;
        }
        Ok(taken)
    }
}
