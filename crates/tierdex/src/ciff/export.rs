//! Exports a field of an index as a CIFF file.
//!
//! 1. Read all posting lists, to compute the bytes of the message of each list, and the length of each
//!    document: the sum of its frequencies.
//! 2. Write the header, the lists in order of their terms (reading each a second time), and the document
//!    records.
//!
//! Memory: 4 bytes for each document, 8 bytes for each term and for each posting of the longest list; 4 bytes
//! more for each document if some are deleted.

use super::{CiffReport, MISSING_TOKENS};
use crate::bytes::{push_bytes, push_varint};
use crate::index::{Index, SegmentTerms};
use crate::{Error, Result, cursor::NO_DOCUMENT};
use std::io::Write;

/// Bytes that are collected before they are written.
const BUFFER_BYTES: usize = 256 << 10;

/// Writes a field as a CIFF file: its posting lists, and lengths and ids of all documents. `description` is
/// written to the header.
///
/// # Errors
/// [`Error::Usage`] when there is no such field; [`Error::TooLarge`] when there are more documents or terms
/// than `i32::MAX`; [`Error::Storage`] when the index cannot be read or `out` cannot be written.
pub fn export(index: &Index, field: &str, description: &str, out: &mut dyn Write) -> Result<CiffReport> {
    let Some(number) = index.schema().field(field) else {
        let fields: Vec<&str> = index.schema().fields.iter().map(|field| field.name.as_str()).collect();
        let message = format!("the index has no field `{field}`; it has {}", fields.join(", "));
        return Err(Error::Usage(message));
    };
    let documents = check_count(index.documents())?;
    let live = LiveNumbers::of(index);
    let (sizes, lengths) = (Vec::new(), vec![0; documents as usize]);
    let mut survey = ExportSurvey { sizes, lengths, postings: 0, size: 0 };
    for_each_list(index, number, &live, &mut survey)?;
    let ExportSurvey { sizes, lengths, postings, .. } = survey;
    let lists = check_count(sizes.len() as u64)?;
    let tokens: u64 = lengths.iter().map(|&length| u64::from(length)).sum();
    let mut file = MessageWriter { out, buffer: Vec::with_capacity(BUFFER_BYTES) };
    let mut message = Vec::new();
    for (field, value) in [(1, 1), (2, lists), (3, documents), (4, lists), (5, documents), (6, tokens)] {
        push_number(&mut message, field, value);
    }
    message.push(7 << 3 | 1);
    message.extend_from_slice(&(tokens as f64 / documents.max(1) as f64).to_le_bytes());
    push_text(&mut message, 8, description);
    file.write_message(&message)?;
    let (sizes, list_message) = (sizes.into_iter(), Vec::new());
    let mut writer = ListMessageWriter { file, sizes, message: list_message, is_left_out: false };
    for_each_list(index, number, &live, &mut writer)?;
    let mut file = writer.file;
    let (mut number, mut document) = (0, 0..);
    for segment in index.segments() {
        segment.ids().for_each(|id| {
            if document.next().and_then(|document| live.number(document)).is_none() {
                return Ok(());
            }
            message.clear();
            push_number(&mut message, 1, number);
            push_text(&mut message, 2, id);
            push_number(&mut message, 3, lengths[number as usize].into());
            number += 1;
            file.write_message(&message)
        })?;
    }
    file.flush()?;
    let collection = (documents, lists);
    let description = description.to_string();
    Ok(CiffReport { documents, lists, postings, collection, description, ..CiffReport::default() })
}

/// Returns a number of documents or terms, unless CIFF cannot store it.
fn check_count(number: u64) -> Result<u64> {
    if number > i32::MAX as u64 {
        return Err(Error::TooLarge(format!("CIFF has at most {} documents and terms", i32::MAX)));
    }
    Ok(number)
}

/// Receives the posting lists of a field, in order of their terms.
trait ExportPass {
    /// A list begins. It has this number of postings, with this sum of frequencies.
    fn begin(&mut self, term: &str, postings: u64, occurrences: u64) -> Result<()>;

    /// The next posting of the list; `gap` is the difference to the document before.
    fn add(&mut self, document: u32, gap: u32, frequency: u32) -> Result<()>;

    /// The list ends.
    fn end(&mut self) {}
}

/// The first pass over the lists.
struct ExportSurvey {
    /// Bytes of the message of each list.
    sizes: Vec<u64>,
    /// Length of each document so far.
    lengths: Vec<u32>,
    /// Number of postings of all lists that are written.
    postings: u64,
    /// Bytes of the message of the current list so far.
    size: u64,
}

impl ExportPass for ExportSurvey {
    fn begin(&mut self, term: &str, postings: u64, occurrences: u64) -> Result<()> {
        let mut head = Vec::new();
        push_list_head(&mut head, term, postings, occurrences);
        self.size = head.len() as u64;
        // The list of missing tokens is not written, but adds to document lengths.
        if term != MISSING_TOKENS {
            self.postings += postings;
            self.sizes.push(0);
        }
        Ok(())
    }

    fn add(&mut self, document: u32, gap: u32, frequency: u32) -> Result<()> {
        self.size += posting_bytes(gap, frequency) + 2;
        let length = &mut self.lengths[document as usize];
        *length = length.saturating_add(frequency);
        Ok(())
    }

    fn end(&mut self) {
        if let Some(size) = self.sizes.last_mut() {
            *size = self.size;
        }
    }
}

/// The second pass over the lists: writes their messages.
struct ListMessageWriter<'o> {
    file: MessageWriter<'o>,
    /// For each list not yet written, the length of its message in bytes.
    sizes: std::vec::IntoIter<u64>,
    /// Scratch buffer: a part of a message.
    message: Vec<u8>,
    /// Whether the current list is that of missing tokens, which is not written.
    is_left_out: bool,
}

impl ExportPass for ListMessageWriter<'_> {
    fn begin(&mut self, term: &str, postings: u64, occurrences: u64) -> Result<()> {
        self.is_left_out = term == MISSING_TOKENS;
        if self.is_left_out {
            return Ok(());
        }
        self.message.clear();
        push_varint(&mut self.message, self.sizes.next().unwrap_or(0));
        push_list_head(&mut self.message, term, postings, occurrences);
        self.file.write_bytes(&self.message)
    }

    fn add(&mut self, _: u32, gap: u32, frequency: u32) -> Result<()> {
        if self.is_left_out {
            return Ok(());
        }
        self.message.clear();
        self.message.extend([4 << 3 | 2, posting_bytes(gap, frequency) as u8]);
        push_number(&mut self.message, 1, gap.into());
        push_number(&mut self.message, 2, frequency.into());
        self.file.write_bytes(&self.message)
    }
}

/// Collects messages, and writes them in large pieces.
struct MessageWriter<'o> {
    out: &'o mut dyn Write,
    buffer: Vec<u8>,
}

impl MessageWriter<'_> {
    /// Writes a message after its length.
    fn write_message(&mut self, message: &[u8]) -> Result<()> {
        push_varint(&mut self.buffer, message.len() as u64);
        self.write_bytes(message)
    }

    /// Writes bytes of messages.
    fn write_bytes(&mut self, bytes: &[u8]) -> Result<()> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= BUFFER_BYTES { self.write_buffer() } else { Ok(()) }
    }

    fn write_buffer(&mut self) -> Result<()> {
        let written = self.out.write_all(&self.buffer);
        self.buffer.clear();
        Ok(written.map_err(|error| tierdex_io::Error::from_os("write", "the CIFF file", &error))?)
    }

    fn flush(&mut self) -> Result<()> {
        self.write_buffer()?;
        Ok(self.out.flush().map_err(|error| tierdex_io::Error::from_os("write", "the CIFF file", &error))?)
    }
}

/// The numbers that documents have among the live ones.
enum LiveNumbers {
    All,
    /// For each document; [`NO_DOCUMENT`] if it is deleted.
    Some(Vec<u32>),
}

impl LiveNumbers {
    fn of(index: &Index) -> LiveNumbers {
        if index.segments().iter().all(|segment| segment.deletes().is_none()) {
            return LiveNumbers::All;
        }
        let (mut next, mut numbers) = (0, Vec::new());
        for segment in index.segments() {
            numbers.extend((0..segment.documents()).map(|document| {
                let is_live = segment.is_live(document);
                next += u32::from(is_live);
                if is_live { next - 1 } else { NO_DOCUMENT }
            }));
        }
        LiveNumbers::Some(numbers)
    }

    /// The number of a document; `None` if it is deleted.
    fn number(&self, document: u32) -> Option<u32> {
        match self {
            LiveNumbers::All => Some(document),
            LiveNumbers::Some(numbers) => {
                Some(numbers[document as usize]).filter(|number| *number != NO_DOCUMENT)
            }
        }
    }
}

/// Passes all posting lists of a field to `sink`, each with its postings of all segments.
fn for_each_list(index: &Index, field: usize, live: &LiveNumbers, sink: &mut dyn ExportPass) -> Result<()> {
    let mut inputs = SegmentTerms::open(index.segments().iter().map(|segment| &**segment), field)?;
    let (mut list, mut term) = (Vec::new(), Vec::new());
    while SegmentTerms::copy_smallest(&inputs, &mut term) {
        list.clear();
        for input in &mut inputs {
            let Some(info) = input.take(&term)? else { continue };
            let base = input.base;
            input.lists.with_cursor(input.field, info, |cursor| {
                while cursor.advance(0)? != NO_DOCUMENT {
                    let (documents, frequencies) = cursor.rest_of_block()?;
                    let postings = documents.iter().zip(frequencies);
                    let live = postings.filter_map(|(document, frequency)| {
                        Some((live.number(base + document)?, *frequency))
                    });
                    list.extend(live);
                    let count = documents.len();
                    cursor.skip(count)?;
                }
                Ok(())
            })?;
        }
        if list.is_empty() {
            continue;
        }
        let occurrences = list.iter().map(|(_, frequency)| u64::from(*frequency)).sum();
        sink.begin(&String::from_utf8_lossy(&term), list.len() as u64, occurrences)?;
        let mut before = 0;
        for (document, frequency) in &list {
            sink.add(*document, document - before, *frequency)?;
            before = *document;
        }
        sink.end();
    }
    Ok(())
}

/// Appends the fields of a list message that precede its postings.
fn push_list_head(out: &mut Vec<u8>, term: &str, postings: u64, occurrences: u64) {
    push_text(out, 1, term);
    push_number(out, 2, postings);
    push_number(out, 3, occurrences);
}

/// Appends a field with a number, unless it is 0, the default.
fn push_number(out: &mut Vec<u8>, field: u8, value: u64) {
    if value > 0 {
        out.push(field << 3);
        push_varint(out, value);
    }
}

/// Appends a field with a text, unless it is empty.
fn push_text(out: &mut Vec<u8>, field: u8, text: &str) {
    if !text.is_empty() {
        out.push(field << 3 | 2);
        push_bytes(out, text.as_bytes());
    }
}

/// Bytes of the message of a posting, at most 12, without its length.
fn posting_bytes(gap: u32, frequency: u32) -> u64 {
    let len = |value: u32| match value {
        0 => 0,
        value => 1 + (u32::BITS - value.leading_zeros()).div_ceil(7),
    };
    u64::from(len(gap) + len(frequency))
}
