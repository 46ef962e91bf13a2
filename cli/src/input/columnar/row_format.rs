//! Recognises files of rows by their first bytes.

use super::footer::PARQUET_MAGIC;
use super::ipc_message::{CONTINUATION, FILE_MAGIC};
use crate::input::options::InputFormat;

/// Format of a file of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::input) enum RowFormat {
    Parquet,
    ArrowFile,
    ArrowStream,
}

impl RowFormat {
    /// The format of a file that begins with `head`, or whose name or user says that it is one: the first
    /// bytes may be damaged.
    pub fn detect(head: &[u8], known: Option<InputFormat>) -> Option<RowFormat> {
        if head.starts_with(PARQUET_MAGIC) {
            return Some(RowFormat::Parquet);
        }
        if head.starts_with(FILE_MAGIC) {
            return Some(RowFormat::ArrowFile);
        }
        if head.starts_with(&CONTINUATION) {
            return Some(RowFormat::ArrowStream);
        }
        match known {
            Some(InputFormat::Parquet) => Some(RowFormat::Parquet),
            Some(InputFormat::Arrow) => Some(RowFormat::ArrowStream),
            _ => None,
        }
    }

    /// The name in messages.
    pub fn name(self) -> &'static str {
        match self {
            RowFormat::Parquet => "Parquet",
            RowFormat::ArrowFile | RowFormat::ArrowStream => "Arrow",
        }
    }

    /// What a range of rows is called.
    pub fn part_name(self) -> &'static str {
        match self {
            RowFormat::Parquet => "row group",
            RowFormat::ArrowFile | RowFormat::ArrowStream => "record batch",
        }
    }
}
