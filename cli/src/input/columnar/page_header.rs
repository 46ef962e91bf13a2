//! Parses the header of a Parquet page.
//!
//! Source: apache/parquet-format `parquet.thrift`, PageHeader.

use super::thrift::{ThriftError, ThriftKind, ThriftReader};
use parquet::basic::Encoding;

/// Header of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PageHeader {
    pub kind: PageKind,
    /// Length of the page behind its header.
    pub packed_bytes: usize,
    pub unpacked_bytes: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PageKind {
    Data(DataHeader),
    Dictionary { values: u32, encoding: Encoding },
    Index,
}

/// Header of a page of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DataHeader {
    /// Number of values, with null values.
    pub values: u32,
    pub encoding: Encoding,
    pub definition_encoding: Encoding,
    pub repetition_encoding: Encoding,
    pub v2: Option<DataHeaderV2>,
}

/// What a page of version 2 has beside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DataHeaderV2 {
    pub nulls: u32,
    pub rows: u32,
    pub definition_bytes: u32,
    pub repetition_bytes: u32,
    pub is_compressed: bool,
}

impl PageHeader {
    /// Whether the page is compressed, if its column is.
    pub fn is_compressed(&self) -> bool {
        !matches!(
            self.kind,
            PageKind::Data(DataHeader { v2: Some(DataHeaderV2 { is_compressed: false, .. }), .. })
        )
    }
}

/// The integers of a structure by their field numbers, and whether field 7 is true, as it is by default.
#[derive(Debug, Clone, Copy)]
struct HeaderFields {
    integers: [Option<i64>; 8],
    seventh: bool,
}

impl HeaderFields {
    /// An integer that is not negative.
    fn count(&self, field: usize) -> Result<u32, String> {
        let value = self.integers[field].and_then(|value| u32::try_from(value).ok());
        value.filter(|&value| value <= i32::MAX as u32).ok_or_else(|| malformed("has a wrong count"))
    }

    fn encoding(&self, field: usize) -> Result<Encoding, String> {
        let code = self.integers[field].ok_or_else(|| malformed("has no encoding"))?;
        #[expect(deprecated, reason = "old files have it")]
        let bit_packed = Encoding::BIT_PACKED;
        Ok(match code {
            0 => Encoding::PLAIN,
            2 => Encoding::PLAIN_DICTIONARY,
            3 => Encoding::RLE,
            4 => bit_packed,
            5 => Encoding::DELTA_BINARY_PACKED,
            6 => Encoding::DELTA_LENGTH_BYTE_ARRAY,
            7 => Encoding::DELTA_BYTE_ARRAY,
            8 => Encoding::RLE_DICTIONARY,
            9 => Encoding::BYTE_STREAM_SPLIT,
            code => return Err(malformed(&format!("has the unknown encoding {code}"))),
        })
    }
}

fn malformed(what: &str) -> String {
    format!("the header of a page {what}")
}

/// The header at the start of `bytes`, and its length. `None` if the bytes end within it.
pub(super) fn read_page_header(bytes: &[u8]) -> Result<Option<(PageHeader, usize)>, String> {
    let mut reader = ThriftReader::new(bytes);
    match read_fields(&mut reader) {
        Ok((page, nested)) => Ok(Some((page_header(&page, &nested)?, reader.position()))),
        Err(ThriftError::Truncated) => Ok(None),
        Err(ThriftError::Malformed) => Err(malformed("is damaged")),
    }
}

/// The fields of a header, and those of the structures in it by their field numbers.
fn read_fields(
    reader: &mut ThriftReader<'_>,
) -> Result<(HeaderFields, [Option<HeaderFields>; 9]), ThriftError> {
    let mut page = HeaderFields { integers: [None; 8], seventh: true };
    let (mut nested, mut last) = ([None; 9], 0);
    while let Some((field, kind)) = reader.next_field(&mut last)? {
        match (field, kind) {
            (5 | 7 | 8, ThriftKind::Struct) => nested[field as usize] = Some(read_nested(reader)?),
            (1..=7, ThriftKind::Integer) => page.integers[field as usize] = Some(reader.integer()?),
            (_, kind) => reader.skip(kind)?,
        }
    }
    Ok((page, nested))
}

fn read_nested(reader: &mut ThriftReader<'_>) -> Result<HeaderFields, ThriftError> {
    let (mut fields, mut last) = (HeaderFields { integers: [None; 8], seventh: true }, 0);
    while let Some((field, kind)) = reader.next_field(&mut last)? {
        match (field, kind) {
            (7, ThriftKind::Bool(value)) => fields.seventh = value,
            (1..=7, ThriftKind::Integer) => fields.integers[field as usize] = Some(reader.integer()?),
            (_, kind) => reader.skip(kind)?,
        }
    }
    Ok(fields)
}

fn page_header(page: &HeaderFields, nested: &[Option<HeaderFields>; 9]) -> Result<PageHeader, String> {
    let of = |field: usize| nested[field].ok_or_else(|| malformed("has no counts"));
    let kind = match page.integers[1] {
        Some(0) => {
            let data = of(5)?;
            PageKind::Data(DataHeader {
                values: data.count(1)?,
                encoding: data.encoding(2)?,
                definition_encoding: data.encoding(3)?,
                repetition_encoding: data.encoding(4)?,
                v2: None,
            })
        }
        Some(1) => PageKind::Index,
        Some(2) => PageKind::Dictionary { values: of(7)?.count(1)?, encoding: of(7)?.encoding(2)? },
        Some(3) => {
            let data = of(8)?;
            PageKind::Data(DataHeader {
                values: data.count(1)?,
                encoding: data.encoding(4)?,
                definition_encoding: Encoding::RLE,
                repetition_encoding: Encoding::RLE,
                v2: Some(DataHeaderV2 {
                    nulls: data.count(2)?,
                    rows: data.count(3)?,
                    definition_bytes: data.count(5)?,
                    repetition_bytes: data.count(6)?,
                    is_compressed: data.seventh,
                }),
            })
        }
        _ => return Err(malformed("has an unknown type")),
    };
    Ok(PageHeader { kind, packed_bytes: page.count(3)? as usize, unpacked_bytes: page.count(2)? as usize })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_parsed_and_wrong_counts_are_errors() {
        // Type 0, 100 bytes, 50 compressed; 7 values, plain, levels by run lengths.
        let header = [0x15, 0, 0x15, 200, 1, 0x15, 100, 0x2C, 0x15, 14, 0x15, 0, 0x15, 6, 0x15, 6, 0, 0];
        let (page, length) = read_page_header(&header).unwrap().unwrap();
        assert_eq!((length, page.packed_bytes, page.unpacked_bytes), (header.len(), 50, 100));
        assert!(page.is_compressed());
        let PageKind::Data(data) = page.kind else { panic!("{page:?}") };
        assert_eq!((data.values, data.encoding, data.v2), (7, Encoding::PLAIN, None));
        (0..header.len()).for_each(|end| assert_eq!(read_page_header(&header[..end]), Ok(None)));
        for (at, byte, words) in [
            (1, 10, "unknown type"),
            (0, 0x1F, "is damaged"),
            (9, 1, "wrong count"),
            (11, 2, "unknown encoding 1"),
        ] {
            let mut wrong = header;
            wrong[at] = byte;
            let found = read_page_header(&wrong);
            assert!(found.as_ref().err().is_none_or(|error| error.contains(words)), "{at}: {found:?}");
            assert_ne!(found, read_page_header(&header), "{at}");
        }
    }
}
