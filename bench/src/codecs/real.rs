//! The lists of an index that is there.
//!
//! You have its directory; you get the documents and the frequencies of every term that stands in at least 256
//! documents of a segment, by length class. Larger indexes are thinned evenly over their terms.

use super::data::{Group, Kind};
use crate::{Error, Result};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use tierdex::cursor::{NO_DOCUMENT, PostingsCursor};
use tierdex::index::Index;
use tierdex::io::PosixDisk;
use tierdex::segment::read::{FieldReader, TermInfo};

/// The fewest documents of a term.
const DOCUMENTS_MIN: u32 = 256;

/// Lists by the K of `2^K` to `2^(K+1) - 1` documents.
pub(super) struct RealLists {
    classes: BTreeMap<u32, Class>,
    /// Terms in at least [`DOCUMENTS_MIN`] documents.
    pub(super) terms: u64,
    /// One of so many of these terms was taken.
    pub(super) stride: u64,
}

/// Lists of one length class, documents and frequencies in the same order.
#[derive(Default)]
struct Class {
    documents: Vec<Vec<u32>>,
    frequencies: Vec<Vec<u32>>,
}

impl RealLists {
    /// Reads lists of about `ints_max` documents together, or fewer.
    pub(super) fn read(dir: &Path, ints_max: u64) -> Result<RealLists> {
        let index = Index::open_on(Arc::new(PosixDisk::open(dir)?))?;
        let (mut terms, mut ints) = (0, 0);
        long_terms(&index, &mut |_, term| {
            terms += 1;
            ints += u64::from(term.documents);
            Ok(())
        })?;
        if terms == 0 {
            let name = dir.display();
            return Err(Error::Failed(format!(
                "{name}: no term stands in {DOCUMENTS_MIN} documents or more"
            )));
        }
        let mut lists = RealLists { classes: BTreeMap::new(), terms, stride: ints.div_ceil(ints_max) };
        let mut number = 0;
        long_terms(&index, &mut |field, term| {
            if number % lists.stride == 0 {
                lists.add(field, term)?;
            }
            number += 1;
            Ok(())
        })?;
        Ok(lists)
    }

    fn add(&mut self, field: &FieldReader, term: TermInfo) -> Result<()> {
        let class = self.classes.entry(term.documents.ilog2()).or_default();
        let (mut documents, mut frequencies) = (Vec::new(), Vec::new());
        let mut cursor = PostingsCursor::open(field, term)?;
        while cursor.advance(0)? != NO_DOCUMENT {
            let (some, their) = cursor.rest_of_block()?;
            let count = some.len();
            documents.extend_from_slice(some);
            frequencies.extend_from_slice(their);
            cursor.skip(count)?;
        }
        class.documents.push(documents);
        class.frequencies.push(frequencies);
        Ok(())
    }

    /// Documents, frequencies as they are, and frequencies less one, as an index stores them.
    pub(super) fn groups(
        &self,
        wanted: impl Fn(Kind) -> bool,
        each: &mut dyn FnMut(&Group) -> Result<()>,
    ) -> Result<()> {
        type Lists = fn(&Class) -> Vec<Vec<u32>>;
        let sets: [(&str, Kind, Lists); 3] = [
            ("real", Kind::Ids, |class| class.documents.clone()),
            ("real-freq", Kind::Frequencies, |class| class.frequencies.clone()),
            ("real-freq-less-one", Kind::Frequencies, |class| less_one(&class.frequencies)),
        ];
        for (dataset, kind, lists) in sets.into_iter().filter(|(_, kind, _)| wanted(*kind)) {
            for (&k, class) in &self.classes {
                each(&Group { dataset, kind, k: Some(k), lists: lists(class) })?;
            }
        }
        Ok(())
    }
}

fn less_one(lists: &[Vec<u32>]) -> Vec<Vec<u32>> {
    lists.iter().map(|list| list.iter().map(|frequency| frequency - 1).collect()).collect()
}

/// Calls `each` for every term of enough documents, segment after segment, field after field.
fn long_terms(index: &Index, each: &mut dyn FnMut(&FieldReader, TermInfo) -> Result<()>) -> Result<()> {
    for field in index.segments().iter().flat_map(|segment| segment.fields()) {
        let mut terms = field.terms().stream();
        while let Some((_, term)) = terms.next()? {
            if term.documents >= DOCUMENTS_MIN {
                each(field, term)?;
            }
        }
    }
    Ok(())
}
