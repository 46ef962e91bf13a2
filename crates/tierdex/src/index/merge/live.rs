//! The live documents of a segment, and the numbers and statistics that they have in a merge.

use crate::cursor::{ListsInTermOrder, NO_DOCUMENT};
use crate::index::stop::StopSignal;
use crate::segment::read::{FieldReader, Norms, Segment};
use crate::segment::{DeletedDocuments, layout::FieldStats};
use crate::{Error, Result, transform::norm};

/// A segment to merge.
#[derive(Clone, Copy)]
pub(in crate::index) struct MergeInput<'a> {
    pub(in crate::index) segment: &'a Segment,
    /// Its deleted documents.
    pub(in crate::index) deleted: Option<&'a DeletedDocuments>,
    /// Exact statistics of each field in the live documents. Without them the merge computes them,
    /// which may need another pass over the lists.
    pub(in crate::index) live: Option<&'a [FieldStats]>,
}

/// The live documents of an input of a merge.
pub(super) struct LiveDocuments<'a> {
    segment: &'a Segment,
    deleted: Option<DeletedBefore<'a>>,
    /// Exact statistics of the fields, if the caller knows them.
    stats: Option<&'a [FieldStats]>,
    /// Number of live documents.
    documents: u32,
    /// Number of the first one in the merged segment.
    base: u32,
}

/// Deleted documents, with their number before each word of the bitset.
struct DeletedBefore<'a> {
    documents: &'a DeletedDocuments,
    before: Vec<u32>,
}

impl<'a> LiveDocuments<'a> {
    /// Numbers the live documents of all inputs.
    pub(super) fn of_inputs(inputs: &[MergeInput<'a>]) -> Result<Vec<LiveDocuments<'a>>> {
        let mut base = 0u32;
        let of_input = |&MergeInput { segment, deleted, live }: &MergeInput<'a>| {
            let all = segment.documents();
            let deleted = deleted.filter(|deleted| !deleted.is_empty());
            if deleted.is_some_and(|deleted| deleted.documents() != all) {
                return Err(Error::Failed("deleted documents of another segment".to_string()));
            }
            let documents = all - deleted.map_or(0, DeletedDocuments::len);
            let live = LiveDocuments {
                segment,
                deleted: deleted.map(DeletedBefore::of),
                stats: live,
                documents,
                base,
            };
            // The sum of all is checked before a number is used.
            base = base.saturating_add(documents);
            Ok(live)
        };
        inputs.iter().map(of_input).collect()
    }

    pub(super) fn segment(&self) -> &'a Segment {
        self.segment
    }

    /// Number of live documents.
    pub(super) fn documents(&self) -> u32 {
        self.documents
    }

    /// Whether a document of this range of the segment is deleted.
    pub(super) fn has_deleted_within(&self, range: std::ops::Range<u32>) -> bool {
        self.deleted.as_ref().is_some_and(|deleted| deleted.documents.count_within(range) > 0)
    }

    /// The number in the merged segment of a document of the segment; `None` if it is deleted.
    #[inline]
    pub(super) fn number(&self, document: u32) -> Option<u32> {
        match &self.deleted {
            None => Some(self.base + document),
            Some(deleted) => deleted.live_before(document).map(|before| self.base + before),
        }
    }

    /// The live documents of the segment.
    pub(super) fn iter(&self) -> impl Iterator<Item = u32> {
        (0..self.segment.documents()).filter(|document| self.number(*document).is_some())
    }

    /// Sum of the lengths of a field in the live documents, exactly.
    ///
    /// Norms give it, unless a deleted document is so long that its norm is not exact: then the frequencies
    /// of all lists are summed.
    pub(super) fn tokens(&self, number: usize, stop: &StopSignal) -> Result<u64> {
        let all = self.segment.meta().stats(number).tokens;
        let (Some(deleted), Some(field)) = (&self.deleted, self.segment.field(number)) else {
            return Ok(all);
        };
        if let Some(stats) = self.stats {
            return Ok(stats.get(number).map_or(0, |stats| stats.tokens));
        }
        let length = |document: u32| match field.norms()? {
            Norms::Exact(lengths) => Ok(Some(lengths.get(document))),
            norms => {
                let code = norms.code(document);
                Ok((norm::floor(code) == norm::ceiling(code)).then(|| norm::floor(code)))
            }
        };
        let lengths = deleted.documents.iter().map(length).collect::<Result<Option<Vec<u32>>>>()?;
        let tokens = match lengths {
            Some(lengths) => lengths.into_iter().map(u64::from).sum(),
            None => count_tokens(field, deleted.documents, stop)?,
        };
        Ok(all.saturating_sub(tokens))
    }
}

impl<'a> DeletedBefore<'a> {
    fn of(documents: &'a DeletedDocuments) -> DeletedBefore<'a> {
        let mut sum = 0;
        let before = documents.words().map(|word| {
            sum += word.count_ones();
            sum - word.count_ones()
        });
        DeletedBefore { before: before.collect(), documents }
    }

    /// Number of live documents before this one; `None` if this one is deleted.
    #[inline]
    fn live_before(&self, document: u32) -> Option<u32> {
        let (word, bit) = ((document / u64::BITS) as usize, document % u64::BITS);
        let bits = self.documents.word(word);
        let in_word = bits & ((1 << bit) - 1);
        (bits >> bit & 1 == 0).then(|| document - self.before[word] - in_word.count_ones())
    }
}

/// Sum of the frequencies of all terms of a field in some documents.
fn count_tokens(field: &FieldReader, documents: &DeletedDocuments, stop: &StopSignal) -> Result<u64> {
    let (mut terms, mut lists) = (field.terms().stream(), ListsInTermOrder::default());
    let mut tokens = 0;
    while let Some(info) = terms.advance()? {
        stop.check()?;
        tokens += lists.with_cursor(field, info, |cursor| {
            let (mut tokens, mut document) = (0, cursor.advance(0)?);
            while document != NO_DOCUMENT {
                let (of_block, frequencies) = cursor.rest_of_block()?;
                let count = of_block.len();
                let deleted =
                    of_block.iter().zip(frequencies).filter(|(document, _)| documents.contains(**document));
                tokens += deleted.map(|(_, frequency)| u64::from(*frequency)).sum::<u64>();
                cursor.skip(count)?;
                document = cursor.document();
            }
            Ok(tokens)
        })?;
    }
    Ok(tokens)
}
