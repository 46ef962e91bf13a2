//! Reads the pages of a column of a row group. Each header is parsed and checked here: sizes are compared
//! with the column's bytes and with the limit before a page is read, and pages are decompressed to their
//! declared length at most. Counts in a page from which decoders derive allocations are compared with its
//! bytes.
//!
//! The memory of the pages that a batch of rows reads is limited by a [`BatchBudget`].

use super::decompress::decompress_page;
use super::delta::delta_sequence_end;
use super::page_header::{DataHeader, PageHeader, PageKind, read_page_header};
use crate::size;
use bytes::Bytes;
use parquet::basic::{Compression, Encoding, Type};
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::schema::types::ColumnDescPtr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::{fs::File, os::unix::fs::FileExt, sync::Arc};

/// Memory of a value of a list, beside its page: levels, offset, and view.
const LIST_VALUE_BYTES: usize = 48;

/// First bytes of a page in which its header is looked for. Headers have statistics of any length.
const HEADER_BYTES: u64 = 1 << 10;

/// Memory for the pages of a batch of rows.
#[derive(Debug)]
pub(super) struct BatchBudget {
    pub bytes_max: usize,
    /// Maximum rows of a batch.
    pub batch_rows: usize,
    used: AtomicUsize,
    exceeded: AtomicBool,
}

impl BatchBudget {
    pub fn new(bytes_max: usize, batch_rows: usize) -> BatchBudget {
        BatchBudget { bytes_max, batch_rows, used: AtomicUsize::new(0), exceeded: AtomicBool::new(false) }
    }

    /// Begins another batch.
    pub fn reset(&self) {
        self.used.store(0, Relaxed);
    }

    /// Whether a batch needed more: fewer rows may fit.
    pub fn is_exceeded(&self) -> bool {
        self.exceeded.load(Relaxed)
    }

    fn reserve(&self, bytes: usize) -> Result<()> {
        let used = self.used.fetch_add(bytes, Relaxed).saturating_add(bytes);
        if used <= self.bytes_max {
            return Ok(());
        }
        self.exceeded.store(true, Relaxed);
        Err(damaged(format!(
            "a row needs more than {}; a larger --memory allows more",
            size::show_bytes(self.bytes_max as u64)
        )))
    }
}

/// The pages of a column of a row group.
pub(super) struct CheckedPages {
    pub file: Arc<File>,
    pub column: ColumnDescPtr,
    pub codec: Compression,
    /// Offset of the next page, and the end of the column.
    pub at: u64,
    pub end: u64,
    /// Number of values that the pages may have, those before the next one included.
    pub values_left: u64,
    pub budget: Arc<BatchBudget>,
    /// The header before `at`, if it was read.
    pub next: Option<PageHeader>,
}

fn damaged(message: impl Into<String>) -> ParquetError {
    ParquetError::General(message.into())
}

impl CheckedPages {
    /// The next header, with `at` behind it; `None` at the end.
    fn next_header(&mut self) -> Result<Option<PageHeader>> {
        loop {
            if let Some(header) = self.next.take() {
                return Ok(Some(header));
            }
            if self.at >= self.end {
                return Ok(None);
            }
            let header = self.read_header()?;
            self.check_header(&header)?;
            match header.kind {
                PageKind::Index => self.at += header.packed_bytes as u64,
                _ => self.next = Some(header),
            }
        }
    }

    fn read_header(&mut self) -> Result<PageHeader> {
        let mut length = HEADER_BYTES;
        loop {
            let inspected = length.min(self.end - self.at);
            let mut bytes = vec![0; inspected as usize];
            self.file.read_exact_at(&mut bytes, self.at)?;
            match read_page_header(&bytes) {
                Ok(Some((header, header_bytes))) => {
                    self.at += header_bytes as u64;
                    return Ok(header);
                }
                Ok(None) if inspected == length && length < self.budget.bytes_max as u64 => length *= 16,
                Ok(None) => return Err(damaged("the header of a page is cut")),
                Err(message) => return Err(damaged(message)),
            }
        }
    }

    fn check_header(&mut self, header: &PageHeader) -> Result<()> {
        let (packed, unpacked) = (header.packed_bytes, header.unpacked_bytes);
        if packed as u64 > self.end - self.at {
            return Err(damaged(format!(
                "a page of {} bytes is longer than its column",
                size::show_number(packed as u64)
            )));
        }
        if packed.max(unpacked) > self.budget.bytes_max {
            return Err(damaged(format!(
                "a page has {}, {} at most; a larger --memory allows more",
                size::show_bytes(packed.max(unpacked) as u64),
                size::show_bytes(self.budget.bytes_max as u64)
            )));
        }
        if let PageKind::Data(data) = &header.kind {
            if u64::from(data.values) > self.values_left {
                return Err(damaged("the pages have more values than the column"));
            }
            self.values_left -= u64::from(data.values);
        }
        Ok(())
    }

    /// Reads the page behind its header, and decompresses it.
    fn read_body(&mut self, header: &PageHeader) -> Result<Bytes> {
        let mut packed = vec![0; header.packed_bytes];
        self.file.read_exact_at(&mut packed, self.at)?;
        self.at += header.packed_bytes as u64;
        let levels = match &header.kind {
            PageKind::Data(DataHeader { v2: Some(v2), .. }) => {
                let levels = v2.definition_bytes as usize + v2.repetition_bytes as usize;
                if levels > packed.len().min(header.unpacked_bytes) {
                    return Err(damaged("the levels of a page are longer than the page"));
                }
                levels
            }
            _ => 0,
        };
        if self.codec == Compression::UNCOMPRESSED || !header.is_compressed() {
            if packed.len() != header.unpacked_bytes {
                return Err(damaged("a page that is not compressed has another length"));
            }
            return Ok(packed.into());
        }
        let (levels, data) = packed.split_at(levels);
        let length = header.unpacked_bytes - levels.len();
        let values = match length {
            // A page without values.
            0 => Vec::new(),
            length => decompress_page(self.codec, data, length).map_err(damaged)?,
        };
        Ok(if levels.is_empty() { values.into() } else { [levels, &values].concat().into() })
    }

    fn reserve_page(&self, header: &PageHeader, data: Option<&DataHeader>) -> Result<()> {
        let (packed, bytes) = (header.packed_bytes, header.unpacked_bytes);
        let is_repeated = self.column.max_rep_level() > 0;
        let values = data.map_or(0, |data| data.values as usize);
        let lists = if is_repeated { values.saturating_mul(LIST_VALUE_BYTES) } else { 0 };
        // A value can begin with that before it, so each may be as long as the page.
        let prefixed = match data {
            Some(data) if data.encoding == Encoding::DELTA_BYTE_ARRAY => {
                let read = if is_repeated { values } else { values.min(self.budget.batch_rows) };
                bytes.saturating_mul(read)
            }
            _ => 0,
        };
        self.budget.reserve(packed.max(bytes).saturating_add(lists).saturating_add(prefixed))
    }

    /// Length of the longest text in the dictionary before the other pages; 0 without one, or if it is
    /// damaged.
    pub fn longest_in_dictionary(mut self) -> u64 {
        let is_text = self.column.physical_type() == Type::BYTE_ARRAY;
        let is_dictionary =
            is_text && self.peek_next_page().is_ok_and(|page| page.is_some_and(|page| page.is_dict));
        let Some(Ok(Page::DictionaryPage { buf, .. })) =
            is_dictionary.then(|| self.get_next_page()).and_then(Result::transpose)
        else {
            return 0;
        };
        let (mut rest, mut longest) = (&buf[..], 0);
        while let Some((length, after)) = rest.split_first_chunk::<4>() {
            let length = u32::from_le_bytes(*length);
            longest = longest.max(length);
            rest = after.get(length as usize..).unwrap_or_default();
        }
        u64::from(longest)
    }

    /// Checks that a dictionary has the bytes of its values.
    fn check_dictionary(&self, values: u32, bytes: usize) -> Result<()> {
        let value_bits = match self.column.physical_type() {
            Type::BOOLEAN => 1,
            Type::INT32 | Type::FLOAT | Type::BYTE_ARRAY => 32,
            Type::INT64 | Type::DOUBLE => 64,
            Type::INT96 => 96,
            Type::FIXED_LEN_BYTE_ARRAY => 8 * u64::try_from(self.column.type_length()).unwrap_or(0).max(1),
        };
        if u64::from(values) * value_bits > 8 * bytes as u64 {
            return Err(damaged("a dictionary has more values than bytes"));
        }
        Ok(())
    }

    /// Checks the counts of values in the header of a delta encoding.
    fn check_delta(&self, data: &DataHeader, page: &[u8]) -> Result<()> {
        let sequences = match data.encoding {
            Encoding::DELTA_BINARY_PACKED | Encoding::DELTA_LENGTH_BYTE_ARRAY => 1,
            Encoding::DELTA_BYTE_ARRAY => 2,
            _ => return Ok(()),
        };
        let counts = || damaged("the counts of a page with delta encoding are wrong");
        let mut values = page.get(self.levels_bytes(data, page).ok_or_else(counts)?..).ok_or_else(counts)?;
        if values.is_empty() {
            return Ok(());
        }
        for _ in 0..sequences {
            let end = delta_sequence_end(values, u64::from(data.values)).ok_or_else(counts)?;
            values = &values[end..];
        }
        Ok(())
    }

    /// Length of the levels at the start of a page.
    fn levels_bytes(&self, data: &DataHeader, page: &[u8]) -> Option<usize> {
        if let Some(v2) = &data.v2 {
            return Some(v2.definition_bytes as usize + v2.repetition_bytes as usize);
        }
        let mut end = 0;
        let levels = [
            (self.column.max_rep_level(), data.repetition_encoding),
            (self.column.max_def_level(), data.definition_encoding),
        ];
        for (level_max, encoding) in levels.into_iter().filter(|(level_max, _)| *level_max > 0) {
            let bits = u64::from(16 - level_max.leading_zeros());
            end += match encoding {
                Encoding::RLE => 4 + u32::from_le_bytes(page.get(end..)?.first_chunk().copied()?) as usize,
                _ => (u64::from(data.values) * bits).div_ceil(8) as usize,
            };
        }
        Some(end)
    }

    fn data_page(&mut self, header: &PageHeader, data: DataHeader) -> Result<Page> {
        self.reserve_page(header, Some(&data))?;
        let buf = self.read_body(header)?;
        self.check_delta(&data, &buf)?;
        Ok(match data.v2 {
            Some(v2) => Page::DataPageV2 {
                buf,
                num_values: data.values,
                encoding: data.encoding,
                num_nulls: v2.nulls,
                num_rows: v2.rows,
                def_levels_byte_len: v2.definition_bytes,
                rep_levels_byte_len: v2.repetition_bytes,
                is_compressed: v2.is_compressed,
                statistics: None,
            },
            None => Page::DataPage {
                buf,
                num_values: data.values,
                encoding: data.encoding,
                def_level_encoding: data.definition_encoding,
                rep_level_encoding: data.repetition_encoding,
                statistics: None,
            },
        })
    }
}

impl PageReader for CheckedPages {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let Some(header) = self.next_header()? else { return Ok(None) };
        match header.kind {
            PageKind::Dictionary { values, encoding } => {
                self.reserve_page(&header, None)?;
                let buf = self.read_body(&header)?;
                self.check_dictionary(values, buf.len())?;
                Ok(Some(Page::DictionaryPage { buf, num_values: values, encoding, is_sorted: false }))
            }
            PageKind::Data(data) => self.data_page(&header, data).map(Some),
            PageKind::Index => Err(damaged("an index page was not skipped")),
        }
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        let header = self.next_header()?;
        self.next = header;
        Ok(header.map(|header| match header.kind {
            PageKind::Data(data) => PageMetadata {
                num_rows: data.v2.map(|v2| v2.rows as usize),
                num_levels: Some(data.values as usize),
                is_dict: false,
            },
            _ => PageMetadata { num_rows: None, num_levels: None, is_dict: true },
        }))
    }

    fn skip_next_page(&mut self) -> Result<()> {
        if let Some(header) = self.next_header()? {
            self.at += header.packed_bytes as u64;
        }
        Ok(())
    }
}

impl Iterator for CheckedPages {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Result<Page>> {
        self.get_next_page().transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::super::page_header::read_page_header;
    use super::*;
    use parquet::schema::{parser::parse_message_type, types::SchemaDescriptor};

    const BYTES_MAX: usize = 1 << 20;

    /// Pages of a column, which is the whole file.
    fn pages_of(column: &str, codec: Compression, bytes: &[u8], batch_rows: usize) -> CheckedPages {
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(bytes, 0).unwrap();
        let schema = parse_message_type(&format!("message m {{ {column} }}")).unwrap();
        CheckedPages {
            file: Arc::new(file),
            column: SchemaDescriptor::new(Arc::new(schema)).column(0),
            codec,
            at: 0,
            end: bytes.len() as u64,
            values_left: 1 << 30,
            budget: Arc::new(BatchBudget::new(BYTES_MAX, batch_rows)),
            next: None,
        }
    }

    /// Appends a zigzag integer.
    fn push_integer(bytes: &mut Vec<u8>, value: u64) {
        let mut rest = value << 1;
        while rest >= 0x80 {
            bytes.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        bytes.push(rest as u8);
    }

    /// A page of version 1, or a dictionary (kind 2), with these sizes in its header.
    fn page(kind: u8, sizes: [u64; 2], values: u64, encoding: u64, body: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0x15, kind << 1];
        for size in sizes {
            bytes.push(0x15);
            push_integer(&mut bytes, size);
        }
        bytes.push(if kind == 2 { 0x4C } else { 0x2C });
        for value in [values, encoding, 3, 3] {
            bytes.push(0x15);
            push_integer(&mut bytes, value);
        }
        bytes.extend([0, 0]);
        assert!(read_page_header(&bytes).unwrap().is_some());
        bytes.extend(body);
        bytes
    }

    #[track_caller]
    fn check_rejected(column: &str, codec: Compression, page: &[u8], batch_rows: usize, expected: &str) {
        let error = pages_of(column, codec, page, batch_rows).get_next_page().unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }

    #[test]
    fn sizes_in_headers_are_checked_before_the_page_is_read() {
        let (text, plain) = ("REQUIRED BYTE_ARRAY a;", Compression::UNCOMPRESSED);
        let gzip = Compression::GZIP(Default::default());
        let body = [2, 0, 0, 0, b'a', b'b'];
        let good = page(0, [6, 6], 1, 0, &body);
        assert!(pages_of(text, plain, &good, 1).get_next_page().unwrap().is_some());
        for end in 1..good.len() {
            assert!(pages_of(text, plain, &good[..end], 1).get_next_page().is_err(), "{end}");
        }
        let huge = (1 << 31) - 1;
        check_rejected(text, gzip, &page(0, [huge, 6], 1, 0, &body), 1, "1.0 MiB at most; a larger --memory");
        check_rejected(text, gzip, &page(0, [6, huge], 1, 0, &body), 1, "is longer than its column");
        check_rejected(text, plain, &page(0, [7, 6], 1, 0, &body), 1, "has another length");
        check_rejected(text, gzip, &page(0, [BYTES_MAX as u64, 6], 1, 0, &body), 1, "gzip data of a page");
        check_rejected(text, plain, &page(0, [6, 6], huge, 0, &body), 1, "more values than the column");
    }

    #[test]
    fn counts_in_pages_are_checked_before_they_are_decoded() {
        let plain = Compression::UNCOMPRESSED;
        let (text, fixed) = ("REQUIRED BYTE_ARRAY a;", "REQUIRED FIXED_LEN_BYTE_ARRAY (0) a;");
        let zeros = [0; 12];
        check_rejected(text, plain, &page(2, [12, 12], 4, 0, &zeros), 1, "more values than bytes");
        check_rejected("REQUIRED INT64 a;", plain, &page(2, [12, 12], 2, 0, &zeros), 1, "more values");
        check_rejected(fixed, plain, &page(2, [12, 12], 1 << 24, 0, &zeros), 1, "more values than bytes");
        // Lengths of 2^35 values, and a page whose values may each be as long as the page.
        let lengths = [0x80, 1, 4, 0x80, 0x80, 0x80, 0x80, 0x80, 1, 0, 0, 0];
        check_rejected(text, plain, &page(0, [12, 12], 9, 6, &lengths), 1, "counts of a page with delta");
        let long = page(0, [1 << 19, 1 << 19], 1 << 20, 7, &vec![0; 1 << 19]);
        check_rejected(text, plain, &long, 1000, "a row needs more than 1.0 MiB");
        // Values of lists have levels.
        let list = page(0, [12, 12], 1 << 16, 0, &zeros);
        check_rejected("REPEATED INT32 a;", plain, &list, 1, "a row needs more than 1.0 MiB");
    }
}
