//! Expands a prefix or a fuzzy word into terms, over all segments together: the terms do not depend on how the
//! documents are divided into segments.

use super::fuzzy::Levenshtein;
use crate::error::{Error, Result};
use crate::limits::{FUZZY_EXPANSIONS_MAX, PREFIX_EXPANSIONS_MAX};
use crate::segment::read::{Automaton, BlockSource, FieldReader, Segment, TermInfo, Walk};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A term that a fuzzy word stands for.
pub(super) struct Close {
    pub(super) term: String,
    /// What it counts beside the word itself, more than 0.
    pub(super) similarity: f64,
    pub(super) documents: u64,
    /// Its entry in the dictionary of each segment.
    pub(super) infos: Vec<Option<TermInfo>>,
}

/// Accepts what begins so. The state is the number of its bytes so far.
pub(super) struct Beginning<'a>(pub(super) &'a [u8]);

impl Automaton for Beginning<'_> {
    fn start(&self) -> u32 {
        0
    }

    fn step(&self, state: u32, byte: u8) -> Option<u32> {
        match self.0.get(state as usize) {
            None => Some(state),
            Some(wanted) => (*wanted == byte).then_some(state + 1),
        }
    }

    fn accepts(&self, state: u32) -> bool {
        state as usize == self.0.len()
    }
}

/// The terms closest to `word`, closest first; then those in most documents, then by their bytes.
pub(super) fn close_terms(
    (segments, source): (&[Arc<Segment>], &dyn BlockSource),
    field: usize,
    word: &str,
    distance: u8,
) -> Result<Vec<Close>> {
    let automaton = Levenshtein::new(word, distance);
    let word_chars = word.chars().count();
    let mut best: BTreeMap<(u8, Reverse<u64>, Vec<u8>), Close> = BTreeMap::new();
    let mut walks = Walks::open((segments, source), field, || &automaton);
    while let Some((term, state)) = walks.next()? {
        let Some(distance) = automaton.distance(state) else { continue };
        let text = String::from_utf8_lossy(&term).into_owned();
        let length = text.chars().count().min(word_chars);
        // So short that not a character need be common to both.
        if distance > 0 && usize::from(distance) >= length {
            continue;
        }
        let documents = walks.documents();
        let key = (distance, Reverse(documents), term);
        if best.len() == FUZZY_EXPANSIONS_MAX && best.last_key_value().is_some_and(|(last, _)| *last < key) {
            continue;
        }
        let similarity = if distance == 0 { 1.0 } else { 1.0 - f64::from(distance) / length as f64 };
        let infos = walks.infos().map(|info| info.cloned()).collect();
        best.insert(key, Close { term: text, similarity, documents, infos });
        if best.len() > FUZZY_EXPANSIONS_MAX {
            best.pop_last();
        }
    }
    Ok(best.into_values().collect())
}

/// Adds the number of terms that begin with `prefix` to `count`, which has a bound.
pub(super) fn count_terms_with_prefix(
    (segments, source): (&[Arc<Segment>], &dyn BlockSource),
    field: usize,
    prefix: &str,
    count: &mut usize,
) -> Result<()> {
    let mut walks = Walks::open((segments, source), field, || Beginning(prefix.as_bytes()));
    while walks.next()?.is_some() {
        *count += 1;
        if *count > PREFIX_EXPANSIONS_MAX {
            return Err(Error::query(format!(
                "its prefixes stand for more than {PREFIX_EXPANSIONS_MAX} terms; `{prefix}*` needs more letters"
            )));
        }
    }
    Ok(())
}

/// The terms of a segment's field that begin with `prefix`.
pub(crate) fn starting_with(
    field: &FieldReader,
    prefix: &str,
    source: &dyn BlockSource,
) -> Result<Vec<TermInfo>> {
    let (mut infos, mut walk) = (Vec::new(), field.terms().walk(Beginning(prefix.as_bytes()), source));
    while let Some((info, _)) = walk.advance()? {
        infos.push(info);
    }
    Ok(infos)
}

/// The same walk through the dictionaries of all segments at once.
struct Walks<'a, A> {
    walks: Vec<Walk<'a, A>>,
    /// To what each has moved; `None` behind its last term.
    heads: Vec<Option<(TermInfo, u32)>>,
    /// Whether that is the term that was returned last.
    returned: Vec<bool>,
}

impl<'a, A: Automaton> Walks<'a, A> {
    fn open(
        (segments, source): (&'a [Arc<Segment>], &'a dyn BlockSource),
        field: usize,
        automaton: impl Fn() -> A,
    ) -> Walks<'a, A> {
        let walks = segments.iter().map(|segment| segment.field(field).terms().walk(automaton(), source));
        // As if something before the first term had been returned of each.
        Walks {
            walks: walks.collect(),
            heads: segments.iter().map(|_| None).collect(),
            returned: vec![true; segments.len()],
        }
    }

    /// The first term that no segment has returned yet, and the state that accepts it.
    fn next(&mut self) -> Result<Option<(Vec<u8>, u32)>> {
        for ((walk, head), returned) in self.walks.iter_mut().zip(&mut self.heads).zip(&mut self.returned) {
            if std::mem::take(returned) {
                *head = walk.advance()?;
            }
        }
        let ahead = self.walks.iter().zip(&self.heads);
        let ahead = ahead.filter_map(|(walk, head)| head.as_ref().map(|(_, state)| (walk.term(), *state)));
        let Some((term, state)) = ahead.min_by(|a, b| a.0.cmp(b.0)) else { return Ok(None) };
        let term = term.to_vec();
        for ((walk, head), returned) in self.walks.iter().zip(&self.heads).zip(&mut self.returned) {
            *returned = head.is_some() && walk.term() == term;
        }
        Ok(Some((term, state)))
    }

    /// What each segment says of the term that was returned.
    fn infos(&self) -> impl Iterator<Item = Option<&TermInfo>> {
        let heads = self.heads.iter().zip(&self.returned);
        heads.map(|(head, returned)| head.as_ref().filter(|_| *returned).map(|(info, _)| info))
    }

    /// Documents of all segments that hold it.
    fn documents(&self) -> u64 {
        self.infos().flatten().map(|info| u64::from(info.documents)).sum()
    }
}
