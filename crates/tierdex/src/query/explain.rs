//! What a query needs of a segment, and what became of its lists: plain data, filled only for those who ask.
//!
//! Of each list, `blocks = decoded + by_bound + by_range`. A block counts as *decoded* if its documents or frequencies
//! were, however often; as skipped *by bound* if evaluation came to it and passed it over because its bound, or that of
//! a window of documents which it overlaps, told that it cannot matter; as skipped *by range* if no document of it was
//! ever asked for. So of one term all blocks that are not decoded are by bound; of terms that are all required, those of
//! the rarest are by bound and those of the others by range; operators know no bounds.

use super::ops::Op;
use super::plan::{Leaf, Node, Plan};
use super::prune::{Scored, Way, needs};
use crate::cursor::Blockwise;
use crate::error::Result;
use crate::rank::TopK;
use crate::segment::read::{BlockList, Part, Segment};
use std::ops::Range;
use tierdex_io::{PAGE, SealedFile};

/// How a segment answered.
#[derive(Clone, Debug)]
pub struct Evaluation {
    /// The way chosen.
    pub way: Way,
    /// The lists that were opened, in the order of the query.
    pub lists: Vec<ListUse>,
    /// The operators and how deep each stands, if they ran.
    pub operators: Vec<(usize, String)>,
    /// What the plan knew before it read a block, a file after the other.
    pub needs: Vec<Need>,
    /// Whether prefixes or fuzzy words read terms, and prefixes their lists, that `needs` does not name.
    pub walks: bool,
}

/// What became of a list.
#[derive(Clone, Debug)]
pub struct ListUse {
    /// The field's name.
    pub field: String,
    /// The term.
    pub term: String,
    /// Documents of the segment that hold it.
    pub documents: u32,
    /// What none of its scores reaches: its inverse document frequency times `k1 + 1` and its boost.
    pub weight: f32,
    /// What its documents score at most by its bounds; `None` where nobody asked for bounds.
    pub highest_bound: Option<f32>,
    /// What became of its blocks.
    pub blocks: Blockwise,
    /// Bytes of its skip record, or of the whole list if it is shorter than a block.
    pub skips_bytes: u64,
}

/// Ranges of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    /// Name of the file.
    pub file: String,
    /// What is asked for first, before any score is known.
    pub first: Vec<Range<u64>>,
    /// What may be asked for at all.
    pub at_most: Vec<Range<u64>>,
}

/// What it takes to read ranges once, neighbours together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Ranges, those that meet being one.
    pub ranges: u64,
    /// Bytes in them.
    pub bytes: u64,
    /// Reads of neighbouring pages, and of the checksums of each 4 MiB.
    pub reads: u64,
    /// Bytes of these.
    pub read_bytes: u64,
}

/// Bytes of payload whose checksums stand in a page of their own.
const CHECKSUMMED: u64 = PAGE * PAGE / 4;

impl Cost {
    /// Of these ranges of one file.
    pub fn of(ranges: &[Range<u64>]) -> Cost {
        let merged = merge(ranges.to_vec());
        let pages = merged.iter().map(|range| range.start / PAGE..range.end.div_ceil(PAGE)).collect();
        let pages = merge(pages);
        let groups =
            pages.iter().map(|run| run.start * PAGE / CHECKSUMMED..(run.end * PAGE).div_ceil(CHECKSUMMED));
        let groups: u64 = merge(groups.collect()).iter().map(|run| run.end - run.start).sum();
        Cost {
            ranges: merged.len() as u64,
            bytes: merged.iter().map(|range| range.end - range.start).sum(),
            reads: pages.len() as u64 + groups,
            read_bytes: PAGE * (groups + pages.iter().map(|run| run.end - run.start).sum::<u64>()),
        }
    }

    /// Of files together.
    #[must_use]
    pub fn and(self, other: Cost) -> Cost {
        Cost {
            ranges: self.ranges + other.ranges,
            bytes: self.bytes + other.bytes,
            reads: self.reads + other.reads,
            read_bytes: self.read_bytes + other.read_bytes,
        }
    }
}

/// In order, with those that meet as one, and without empty ones.
fn merge(mut ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    ranges.retain(|range| !range.is_empty());
    ranges.sort_unstable_by_key(|range| range.start);
    let mut merged: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        match merged.last_mut() {
            Some(last) if last.end >= range.start => last.end = last.end.max(range.end),
            _ => merged.push(range),
        }
    }
    merged
}

impl Default for Evaluation {
    fn default() -> Evaluation {
        Evaluation { way: Way::Nothing, lists: vec![], operators: vec![], needs: vec![], walks: false }
    }
}

impl Evaluation {
    /// Notes what the lists may need, and has them note what becomes of their blocks.
    pub(super) fn begin(
        &mut self,
        segment: &Segment,
        way: Way,
        lists: &mut [Scored<'_>],
        count: bool,
        top: &TopK,
    ) -> Result<()> {
        self.way = way;
        let needs = needs(lists, way, count, (top.k(), top.least()));
        for (list, needs) in lists.iter_mut().zip(needs) {
            list.trace();
            let Some(skips) = list.skips() else { continue };
            let (first, at_most) = (byte_ranges(skips, &needs.first), byte_ranges(skips, &needs.at_most));
            let field = segment.field(list.field());
            for (part, file) in [(Part::Docs, field.docs()), (Part::Freqs, field.freqs())] {
                self.need(file, first(part)?, at_most(part)?);
            }
        }
        Ok(())
    }

    /// Notes what became of the lists.
    pub(super) fn end<'a>(
        &mut self,
        segment: &Segment,
        number: usize,
        lists: impl Iterator<Item = (&'a Leaf<'a>, &'a Scored<'a>)>,
    ) {
        for (leaf, list) in lists {
            let mut blocks = list.traced();
            if self.way == Way::OneTerm {
                // Its bounds were all looked at, if only those of 32 blocks together.
                blocks.by_bound += std::mem::take(&mut blocks.by_range);
            }
            let bounded = !matches!(self.way, Way::CountAny | Way::CountFrequent);
            let bound = list.highest_bound().filter(|_| bounded);
            self.lists.push(list_use(leaf, number, segment, blocks, bound));
        }
    }

    /// Adds ranges of a file.
    fn need(&mut self, file: &SealedFile, first: Vec<Range<u64>>, at_most: Vec<Range<u64>>) {
        let place = self.needs.iter().position(|need| need.file == file.name()).unwrap_or_else(|| {
            self.needs.push(Need { file: file.name().to_string(), first: vec![], at_most: vec![] });
            self.needs.len() - 1
        });
        self.needs[place].first.extend(first);
        self.needs[place].at_most.extend(at_most);
    }

    /// Adds a range that is needed in any case.
    fn need_first(&mut self, file: &SealedFile, range: Range<u64>) {
        self.need(file, vec![range.clone()], vec![range]);
    }
}

/// Bytes of blocks, in one of the files.
fn byte_ranges<'a>(
    list: &'a BlockList<'_>,
    blocks: &'a [Range<usize>],
) -> impl Fn(Part) -> Result<Vec<Range<u64>>> + 'a {
    move |part| {
        let bytes =
            |run: &Range<usize>| Ok(list.range(part, run.start)?.start..list.range(part, run.end - 1)?.end);
        blocks.iter().map(bytes).collect()
    }
}

fn list_use(
    leaf: &Leaf<'_>,
    number: usize,
    segment: &Segment,
    blocks: Blockwise,
    highest_bound: Option<f32>,
) -> ListUse {
    let info = leaf.infos[number].as_ref();
    ListUse {
        field: segment.field(leaf.field).field().name.clone(),
        term: leaf.term.to_string(),
        documents: info.map_or(0, |info| info.documents),
        weight: leaf.scorer.weight(),
        highest_bound,
        blocks,
        skips_bytes: info.map_or(0, |info| info.skips.end - info.skips.start),
    }
}

impl Plan<'_> {
    /// Notes what looking terms up in the segment of that number needs, whichever way is chosen then.
    pub fn note_terms(&self, number: usize, segment: &Segment, notes: &mut Evaluation) {
        self.root.each_leaf(&mut |leaf, _| note_leaf(leaf, number, segment, notes));
        notes.walks = self.root.walks();
    }

    /// Notes the operators of the segment of that number, and has their cursors note what becomes of their blocks.
    pub fn begin_ops(
        &self,
        number: usize,
        segment: &Segment,
        op: &mut Op<'_>,
        notes: &mut Evaluation,
    ) -> Result<()> {
        notes.way = Way::Operators;
        self.root.describe(segment, 0, &mut notes.operators);
        op.each_cursor(&mut |cursor| cursor.trace());
        let mut noted = Ok(());
        let mut leaves = self.root.leaves_of(number).into_iter();
        op.each_cursor(&mut |cursor| {
            let (Some((leaf, in_phrase)), Some(list)) = (leaves.next(), cursor.skips()) else { return };
            let field = segment.field(leaf.field);
            let files = [(Part::Docs, Some(field.docs())), (Part::Freqs, Some(field.freqs()))];
            let positions = (Part::Positions, field.positions().filter(|_| in_phrase));
            for (part, file) in files.into_iter().chain([positions]) {
                let Some(file) = file else { continue };
                match list.whole(part) {
                    Ok(range) => notes.need(file, vec![], vec![range]),
                    Err(error) if noted.is_ok() => noted = Err(error),
                    Err(_) => {}
                }
            }
        });
        noted
    }

    /// Notes what became of the lists of the operators.
    pub fn end_ops(&self, number: usize, segment: &Segment, op: &mut Op<'_>, notes: &mut Evaluation) {
        let mut leaves = self.root.leaves_of(number).into_iter();
        op.each_cursor(&mut |cursor| {
            if let Some((leaf, _)) = leaves.next() {
                notes.lists.push(list_use(leaf, number, segment, cursor.traced(), None));
            }
        });
    }
}

/// The page of its field's dictionary in which a term is looked up, its skip record, and its field's lengths.
fn note_leaf(leaf: &Leaf<'_>, number: usize, segment: &Segment, notes: &mut Evaluation) {
    let field = segment.field(leaf.field);
    if let Some(page) = field.terms().page_of(leaf.term.as_bytes()) {
        let start = field.terms().page_offset(page);
        notes.need_first(field.terms().file(), start..start + PAGE);
    }
    if let Some(info) = &leaf.infos[number] {
        notes.need_first(field.skips(), info.skips.clone());
        notes.need_first(field.norms_file(), field.norms_file().payload());
    }
}

impl<'q> Node<'q> {
    /// Calls `body` with each term, and whether it stands in a phrase; in the order of [`Op::each_cursor`].
    fn each_leaf<'a>(&'a self, body: &mut dyn FnMut(&'a Leaf<'q>, bool)) {
        match self {
            Node::Term(leaf) => body(leaf, false),
            Node::Phrase(leaves, ..) => leaves.iter().for_each(|(_, leaf)| body(leaf, true)),
            Node::Bool { must, filter, should, must_not, .. } => {
                let clauses = must.iter().chain(filter).chain(should).chain(must_not);
                clauses.for_each(|clause| clause.each_leaf(body));
            }
            Node::Prefix(..) | Node::All(_) | Node::Nothing => {}
        }
    }

    /// The terms that have a cursor in the segment of that number, in the order of [`Op::each_cursor`].
    fn leaves_of(&self, number: usize) -> Vec<(&Leaf<'q>, bool)> {
        match self {
            Node::Term(leaf) => leaf.infos[number].iter().map(|_| (leaf, false)).collect(),
            Node::Phrase(leaves, ..) => {
                let documents = |leaf: &Leaf<'_>| leaf.infos[number].as_ref().map(|info| info.documents);
                if leaves.iter().any(|(_, leaf)| documents(leaf).is_none()) {
                    return Vec::new();
                }
                let mut leaves: Vec<_> = leaves.iter().map(|(_, leaf)| (leaf, true)).collect();
                leaves.sort_by_key(|(leaf, _)| documents(leaf));
                leaves
            }
            Node::Bool { must, filter, should, must_not, .. } => {
                let clauses = must.iter().chain(filter).chain(should).chain(must_not);
                clauses.flat_map(|clause| clause.leaves_of(number)).collect()
            }
            Node::Prefix(..) | Node::All(_) | Node::Nothing => Vec::new(),
        }
    }

    /// Whether it reads more than its terms.
    fn walks(&self) -> bool {
        match self {
            Node::Prefix(..) => true,
            // Only a fuzzy word owns its terms.
            Node::Term(leaf) => matches!(leaf.term, std::borrow::Cow::Owned(_)),
            Node::Bool { must, filter, should, must_not, .. } => {
                must.iter().chain(filter).chain(should).chain(must_not).any(Node::walks)
            }
            Node::Phrase(..) | Node::All(_) | Node::Nothing => false,
        }
    }

    /// Adds a line for each operator.
    fn describe(&self, segment: &Segment, depth: usize, lines: &mut Vec<(usize, String)>) {
        let field = |number: usize| &segment.field(number).field().name;
        match self {
            Node::Term(leaf) => lines.push((depth, format!("term {}:{}", field(leaf.field), leaf.term))),
            Node::Phrase(leaves, _, number, sloppy) => {
                let words: Vec<&str> = leaves.iter().map(|(_, leaf)| &*leaf.term).collect();
                let kind = if sloppy.is_some() { "phrase with slop" } else { "phrase" };
                lines.push((depth, format!("{kind} {}:\"{}\"", field(*number), words.join(" "))));
            }
            Node::Prefix(number, prefix, ..) => {
                let what = format!("prefix {}:{prefix}*, its documents gathered before", field(*number));
                lines.push((depth, what));
            }
            Node::All(_) => lines.push((depth, "all documents".to_string())),
            Node::Nothing => lines.push((depth, "nothing".to_string())),
            Node::Bool { must, filter, should, must_not, minimum } => {
                lines.push((depth, "bool".to_string()));
                let any = format!("should, at least {minimum}");
                let groups = [("must", must), ("filter", filter), (&*any, should), ("must not", must_not)];
                for (name, clauses) in groups.into_iter().filter(|(_, clauses)| !clauses.is_empty()) {
                    lines.push((depth + 1, name.to_string()));
                    clauses.iter().for_each(|clause| clause.describe(segment, depth + 2, lines));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_share_pages_are_read_together() {
        assert_eq!(Cost::of(&[]), Cost::default());
        let cost = Cost::of(&[64..100, 100..200, 4000..4097]);
        assert_eq!((cost.ranges, cost.bytes, cost.reads, cost.read_bytes), (2, 233, 2, 3 * PAGE));
        let apart = Cost::of(&[10 * PAGE..10 * PAGE + 1, 64..65]);
        assert_eq!((apart.reads, apart.read_bytes), (3, 3 * PAGE));
        let far = Cost::of(std::slice::from_ref(&(CHECKSUMMED - 1..CHECKSUMMED + 1)));
        assert_eq!((far.ranges, far.reads, far.read_bytes), (1, 3, 4 * PAGE));
    }
}
