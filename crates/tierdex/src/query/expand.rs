//! Expands prefixes and fuzzy words to terms, over all segments together, so that the expansion does not
//! depend on the division of documents into segments.

use super::{
    collection::SegmentLists,
    fuzzy::Levenshtein,
    plan_node::{InfoBySegment, PrefixClause, TermPrefix},
};
use crate::limits::{FUZZY_EXPANSIONS_MAX, PREFIX_EXPANSIONS_MAX};
use crate::rank::WordCandidates;
use crate::segment::deletes::DeletesCursor;
use crate::segment::read::{Automaton, BlockSource, FieldReader, OpenSegment, TermInfo, TermWalk};
use crate::{Error, Result, text::first_cluster};
use std::{cmp::Reverse, collections::BTreeMap, sync::Arc};

/// One of the terms for which a prefix or a fuzzy word of a query stands.
pub(super) struct ExpandedTerm {
    pub(super) term: String,
    /// Factor of the weight of the term: 1, or between 0 and 1 if a fuzzy word is not the term itself.
    pub(super) similarity: f64,
    /// The dictionary entry of the term in each segment.
    pub(super) infos: InfoBySegment,
}

impl ExpandedTerm {
    /// Number of documents that contain the term.
    pub(super) fn documents(&self) -> u64 {
        self.infos.iter().flatten().map(|info| u64::from(info.live_documents())).sum()
    }
}

impl<'a> TermPrefix<'a> {
    pub(super) fn automaton(self) -> PrefixAutomaton<'a> {
        PrefixAutomaton { prefix: self.text.as_bytes(), after: None }
    }

    /// Checks the number of terms for which the prefixes of a query stand up to this one. The limit is for
    /// prefixes that the user wrote, not for those of whole clusters.
    fn check_expansions(self, terms: usize) -> Result<()> {
        let TermPrefix { text, whole_clusters } = self;
        if terms > PREFIX_EXPANSIONS_MAX && !whole_clusters {
            return Err(Error::query(format!(
                "its prefixes stand for more than {PREFIX_EXPANSIONS_MAX} terms; `{text}*` needs more letters"
            )));
        }
        Ok(())
    }

    /// Whether the prefix stands for `term`, which begins with the text of the prefix.
    pub(super) fn stands_for(self, term: &[u8]) -> bool {
        !self.whole_clusters || std::str::from_utf8(term).is_ok_and(|term| first_cluster(term) == self.text)
    }
}

/// A term of a field and its statistics over all segments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TermStats {
    /// The term.
    pub term: String,
    /// Number of documents that contain the term.
    pub documents: u64,
    /// Number of occurrences of the term in all documents.
    pub occurrences: u64,
}

/// Accepts the strings with a prefix that are greater than `after`, if there is one. The state is the number
/// of bytes, up to the length of the longer of the two, and in its lowest bit whether the string is greater
/// already.
pub(super) struct PrefixAutomaton<'a> {
    prefix: &'a [u8],
    after: Option<&'a [u8]>,
}

impl Automaton for PrefixAutomaton<'_> {
    fn start(&self) -> u32 {
        u32::from(self.after.is_none())
    }

    fn step(&self, state: u32, byte: u8) -> Option<u32> {
        let (position, mut greater) = ((state >> 1) as usize, state & 1);
        if self.prefix.get(position).is_some_and(|expected| *expected != byte) {
            return None;
        }
        if greater == 0 {
            greater = match self.after.and_then(|after| after.get(position)) {
                Some(other) if byte < *other => return None,
                Some(other) => u32::from(byte > *other),
                None => 1,
            };
        }
        let end = self.prefix.len().max(self.after.map_or(0, <[u8]>::len));
        Some(((position + 1).min(end) as u32) << 1 | greater)
    }

    fn accepts(&self, state: u32) -> bool {
        state & 1 == 1 && (state >> 1) as usize >= self.prefix.len()
    }
}

/// The first `limit` terms of a field with `prefix` that are greater than `after`, in byte order.
pub(crate) fn terms_after(
    lists: SegmentLists<'_>,
    field: usize,
    prefix: &str,
    after: Option<&str>,
    limit: usize,
) -> Result<Vec<TermStats>> {
    let automaton = || PrefixAutomaton { prefix: prefix.as_bytes(), after: after.map(str::as_bytes) };
    let mut walks = MergedWalk::open(lists, field, automaton)?;
    let mut terms = Vec::new();
    while terms.len() < limit && walks.next()?.is_some() {
        let term = String::from_utf8_lossy(walks.term()).into_owned();
        terms.push(TermStats { term, documents: walks.documents(), occurrences: walks.occurrences() });
    }
    Ok(terms)
}

/// At most [`FUZZY_EXPANSIONS_MAX`] terms within `distance` edits of `word`, ordered by distance, then by
/// descending document frequency, then by their bytes.
pub(super) fn fuzzy_matches(
    lists: SegmentLists<'_>,
    field: usize,
    word: &str,
    distance: u8,
) -> Result<Vec<ExpandedTerm>> {
    let mut best: BTreeMap<(u8, Reverse<u64>, Vec<u8>), ExpandedTerm> = BTreeMap::new();
    for_each_fuzzy_match(lists, field, word, distance, |walks, text, distance| {
        let key = (distance, Reverse(walks.documents()), walks.term().to_vec());
        if best.len() == FUZZY_EXPANSIONS_MAX && best.last_key_value().is_some_and(|(last, _)| *last < key) {
            return;
        }
        let infos = walks.infos().map(|info| info.cloned()).collect();
        let similarity = similarity(word, text, distance);
        best.insert(key, ExpandedTerm { term: text.to_string(), similarity, infos });
        if best.len() > FUZZY_EXPANSIONS_MAX {
            best.pop_last();
        }
    })?;
    Ok(best.into_values().collect())
}

/// The terms of a shard that `word` may stand for, and those about which the shard is asked.
pub(super) fn candidates_of_word(
    lists: SegmentLists<'_>,
    field: usize,
    word: &str,
    distance: u8,
    asked: Option<&WordCandidates>,
) -> Result<WordCandidates> {
    let mut collector = WordCandidates::collector(asked);
    for_each_fuzzy_match(lists, field, word, distance, |walks, text, distance| {
        collector.offer(text, distance, walks.documents());
    })?;
    Ok(collector.finish())
}

/// Calls `body` with the text and the distance of each term that a fuzzy word can stand for.
fn for_each_fuzzy_match(
    lists: SegmentLists<'_>,
    field: usize,
    word: &str,
    distance: u8,
    mut body: impl FnMut(&MergedWalk<'_, &Levenshtein>, &str, u8),
) -> Result<()> {
    let automaton = Levenshtein::new(word, distance);
    let mut walks = MergedWalk::open(lists, field, || &automaton)?;
    while let Some(state) = walks.next()? {
        let Some(distance) = automaton.distance(state) else { continue };
        let text = String::from_utf8_lossy(walks.term());
        // So short that the two need not have a character in common at this distance.
        if distance > 0 && usize::from(distance) >= shorter_chars(word, &text) {
            continue;
        }
        body(&walks, &text, distance);
    }
    Ok(())
}

/// Factor of the weight of a term for which a fuzzy word stands.
pub(super) fn similarity(word: &str, term: &str, distance: u8) -> f64 {
    if distance == 0 { 1.0 } else { 1.0 - f64::from(distance) / shorter_chars(word, term) as f64 }
}

/// Length in characters of the shorter of two texts.
fn shorter_chars(a: &str, b: &str) -> usize {
    a.chars().count().min(b.chars().count())
}

/// The clause of a prefix: that of a recent query, or its terms are counted, with their postings. `before` is
/// the number of terms that the prefixes of the query before this one stand for.
///
/// # Errors
/// If together they are more than [`PREFIX_EXPANSIONS_MAX`].
pub(super) fn clause_of_prefix(
    lists: SegmentLists<'_>,
    field: usize,
    prefix: TermPrefix<'_>,
    before: usize,
) -> Result<Arc<PrefixClause>> {
    let SegmentLists { segments, kept, .. } = lists;
    if let Some(clause) = kept.and_then(|kept| kept.find(field, prefix)) {
        prefix.check_expansions(before + clause.terms)?;
        return Ok(clause);
    }
    let mut clause = PrefixClause::new(field, prefix, segments.len());
    let mut walks = MergedWalk::open(lists, field, || prefix.automaton())?;
    while walks.next()?.is_some() {
        if prefix.stands_for(walks.term()) {
            clause.add_term(walks.infos());
            prefix.check_expansions(before + clause.terms)?;
        }
    }
    Ok(match kept {
        Some(kept) if clause.terms > 0 => kept.keep(clause, segments),
        _ => Arc::new(clause),
    })
}

/// The terms with `prefix` over all segments, with their dictionary entries; `None` if more than `limit`.
pub(super) fn terms_with_prefix(
    lists: SegmentLists<'_>,
    field: usize,
    prefix: TermPrefix<'_>,
    limit: usize,
) -> Result<Option<Vec<ExpandedTerm>>> {
    let mut terms = Vec::new();
    let mut walks = MergedWalk::open(lists, field, || prefix.automaton())?;
    while walks.next()?.is_some() {
        if !prefix.stands_for(walks.term()) {
            continue;
        }
        if terms.len() == limit {
            return Ok(None);
        }
        let infos = walks.infos().map(|info| info.cloned()).collect();
        let term = String::from_utf8_lossy(walks.term()).into_owned();
        terms.push(ExpandedTerm { term, similarity: 1.0, infos });
    }
    Ok(Some(terms))
}

/// Calls `body` with the dictionary entry of each term with `prefix` in a field of a segment.
pub(crate) fn for_each_term_with_prefix(
    field: &FieldReader,
    prefix: TermPrefix<'_>,
    source: &dyn BlockSource,
    mut body: impl FnMut(TermInfo) -> Result<()>,
) -> Result<()> {
    let mut walk = field.terms().walk(prefix.automaton(), source)?;
    while let Some((info, _)) = walk.advance()? {
        if prefix.stands_for(walk.term()) {
            body(info)?;
        }
    }
    Ok(())
}

/// The terms of a field over all segments that an automaton accepts, in byte order: merged dictionary walks.
/// Terms of deleted documents alone are left out.
pub(super) struct MergedWalk<'a, A> {
    /// For each segment, unless it lacks the field.
    walks: Vec<Option<SegmentWalk<'a, A>>>,
    /// Current entry and state of each walk; `None` after its last term.
    heads: Vec<Option<(TermInfo, u32)>>,
    /// Whether the current entry of each walk is the term returned last.
    returned: Vec<bool>,
    /// A walk whose current entry is the term returned last.
    current: usize,
}

/// A dictionary walk in a segment, and its deletes.
struct SegmentWalk<'a, A> {
    walk: TermWalk<'a, A>,
    deletes: Option<DeletesCursor<'a>>,
    /// Occurrences of the current term in deleted documents.
    deleted_occurrences: u64,
}

impl<'a, A: Automaton> SegmentWalk<'a, A> {
    fn open(
        segment: &'a OpenSegment,
        field: usize,
        automaton: A,
        source: &'a dyn BlockSource,
    ) -> Result<Option<Self>> {
        let Some(reader) = segment.field(field) else { return Ok(None) };
        let deletes = segment.deletes().map(|deletes| deletes.cursor(field));
        let walk = reader.terms().walk(automaton, source)?;
        Ok(Some(SegmentWalk { walk, deletes, deleted_occurrences: 0 }))
    }

    /// Moves to the next term that a document has which is not deleted.
    fn advance(&mut self) -> Result<Option<(TermInfo, u32)>> {
        while let Some((info, state)) = self.walk.advance()? {
            let Some(deletes) = &mut self.deletes else { return Ok(Some((info, state))) };
            let deleted = deletes.seek(self.walk.term());
            self.deleted_occurrences = deleted.occurrences;
            if let Some(info) = info.with_deletes(deleted.documents) {
                return Ok(Some((info, state)));
            }
        }
        Ok(None)
    }
}

impl<'a, A: Automaton> MergedWalk<'a, A> {
    pub(super) fn open(
        lists: SegmentLists<'a>,
        field: usize,
        automaton: impl Fn() -> A,
    ) -> Result<MergedWalk<'a, A>> {
        let SegmentLists { segments, source, .. } = lists;
        let walks = segments.iter().map(|segment| SegmentWalk::open(segment, field, automaton(), source));
        // As if all had been returned, so that the first call advances every walk.
        Ok(MergedWalk {
            walks: walks.collect::<Result<_>>()?,
            heads: segments.iter().map(|_| None).collect(),
            returned: vec![true; segments.len()],
            current: 0,
        })
    }

    /// Moves to the next term over all segments. Returns the state in which the automaton accepts it; `None`
    /// after the last term.
    pub(super) fn next(&mut self) -> Result<Option<u32>> {
        for ((walk, head), returned) in self.walks.iter_mut().zip(&mut self.heads).zip(&mut self.returned) {
            if std::mem::take(returned) {
                *head = walk.as_mut().map_or(Ok(None), SegmentWalk::advance)?;
            }
        }
        let ahead = (0..self.walks.len()).filter(|walk| self.heads[*walk].is_some());
        let Some(current) = ahead.min_by_key(|walk| term_of(&self.walks[*walk])) else { return Ok(None) };
        self.current = current;
        let term = term_of(&self.walks[current]);
        for ((walk, head), returned) in self.walks.iter().zip(&self.heads).zip(&mut self.returned) {
            *returned = head.is_some() && term_of(walk) == term;
        }
        Ok(self.heads[current].as_ref().map(|(_, state)| *state))
    }

    /// The current term.
    pub(super) fn term(&self) -> &[u8] {
        term_of(&self.walks[self.current])
    }

    /// Dictionary entry of the current term in each segment.
    fn infos(&self) -> impl Iterator<Item = Option<&TermInfo>> {
        let heads = self.heads.iter().zip(&self.returned);
        heads.map(|(head, returned)| head.as_ref().filter(|_| *returned).map(|(info, _)| info))
    }

    /// Number of occurrences of the current term over all segments.
    fn occurrences(&self) -> u64 {
        let deleted = self.walks.iter().map(|walk| walk.as_ref().map_or(0, |walk| walk.deleted_occurrences));
        let live = self.infos().zip(deleted);
        live.map(|(info, deleted)| info.map_or(0, |info| info.occurrences.saturating_sub(deleted))).sum()
    }

    /// Number of documents over all segments that contain the current term.
    fn documents(&self) -> u64 {
        self.infos().flatten().map(|info| u64::from(info.live_documents())).sum()
    }
}

/// The current term of a walk.
fn term_of<'w, A: Automaton>(walk: &'w Option<SegmentWalk<'_, A>>) -> &'w [u8] {
    walk.as_ref().map_or(&[], |walk| walk.walk.term())
}
