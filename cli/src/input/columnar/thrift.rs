//! Reads structures of the Thrift compact protocol without building them. Lengths and counts are compared
//! with the bytes that are left before anything is skipped.
//!
//! Source: Thrift compact protocol specification, apache/thrift `doc/specs/thrift-compact-protocol.md`.

/// Maximum nesting of structures and lists. Footers and page headers have at most six.
const DEPTH_MAX: usize = 32;

/// Why bytes are not a structure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ThriftError {
    /// The bytes end within the structure.
    Truncated,
    /// The bytes are not of the protocol, or nested too deeply.
    Malformed,
}

/// Type of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ThriftKind {
    Bool(bool),
    Byte,
    Integer,
    Double,
    Binary,
    List,
    Map,
    Struct,
    Uuid,
}

impl ThriftKind {
    fn of_code(code: u8) -> Result<ThriftKind, ThriftError> {
        Ok(match code {
            1 => ThriftKind::Bool(true),
            2 => ThriftKind::Bool(false),
            3 => ThriftKind::Byte,
            4..=6 => ThriftKind::Integer,
            7 => ThriftKind::Double,
            8 => ThriftKind::Binary,
            9 | 10 => ThriftKind::List,
            11 => ThriftKind::Map,
            12 => ThriftKind::Struct,
            13 => ThriftKind::Uuid,
            _ => return Err(ThriftError::Malformed),
        })
    }
}

/// A position in bytes of the protocol.
pub(super) struct ThriftReader<'b> {
    bytes: &'b [u8],
    at: usize,
    /// Number of structures that were skipped as elements of lists.
    pub list_structs: usize,
}

impl<'b> ThriftReader<'b> {
    pub fn new(bytes: &'b [u8]) -> ThriftReader<'b> {
        ThriftReader { bytes, at: 0, list_structs: 0 }
    }

    /// Number of bytes that were read.
    pub fn position(&self) -> usize {
        self.at
    }

    /// The next field of a structure: its number, and the type of the value that follows. `None` at the end.
    /// `last` is the number of the field before, 0 at first.
    pub fn next_field(&mut self, last: &mut i64) -> Result<Option<(i64, ThriftKind)>, ThriftError> {
        let header = self.byte()?;
        if header == 0 {
            return Ok(None);
        }
        let delta = i64::from(header >> 4);
        *last = if delta == 0 { self.integer()? } else { last.saturating_add(delta) };
        Ok(Some((*last, ThriftKind::of_code(header & 15)?)))
    }

    /// An integer.
    pub fn integer(&mut self) -> Result<i64, ThriftError> {
        let value = self.unsigned()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// The bytes of a string.
    pub fn binary(&mut self) -> Result<&'b [u8], ThriftError> {
        let length = usize::try_from(self.unsigned()?).map_err(|_| ThriftError::Malformed)?;
        let start = self.at;
        self.advance(length)?;
        Ok(&self.bytes[start..self.at])
    }

    /// The number and the type of the elements of a list, at most as many as there are bytes left.
    pub fn list(&mut self) -> Result<(usize, ThriftKind), ThriftError> {
        let header = self.byte()?;
        let short = u64::from(header >> 4);
        let count = if short == 15 { self.unsigned()? } else { short };
        let kind = ThriftKind::of_code(header & 15)?;
        // An element has at least one byte.
        match usize::try_from(count).ok().filter(|&count| count <= self.bytes.len() - self.at) {
            Some(count) => Ok((count, kind)),
            None => Err(ThriftError::Truncated),
        }
    }

    /// Skips the value of a field.
    pub fn skip(&mut self, kind: ThriftKind) -> Result<(), ThriftError> {
        self.skip_nested(kind, 0)
    }

    fn skip_nested(&mut self, kind: ThriftKind, depth: usize) -> Result<(), ThriftError> {
        if depth > DEPTH_MAX {
            return Err(ThriftError::Malformed);
        }
        match kind {
            ThriftKind::Bool(_) => Ok(()),
            ThriftKind::Byte => self.advance(1),
            ThriftKind::Integer => self.unsigned().map(drop),
            ThriftKind::Double => self.advance(8),
            ThriftKind::Uuid => self.advance(16),
            ThriftKind::Binary => self.binary().map(drop),
            ThriftKind::List => {
                let (count, kind) = self.list()?;
                (0..count).try_for_each(|_| self.skip_element(kind, depth))
            }
            ThriftKind::Map => self.skip_map(depth),
            ThriftKind::Struct => {
                let mut last = 0;
                while let Some((_, kind)) = self.next_field(&mut last)? {
                    self.skip_nested(kind, depth + 1)?;
                }
                Ok(())
            }
        }
    }

    fn skip_map(&mut self, depth: usize) -> Result<(), ThriftError> {
        let count = self.unsigned()?;
        if count == 0 {
            return Ok(());
        }
        let kinds = self.byte()?;
        let (key, value) = (ThriftKind::of_code(kinds >> 4)?, ThriftKind::of_code(kinds & 15)?);
        for _ in 0..count {
            self.skip_element(key, depth)?;
            self.skip_element(value, depth)?;
        }
        Ok(())
    }

    /// Skips an element of a list or map, where a bool has a byte.
    fn skip_element(&mut self, kind: ThriftKind, depth: usize) -> Result<(), ThriftError> {
        self.list_structs += usize::from(kind == ThriftKind::Struct);
        match kind {
            ThriftKind::Bool(_) => self.advance(1),
            kind => self.skip_nested(kind, depth + 1),
        }
    }

    fn unsigned(&mut self) -> Result<u64, ThriftError> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7F) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(ThriftError::Malformed)
    }

    fn byte(&mut self) -> Result<u8, ThriftError> {
        let byte = *self.bytes.get(self.at).ok_or(ThriftError::Truncated)?;
        self.at += 1;
        Ok(byte)
    }

    fn advance(&mut self, length: usize) -> Result<(), ThriftError> {
        if length > self.bytes.len() - self.at {
            return Err(ThriftError::Truncated);
        }
        self.at += length;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skip_struct(bytes: &[u8]) -> Result<usize, ThriftError> {
        let mut reader = ThriftReader::new(bytes);
        reader.skip(ThriftKind::Struct).map(|()| reader.position())
    }

    #[test]
    fn structures_are_skipped_and_cuts_are_found() {
        // Fields 1: i32 -2, 2: "ab", 4: a list of two structures with a bool, 5: a map of a byte to a double.
        let mut bytes = vec![0x15, 3, 0x18, 2, b'a', b'b', 0x29, 0x2C, 0x11, 0, 0x12, 0, 0x1B, 1, 0x37, 9];
        bytes.extend([0; 8]);
        bytes.push(0);
        assert_eq!(skip_struct(&bytes), Ok(bytes.len()));
        (0..bytes.len()).for_each(|end| assert_eq!(skip_struct(&bytes[..end]), Err(ThriftError::Truncated)));
        let mut reader = ThriftReader::new(&bytes);
        let mut last = 0;
        assert_eq!(reader.next_field(&mut last), Ok(Some((1, ThriftKind::Integer))));
        assert_eq!(reader.integer(), Ok(-2));
        assert_eq!(reader.next_field(&mut last), Ok(Some((2, ThriftKind::Binary))));
        assert_eq!(reader.binary(), Ok(&b"ab"[..]));
        assert_eq!(reader.next_field(&mut last), Ok(Some((4, ThriftKind::List))));
        reader.skip(ThriftKind::List).unwrap();
        assert_eq!(reader.list_structs, 2);
    }

    #[test]
    fn counts_and_depths_beyond_the_bytes_are_errors() {
        // A list of 2^28 structures, a string of 2^28 bytes, and lists of lists.
        assert_eq!(skip_struct(&[0x19, 0xFC, 0x80, 0x80, 0x80, 0x80, 1, 0]), Err(ThriftError::Truncated));
        assert_eq!(skip_struct(&[0x18, 0x80, 0x80, 0x80, 0x80, 1, 0]), Err(ThriftError::Truncated));
        assert_eq!(skip_struct(&[&[0x19][..], &[0x19; 100_000]].concat()), Err(ThriftError::Malformed));
        assert_eq!(skip_struct(&[0x1C; 100_000]), Err(ThriftError::Malformed));
        assert_eq!(
            skip_struct(&[0x15, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1]),
            Err(ThriftError::Malformed)
        );
        assert_eq!(skip_struct(&[0x1E, 0]), Err(ThriftError::Malformed));
    }
}
