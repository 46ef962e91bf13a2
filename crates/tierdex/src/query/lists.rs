//! The posting lists that a query may read, for caches that read whole lists before the evaluation.

use super::{plan::QueryPlan, plan_node::Leaf};
use crate::segment::read::{OpenSegment, Segment};
use std::{ops::Range, sync::Arc};
use tierdex_io::SealedFile;

/// The file ranges of the posting list of a term in a segment.
pub struct QueryList {
    /// Unique among the lists of open files: number of the skip data file, and an offset in that file.
    pub key: (u64, u64),
    /// The ranges of its skip record, unless that is resident, and of its blocks, in this order; not empty.
    pub ranges: Vec<FileRange>,
}

/// A range of bytes of a file.
pub struct FileRange {
    /// The file.
    pub file: Arc<SealedFile>,
    /// File offsets.
    pub range: Range<u64>,
}

impl QueryPlan {
    /// The lists of all terms in these segments of which something is to be read, by term and segment.
    pub fn lists(&self, segments: &[OpenSegment]) -> Vec<QueryList> {
        let segments = || segments.iter().enumerate();
        let lists = self.leaves.iter().flat_map(|leaf| segments().map(move |segment| (leaf, segment)));
        lists.filter_map(|(leaf, (number, segment))| query_list(leaf, number, segment)).collect()
    }
}

/// The list of a term in the segment with this number; `None` if nothing of it has to be read.
fn query_list(leaf: &Leaf, number: usize, segment: &Segment) -> Option<QueryList> {
    let field = segment.field_of_term(leaf.field);
    let info = leaf.infos[number].as_ref()?;
    let range =
        |file: &Arc<SealedFile>, range: &Range<u64>| FileRange { file: file.clone(), range: range.clone() };
    let record = field.skips_file().resident().is_none().then(|| range(field.skips_file(), &info.skips));
    let blocks = info.blocks.as_ref().map(|blocks| range(field.postings_file(), blocks));
    let ranges: Vec<FileRange> = record.into_iter().chain(blocks).collect();
    let key = (field.skips_file().number(), info.skips.start);
    (!ranges.is_empty()).then_some(QueryList { key, ranges })
}
