//! Statistics of deleted documents: the number of documents and occurrences of each of their terms, which are
//! subtracted from those of the dictionary, so that scores are those of an index without these documents.
//!
//! They are in memory as in a file: keys in ascending order, each without the prefix that it shares with the
//! one before. A *key* is the number of a field, one byte, and a term. Every [`RESTART_TERMS`]th key is whole
//! (a *restart point*): a term is looked up by a binary search among these, and a scan of the keys after one.
//!
//! ```text
//! statistics = are terms known u8, fields varint, field..., terms varint, entry...
//! field      = documents varint, tokens varint
//! entry      = shared varint, suffix length varint, suffix, documents varint, occurrences - documents varint
//! ```

use crate::bytes::{ByteReader, common_prefix, prefix_key, push_bytes, push_varint};
use crate::limits::{FIELDS_MAX, TERM_BYTES_MAX};
use crate::{Error, Result};
use std::{cmp::Ordering, collections::BTreeMap};

/// Number of keys from one restart point to the next.
const RESTART_TERMS: u64 = 16;

/// Prefixes of restart points that are compared one after the other before a binary search.
const EQUAL_KEYS_FEW: usize = 4;

/// Number of deleted documents that have a term, and of its occurrences in them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TermDeletes {
    /// Number of documents.
    pub documents: u32,
    /// Sum of the frequencies.
    pub occurrences: u64,
}

impl TermDeletes {
    /// Adds those of other documents.
    pub fn add(&mut self, other: TermDeletes) {
        self.documents = self.documents.saturating_add(other.documents);
        self.occurrences = self.occurrences.saturating_add(other.occurrences);
    }
}

/// Number of deleted documents that have a field, and of their tokens in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FieldDeletes {
    /// Number of documents.
    pub documents: u32,
    /// Sum of the document lengths.
    pub tokens: u64,
}

/// Statistics of some deleted documents of a segment. Immutable.
#[derive(Debug, PartialEq, Eq)]
pub struct DeletedStatistics {
    are_terms_known: bool,
    fields: Vec<FieldDeletes>,
    terms: u64,
    /// The entries.
    entries: Vec<u8>,
    /// Offset in `entries` of each restart point.
    restarts: Vec<u32>,
    /// [`prefix_key`] of the key of each restart point.
    restart_keys: Vec<u64>,
}

/// The longest key.
const KEY_BYTES_MAX: usize = 1 + TERM_BYTES_MAX;

impl DeletedStatistics {
    /// Decodes what [`DeletedStatistics::write`] has appended, the rest of `view`, for a segment with this
    /// number of documents in each field, and checks it. The statistics may have fewer fields.
    pub fn read(view: &mut ByteReader<'_>, documents: &[u32]) -> Result<DeletedStatistics> {
        let are_terms_known = match view.u8()? {
            0 => false,
            1 => true,
            _ => return Err(view.corrupt("unknown kind of statistics")),
        };
        let count = view.varint()?;
        if count > documents.len().min(FIELDS_MAX) as u64 {
            return Err(view.corrupt("statistics of fields that the segment does not have"));
        }
        let mut fields = Vec::with_capacity(count as usize);
        for all in &documents[..count as usize] {
            let field = FieldDeletes { documents: view.varint32()?, tokens: view.varint()? };
            if field.documents > *all || field.tokens < u64::from(field.documents) {
                return Err(view.corrupt("impossible statistics of a field"));
            }
            fields.push(field);
        }
        let terms = view.varint()?;
        let (start, entries) = (view.clone(), view.rest());
        if u32::try_from(entries.len()).is_err() || !are_terms_known && terms > 0 {
            return Err(view.corrupt("impossibly many terms"));
        }
        let (mut key, mut restarts, mut restart_keys) = (Vec::new(), Vec::new(), Vec::new());
        for number in 0..terms {
            let at = view.offset() - start.offset();
            let next = read_entry(view, key.len())?;
            let is_greater = next.suffix > &key[next.shared..];
            next.complete(&mut key);
            let is_restart = number.is_multiple_of(RESTART_TERMS);
            if is_restart {
                restarts.push(at as u32);
                restart_keys.push(prefix_key(&key));
            }
            let field = key.first().and_then(|field| fields.get(usize::from(*field)));
            let Some(field) = field.filter(|_| key.len() <= KEY_BYTES_MAX) else {
                return Err(view.corrupt("a term of a field that the segment does not have"));
            };
            if !is_greater || is_restart && next.shared > 0 {
                return Err(view.corrupt("terms that are not in order"));
            }
            let deletes = next.deletes;
            if deletes.documents == 0
                || deletes.documents > field.documents
                || deletes.occurrences > field.tokens
            {
                return Err(view.corrupt("impossible statistics of a term"));
            }
        }
        let entries = entries[..(view.offset() - start.offset()) as usize].to_vec();
        view.finish()?;
        Ok(DeletedStatistics { are_terms_known, fields, terms, entries, restarts, restart_keys })
    }

    /// Appends the payload of a file.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.push(u8::from(self.are_terms_known));
        push_varint(out, self.fields.len() as u64);
        for field in &self.fields {
            push_varint(out, u64::from(field.documents));
            push_varint(out, field.tokens);
        }
        push_varint(out, self.terms);
        out.extend_from_slice(&self.entries);
    }

    /// Statistics of documents whose terms are not known: only their numbers in each field.
    pub fn without_terms(fields: Vec<FieldDeletes>) -> DeletedStatistics {
        DeletedStatistics { are_terms_known: false, ..Builder::new(fields).finish() }
    }

    /// The sum of several layers.
    ///
    /// # Errors
    /// [`Error::TooLarge`] if it would have 4 GiB.
    pub fn merge(layers: &[&DeletedStatistics]) -> Result<DeletedStatistics> {
        let fields = layers.iter().map(|layer| layer.fields.len()).max().unwrap_or(0);
        let sum = |field: usize| {
            layers.iter().map(|layer| layer.field(field)).fold(FieldDeletes::default(), |sum, of| {
                FieldDeletes {
                    documents: sum.documents.saturating_add(of.documents),
                    tokens: sum.tokens.saturating_add(of.tokens),
                }
            })
        };
        let fields = (0..fields).map(sum).collect();
        if !layers.iter().all(|layer| layer.are_terms_known) {
            return Ok(DeletedStatistics::without_terms(fields));
        }
        let mut walks: Vec<EntryWalk<'_>> = layers.iter().map(|layer| layer.walk()).collect();
        let mut builder = Builder::new(fields);
        while let Some(key) = walks.iter().filter_map(EntryWalk::key).min().map(<[u8]>::to_vec) {
            let mut deletes = TermDeletes::default();
            for walk in walks.iter_mut().filter(|walk| walk.key() == Some(&key)) {
                deletes.add(walk.deletes);
                walk.advance();
            }
            builder.add(&key, deletes)?;
        }
        Ok(builder.finish())
    }

    /// Whether terms are known. If not, only the numbers of each field are.
    pub fn are_terms_known(&self) -> bool {
        self.are_terms_known
    }

    /// Deleted documents and tokens of a field.
    pub fn field(&self, field: usize) -> FieldDeletes {
        self.fields.get(field).copied().unwrap_or_default()
    }

    /// The statistics of a term of a field; zeros if no deleted document has it.
    pub fn find(&self, field: usize, term: &[u8]) -> TermDeletes {
        let mut key = [0; KEY_BYTES_MAX];
        let Some(of_term) = key.get_mut(1..=term.len()) else { return TermDeletes::default() };
        of_term.copy_from_slice(term);
        key[0] = field as u8;
        let key = &key[..=term.len()];
        // The last restart point that is not greater.
        let prefix = prefix_key(key);
        let mut to = self.restart_keys.partition_point(|restart| *restart <= prefix);
        let before = &self.restart_keys[..to];
        // Few are equal, unless terms have a long prefix in common.
        let few = before.iter().rev().take(EQUAL_KEYS_FEW).take_while(|key| **key == prefix).count();
        let less = if few < EQUAL_KEYS_FEW { to - few } else { before.partition_point(|key| *key < prefix) };
        let mut from = less.saturating_sub(1);
        while to.saturating_sub(from) > 1 {
            let middle = from.midpoint(to);
            if self.restart_key(middle) <= key { from = middle } else { to = middle }
        }
        let Some(start) = self.restarts.get(from) else { return TermDeletes::default() };
        self.find_from(*start as usize, key)
    }

    /// Finds a key among the entries from a restart point to the next.
    fn find_from(&self, start: usize, key: &[u8]) -> TermDeletes {
        let mut view = ByteReader::new("", 0, &self.entries[start..]);
        // Number of bytes that the last entry, which is less, shares with the key.
        let mut matched = 0;
        for _ in 0..RESTART_TERMS {
            let Ok(entry) = read_entry(&mut view, KEY_BYTES_MAX) else { break };
            let StatisticsEntry { shared, suffix, deletes } = entry;
            match shared.cmp(&matched) {
                Ordering::Greater => continue,
                Ordering::Less => break,
                Ordering::Equal => {}
            }
            let rest = &key[matched..];
            let common = common_prefix(suffix, rest);
            match (suffix.get(common), rest.get(common)) {
                (None, None) => return deletes,
                (suffix, rest) if suffix > rest => break,
                _ => matched += common,
            }
        }
        TermDeletes::default()
    }

    /// Looks up terms of a field in ascending order.
    pub fn cursor(&self, field: usize) -> StatisticsCursor<'_> {
        StatisticsCursor { statistics: self, walk: self.walk_from(0), key: vec![field as u8] }
    }

    /// Calls `body` with each field, term, and its statistics, in ascending order.
    pub fn for_each(&self, mut body: impl FnMut(usize, &[u8], TermDeletes) -> Result<()>) -> Result<()> {
        let mut walk = self.walk();
        while let Some((field, term)) = walk.key().and_then(<[u8]>::split_first) {
            body(usize::from(*field), term, walk.deletes)?;
            walk.advance();
        }
        Ok(())
    }

    /// Number of fields.
    pub fn fields(&self) -> usize {
        self.fields.len()
    }

    /// Bytes of the encoded terms.
    pub fn term_bytes(&self) -> usize {
        self.entries.len()
    }

    /// Bytes of memory.
    pub fn memory(&self) -> usize {
        let fields = self.fields.capacity() * size_of::<FieldDeletes>();
        let restarts = self.restarts.capacity() * (size_of::<u32>() + size_of::<u64>());
        size_of::<DeletedStatistics>() + fields + self.entries.capacity() + restarts
    }

    fn walk(&self) -> EntryWalk<'_> {
        self.walk_from(0)
    }

    /// A walk from a restart point on.
    fn walk_from(&self, restart: usize) -> EntryWalk<'_> {
        let start = self.restarts.get(restart).map_or(self.entries.len(), |start| *start as usize);
        let mut walk = EntryWalk {
            rest: &self.entries[start..],
            key: Vec::new(),
            deletes: TermDeletes::default(),
            is_done: false,
            next_restart: restart + 1,
            until_restart: RESTART_TERMS,
        };
        walk.advance();
        walk
    }

    /// The whole key of a restart point.
    fn restart_key(&self, restart: usize) -> &[u8] {
        let mut view = ByteReader::new("", 0, &self.entries[self.restarts[restart] as usize..]);
        // The entries were checked or written by this module: the key is whole.
        let len = view.varint().and_then(|_| view.varint()).unwrap_or(0);
        view.bytes(len as usize).unwrap_or_default()
    }
}

/// The entries from one on; `key` and `deletes` are those of the current one.
struct EntryWalk<'a> {
    rest: &'a [u8],
    key: Vec<u8>,
    deletes: TermDeletes,
    is_done: bool,
    /// Number of the next restart point, and of the entries up to it, with the current one.
    next_restart: usize,
    until_restart: u64,
}

impl EntryWalk<'_> {
    fn key(&self) -> Option<&[u8]> {
        (!self.is_done).then_some(&self.key)
    }

    fn advance(&mut self) {
        let mut view = ByteReader::new("", 0, self.rest);
        // The entries were checked or written by this module: only their end is an error.
        match read_entry(&mut view, self.key.len()) {
            Ok(next) => {
                next.complete(&mut self.key);
                (self.deletes, self.rest) = (next.deletes, view.rest());
            }
            Err(_) => self.is_done = true,
        }
        self.until_restart -= 1;
        if self.until_restart == 0 {
            self.until_restart = RESTART_TERMS;
            self.next_restart += 1;
        }
    }
}

/// Looks up terms of a field in ascending order.
pub struct StatisticsCursor<'a> {
    statistics: &'a DeletedStatistics,
    walk: EntryWalk<'a>,
    /// Buffer for a key; its first byte is the number of the field.
    key: Vec<u8>,
}

impl StatisticsCursor<'_> {
    /// The statistics of a term, which is not less than the one before; zeros if no deleted document has it.
    pub fn seek(&mut self, term: &[u8]) -> TermDeletes {
        self.key.truncate(1);
        self.key.extend_from_slice(term);
        let statistics = self.statistics;
        let next = self.walk.next_restart;
        if next < statistics.restarts.len() && statistics.restart_key(next) <= &self.key[..] {
            // The last restart point that is not greater.
            let (mut from, mut to) = (next, statistics.restarts.len());
            while to - from > 1 {
                let middle = from.midpoint(to);
                match statistics.restart_key(middle) <= &self.key[..] {
                    true => from = middle,
                    false => to = middle,
                }
            }
            self.walk = statistics.walk_from(from);
        }
        loop {
            match self.walk.key().map(|key| key.cmp(&self.key)) {
                Some(Ordering::Less) => self.walk.advance(),
                Some(Ordering::Equal) => return self.walk.deletes,
                Some(Ordering::Greater) | None => return TermDeletes::default(),
            }
        }
    }
}

/// A decoded entry.
struct StatisticsEntry<'a> {
    /// Length of the prefix that its key shares with the one before.
    shared: usize,
    /// The rest of its key.
    suffix: &'a [u8],
    deletes: TermDeletes,
}

impl StatisticsEntry<'_> {
    /// Makes its key of the one before.
    fn complete(&self, key: &mut Vec<u8>) {
        key.truncate(self.shared);
        key.extend_from_slice(self.suffix);
    }
}

/// Decodes an entry that follows a key of `key_len` bytes.
#[inline]
fn read_entry<'a>(view: &mut ByteReader<'a>, key_len: usize) -> Result<StatisticsEntry<'a>> {
    let (shared, suffix) = read_pair(view)?;
    if shared > key_len as u64 {
        return Err(view.corrupt("a term shares more than there is"));
    }
    let suffix = view.bytes(usize::try_from(suffix).unwrap_or(usize::MAX))?;
    let (documents, more) = read_pair(view)?;
    let documents = u32::try_from(documents).map_err(|_| view.corrupt("impossible statistics of a term"))?;
    let occurrences = u64::from(documents).checked_add(more);
    let occurrences = occurrences.ok_or_else(|| view.corrupt("impossible statistics of a term"))?;
    let deletes = TermDeletes { documents, occurrences };
    Ok(StatisticsEntry { shared: shared as usize, suffix, deletes })
}

/// Reads two numbers, which mostly have one byte each.
#[inline(always)]
fn read_pair(view: &mut ByteReader<'_>) -> Result<(u64, u64)> {
    match view.rest() {
        [first, second, ..] if (first | second) < 0x80 => {
            let pair = (u64::from(*first), u64::from(*second));
            view.bytes(2)?;
            Ok(pair)
        }
        _ => Ok((view.varint()?, view.varint()?)),
    }
}

/// Encodes keys that are added in ascending order.
struct Builder {
    fields: Vec<FieldDeletes>,
    terms: u64,
    entries: Vec<u8>,
    restarts: Vec<u32>,
    restart_keys: Vec<u64>,
    key: Vec<u8>,
}

impl Builder {
    fn new(fields: Vec<FieldDeletes>) -> Builder {
        Builder {
            fields,
            terms: 0,
            entries: Vec::new(),
            restarts: Vec::new(),
            restart_keys: Vec::new(),
            key: Vec::new(),
        }
    }

    fn add(&mut self, key: &[u8], deletes: TermDeletes) -> Result<()> {
        let is_restart = self.terms.is_multiple_of(RESTART_TERMS);
        if is_restart {
            let start = u32::try_from(self.entries.len());
            let start =
                start.map_err(|_| Error::TooLarge("statistics of too many deleted documents".to_string()))?;
            self.restarts.push(start);
            self.restart_keys.push(prefix_key(key));
        }
        let shared = if is_restart { 0 } else { common_prefix(&self.key, key) };
        push_varint(&mut self.entries, shared as u64);
        push_bytes(&mut self.entries, &key[shared..]);
        push_varint(&mut self.entries, u64::from(deletes.documents));
        push_varint(&mut self.entries, deletes.occurrences - u64::from(deletes.documents));
        self.key.clear();
        self.key.extend_from_slice(key);
        self.terms += 1;
        Ok(())
    }

    fn finish(mut self) -> DeletedStatistics {
        self.entries.shrink_to_fit();
        self.restarts.shrink_to_fit();
        self.restart_keys.shrink_to_fit();
        DeletedStatistics {
            are_terms_known: true,
            fields: self.fields,
            terms: self.terms,
            entries: self.entries,
            restarts: self.restarts,
            restart_keys: self.restart_keys,
        }
    }
}

/// Collects the statistics of deleted documents, one document and field after the other.
pub struct DeletedStatisticsBuilder {
    fields: Vec<FieldDeletes>,
    terms: BTreeMap<Box<[u8]>, TermDeletes>,
    /// Bytes of the keys.
    key_bytes: usize,
}

impl DeletedStatisticsBuilder {
    /// Of a segment with this number of fields.
    pub fn new(fields: usize) -> DeletedStatisticsBuilder {
        let fields = vec![FieldDeletes::default(); fields];
        DeletedStatisticsBuilder { fields, terms: BTreeMap::new(), key_bytes: 0 }
    }

    /// Adds a document that has this number of tokens, at least one, in a field.
    pub fn add_document(&mut self, field: usize, tokens: u64) {
        self.fields[field].documents += 1;
        self.fields[field].tokens += tokens;
    }

    /// Adds documents that have a term, and its occurrences in them.
    pub fn add_term(&mut self, field: usize, term: &[u8], deletes: TermDeletes) {
        let mut key = Vec::with_capacity(1 + term.len());
        key.push(field as u8);
        key.extend_from_slice(term);
        match self.terms.get_mut(&key[..]) {
            Some(sum) => sum.add(deletes),
            None => {
                self.key_bytes += key.len();
                self.terms.insert(key.into_boxed_slice(), deletes);
            }
        }
    }

    /// Bytes of memory, approximately.
    pub fn memory(&self) -> usize {
        // A node of the tree is two thirds full; an allocation has a header.
        let entry = size_of::<(Box<[u8]>, TermDeletes)>() * 3 / 2 + 16;
        self.terms.len() * entry + self.key_bytes
    }

    /// The statistics.
    ///
    /// # Errors
    /// [`Error::TooLarge`] if they would have 4 GiB.
    pub fn finish(self) -> Result<DeletedStatistics> {
        let mut builder = Builder::new(self.fields);
        self.terms.iter().try_for_each(|(key, deletes)| builder.add(key, *deletes))?;
        Ok(builder.finish())
    }
}

#[cfg(test)]
mod tests;
