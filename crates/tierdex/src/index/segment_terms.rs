//! Visits the terms of a field in several segments, in order of the terms.

use crate::segment::read::{FieldReader, Segment, TermInfo, TermStream};
use crate::{Result, cursor::ListsInTermOrder};

/// A cursor over the terms of a field in one segment, for a merge of several.
pub(crate) struct SegmentTerms<'a> {
    pub(crate) field: &'a FieldReader,
    /// First document of the segment, in the numbers of all segments.
    pub(crate) base: u32,
    /// Opens the posting lists of the terms.
    pub(crate) lists: ListsInTermOrder<'static>,
    stream: TermStream<'a>,
    term: Vec<u8>,
    info: Option<TermInfo>,
}

impl<'a> SegmentTerms<'a> {
    /// Cursors at the first terms of a field in adjacent segments, those that have the field.
    pub(crate) fn open(
        segments: impl Iterator<Item = &'a Segment>,
        field: usize,
    ) -> Result<Vec<SegmentTerms<'a>>> {
        let mut base = 0;
        let mut opened = Vec::new();
        for segment in segments {
            if let Some(field) = segment.field(field) {
                let (stream, lists) = (field.terms().stream(), ListsInTermOrder::default());
                let mut terms = SegmentTerms { field, base, lists, stream, term: Vec::new(), info: None };
                terms.advance()?;
                opened.push(terms);
            }
            base += segment.documents();
        }
        Ok(opened)
    }

    /// The smallest current term of all cursors; `None` if all are at their end.
    pub(crate) fn smallest(all: &[SegmentTerms<'_>]) -> Option<Vec<u8>> {
        all.iter().filter(|terms| terms.info.is_some()).map(|terms| &terms.term).min().cloned()
    }

    /// The entry of `term`, if the cursor is at this term.
    pub(crate) fn info(&self, term: &[u8]) -> Option<&TermInfo> {
        self.info.as_ref().filter(|_| self.term == term)
    }

    /// If the cursor is at `term`, returns its entry and moves to the next term.
    pub(crate) fn take(&mut self, term: &[u8]) -> Result<Option<TermInfo>> {
        let taken = if self.term == term { self.info.take() } else { None };
        if taken.is_some() {
            self.advance()?;
        }
        Ok(taken)
    }

    fn advance(&mut self) -> Result<()> {
        self.info = match self.stream.next()? {
            Some((term, info)) => {
                self.term.clear();
                self.term.extend_from_slice(term);
                Some(info)
            }
            None => None,
        };
        Ok(())
    }
}
