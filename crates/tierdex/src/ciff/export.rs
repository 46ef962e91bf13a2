//! Exports a field of an index.
//!
//! 1. Read all lists: note the size of each list's message, and sum up the frequencies of each document: its
//!    length.
//! 2. Write the header, the lists in order of their terms, reading each a second time, and the records.
//!
//! Memory: 4 bytes a document and 8 bytes a term.

use super::{CiffReport, MISSING_TOKENS};
use crate::bytes::{push_bytes, push_varint};
use crate::index::{Index, SegmentTerms};
use crate::{Error, Result, cursor::NO_DOCUMENT};
use std::io::Write;

/// Bytes that are written at a time.
const BUFFER_BYTES: usize = 256 << 10;

/// Writes a field as a CIFF file: its lists, and lengths and ids of all documents. `description` goes to the
/// header.
///
/// # Errors [`Error::Usage`] when there is no such field; [`Error::TooLarge`] when there are more than 2^31
/// - 1 documents or terms; [`Error::Storage`] when the index cannot be read or `out` cannot be written.
pub fn export(index: &Index, field: &str, description: &str, out: &mut dyn Write) -> Result<CiffReport> {
    let Some(number) = index.schema().field(field) else {
        return Err(Error::Usage(format!("the index has no field `{field}`")));
    };
    let documents = count(index.documents())?;
    let mut survey = ExportSurvey {
        sizes: Vec::new(),
        lengths: vec![0; documents as usize],
        postings: 0,
        size: 0,
        cf: 0,
        df: 0,
    };
    each_list(index, number, &mut survey)?;
    let ExportSurvey { sizes, lengths, postings, .. } = survey;
    let lists = count(sizes.len() as u64)?;
    let tokens: u64 = lengths.iter().map(|&length| u64::from(length)).sum();
    let mut file = MessageWriter { out, buffer: Vec::with_capacity(BUFFER_BYTES) };
    let mut message = Vec::new();
    for (field, value) in [(1, 1), (2, lists), (3, documents), (4, lists), (5, documents), (6, tokens)] {
        push_number(&mut message, field, value);
    }
    message.push(7 << 3 | 1);
    message.extend_from_slice(&(tokens as f64 / documents.max(1) as f64).to_le_bytes());
    push_text(&mut message, 8, description);
    file.message(&message)?;
    let mut lists_out = ListsOut { file, sizes: sizes.into_iter(), message: Vec::new(), is_left_out: false };
    each_list(index, number, &mut lists_out)?;
    let mut file = lists_out.file;
    let mut number = 0;
    for segment in index.segments() {
        segment.ids().for_each(|id| {
            message.clear();
            push_number(&mut message, 1, number);
            push_text(&mut message, 2, id);
            push_number(&mut message, 3, lengths[number as usize].into());
            number += 1;
            file.message(&message)
        })?;
    }
    file.flush()?;
    let collection = (documents, lists);
    let description = description.to_string();
    Ok(CiffReport { documents, lists, postings, collection, description, ..CiffReport::default() })
}

fn count(number: u64) -> Result<u64> {
    if number > i32::MAX as u64 {
        return Err(Error::TooLarge(format!("CIFF has at most {} documents and terms", i32::MAX)));
    }
    Ok(number)
}

/// Consumes the lists of a field, in order of their terms.
trait ListSink {
    /// A list begins; `documents` and `occurrences` are those of all segments.
    fn begin(&mut self, term: &str, documents: u64, occurrences: u64) -> Result<()>;

    /// The next posting of the list.
    fn posting(&mut self, document: u32, gap: u32, frequency: u32) -> Result<()>;

    /// The list ends.
    fn end(&mut self) -> Result<()>;
}

/// The first pass.
struct ExportSurvey {
    /// Size of the message of each list.
    sizes: Vec<u64>,
    lengths: Vec<u32>,
    postings: u64,
    size: u64,
    cf: u64,
    df: u64,
}

impl ListSink for ExportSurvey {
    fn begin(&mut self, term: &str, documents: u64, occurrences: u64) -> Result<()> {
        let mut head = Vec::new();
        push_head(&mut head, term, documents, occurrences);
        (self.size, self.df, self.cf) = (head.len() as u64, documents, occurrences);
        self.postings += if term == MISSING_TOKENS { 0 } else { documents };
        // The list of missing tokens adds to lengths and is not written.
        self.sizes.extend((term != MISSING_TOKENS).then_some(0));
        Ok(())
    }

    fn posting(&mut self, document: u32, gap: u32, frequency: u32) -> Result<()> {
        self.size += posting_len(gap, frequency) + 2;
        let length = &mut self.lengths[document as usize];
        *length = length.saturating_add(frequency);
        Ok(())
    }

    fn end(&mut self) -> Result<()> {
        if let Some(size) = self.sizes.last_mut() {
            *size = self.size;
        }
        Ok(())
    }
}

/// The second pass.
struct ListsOut<'o> {
    file: MessageWriter<'o>,
    sizes: std::vec::IntoIter<u64>,
    message: Vec<u8>,
    /// The current list is that of missing tokens, which is not written.
    is_left_out: bool,
}

impl ListSink for ListsOut<'_> {
    fn begin(&mut self, term: &str, documents: u64, occurrences: u64) -> Result<()> {
        self.is_left_out = term == MISSING_TOKENS;
        if self.is_left_out {
            return Ok(());
        }
        self.message.clear();
        push_varint(&mut self.message, self.sizes.next().unwrap_or(0));
        push_head(&mut self.message, term, documents, occurrences);
        self.file.bytes(&self.message)
    }

    fn posting(&mut self, _: u32, gap: u32, frequency: u32) -> Result<()> {
        if self.is_left_out {
            return Ok(());
        }
        self.message.clear();
        self.message.extend([4 << 3 | 2, posting_len(gap, frequency) as u8]);
        push_number(&mut self.message, 1, gap.into());
        push_number(&mut self.message, 2, frequency.into());
        self.file.bytes(&self.message)
    }

    fn end(&mut self) -> Result<()> {
        Ok(())
    }
}

/// Collects small writes.
struct MessageWriter<'o> {
    out: &'o mut dyn Write,
    buffer: Vec<u8>,
}

impl MessageWriter<'_> {
    fn message(&mut self, message: &[u8]) -> Result<()> {
        push_bytes(&mut self.buffer, message);
        self.flush_full()
    }

    fn bytes(&mut self, bytes: &[u8]) -> Result<()> {
        self.buffer.extend_from_slice(bytes);
        self.flush_full()
    }

    fn flush_full(&mut self) -> Result<()> {
        if self.buffer.len() >= BUFFER_BYTES { self.write() } else { Ok(()) }
    }

    fn write(&mut self) -> Result<()> {
        let written = self.out.write_all(&self.buffer);
        self.buffer.clear();
        Ok(written.map_err(|error| tierdex_io::Error::from_os("write", "the CIFF file", &error))?)
    }

    fn flush(&mut self) -> Result<()> {
        self.write()?;
        Ok(self.out.flush().map_err(|error| tierdex_io::Error::from_os("write", "the CIFF file", &error))?)
    }
}

/// Passes all lists of a field to `sink`, with document numbers of the commit.
fn each_list(index: &Index, field: usize, sink: &mut dyn ListSink) -> Result<()> {
    let mut inputs = SegmentTerms::open(index.segments().iter().map(|segment| segment.field(field)))?;
    loop {
        let Some(term) = SegmentTerms::smallest(&inputs) else { return Ok(()) };
        let infos = inputs.iter().filter_map(|input| input.info(&term));
        let (documents, occurrences) = infos.fold((0, 0), |(documents, occurrences), info| {
            (documents + u64::from(info.document_frequency), occurrences + info.occurrences)
        });
        sink.begin(&String::from_utf8_lossy(&term), documents, occurrences)?;
        let mut next = 0;
        for input in &mut inputs {
            if let Some(info) = input.take(&term)? {
                let mut cursor = input.ahead.cursor(input.field, info)?;
                while cursor.advance(0)? != NO_DOCUMENT {
                    let (documents, frequencies) = cursor.rest_of_block()?;
                    let count = documents.len();
                    for (document, frequency) in documents.iter().zip(frequencies) {
                        let document = input.base + document;
                        sink.posting(document, document - next, *frequency)?;
                        next = document;
                    }
                    cursor.skip(count)?;
                }
            }
        }
        sink.end()?;
    }
}

fn push_head(out: &mut Vec<u8>, term: &str, documents: u64, occurrences: u64) {
    push_text(out, 1, term);
    push_number(out, 2, documents);
    push_number(out, 3, occurrences);
}

/// Appends a number, unless it is 0, the default.
fn push_number(out: &mut Vec<u8>, field: u8, value: u64) {
    if value > 0 {
        out.push(field << 3);
        push_varint(out, value);
    }
}

/// Appends text, unless it is empty.
fn push_text(out: &mut Vec<u8>, field: u8, text: &str) {
    if !text.is_empty() {
        out.push(field << 3 | 2);
        push_bytes(out, text.as_bytes());
    }
}

/// Bytes of the message of a posting, at most 12.
fn posting_len(gap: u32, frequency: u32) -> u64 {
    let len = |value: u32| match value {
        0 => 0,
        value => 1 + (u32::BITS - value.leading_zeros()).div_ceil(7),
    };
    u64::from(len(gap) + len(frequency))
}
