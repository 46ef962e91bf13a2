//! Reads protobuf messages from a file, with checks: every error names the file, the offset and the defect.

use crate::error::{Error, Result};
use std::io::{ErrorKind, Read, Seek, SeekFrom};

/// Bytes that are read at a time.
const BUFFER_BYTES: usize = 256 << 10;

/// A file that can be read at any offset.
pub trait ReadSeek: Read + Seek {}

impl<T: Read + Seek> ReadSeek for T {}

/// Wire type of a field with a variable-length integer.
pub const WIRE_VARINT: u64 = 0;
/// Wire type of a field with eight bytes.
pub const WIRE_FIXED64: u64 = 1;
/// Wire type of a field with a length and that number of bytes.
pub const WIRE_BYTES: u64 = 2;
/// Wire type of a field with four bytes.
const WIRE_FIXED32: u64 = 5;

/// Reads the fields of messages from a file, through a buffer.
pub struct WireReader<'r> {
    input: &'r mut dyn ReadSeek,
    name: &'r str,
    buffer: Vec<u8>,
    /// Offset in the file of the first byte of the buffer.
    base: u64,
    /// Offset in the buffer of the next byte.
    at: usize,
    /// Bytes of the file.
    len: u64,
}

impl<'r> WireReader<'r> {
    /// A reader at the beginning of `input`; `name` is the name of the file in error messages.
    pub fn new(input: &'r mut dyn ReadSeek, name: &'r str) -> Result<WireReader<'r>> {
        let ends = input.seek(SeekFrom::End(0)).and_then(|len| input.rewind().map(|()| len));
        let len = ends.map_err(|error| tierdex_io::Error::from_os("read", name, &error))?;
        Ok(WireReader { input, name, buffer: Vec::new(), base: 0, at: 0, len })
    }

    /// Offset of the next byte in the file.
    pub fn position(&self) -> u64 {
        self.base + self.at as u64
    }

    /// Number of bytes of the file that were not read yet.
    pub fn remaining(&self) -> u64 {
        self.len.saturating_sub(self.position())
    }

    /// An error at the current offset.
    pub fn invalid(&self, what: impl AsRef<str>) -> Error {
        Error::Failed(format!("{}, byte {}: {}", self.name, self.position(), what.as_ref()))
    }

    /// Moves to an offset in the file.
    pub fn seek(&mut self, position: u64) -> Result<()> {
        let end = self.base + self.buffer.len() as u64;
        if (self.base..=end).contains(&position) {
            self.at = (position - self.base) as usize;
            return Ok(());
        }
        let sought = self.input.seek(SeekFrom::Start(position));
        sought.map_err(|error| tierdex_io::Error::from_os("read", self.name, &error))?;
        self.buffer.clear();
        (self.base, self.at) = (position, 0);
        Ok(())
    }

    /// Reads the length of a message that follows; returns the offset of its end.
    pub fn message_end(&mut self) -> Result<u64> {
        let len = self.varint()?;
        self.end_after(len)
    }

    /// As [`WireReader::message_end`], for a message inside another one that ends at `end`.
    pub fn inner_message_end(&mut self, end: u64) -> Result<u64> {
        let inner = self.message_end()?;
        if inner > end { Err(self.invalid("a message ends behind the one around it")) } else { Ok(inner) }
    }

    /// Reads the next tag of a message that ends at `end`: field number and wire type; `None` at its end.
    pub fn tag(&mut self, end: u64) -> Result<Option<(u64, u64)>> {
        match self.position() {
            position if position == end => Ok(None),
            position if position > end => Err(self.invalid("a field ends behind its message")),
            _ => self.varint().map(|tag| Some((tag >> 3, tag & 7))),
        }
    }

    /// Skips the value of a field.
    pub fn skip_value(&mut self, wire_type: u64) -> Result<()> {
        match wire_type {
            WIRE_VARINT => self.varint().map(drop),
            WIRE_FIXED64 => self.end_after(8).and_then(|end| self.seek(end)),
            WIRE_BYTES => self.message_end().and_then(|end| self.seek(end)),
            WIRE_FIXED32 => self.end_after(4).and_then(|end| self.seek(end)),
            _ => Err(self.invalid(format!("wire type {wire_type} does not exist"))),
        }
    }

    /// Reads a variable-length integer.
    #[inline]
    pub fn varint(&mut self) -> Result<u64> {
        let (mut value, mut shift) = (0, 0);
        loop {
            let byte = match self.buffer.get(self.at) {
                Some(byte) => *byte,
                None => self.fill_buffer()?,
            };
            self.at += 1;
            value |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
            if byte < 0x80 {
                return Ok(value);
            }
            shift += 7;
            if shift >= 70 {
                return Err(self.invalid("an integer has more than ten bytes"));
            }
        }
    }

    /// Reads a variable-length integer of at most 31 bits; `what` names it in an error.
    #[inline]
    pub fn varint31(&mut self, what: &str) -> Result<u32> {
        let value = self.varint()?;
        if value > i32::MAX as u64 {
            // Negative numbers are encoded as 64 bits.
            return Err(self.invalid(format!("{what} is {}", value as i64)));
        }
        Ok(value as u32)
    }

    /// Reads eight bytes, little-endian.
    pub fn fixed64(&mut self) -> Result<u64> {
        let mut bytes = [0; 8];
        for byte in &mut bytes {
            *byte = match self.buffer.get(self.at) {
                Some(byte) => *byte,
                None => self.fill_buffer()?,
            };
            self.at += 1;
        }
        Ok(u64::from_le_bytes(bytes))
    }

    /// The length of the text that follows, without moving.
    pub fn peek_text_bytes(&mut self) -> Result<u64> {
        let start = self.position();
        let len = self.varint()?;
        self.seek(start)?;
        Ok(len)
    }

    /// Reads a text with its length, of at most `bytes_max` bytes, into `text`; `what` names it in an error.
    pub fn text(&mut self, what: &str, bytes_max: usize, text: &mut String) -> Result<()> {
        let len = self.varint()?;
        if len > bytes_max as u64 {
            return Err(self.invalid(format!("{what} has {len} bytes; the limit is {bytes_max}")));
        }
        self.end_after(len)?;
        let mut bytes = std::mem::take(text).into_bytes();
        bytes.clear();
        while bytes.len() < len as usize {
            if self.at == self.buffer.len() {
                self.fill_buffer()?;
            }
            let part = &self.buffer[self.at..];
            let part = &part[..part.len().min(len as usize - bytes.len())];
            bytes.extend_from_slice(part);
            self.at += part.len();
        }
        *text = String::from_utf8(bytes).map_err(|_| self.invalid(format!("{what} is not UTF-8")))?;
        Ok(())
    }

    /// The offset after the next `len` bytes, which must be in the file.
    fn end_after(&self, len: u64) -> Result<u64> {
        if len > self.remaining() {
            Err(self.invalid("the file ends early"))
        } else {
            Ok(self.position() + len)
        }
    }

    /// Reads the next part of the file into the buffer; returns its first byte.
    #[cold]
    fn fill_buffer(&mut self) -> Result<u8> {
        self.base += self.buffer.len() as u64;
        self.at = 0;
        self.buffer.resize(BUFFER_BYTES, 0);
        let read = loop {
            match self.input.read(&mut self.buffer) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                read => break read,
            }
        };
        let read = read.map_err(|error| tierdex_io::Error::from_os("read", self.name, &error));
        self.buffer.truncate(*read.as_ref().unwrap_or(&0));
        read?;
        self.buffer.first().copied().ok_or_else(|| self.invalid("the file ends early"))
    }
}
