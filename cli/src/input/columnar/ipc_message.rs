//! Messages of an Arrow IPC stream or file: a length, metadata, and a body. Lengths are compared with the
//! file and the limit before anything is read.
//!
//! Source: Apache Arrow columnar format, "Serialization and Interprocess Communication".

use crate::panic_hook::catch_panic;
use crate::size::{show_bytes, show_number};
use arrow_buffer::Buffer;
use arrow_ipc::{Message, MessageHeader, root_as_footer, root_as_message};
use arrow_schema::Schema;
use std::io::{self, Read};
use std::{fs::File, os::unix::fs::FileExt};

/// First bytes of an Arrow file.
pub(super) const FILE_MAGIC: &[u8; 6] = b"ARROW1";

/// First bytes of a message.
pub(super) const CONTINUATION: [u8; 4] = [0xFF; 4];

/// Bytes of the end of a file: the length of the footer and the magic number.
const TAIL_BYTES: u64 = 10;

/// Bytes that are reserved because a stream says so, before they have come.
const RESERVED_BYTES_MAX: usize = 1 << 20;

/// Metadata and body of a message. The metadata was verified.
#[derive(Debug, Clone)]
pub(super) struct IpcMessage {
    metadata: Vec<u8>,
    pub body: Buffer,
}

/// Why there is no message.
#[derive(Debug)]
pub(super) enum MessageError {
    /// The message is damaged or too large.
    Message(String),
    /// The position of the next message is not known.
    Stream(String),
}

impl IpcMessage {
    /// The metadata.
    pub fn message(&self) -> Result<Message<'_>, String> {
        root_as_message(&self.metadata).map_err(|_| "its metadata is damaged".to_string())
    }
}

/// Verifies metadata, and returns the length of the body.
fn body_length(metadata: &[u8]) -> Result<u64, String> {
    let damaged = |_| "its metadata is damaged".to_string();
    let length = catch_panic(|| root_as_message(metadata).map(|message| message.bodyLength()));
    let length = length.map_err(|_| "its metadata is damaged".to_string())?.map_err(damaged)?;
    u64::try_from(length).map_err(|_| "its metadata has a negative length".to_string())
}

fn too_large(bytes: u64, bytes_max: u64) -> String {
    format!(
        "it has {}, {} at most; a larger --memory allows more, or write smaller record batches",
        show_bytes(bytes),
        show_bytes(bytes_max)
    )
}

/// Messages in the order of a stream.
pub(super) struct MessageStream {
    pub reader: Box<dyn Read + Send>,
    pub bytes_max: u64,
}

impl MessageStream {
    /// The next message. `None` at the mark of the end; `false` if the stream ends without one.
    pub fn next(&mut self) -> Result<Result<IpcMessage, bool>, MessageError> {
        let Some(length) = self.metadata_length()? else { return Ok(Err(false)) };
        if length == 0 {
            return Ok(Err(true));
        }
        let metadata = self.read(length)?;
        let body = body_length(&metadata).map_err(MessageError::Stream)?;
        if body > self.bytes_max {
            return self.skip_body(body, &metadata);
        }
        Ok(Ok(IpcMessage { metadata, body: Buffer::from_vec(self.read(body)?) }))
    }

    /// Length of the metadata of the next message; `None` at the end of the stream.
    fn metadata_length(&mut self) -> Result<Option<u64>, MessageError> {
        let mut marker = [0; 4];
        if !self.fill(&mut marker)? {
            return Ok(None);
        }
        // Streams before version 0.15 have no mark.
        if marker == CONTINUATION && !self.fill(&mut marker)? {
            return Ok(None);
        }
        let length = u64::from(u32::from_le_bytes(marker));
        if length > self.bytes_max || i32::try_from(length).is_err() {
            return Err(MessageError::Stream("the length of its metadata is damaged".to_string()));
        }
        Ok(Some(length))
    }

    /// Reads as many bytes as `into` has; `false` at the end of the stream.
    fn fill(&mut self, into: &mut [u8]) -> Result<bool, MessageError> {
        match self.reader.read_exact(into) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
            Err(error) => Err(MessageError::Stream(format!("cannot read: {error}"))),
        }
    }

    fn read(&mut self, length: u64) -> Result<Vec<u8>, MessageError> {
        let mut bytes = Vec::with_capacity((length as usize).min(RESERVED_BYTES_MAX));
        let read = self.reader.by_ref().take(length).read_to_end(&mut bytes);
        read.map_err(|error| MessageError::Stream(format!("cannot read: {error}")))?;
        match bytes.len() as u64 == length {
            true => Ok(bytes),
            false => Err(MessageError::Stream("it is truncated".to_string())),
        }
    }

    /// Skips the body of a record batch that is too large. Nothing can be read without a dictionary.
    fn skip_body(&mut self, length: u64, metadata: &[u8]) -> Result<Result<IpcMessage, bool>, MessageError> {
        let root = root_as_message(metadata);
        if !root.is_ok_and(|root| root.header_type() == MessageHeader::RecordBatch) {
            return Err(MessageError::Stream(too_large(length, self.bytes_max)));
        }
        let skipped = io::copy(&mut self.reader.by_ref().take(length), &mut io::sink());
        match skipped {
            Ok(skipped) if skipped == length => Err(MessageError::Message(too_large(length, self.bytes_max))),
            Ok(_) => Err(MessageError::Stream("it is truncated".to_string())),
            Err(error) => Err(MessageError::Stream(format!("cannot read: {error}"))),
        }
    }
}

/// Where a message is in a file.
#[derive(Debug, Clone, Copy)]
struct MessageBlock {
    offset: u64,
    metadata_bytes: u64,
    body_bytes: u64,
}

/// Messages of a file by the offsets in its footer: damage of one leaves the others readable.
#[derive(Debug)]
pub(super) struct MessageBlocks {
    file: File,
    blocks: std::vec::IntoIter<MessageBlock>,
    /// How many of the blocks are dictionaries.
    dictionaries: usize,
    bytes_max: u64,
}

impl MessageBlocks {
    /// The schema and the messages of a file of `size` bytes: dictionaries, then record batches. `None` if
    /// its footer is damaged; then its messages may be read in order.
    pub fn open(file: File, size: u64, bytes_max: u64) -> Option<(Schema, MessageBlocks)> {
        let end = size.checked_sub(TAIL_BYTES)?;
        let mut tail = [0; TAIL_BYTES as usize];
        file.read_exact_at(&mut tail, end).ok()?;
        let (length, magic) = tail.split_first_chunk::<4>()?;
        let length = u64::from(u32::from_le_bytes(*length));
        if magic != FILE_MAGIC || length > bytes_max {
            return None;
        }
        let mut footer = vec![0; length as usize];
        let start = end.checked_sub(length)?;
        file.read_exact_at(&mut footer, start).ok()?;
        let (schema, blocks, dictionaries) = catch_panic(|| read_footer(&footer)).ok()??;
        let ends = blocks
            .iter()
            .map(|block| block.offset.checked_add(block.metadata_bytes)?.checked_add(block.body_bytes));
        if ends.into_iter().any(|end| end.is_none_or(|end| end > start)) {
            return None;
        }
        Some((schema, MessageBlocks { file, blocks: blocks.into_iter(), dictionaries, bytes_max }))
    }

    /// The next message, or why it cannot be read and whether it is a dictionary; `None` at the end.
    pub fn next(&mut self) -> Option<Result<IpcMessage, (String, bool)>> {
        let block = self.blocks.next()?;
        let is_dictionary = self.dictionaries > 0;
        self.dictionaries = self.dictionaries.saturating_sub(1);
        Some(self.read(block).map_err(|message| (message, is_dictionary)))
    }

    fn read(&self, block: MessageBlock) -> Result<IpcMessage, String> {
        if block.metadata_bytes.saturating_add(block.body_bytes) > self.bytes_max {
            return Err(too_large(block.body_bytes, self.bytes_max));
        }
        let mut bytes = vec![0; block.metadata_bytes as usize];
        let cannot_read = |error: io::Error| format!("cannot read: {error}");
        self.file.read_exact_at(&mut bytes, block.offset).map_err(cannot_read)?;
        let prefix = if bytes.starts_with(&CONTINUATION) { 8 } else { 4 };
        let length = bytes.get(prefix - 4..prefix).and_then(|length| length.first_chunk().copied());
        let length = length.map_or(0, |length| u32::from_le_bytes(length) as usize);
        let metadata = bytes.get(prefix..).and_then(|metadata| metadata.get(..length));
        let metadata = metadata.ok_or("the length of its metadata is damaged")?.to_vec();
        let body_bytes = body_length(&metadata)?;
        if body_bytes != block.body_bytes {
            return Err(format!(
                "its metadata has a body of {} bytes, and the footer one of {}",
                show_number(body_bytes),
                show_number(block.body_bytes)
            ));
        }
        let mut body = vec![0; body_bytes as usize];
        self.file.read_exact_at(&mut body, block.offset + block.metadata_bytes).map_err(cannot_read)?;
        Ok(IpcMessage { metadata, body: Buffer::from_vec(body) })
    }
}

/// The schema of a footer, the places of dictionaries and record batches, and the number of dictionaries.
fn read_footer(bytes: &[u8]) -> Option<(Schema, Vec<MessageBlock>, usize)> {
    let footer = root_as_footer(bytes).ok()?;
    let schema = super::ipc_check::read_schema(footer.schema()?).ok()?;
    let dictionaries = footer.dictionaries().map_or(0, |blocks| blocks.len());
    let blocks = footer.dictionaries().into_iter().flatten().chain(footer.recordBatches()?);
    let blocks: Option<Vec<MessageBlock>> = blocks
        .map(|block| {
            Some(MessageBlock {
                offset: u64::try_from(block.offset()).ok()?,
                metadata_bytes: u64::try_from(block.metaDataLength()).ok()?,
                body_bytes: u64::try_from(block.bodyLength()).ok()?,
            })
        })
        .collect();
    Some((schema, blocks?, dictionaries))
}
