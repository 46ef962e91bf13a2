//! Imports a file as a segment.
//!
//! 1. Read the whole file and check it. Note the offset and the term of each list, the offset and the length
//!    of each document record, and the sum of the frequencies of each document.
//! 2. Write lengths and ids.
//! 3. Write the lists in order of their terms, reading each a second time.
//!
//! Memory: 20 bytes a document, and about 40 bytes and the text of each term.

use super::wire::{BYTES, FIXED64, ReadSeek, VARINT, WireReader};
use super::{CiffReport, MISSING_TOKENS};
use crate::index::{IndexWriter, ListBuilder, ListsBuilder, StopSignal, check_id};
use crate::limits::{FIELD_TOKENS_MAX, ID_BYTES_MAX, TERM_BYTES_MAX};
use crate::{Error, Result, schema::Analysis, text::Analyzer};
use std::cell::RefCell;

/// Postings that are passed to the writer at a time.
const POSTINGS: usize = 8192;

/// Longest description in bytes.
const DESCRIPTION_BYTES_MAX: usize = 1 << 20;

/// Adds the documents of a CIFF file after all documents added before, as a segment of its own. `name` is
/// the name of the file in messages. A compressed file must be decompressed first.
///
/// Terms may be in any order. Document numbers are those of the file; a document that is shorter by its
/// record than the sum of its frequencies gets that sum as its length. [`CiffReport`] counts what differs.
///
/// # Errors [`Error::Failed`] with name and offset when the file is invalid; [`Error::TooLarge`] when a
/// document has too many tokens; [`Error::Usage`] when the schema has several fields, positions or stored
/// documents ([`super::schema`]), or the file has no documents; else as [`IndexWriter::add`]. Any error
/// stops the writer once it has begun to write.
pub fn import(writer: &mut IndexWriter, input: &mut dyn ReadSeek, name: &str) -> Result<CiffReport> {
    let mut reader = WireReader::new(input, name)?;
    let ImportSurvey { mut report, lists, terms, documents } = survey(&mut reader, writer.stop())?;
    count_changed(&writer.schema().fields[0].analysis, &lists, &terms, &mut report);
    let lengths = documents.iter().map(|document| document.length.max(document.tokens)).collect();
    let reader = RefCell::new(reader);
    // The closure of ids cannot fail: the first error is reported before the lists are written.
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
            builder.term(MISSING_TOKENS, |list| missing_tokens(&documents, list))?;
        }
        let mut reader = reader.borrow_mut();
        lists.iter().try_for_each(|list| {
            builder.term(list.term(&terms), |postings| copy_list(&mut reader, list, postings))
        })
    };
    writer.import(lengths, id, body)?;
    Ok(report)
}

/// What the first pass has found.
struct ImportSurvey {
    report: CiffReport,
    /// In order of their terms.
    lists: Vec<FoundList>,
    /// The texts of all terms.
    terms: String,
    documents: Vec<FoundDocument>,
}

/// A posting list in the file.
struct FoundList {
    term: (usize, u8),
    start: u64,
    end: u64,
}

/// A document of the file.
#[derive(Clone, Copy, Default)]
struct FoundDocument {
    /// Offset of its record; 0 before it is found, where the header is.
    record: u64,
    length: u32,
    /// The sum of its frequencies.
    tokens: u32,
}

/// Counts in the header.
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

fn survey(reader: &mut WireReader<'_>, stop: &StopSignal) -> Result<ImportSurvey> {
    let mut report = CiffReport::default();
    let header = read_header(reader, &mut report)?;
    // A record has at least one byte, so that the size of the file bounds memory.
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

fn read_header(reader: &mut WireReader<'_>, report: &mut CiffReport) -> Result<CiffHeader> {
    let (end, mut header, mut version) = (reader.message()?, CiffHeader::default(), 0);
    while let Some((field, wire_type)) = reader.tag(end)? {
        match (field, wire_type) {
            (1, VARINT) => version = reader.count("the version")?,
            (2, VARINT) => header.lists = reader.count("the number of posting lists")?,
            (3, VARINT) => header.documents = reader.count("the number of documents")?,
            (4, VARINT) => report.collection.1 = reader.count("the number of all posting lists")?.into(),
            (5, VARINT) => report.collection.0 = reader.count("the number of all documents")?.into(),
            (7, FIXED64) => drop(reader.fixed64()?),
            (8, BYTES) => {
                reader.text("the description", DESCRIPTION_BYTES_MAX, &mut report.description)?;
            }
            _ => reader.skip(wire_type)?,
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

fn survey_list(reader: &mut WireReader<'_>, survey: &mut ImportSurvey) -> Result<()> {
    let end = reader.message()?;
    let (start, mut term, mut frequency, mut postings) = (reader.position(), String::new(), None, 0);
    let (mut documents, mut skipped) = (ListDocuments::default(), false);
    while let Some((field, wire_type)) = reader.tag(end)? {
        match (field, wire_type) {
            // As in indexing; the postings that follow are checked and not counted.
            (1, BYTES) if postings == 0 && reader.text_bytes()? > TERM_BYTES_MAX as u64 => {
                reader.skip(BYTES)?;
                skipped = true;
            }
            (1, BYTES) => reader.text("a term", TERM_BYTES_MAX, &mut term)?,
            (2, VARINT) => frequency = Some(reader.varint()?),
            (4, BYTES) => {
                let (document, occurrences) = documents.next(reader, end)?;
                let Some(found) = survey.documents.get_mut(document as usize) else {
                    let count = survey.documents.len();
                    return Err(reader.invalid(format!("document {document} of {count}")));
                };
                found.tokens += if skipped { 0 } else { occurrences };
                if found.tokens > FIELD_TOKENS_MAX {
                    let message = format!("document {document} has more than {FIELD_TOKENS_MAX} tokens");
                    return Err(Error::TooLarge(message));
                }
                postings += 1;
            }
            _ => reader.skip(wire_type)?,
        }
    }
    if skipped && term.is_empty() {
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

/// The documents of a list, from their gaps.
#[derive(Default)]
struct ListDocuments {
    /// The document before; `None` before the first.
    last: Option<u32>,
}

impl ListDocuments {
    /// Reads the next posting: document and frequency.
    #[inline]
    fn next(&mut self, reader: &mut WireReader<'_>, list_end: u64) -> Result<(u32, u32)> {
        let (end, mut gap, mut occurrences) = (reader.message_in(list_end)?, 0, 0);
        while let Some((field, wire_type)) = reader.tag(end)? {
            match (field, wire_type) {
                (1, VARINT) => gap = reader.count("a document gap")?,
                (2, VARINT) => occurrences = reader.count("a frequency")?,
                _ => reader.skip(wire_type)?,
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

fn survey_record(reader: &mut WireReader<'_>, documents: &mut [FoundDocument]) -> Result<()> {
    let record = reader.position();
    let (end, mut number, mut length) = (reader.message()?, 0, 0);
    while let Some((field, wire_type)) = reader.tag(end)? {
        match (field, wire_type) {
            (1, VARINT) => number = reader.count("a document number")?,
            (3, VARINT) => length = reader.count("a document length")?,
            _ => reader.skip(wire_type)?,
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

fn read_id(reader: &mut WireReader<'_>, record: u64, id: &mut String) -> Result<()> {
    reader.seek(record)?;
    let end = reader.message()?;
    while let Some((field, wire_type)) = reader.tag(end)? {
        match (field, wire_type) {
            (2, BYTES) => reader.text("the id of a document", ID_BYTES_MAX, id)?,
            _ => reader.skip(wire_type)?,
        }
    }
    check_id(id).map_err(|problem| reader.invalid(format!("document record before: {problem}")))
}

/// Counts the terms that a query for them does not find, as its analysis changes them.
fn count_changed(analysis: &Analysis, lists: &[FoundList], terms: &str, report: &mut CiffReport) {
    let mut analyzer = Analyzer::new(analysis);
    for list in lists {
        let term = list.term(terms);
        let (mut found, mut others) = (false, false);
        analyzer.analyze(term, 0, |token| match token.run {
            // A pair of characters of text without blanks is found, though its last character is a term too.
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

/// The list of the term that has the tokens which no list has.
fn missing_tokens(documents: &[FoundDocument], list: &mut ListBuilder<'_, '_, '_>) -> Result<()> {
    let mut out = Postings::default();
    for (number, document) in (0..).zip(documents) {
        if document.length > document.tokens {
            out.add(list, number, document.length - document.tokens)?;
        }
    }
    out.flush(list)
}

fn copy_list(
    reader: &mut WireReader<'_>,
    found: &FoundList,
    list: &mut ListBuilder<'_, '_, '_>,
) -> Result<()> {
    reader.seek(found.start)?;
    let (mut documents, mut out) = (ListDocuments::default(), Postings::default());
    while let Some((field, wire_type)) = reader.tag(found.end)? {
        match (field, wire_type) {
            (4, BYTES) => {
                let (document, frequency) = documents.next(reader, found.end)?;
                out.add(list, document, frequency)?;
            }
            _ => reader.skip(wire_type)?,
        }
    }
    out.flush(list)
}

/// Postings on their way to the writer.
#[derive(Default)]
struct Postings {
    documents: Vec<u32>,
    frequencies: Vec<u32>,
}

impl Postings {
    fn add(&mut self, list: &mut ListBuilder<'_, '_, '_>, document: u32, frequency: u32) -> Result<()> {
        self.documents.push(document);
        self.frequencies.push(frequency);
        if self.documents.len() == POSTINGS { self.flush(list) } else { Ok(()) }
    }

    fn flush(&mut self, list: &mut ListBuilder<'_, '_, '_>) -> Result<()> {
        list.extend(&self.documents, &self.frequencies)?;
        self.documents.clear();
        self.frequencies.clear();
        Ok(())
    }
}
