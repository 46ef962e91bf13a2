//! Encodes and decodes little-endian integers, variable-length integers and byte strings.
//!
//! A [`ByteReader`] decodes borrowed bytes of a file and checks every read: an error names the file, the
//! offset and the defect. It never allocates.

use crate::error::{Error, Result};

/// Appends `value` in groups of seven bits, lowest first, high bit set on all but the last byte.
pub fn push_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a length and the bytes themselves.
pub fn push_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    push_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Element `i` of an array of little-endian `u32`; `None` past the end.
pub fn u32_at(array: &[u8], i: usize) -> Option<u32> {
    Some(u32::from_le_bytes(array.get(4 * i..)?.first_chunk().copied()?))
}

/// Element `i` of an array of little-endian `u16`; `None` past the end.
pub fn u16_at(array: &[u8], i: usize) -> Option<u16> {
    Some(u16::from_le_bytes(array.get(2 * i..)?.first_chunk().copied()?))
}

/// Element `i` of an array of little-endian `u64`; `None` past the end.
pub fn u64_at(array: &[u8], i: usize) -> Option<u64> {
    Some(u64::from_le_bytes(array.get(8 * i..)?.first_chunk().copied()?))
}

/// The first eight bytes of a term, padded with zeros, as a big-endian integer. The integers have the order
/// of the prefixes.
pub fn prefix_key(term: &[u8]) -> u64 {
    let mut prefix = [0; 8];
    let len = term.len().min(8);
    prefix[..len].copy_from_slice(&term[..len]);
    u64::from_be_bytes(prefix)
}

/// Length of the longest common prefix.
#[inline]
pub fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

/// Borrowed bytes of a file, and a position from which they are decoded.
#[derive(Clone, Debug)]
pub struct ByteReader<'a> {
    file: &'a str,
    /// Offset of `bytes` in the file.
    base: u64,
    bytes: &'a [u8],
    /// Offset in `bytes` of the next byte.
    at: usize,
}

impl<'a> ByteReader<'a> {
    /// `bytes` are those of `file` from offset `base` on.
    pub fn new(file: &'a str, base: u64, bytes: &'a [u8]) -> ByteReader<'a> {
        ByteReader { file, base, bytes, at: 0 }
    }

    /// Name of the file.
    pub fn file(&self) -> &'a str {
        self.file
    }

    /// Offset in the file of the next byte.
    pub fn offset(&self) -> u64 {
        self.base + self.at as u64
    }

    /// Number of bytes that were not decoded yet.
    pub fn remaining(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// The bytes that were not decoded yet.
    #[inline]
    pub fn rest(&self) -> &'a [u8] {
        &self.bytes[self.at..]
    }

    /// The error of damage at the current offset.
    pub fn corrupt(&self, what: impl Into<String>) -> Error {
        Error::corrupt(self.file, self.offset(), what)
    }

    /// Takes the next `len` bytes.
    #[inline]
    pub fn bytes(&mut self, len: usize) -> Result<&'a [u8]> {
        if len > self.remaining() {
            return Err(self.corrupt("ends early"));
        }
        let bytes = &self.bytes[self.at..self.at + len];
        self.at += len;
        Ok(bytes)
    }

    /// Decodes one byte.
    #[inline]
    pub fn u8(&mut self) -> Result<u8> {
        Ok(self.bytes(1)?[0])
    }

    /// Decodes two bytes, little-endian.
    #[inline]
    pub fn u16(&mut self) -> Result<u16> {
        Ok(u16::from_le_bytes(self.fixed()?))
    }

    /// Decodes four bytes, little-endian.
    pub fn u32(&mut self) -> Result<u32> {
        Ok(u32::from_le_bytes(self.fixed()?))
    }

    /// Decodes eight bytes, little-endian.
    #[inline]
    pub fn u64(&mut self) -> Result<u64> {
        Ok(u64::from_le_bytes(self.fixed()?))
    }

    /// Decodes a variable-length integer of up to 64 bits.
    #[inline]
    pub fn varint(&mut self) -> Result<u64> {
        // Fast paths: most integers have one byte, most others two.
        match self.bytes[self.at..] {
            [byte, ..] if byte < 0x80 => {
                self.at += 1;
                Ok(u64::from(byte))
            }
            [low, high, ..] if high < 0x80 => {
                self.at += 2;
                Ok(u64::from(low & 0x7f) | u64::from(high) << 7)
            }
            _ => self.long_varint(),
        }
    }

    /// Decodes a variable-length integer of more than two bytes.
    fn long_varint(&mut self) -> Result<u64> {
        if let Some(word) = self.bytes[self.at..].first_chunk() {
            let word = u64::from_le_bytes(*word);
            let ends = !word & 0x8080_8080_8080_8080;
            if ends != 0 {
                // The integer ends with the first byte whose high bit is not set.
                self.at += ends.trailing_zeros() as usize / 8 + 1;
                return Ok(join_low_bits(word & (ends ^ (ends - 1))));
            }
        }
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.u8()?;
            let low = u64::from(byte & 0x7f);
            if shift == 63 && low > 1 {
                return Err(self.corrupt("integer of more than 64 bits"));
            }
            value |= low << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(self.corrupt("integer of more than 64 bits"))
    }

    /// Decodes a variable-length integer of at most 32 bits.
    #[inline]
    pub fn varint32(&mut self) -> Result<u32> {
        let value = self.varint()?;
        u32::try_from(value).map_err(|_| self.corrupt("integer of more than 32 bits"))
    }

    /// Decodes a UTF-8 string of at most `bytes_max` bytes, which follows its length.
    pub fn string(&mut self, bytes_max: usize) -> Result<&'a str> {
        let len = self.varint()?;
        if len > bytes_max as u64 {
            return Err(self.corrupt("string is too long"));
        }
        let bytes = self.bytes(len as usize)?;
        std::str::from_utf8(bytes).map_err(|_| self.corrupt("string is not UTF-8"))
    }

    /// Checks that all bytes were decoded.
    pub fn finish(&self) -> Result<()> {
        if self.remaining() == 0 { Ok(()) } else { Err(self.corrupt("unexpected bytes follow")) }
    }

    #[inline]
    fn fixed<const N: usize>(&mut self) -> Result<[u8; N]> {
        let bytes = self.bytes(N)?;
        Ok(*bytes.first_chunk().expect("`bytes` returns N bytes"))
    }
}

/// Concatenates the low seven bits of eight bytes.
fn join_low_bits(word: u64) -> u64 {
    let pairs = (word & 0x007f_007f_007f_007f) | (word & 0x7f00_7f00_7f00_7f00) >> 1;
    let fours = (pairs & 0x3fff_0000_3fff) | (pairs & 0x3fff_0000_3fff_0000) >> 2;
    (fours & 0x0fff_ffff) | (fours & 0x0fff_ffff_0000_0000) >> 4
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_round_trip() {
        for value in [0, 1, 127, 128, 16383, 16384, u64::from(u32::MAX), u64::MAX] {
            let mut out = Vec::new();
            push_varint(&mut out, value);
            let mut view = ByteReader::new("f", 10, &out);
            assert_eq!(view.varint().unwrap(), value);
            view.finish().unwrap();
            for cut in 0..out.len() {
                assert!(ByteReader::new("f", 0, &out[..cut]).varint().is_err());
            }
        }
        // Integers that are followed by other bytes, so that eight bytes are decoded at once.
        for shift in 0..64 {
            for value in [1u64 << shift, (1 << shift) - 1, u64::MAX >> shift, 0x5a5a_5a5a_5a5a_5a5a >> shift]
            {
                let mut out = Vec::new();
                push_varint(&mut out, value);
                let end = 10 + out.len() as u64;
                out.extend([0xff; 9]);
                let mut view = ByteReader::new("f", 10, &out);
                assert_eq!((view.varint().unwrap(), view.offset()), (value, end));
            }
        }
        let too_long = [0xff; 11];
        assert!(ByteReader::new("f", 0, &too_long).varint().is_err());
    }

    #[test]
    fn errors_name_file_and_offset() {
        let mut view = ByteReader::new("skips", 100, &[1, 2]);
        view.u8().unwrap();
        let text = view.u32().unwrap_err().to_string();
        assert!(text.contains("skips") && text.contains("101"), "{text}");
    }
}
