//! Rows of an Arrow IPC stream or file: record batches with the dictionaries that came before them.

use super::ipc_check::{check_batch, read_schema};
use super::ipc_message::{IpcMessage, MessageBlocks, MessageError, MessageStream};
use super::value::{CellValue, has_values, value_of};
use crate::panic_hook::catch_panic;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_buffer::Buffer;
use arrow_ipc::reader::{read_dictionary, read_record_batch};
use arrow_ipc::{DictionaryBatch, Message};
use arrow_schema::SchemaRef;
use std::{collections::HashMap, sync::Arc};

/// The record batches of a stream or file.
pub(super) struct IpcRows {
    messages: Messages,
    pub schema: SchemaRef,
    /// Numbers of the columns that are read.
    projection: Arc<[usize]>,
    dictionaries: Arc<HashMap<i64, ArrayRef>>,
    /// Bytes of the dictionaries by their numbers.
    dictionary_bytes: HashMap<i64, u64>,
    /// Lengths of their longest texts.
    longest: HashMap<i64, u64>,
    bytes_max: u64,
}

enum Messages {
    Stream(MessageStream),
    Blocks(MessageBlocks),
}

/// A record batch that is not decoded.
#[derive(Debug)]
pub(super) struct IpcBatch {
    message: IpcMessage,
    schema: SchemaRef,
    projection: Arc<[usize]>,
    dictionaries: Arc<HashMap<i64, ArrayRef>>,
    pub rows: u64,
    /// Length of its columns.
    pub bytes: u64,
    /// The most bytes that texts in dictionaries have in all rows, where each row repeats them.
    pub repeated_bytes: u64,
}

/// What comes next in a stream or file.
pub(super) enum IpcNext {
    Batch(IpcBatch),
    /// A record batch that cannot be read.
    Damaged(String),
    /// A dictionary that cannot be read.
    DamagedDictionary(String),
    /// The rest cannot be read.
    Cut(String),
    End,
}

impl IpcRows {
    /// The columns and messages of a stream, behind the magic number of a file.
    pub fn of_stream(mut stream: MessageStream) -> Result<IpcRows, String> {
        let first = match stream.next() {
            Ok(Ok(message)) => message,
            Ok(Err(_)) => return Err("it is empty; it is truncated, replace it".to_string()),
            Err(MessageError::Message(message) | MessageError::Stream(message)) => {
                return Err(format!("its columns cannot be read: {message}"));
            }
        };
        let schema = catch_panic(|| {
            let message = first.message()?;
            read_schema(message.header_as_schema().ok_or("it does not begin with a schema")?)
        });
        let schema = schema.and_then(|schema| schema);
        let schema = schema.map_err(|error| format!("its columns cannot be read: {error}"))?;
        let bytes_max = stream.bytes_max;
        Ok(IpcRows::new(Messages::Stream(stream), Arc::new(schema), bytes_max))
    }

    /// The columns and messages of a file, by its footer; `None` if the footer is damaged.
    pub fn of_file(file: std::fs::File, size: u64, bytes_max: u64) -> Option<IpcRows> {
        let (schema, blocks) = MessageBlocks::open(file, size, bytes_max)?;
        Some(IpcRows::new(Messages::Blocks(blocks), Arc::new(schema), bytes_max))
    }

    fn new(messages: Messages, schema: SchemaRef, bytes_max: u64) -> IpcRows {
        let projection = (0..schema.fields().len()).collect();
        IpcRows {
            messages,
            schema,
            projection,
            dictionaries: Arc::default(),
            dictionary_bytes: HashMap::new(),
            longest: HashMap::new(),
            bytes_max,
        }
    }

    /// Reads these columns only.
    pub fn project(&mut self, columns: Vec<usize>) {
        self.projection = columns.into();
    }

    /// The next record batch. Dictionaries before it are read.
    pub fn next(&mut self) -> IpcNext {
        loop {
            let message = match &mut self.messages {
                Messages::Stream(stream) => match stream.next() {
                    Ok(Ok(message)) => message,
                    Ok(Err(true)) => return IpcNext::End,
                    Ok(Err(false)) => {
                        return IpcNext::Cut("it has no mark of its end; it may be truncated".to_string());
                    }
                    Err(MessageError::Message(message)) => return IpcNext::Damaged(message),
                    Err(MessageError::Stream(message)) => return IpcNext::Cut(message),
                },
                Messages::Blocks(blocks) => match blocks.next() {
                    Some(Ok(message)) => message,
                    Some(Err((message, is_dictionary))) => {
                        if is_dictionary {
                            self.dictionaries = Arc::default();
                            return IpcNext::DamagedDictionary(message);
                        }
                        return IpcNext::Damaged(message);
                    }
                    None => return IpcNext::End,
                },
            };
            let taken = match self.take_dictionary(&message) {
                Ok(true) => continue,
                Ok(false) => self.take_batch(message),
                Err(message) => return IpcNext::DamagedDictionary(message),
            };
            return taken.map_or_else(IpcNext::Damaged, IpcNext::Batch);
        }
    }

    /// Reads a dictionary; `false` if the message is none.
    fn take_dictionary(&mut self, message: &IpcMessage) -> Result<bool, String> {
        let root = message.message()?;
        let Some(batch) = root.header_as_dictionary_batch() else { return Ok(false) };
        if let Err(error) = self.read_dictionary(batch, &root, &message.body) {
            // Rows must not get values of the dictionary before.
            let mut dictionaries = HashMap::clone(&self.dictionaries);
            dictionaries.remove(&batch.id());
            self.dictionaries = Arc::new(dictionaries);
            return Err(error);
        }
        Ok(true)
    }

    fn take_batch(&self, message: IpcMessage) -> Result<IpcBatch, String> {
        let (rows, bytes) = {
            let root = message.message()?;
            let batch = root.header_as_record_batch().ok_or("it is not a record batch")?;
            let bytes = catch_panic(|| check_batch(batch, &message.body, self.bytes_max))??;
            (batch.length() as u64, bytes)
        };
        Ok(IpcBatch {
            message,
            schema: Arc::clone(&self.schema),
            projection: Arc::clone(&self.projection),
            dictionaries: Arc::clone(&self.dictionaries),
            rows,
            bytes,
            repeated_bytes: self
                .longest
                .values()
                .fold(0, |sum, longest| longest.saturating_mul(rows).saturating_add(sum)),
        })
    }

    fn read_dictionary(
        &mut self,
        batch: DictionaryBatch<'_>,
        root: &Message<'_>,
        body: &Buffer,
    ) -> Result<(), String> {
        let data = batch.data().ok_or("it has no values")?;
        let before = if batch.isDelta() { self.dictionary_bytes.get(&batch.id()).copied() } else { None };
        let others = self.dictionary_bytes.iter().filter(|(id, _)| **id != batch.id());
        let held: u64 = others.map(|(_, bytes)| *bytes).sum::<u64>() + before.unwrap_or(0);
        let bytes = catch_panic(|| check_batch(data, body, self.bytes_max.saturating_sub(held)))??;
        let mut dictionaries = HashMap::clone(&self.dictionaries);
        let read =
            catch_panic(|| read_dictionary(body, batch, &self.schema, &mut dictionaries, &root.version()));
        read?.map_err(|error| error.to_string())?;
        self.dictionary_bytes.insert(batch.id(), bytes + before.unwrap_or(0));
        self.longest
            .insert(batch.id(), dictionaries.get(&batch.id()).map_or(0, |values| longest_text(values)));
        self.dictionaries = Arc::new(dictionaries);
        Ok(())
    }
}

/// Length of the longest text of a dictionary.
fn longest_text(values: &dyn Array) -> u64 {
    let texts = (0..values.len()).filter_map(|row| match value_of(values, row) {
        Some(CellValue::Text(text)) => Some(text.len() as u64),
        Some(CellValue::Bytes(bytes)) => Some(bytes.len() as u64),
        _ => None,
    });
    if has_values(values.data_type()) { texts.max().unwrap_or(0) } else { 0 }
}

impl IpcBatch {
    /// Decodes the columns that are read.
    pub fn decode(&self) -> Result<RecordBatch, String> {
        let root = self.message.message()?;
        let batch = root.header_as_record_batch().ok_or("its metadata is damaged")?;
        let (body, schema) = (&self.message.body, Arc::clone(&self.schema));
        let decoded = catch_panic(|| {
            let projection = Some(&*self.projection);
            read_record_batch(body, batch, schema, &self.dictionaries, projection, &root.version())
        });
        let decoded = decoded?.map_err(|error| error.to_string().replace('\n', " "))?;
        match decoded.num_rows() as u64 == self.rows {
            true => Ok(decoded),
            false => Err("its columns have other numbers of rows".to_string()),
        }
    }

    /// Names the column that cannot be decoded: each is decoded alone.
    pub fn explain_error(&self, error: String) -> String {
        for column in self.projection.iter() {
            let alone = IpcBatch {
                message: self.message.clone(),
                schema: Arc::clone(&self.schema),
                projection: [*column].into(),
                dictionaries: Arc::clone(&self.dictionaries),
                ..*self
            };
            if let Err(error) = alone.decode() {
                let name = self.schema.fields().get(*column).map_or("", |field| field.name());
                return format!("column `{}`: {error}", name.escape_debug());
            }
        }
        error
    }
}
