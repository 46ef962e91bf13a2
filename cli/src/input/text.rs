//! Reads text files: one document per file.

use memchr::memchr;
use std::io::{self, Read};

/// A file is binary if it has a NUL byte in this many first bytes.
const BINARY_PROBE_BYTES: u64 = 8 << 10;

/// Maximum memory that is reserved because of the file size in the metadata, which may be wrong, in bytes.
const RESERVED_BYTES_MAX: u64 = 64 << 20;

/// What a text file contains.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum TextContent {
    Text(Vec<u8>),
    Binary,
    /// The first bytes of a file that is longer than the maximum.
    TooLong(Vec<u8>),
}

/// Reads a whole file of at most `bytes_max` bytes. `size` is its size in the metadata, if known.
pub(super) fn read_text(
    reader: &mut impl Read,
    size: Option<u64>,
    bytes_max: usize,
) -> io::Result<TextContent> {
    let mut bytes = Vec::new();
    reader.by_ref().take(BINARY_PROBE_BYTES).read_to_end(&mut bytes)?;
    if memchr(0, &bytes).is_some() {
        return Ok(TextContent::Binary);
    }
    if bytes.len() as u64 == BINARY_PROBE_BYTES {
        let expected = size.unwrap_or(0).min(RESERVED_BYTES_MAX).min(bytes_max as u64);
        bytes.reserve(expected as usize);
        let beyond = (bytes_max as u64).saturating_add(1).saturating_sub(BINARY_PROBE_BYTES);
        reader.take(beyond).read_to_end(&mut bytes)?;
    }
    Ok(if bytes.len() > bytes_max { TextContent::TooLong(bytes) } else { TextContent::Text(bytes) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nul_byte_in_the_first_bytes_makes_a_file_binary() {
        let probe = BINARY_PROBE_BYTES as usize;
        for (at, binary) in [(0, true), (probe - 1, true), (probe, false), (probe + 1, false)] {
            let mut bytes = vec![b'a'; probe + 10];
            bytes[at] = 0;
            let expected = if binary { TextContent::Binary } else { TextContent::Text(bytes.clone()) };
            assert_eq!(read_text(&mut &bytes[..], Some(3), 1 << 20).unwrap(), expected, "NUL at {at}");
        }
    }

    #[test]
    fn files_of_exactly_the_limit_are_read() {
        for limit in [10, 8191, 8192, 8193, 20_000] {
            let bytes = vec![b'a'; limit + 1];
            let too_long = read_text(&mut &bytes[..], None, limit).unwrap();
            assert!(matches!(too_long, TextContent::TooLong(read) if read == bytes), "{limit}");
            let fits = bytes[1..].to_vec();
            let read = read_text(&mut &fits[..], Some(1 << 60), limit).unwrap();
            assert_eq!(read, TextContent::Text(fits), "{limit}");
        }
        assert_eq!(read_text(&mut &b""[..], Some(0), 10).unwrap(), TextContent::Text(vec![]));
    }
}
