//! Imports a CIFF file as a segment.
//!
//! 1. Read and check the whole file. Remember the offset and the term of each posting list, the offset and
//!    the length of each document record, and the sum of the frequencies of each document.
//! 2. Write document lengths and ids.
//! 3. Write the lists in order of their terms, reading each a second time.
//!
//! Memory: 20 bytes for each document; 40 bytes, approximately, and the text for each term.

use super::wire::{ReadSeek, WIRE_BYTES, WIRE_FIXED64, WIRE_VARINT, WireReader};
use super::{CiffReport, MISSING_TOKENS};
use crate::index::{IndexWriter, ListBuilder, ListsBuilder, StopSignal, check_id};
use crate::limits::{FIELD_TOKENS_MAX, ID_BYTES_MAX, TERM_BYTES_MAX};
use crate::{Error, Result, schema::Analysis, text::Analyzer};
use std::cell::RefCell;

/// Number of postings that are passed to the writer at a time.
const POSTINGS_BUFFERED: usize = 8192;

/// Maximum bytes of the description in the header.
const DESCRIPTION_BYTES_MAX: usize = 1 << 20;

/// Adds the documents of a CIFF file as a new segment, after all documents added before. `name` is the name
/// of the file in messages. A compressed file must be decompressed first.
///
/// Terms may be in any order. Documents are in the order of their numbers in the file. If the length of a
/// document is less than the sum of its frequencies, that sum becomes its length. [`CiffReport`] counts such
/// differences.
///
/// # Errors
/// [`Error::Failed`] with name and offset when the file is invalid; [`Error::TooLarge`] when a
/// document has too many tokens; [`Error::Usage`] when the schema has several fields, positions or stored
/// documents ([`super::schema`]), or the file has no documents; else as [`IndexWriter::add`]. Any error
/// stops the writer, if it occurs after the writer has begun to write.
pub fn import(writer: &mut IndexWriter, input: &mut dyn ReadSeek, name: &str) -> Result<CiffReport> {
    let mut reader = WireReader::new(input, name)?;
    let ImportSurvey { mut report, lists, terms, documents } = survey_file(&mut reader, writer.stop())?;
    count_changed_terms(&writer.schema().fields[0].analysis, &lists, &terms, &mut report);
    let lengths = documents.iter().map(|document| document.length.max(document.tokens)).collect();
    let reader = RefCell::new(reader);
    // The callback for ids cannot return an error: the first error is returned before the lists are written.
    let mut failed = None;
    let failure = RefCell::new(&mut failed);
    let id = |document: u32, id: &mut String| {
        let read = read_id(&mut reader.borrow_mut(), documents[document as usize].record, id);
        if let Err(error) = read {
            failure.borrow_mut().get_or_insert(error);
        }
    };
    let body = |builder: &mut ListsBuilder<'_, '_>| {
        if let Some(error) = failure.borrow_mut().take() {
            return Err(error);
        }
        if report.missing_tokens > 0 {
            builder.term(MISSING_TOKENS, |list| write_missing_tokens(&documents, list))?;
        }
        let mut reader = reader.borrow_mut();
        lists.iter().try_for_each(|list| {
            builder.term(list.term(&terms), |postings| copy_list(&mut reader, list, postings))
        })
    };
    writer.import(lengths, id, body)?;
    Ok(report)
}

/// The result of the first pass over the file.
struct ImportSurvey {
    report: CiffReport,
    /// The posting lists, in order of their terms.
    lists: Vec<FoundList>,
    /// All terms, concatenated.
    terms: String,
    documents: Vec<FoundDocument>,
}

/// A posting list in the file.
struct FoundList {
    /// Offset of the term of the list in [`ImportSurvey::terms`], and bytes of the term.
    term: (usize, u8),
    /// Byte range of its message in the file.
    start: u64,
    end: u64,
}

/// A document of the file.
#[derive(Clone, Copy, Default)]
struct FoundDocument {
    /// Offset of the record of the document in the file; 0 if none was found yet.
    record: u64,
    /// Length in tokens according to its record.
    length: u32,
    /// Sum of the frequencies of all terms in the document.
    tokens: u32,
}

/// Numbers of posting lists and of documents in the file, from its header.
#[derive(Default)]
struct CiffHeader {
    lists: u32,
    documents: u32,
}

impl FoundList {
    fn term<'t>(&self, terms: &'t str) -> &'t str {
        &terms[self.term.0..self.term.0 + usize::from(self.term.1)]
    }
}

/// The first pass over the file.
fn survey_file(reader: &mut WireReader<'_>, stop: &StopSignal) -> Result<ImportSurvey> {
    let mut report = CiffReport::default();
    let header = read_header(reader, &mut report)?;
    // A list or record takes at least one byte, so that the size of the file bounds the memory that is
    // allocated.
    if u64::from(header.documents) + u64::from(header.lists) > reader.remaining() {
        return Err(reader.invalid("the file is too short for the documents and lists in its header"));
    }
    let mut survey = ImportSurvey {
        report,
        lists: Vec::new(),
        terms: String::new(),
        documents: vec![FoundDocument::default(); header.documents as usize],
    };
    for _ in 0..header.lists {
        stop.check()?;
        survey_list(reader, &mut survey)?;
    }
    for _ in 0..header.documents {
        survey_record(reader, &mut survey.documents)?;
    }
    if reader.remaining() > 0 {
        return Err(reader.invalid("bytes follow the last document record"));
    }
    let ImportSurvey { report, lists, terms, documents } = &mut survey;
    lists.sort_by(|a, b| a.term(terms).cmp(b.term(terms)));
    if let Some(pair) = lists.windows(2).find(|pair| pair[0].term(terms) == pair[1].term(terms)) {
        reader.seek(pair[1].start)?;
        let term = pair[1].term(terms).escape_debug();
        return Err(reader.invalid(format!("term `{term}` has two lists")));
    }
    if lists.first().is_some_and(|list| list.term(terms) == MISSING_TOKENS) {
        return Err(reader.invalid("a term is a single NUL character, which is reserved"));
    }
    report.documents = documents.len() as u64;
    report.lists = lists.len() as u64;
    for document in documents.iter() {
        report.missing_tokens += u64::from(document.length.saturating_sub(document.tokens));
        report.raised_lengths += u64::from(document.length < document.tokens);
    }
    Ok(survey)
}

/// Reads the header; collection sizes and description are written to `report`.
fn read_header(reader: &mut WireReader<'_>, report: &mut CiffReport) -> Result<CiffHeader> {
    let (end, mut header, mut version) = (reader.message_end()?, CiffHeader::default(), 0);
    while let Some((field, wire_type)) = reader.tag(end)? {
        match (field, wire_type) {
            (1, WIRE_VARINT) => version = reader.varint31("the version")?,
            (2, WIRE_VARINT) => header.lists = reader.varint31("the number of posting lists")?,
            (3, WIRE_VARINT) => header.documents = reader.varint31("the number of documents")?,
            (4, WIRE_VARINT) => {
                report.collection.1 = reader.varint31("the number of all posting lists")?.into()
            }
            (5, WIRE_VARINT) => report.collection.0 = reader.varint31("the number of all documents")?.into(),
            (7, WIRE_FIXED64) => drop(reader.fixed64()?),
            (8, WIRE_BYTES) => {
                reader.text("the description", DESCRIPTION_BYTES_MAX, &mut report.description)?;
            }
            _ => reader.skip_value(wire_type)?,
        }
    }
    if version != 1 {
        return Err(reader.invalid(format!("this is no CIFF file of version 1, its version is {version}")));
    }
    if header.documents == 0 {
        return Err(Error::Usage("the file has no documents".to_string()));
    }
    Ok(header)
}

/// Reads and checks a posting list.
fn survey_list(reader: &mut WireReader<'_>, survey: &mut ImportSurvey) -> Result<()> {
    let end = reader.message_end()?;
    let (start, mut term, mut frequency, mut postings) = (reader.position(), String::new(), None, 0);
    let (mut documents, mut is_too_long) = (GapDecoder::default(), false);
    while let Some((field, wire_type)) = reader.tag(end)? {
        match (field, wire_type) {
            // A term that is too long is left out. The postings that follow are checked, but not counted.
            (1, WIRE_BYTES) if postings == 0 && reader.peek_text_bytes()? > TERM_BYTES_MAX as u64 => {
                reader.skip_value(WIRE_BYTES)?;
                is_too_long = true;
            }
            (1, WIRE_BYTES) => reader.text("a term", TERM_BYTES_MAX, &mut term)?,
            (2, WIRE_VARINT) => frequency = Some(reader.varint()?),
            (4, WIRE_BYTES) => {
                let (document, occurrences) = documents.read_posting(reader, end)?;
                let Some(found) = survey.documents.get_mut(document as usize) else {
                    let count = survey.documents.len();
                    return Err(reader.invalid(format!("document {document} of {count}")));
                };
                found.tokens += if is_too_long { 0 } else { occurrences };
                if found.tokens > FIELD_TOKENS_MAX {
                    let message = format!("document {document} has more than {FIELD_TOKENS_MAX} tokens");
                    return Err(Error::TooLarge(message));
                }
                postings += 1;
            }
            _ => reader.skip_value(wire_type)?,
        }
    }
    if is_too_long && term.is_empty() {
        survey.report.long_terms += 1;
        return Ok(());
    }
    if term.is_empty() {
        return Err(reader.invalid("a posting list has no term"));
    }
    if postings == 0 {
        return Err(reader.invalid(format!("term `{}` has no postings", term.escape_debug())));
    }
    survey.report.postings += postings;
    survey.report.other_frequencies += u64::from(frequency != Some(postings));
    let at = survey.terms.len();
    survey.terms.push_str(&term);
    survey.lists.push(FoundList { term: (at, term.len() as u8), start, end });
    Ok(())
}

/// Decodes the documents of a list, which are stored as gaps.
#[derive(Default)]
struct GapDecoder {
    /// The previous document; `None` before the first.
    last: Option<u32>,
}

impl GapDecoder {
    /// Reads the next posting; returns its document and its frequency.
    #[inline]
    fn read_posting(&mut self, reader: &mut WireReader<'_>, list_end: u64) -> Result<(u32, u32)> {
        let (end, mut gap, mut occurrences) = (reader.inner_message_end(list_end)?, 0, 0);
        while let Some((field, wire_type)) = reader.tag(end)? {
            match (field, wire_type) {
                (1, WIRE_VARINT) => gap = reader.varint31("a document gap")?,
                (2, WIRE_VARINT) => occurrences = reader.varint31("a frequency")?,
                _ => reader.skip_value(wire_type)?,
            }
        }
        let document = match self.last {
            None => gap,
            Some(last) => match last.checked_add(gap) {
                Some(document) if gap > 0 && document <= i32::MAX as u32 => document,
                _ => return Err(reader.invalid("documents of a list do not increase")),
            },
        };
        if occurrences == 0 || occurrences > FIELD_TOKENS_MAX {
            return Err(reader.invalid(format!("document {document} has the frequency {occurrences}")));
        }
        self.last = Some(document);
        Ok((document, occurrences))
    }
}

/// Reads and checks a document record.
fn survey_record(reader: &mut WireReader<'_>, documents: &mut [FoundDocument]) -> Result<()> {
    let record = reader.position();
    let (end, mut number, mut length) = (reader.message_end()?, 0, 0);
    while let Some((field, wire_type)) = reader.tag(end)? {
        match (field, wire_type) {
            (1, WIRE_VARINT) => number = reader.varint31("a document number")?,
            (3, WIRE_VARINT) => length = reader.varint31("a document length")?,
            _ => reader.skip_value(wire_type)?,
        }
    }
    let count = documents.len();
    match documents.get_mut(number as usize) {
        None => Err(reader.invalid(format!("document {number} of {count}"))),
        Some(found) if found.record > 0 => Err(reader.invalid(format!("document {number} has two records"))),
        Some(_) if length > FIELD_TOKENS_MAX => Err(Error::TooLarge(format!(
            "document {number} has {length} tokens; a document has at most {FIELD_TOKENS_MAX}"
        ))),
        Some(found) => {
            (found.record, found.length) = (record, length);
            Ok(())
        }
    }
}

/// Reads the external id of the document record at offset `record`.
fn read_id(reader: &mut WireReader<'_>, record: u64, id: &mut String) -> Result<()> {
    reader.seek(record)?;
    let end = reader.message_end()?;
    while let Some((field, wire_type)) = reader.tag(end)? {
        match (field, wire_type) {
            (2, WIRE_BYTES) => reader.text("the id of a document", ID_BYTES_MAX, id)?,
            _ => reader.skip_value(wire_type)?,
        }
    }
    check_id(id).map_err(|problem| reader.invalid(format!("document record before: {problem}")))
}

/// Counts the terms that no query finds, because the analysis of the query changes them.
fn count_changed_terms(analysis: &Analysis, lists: &[FoundList], terms: &str, report: &mut CiffReport) {
    let mut analyzer = Analyzer::new(analysis);
    for list in lists {
        let term = list.term(terms);
        let (mut found, mut others) = (false, false);
        analyzer.analyze(term, 0, |token| match token.run {
            // Two characters of text without blanks are one term, and the last of them is another term.
            Some(part) if found && part.is_last => {}
            _ if token.position == 0 => found = token.term == term,
            _ => others = true,
        });
        if !found || others {
            report.changed_terms += 1;
            report.first_changed_term.get_or_insert_with(|| term.to_string());
        }
    }
}

/// Writes the list of [`MISSING_TOKENS`]: for each document the tokens of its length that no list has.
fn write_missing_tokens(documents: &[FoundDocument], list: &mut ListBuilder<'_, '_, '_>) -> Result<()> {
    let mut out = PostingsBuffer::default();
    for (number, document) in (0..).zip(documents) {
        if document.length > document.tokens {
            out.add(list, number, document.length - document.tokens)?;
        }
    }
    out.flush(list)
}

/// Writes a list of the file as the list of a term.
fn copy_list(
    reader: &mut WireReader<'_>,
    found: &FoundList,
    list: &mut ListBuilder<'_, '_, '_>,
) -> Result<()> {
    reader.seek(found.start)?;
    let (mut documents, mut out) = (GapDecoder::default(), PostingsBuffer::default());
    while let Some((field, wire_type)) = reader.tag(found.end)? {
        match (field, wire_type) {
            (4, WIRE_BYTES) => {
                let (document, frequency) = documents.read_posting(reader, found.end)?;
                out.add(list, document, frequency)?;
            }
            _ => reader.skip_value(wire_type)?,
        }
    }
    out.flush(list)
}

/// Collects postings, which are passed to the writer many at a time.
#[derive(Default)]
struct PostingsBuffer {
    documents: Vec<u32>,
    frequencies: Vec<u32>,
}

impl PostingsBuffer {
    fn add(&mut self, list: &mut ListBuilder<'_, '_, '_>, document: u32, frequency: u32) -> Result<()> {
        self.documents.push(document);
        self.frequencies.push(frequency);
        if self.documents.len() == POSTINGS_BUFFERED { self.flush(list) } else { Ok(()) }
    }

    fn flush(&mut self, list: &mut ListBuilder<'_, '_, '_>) -> Result<()> {
        list.extend(&self.documents, &self.frequencies)?;
        self.documents.clear();
        self.frequencies.clear();
        Ok(())
    }
}
