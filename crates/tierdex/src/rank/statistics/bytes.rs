//! Encodes and decodes statistics.
//!
//! ```text
//! version u8, stage u8, has frequencies u8, schema u32,
//! fields varint, (documents varint, tokens varint)...,
//! terms varint, (text, documents varint, frequency varint)...,
//! prefixes varint, (text, whole clusters u8, has terms u8)...,
//! words varint, (text, distance u8, listed varint, withheld varint for each distance,
//!     terms varint, (term, distance u8, documents varint, uncertain varint)...)...,
//! clusters varint, (text, 0 u8; or 1 u8, terms varint, (term, documents varint)...)...,
//! checksum u32 of all bytes before it
//! ```
//!
//! A text is its field, a varint, and a term. A term is the number of bytes that it shares with the term
//! before it in the same list, a varint, and the length and the bytes of the rest. Lists are in order.

use super::words::{Candidate, WordCandidates};
use super::{FieldText, FieldTotals, Stage, Statistics, TermTotals};
use crate::bytes::{ByteReader, common_prefix, push_bytes, push_varint};
use crate::limits::{
    FIELDS_MAX, FUZZY_DISTANCE_MAX, STATISTICS_BYTES_MAX, STATISTICS_TERMS_MAX, TERM_BYTES_MAX,
};
use crate::{Error, Result};
use std::collections::BTreeMap;

const VERSION: u8 = 1;

/// Maximum bytes of a text: a term, or a word or prefix of a query.
const TEXT_BYTES_MAX: usize = TERM_BYTES_MAX;

impl Statistics {
    /// The statistics as bytes, for other shards.
    pub fn encode(&self) -> Vec<u8> {
        let stage = match self.stage {
            Stage::Part => 0,
            Stage::Question => 1,
            Stage::Complete => 2,
        };
        let mut out = vec![VERSION, stage, u8::from(self.has_frequencies)];
        out.extend_from_slice(&self.schema.to_le_bytes());
        push_varint(&mut out, self.fields.len() as u64);
        for FieldTotals { documents, tokens } in &self.fields {
            push_varint(&mut out, *documents);
            push_varint(&mut out, *tokens);
        }
        let mut texts = TextWriter::default();
        push_varint(&mut out, self.terms.len() as u64);
        for (text, TermTotals { documents, frequency_max }) in &self.terms {
            texts.push(text, &mut out);
            push_varint(&mut out, *documents);
            push_varint(&mut out, (*frequency_max).into());
        }
        let mut texts = TextWriter::default();
        push_varint(&mut out, self.prefixes.len() as u64);
        for ((text, whole_clusters), has_terms) in &self.prefixes {
            texts.push(text, &mut out);
            out.extend([u8::from(*whole_clusters), u8::from(*has_terms)]);
        }
        let mut texts = TextWriter::default();
        push_varint(&mut out, self.words.len() as u64);
        for ((text, distance), WordCandidates { terms, withheld, listed }) in &self.words {
            texts.push(text, &mut out);
            out.push(*distance);
            push_varint(&mut out, (*listed).into());
            withheld.iter().for_each(|withheld| push_varint(&mut out, *withheld));
            push_varint(&mut out, terms.len() as u64);
            let mut texts = TextWriter::default();
            for (term, Candidate { distance, documents, uncertain }) in terms {
                texts.push_term(term, &mut out);
                out.push(*distance);
                push_varint(&mut out, *documents);
                push_varint(&mut out, *uncertain);
            }
        }
        let mut texts = TextWriter::default();
        push_varint(&mut out, self.clusters.len() as u64);
        for (text, terms) in &self.clusters {
            texts.push(text, &mut out);
            out.push(u8::from(terms.is_some()));
            let Some(terms) = terms else { continue };
            push_varint(&mut out, terms.len() as u64);
            let mut texts = TextWriter::default();
            for (term, documents) in terms {
                texts.push_term(term, &mut out);
                push_varint(&mut out, *documents);
            }
        }
        let checksum = crc32c::crc32c(&out);
        out.extend_from_slice(&checksum.to_le_bytes());
        out
    }

    /// Decodes statistics.
    ///
    /// # Errors
    /// [`Error::Storage`] of kind [`ErrorKind::Corrupt`](crate::ErrorKind::Corrupt) if the bytes are not
    /// those of [`Statistics::encode`].
    pub fn decode(bytes: &[u8]) -> Result<Statistics> {
        const NAME: &str = "statistics";
        let damaged = |what: &str| Error::corrupt(NAME, 0, what);
        if bytes.len() > STATISTICS_BYTES_MAX {
            return Err(damaged("too many bytes"));
        }
        let Some((bytes, checksum)) = bytes.split_last_chunk::<4>() else {
            return Err(damaged("too few bytes"));
        };
        if crc32c::crc32c(bytes) != u32::from_le_bytes(*checksum) {
            return Err(damaged("checksum mismatch"));
        }
        let mut view = ByteReader::new(NAME, 0, bytes);
        if view.u8()? != VERSION {
            return Err(damaged("another version; all shards need the same version of tierdex"));
        }
        let statistics = read(&mut view)?;
        view.finish()?;
        Ok(statistics)
    }

    /// A 64-bit hash of the statistics, equal on all machines, and not 0: FNV-1a of the bytes.
    pub fn hash(&self) -> u64 {
        let add = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        self.encode().into_iter().fold(0xcbf2_9ce4_8422_2325, add).max(1)
    }
}

fn read(view: &mut ByteReader<'_>) -> Result<Statistics> {
    let stage = match view.u8()? {
        0 => Stage::Part,
        1 => Stage::Question,
        2 => Stage::Complete,
        _ => return Err(view.corrupt("unknown stage")),
    };
    let has_frequencies = read_flag(view)?;
    let schema = view.u32()?;
    let count = read_count(view, FIELDS_MAX)?;
    let fields = (0..count)
        .map(|_| Ok(FieldTotals { documents: view.varint()?, tokens: view.varint()? }))
        .collect::<Result<Vec<_>>>()?;
    let mut texts = TextReader::default();
    let terms = read_map(view, |view| {
        let text = texts.read(view)?;
        Ok((text, TermTotals { documents: view.varint()?, frequency_max: view.varint32()? }))
    })?;
    let mut texts = TextReader::default();
    let prefixes = read_map(view, |view| {
        let text = texts.read(view)?;
        Ok(((text, read_flag(view)?), read_flag(view)?))
    })?;
    let mut texts = TextReader::default();
    let words = read_map(view, |view| {
        let text = texts.read(view)?;
        let distance = read_distance(view)?;
        let mut found = WordCandidates { listed: view.varint32()?, ..WordCandidates::default() };
        for withheld in &mut found.withheld {
            *withheld = view.varint()?;
        }
        let mut texts = TextReader::default();
        found.terms = read_map(view, |view| {
            let term = texts.read_term(view)?;
            let (distance, documents) = (read_distance(view)?, view.varint()?);
            Ok((term, Candidate { distance, documents, uncertain: view.varint()? }))
        })?;
        Ok(((text, distance), found))
    })?;
    let mut texts = TextReader::default();
    let clusters = read_map(view, |view| {
        let text = texts.read(view)?;
        if !read_flag(view)? {
            return Ok((text, None));
        }
        let mut texts = TextReader::default();
        let terms = read_map(view, |view| Ok((texts.read_term(view)?, view.varint()?)))?;
        Ok((text, Some(terms)))
    })?;
    Ok(Statistics { schema, stage, has_frequencies, fields, terms, prefixes, words, clusters })
}

/// Reads a number of entries and the entries, whose keys must increase.
fn read_map<'v, K: Ord, V>(
    view: &mut ByteReader<'v>,
    mut entry: impl FnMut(&mut ByteReader<'v>) -> Result<(K, V)>,
) -> Result<BTreeMap<K, V>> {
    let mut map = BTreeMap::new();
    for _ in 0..read_count(view, STATISTICS_TERMS_MAX)? {
        let (key, value) = entry(view)?;
        if map.last_key_value().is_some_and(|(last, _)| *last >= key) {
            return Err(view.corrupt("entries are not in order"));
        }
        map.insert(key, value);
    }
    Ok(map)
}

fn read_count(view: &mut ByteReader<'_>, max: usize) -> Result<u64> {
    let count = view.varint()?;
    if count > max as u64 { Err(view.corrupt("too many entries")) } else { Ok(count) }
}

fn read_flag(view: &mut ByteReader<'_>) -> Result<bool> {
    match view.u8()? {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(view.corrupt("a flag is neither 0 nor 1")),
    }
}

fn read_distance(view: &mut ByteReader<'_>) -> Result<u8> {
    let distance = view.u8()?;
    if distance > FUZZY_DISTANCE_MAX { Err(view.corrupt("impossible edit distance")) } else { Ok(distance) }
}

/// Writes texts, each without the bytes that it shares with the one before.
#[derive(Default)]
struct TextWriter<'t> {
    last: &'t str,
}

impl<'t> TextWriter<'t> {
    fn push(&mut self, text: &'t FieldText, out: &mut Vec<u8>) {
        push_varint(out, text.0 as u64);
        self.push_term(&text.1, out);
    }

    fn push_term(&mut self, term: &'t str, out: &mut Vec<u8>) {
        let shared = common_prefix(self.last.as_bytes(), term.as_bytes());
        push_varint(out, shared as u64);
        push_bytes(out, &term.as_bytes()[shared..]);
        self.last = term;
    }
}

#[derive(Default)]
struct TextReader {
    last: Vec<u8>,
}

impl TextReader {
    fn read(&mut self, view: &mut ByteReader<'_>) -> Result<FieldText> {
        let field = view.varint()?;
        if field >= FIELDS_MAX as u64 {
            return Err(view.corrupt("impossible field"));
        }
        Ok((field as usize, self.read_term(view)?))
    }

    fn read_term(&mut self, view: &mut ByteReader<'_>) -> Result<String> {
        let (shared, len) = (view.varint()?, view.varint()?);
        if shared > self.last.len() as u64 || len > TEXT_BYTES_MAX as u64 {
            return Err(view.corrupt("impossible length of a term"));
        }
        self.last.truncate(shared as usize);
        self.last.extend_from_slice(view.bytes(len as usize)?);
        if self.last.len() > TEXT_BYTES_MAX {
            return Err(view.corrupt("a term that is too long"));
        }
        String::from_utf8(self.last.clone()).map_err(|_| view.corrupt("a term that is not UTF-8"))
    }
}
