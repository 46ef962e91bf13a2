//! Reads documents from the rows of Parquet and Arrow IPC files.
//!
//! A file is divided into ranges of rows by what it says of itself: [`RowSource`] yields them, and
//! [`read_rows`] decodes one and reads its documents, on any thread. Damage costs a range of rows of a row
//! group, or a record batch.
//!
//! Files may say anything. Sizes, counts and depths are checked before a decoder allocates by them: footers
//! in `footer`, pages in `pages`, messages in `ipc_message` and `ipc_check`. A panic of a decoder is an error
//! of the file.

mod column_plan;
mod decompress;
mod delta;
mod footer;
mod ipc_check;
mod ipc_message;
mod ipc_rows;
mod page_header;
mod pages;
mod parquet_rows;
mod partition;
mod read;
mod row_document;
mod row_file;
mod row_format;
mod row_limits;
mod row_source;
mod spool;
mod text_views;
mod thrift;
mod value;

pub(super) use read::read_rows;
pub(super) use row_file::RowRange;
pub(super) use row_format::RowFormat;
pub(super) use row_limits::RowLimits;
pub(super) use row_source::{RowInput, RowSource};
