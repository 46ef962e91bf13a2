//! Compares the deletes of a segment with its dictionaries and norms.

use crate::segment::deleted_statistics::{DeletedStatistics, FieldDeletes, TermDeletes};
use crate::segment::read::{FieldReader, Norms, Segment, TermInfo, TermStream};
use crate::segment::{DeletedDocuments, ManifestSegment, SegmentDeletes};
use crate::{Error, Result, limits::FIELD_TOKENS_MAX, transform::norm};

/// Checks the statistics of all deleted documents of a segment; that the files fit each other was checked
/// when they were opened.
pub(super) fn check_deletes(segment: &Segment, of: &ManifestSegment, deletes: &SegmentDeletes) -> Result<()> {
    let known = deletes.layers().iter().filter(|layer| layer.are_terms_known()).map(|layer| &**layer);
    let known = DeletedStatistics::merge(&known.collect::<Vec<_>>())?;
    // The last layer is the last file of the segment.
    let file = of.file_names().last().unwrap_or_default();
    let corrupt = |what: String| Error::corrupt(&file, 0, what);
    for (number, field) in segment.fields().iter().enumerate() {
        let expected = FieldSums::of(field.norms()?, deletes.documents());
        if let Some(what) = expected.find_difference(sum_of(deletes, number), deletes.are_terms_known()) {
            return Err(corrupt(format!("statistics of deleted documents, field {number}: {what}")));
        }
    }
    let mut checkers = segment.fields().iter().map(TermsChecker::new).collect::<Vec<_>>();
    known.for_each(|field, term, deletes| {
        let checker = checkers.get_mut(field).ok_or_else(|| corrupt("a term of no field".to_string()))?;
        if checker.check(term, deletes)? {
            return Ok(());
        }
        let term = String::from_utf8_lossy(term);
        Err(corrupt(format!(
            "the segment has fewer occurrences of `{}` than are deleted",
            term.escape_debug()
        )))
    })?;
    for (number, checker) in checkers.iter().enumerate() {
        if checker.occurrences != known.field(number).tokens {
            return Err(corrupt(format!("the terms of field {number} do not have all its deleted tokens")));
        }
    }
    Ok(())
}

/// Deleted documents and tokens of a field in all layers.
fn sum_of(deletes: &SegmentDeletes, field: usize) -> FieldDeletes {
    let mut sum = FieldDeletes::default();
    for of in deletes.layers().iter().map(|layer| layer.field(field)) {
        sum.documents = sum.documents.saturating_add(of.documents);
        sum.tokens = sum.tokens.saturating_add(of.tokens);
    }
    sum
}

/// What the norms say about the deleted documents of a field.
struct FieldSums {
    documents: u32,
    /// Bounds of the number of tokens: equal if all lengths are known exactly.
    tokens_min: u64,
    tokens_max: u64,
}

impl FieldSums {
    fn of(norms: &Norms, deleted: &DeletedDocuments) -> FieldSums {
        let mut sums = FieldSums { documents: 0, tokens_min: 0, tokens_max: 0 };
        for document in deleted.iter() {
            let (min, max) = match norms {
                Norms::Exact(lengths) => (lengths.get(document), lengths.get(document)),
                Norms::Byte(codes) => {
                    let code = codes[document as usize];
                    (norm::floor(code), norm::ceiling(code).min(FIELD_TOKENS_MAX))
                }
            };
            sums.documents += u32::from(min > 0);
            sums.tokens_min += u64::from(min);
            sums.tokens_max += u64::from(max);
        }
        sums
    }

    /// What is wrong with the statistics of a field. Tokens are approximate if terms are not known.
    fn find_difference(&self, found: FieldDeletes, are_terms_known: bool) -> Option<String> {
        let FieldSums { documents, tokens_min, tokens_max } = self;
        if found.documents != *documents {
            Some(format!("{} documents; their lengths say {documents}", found.documents))
        } else if are_terms_known && !(*tokens_min..=*tokens_max).contains(&found.tokens) {
            Some(format!("{} tokens; the lengths say {tokens_min} to {tokens_max}", found.tokens))
        } else {
            None
        }
    }
}

/// Compares deleted terms of a field, in ascending order, with its dictionary.
struct TermsChecker<'a> {
    stream: TermStream<'a>,
    /// The entry of the current term of the stream, once there is one.
    info: Option<TermInfo>,
    /// Sum over the deleted terms so far.
    occurrences: u64,
}

impl<'a> TermsChecker<'a> {
    fn new(field: &'a FieldReader) -> TermsChecker<'a> {
        TermsChecker { stream: field.terms().stream(), info: None, occurrences: 0 }
    }

    /// Whether the dictionary has the term, and at least as often as in the deleted documents.
    fn check(&mut self, term: &[u8], deletes: TermDeletes) -> Result<bool> {
        self.occurrences = self.occurrences.saturating_add(deletes.occurrences);
        while self.info.is_none() || self.stream.term() < term {
            self.info = self.stream.advance()?;
            if self.info.is_none() {
                return Ok(false);
            }
        }
        let fits = |info: &TermInfo| {
            let documents = info.document_frequency.checked_sub(deletes.documents);
            let occurrences = info.occurrences.checked_sub(deletes.occurrences);
            // The documents that are left have at least one occurrence each.
            match (documents, occurrences) {
                (Some(0), occurrences) => occurrences == Some(0),
                (Some(documents), Some(occurrences)) => occurrences >= u64::from(documents),
                _ => false,
            }
        };
        Ok(self.stream.term() == term && self.info.as_ref().is_some_and(fits))
    }
}
