//! The lists of an existing index: documents and frequencies of every term with at least 256 documents in a
//! segment, by length class. Of a large index every n-th such term is taken.

use crate::codecs::list_group::{ListGroup, ValueKind};
use crate::{Error, Result, held_index::open_index, postings::read_postings};
use std::{collections::BTreeMap, path::Path};
use tierdex::internal::segment::read::{FieldReader, TermInfo};
use tierdex::{Index, StopSignal};

/// Terms with fewer documents in a segment are not read.
const DOCUMENTS_MIN: u32 = 256;

/// Lists by length class K: `2^K` to `2^(K+1) - 1` documents.
pub(super) struct IndexLists {
    classes: BTreeMap<u32, LengthClass>,
}

/// Lists of one length class, documents and frequencies in the same order.
#[derive(Default)]
struct LengthClass {
    documents: Vec<Vec<u32>>,
    frequencies: Vec<Vec<u32>>,
}

impl IndexLists {
    /// Reads lists with about `ints_max` documents in all, or fewer.
    pub(super) fn read(dir: &Path, ints_max: u64, stop: &StopSignal) -> Result<IndexLists> {
        let index = open_index(dir)?;
        let (mut terms, mut ints) = (0, 0);
        each_long_term(&index, &mut |_, term| {
            stop.check()?;
            terms += 1;
            ints += u64::from(term.document_frequency);
            Ok(())
        })?;
        if terms == 0 {
            let name = dir.display();
            return Err(Error::Failed(format!("{name}: no term has {DOCUMENTS_MIN} documents or more")));
        }
        let stride = ints.div_ceil(ints_max);
        let mut classes: BTreeMap<u32, LengthClass> = BTreeMap::new();
        let mut number = 0u64;
        each_long_term(&index, &mut |field, term| {
            stop.check()?;
            if number.is_multiple_of(stride) {
                let class = classes.entry(term.document_frequency.ilog2()).or_default();
                let list = read_postings(field, term)?;
                class.documents.push(list.documents);
                class.frequencies.push(list.frequencies);
            }
            number += 1;
            Ok(())
        })?;
        Ok(IndexLists { classes })
    }

    /// Passes groups of documents, of frequencies, and of frequencies minus one (as an index stores them) to
    /// `each`.
    pub(super) fn for_each_group(
        &self,
        selected: impl Fn(ValueKind) -> bool,
        each: &mut dyn FnMut(&ListGroup) -> Result<()>,
    ) -> Result<()> {
        type Lists = fn(&LengthClass) -> Vec<Vec<u32>>;
        let sets: [(&str, ValueKind, Lists); 3] = [
            ("real", ValueKind::Ids, |class| class.documents.clone()),
            ("real-freq", ValueKind::Frequencies, |class| class.frequencies.clone()),
            ("real-freq-less-one", ValueKind::Frequencies, |class| frequencies_less_one(&class.frequencies)),
        ];
        for (dataset, kind, lists) in sets.into_iter().filter(|(_, kind, _)| selected(*kind)) {
            for (&k, class) in &self.classes {
                each(&ListGroup { dataset, kind, k: Some(k), lists: lists(class) })?;
            }
        }
        Ok(())
    }
}

fn frequencies_less_one(lists: &[Vec<u32>]) -> Vec<Vec<u32>> {
    lists.iter().map(|list| list.iter().map(|frequency| frequency - 1).collect()).collect()
}

/// Calls `each` for every term with enough documents, by segment and field.
fn each_long_term(index: &Index, each: &mut dyn FnMut(&FieldReader, TermInfo) -> Result<()>) -> Result<()> {
    for field in index.segments().iter().flat_map(|segment| segment.fields()) {
        let mut terms = field.terms().stream();
        while let Some((_, term)) = terms.next()? {
            if term.document_frequency >= DOCUMENTS_MIN {
                each(field, term)?;
            }
        }
    }
    Ok(())
}
