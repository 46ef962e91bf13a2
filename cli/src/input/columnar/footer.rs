//! Reads the footer of a Parquet file, after lengths, counts and depths in it have been checked: the decoder
//! allocates what they say.
//!
//! 1. The length in the last eight bytes is compared with the file and with the limit.
//! 2. All structures are skipped once, which compares each length with the bytes that are left.
//! 3. The memory of the decoded footer is estimated from its length and its number of structures.
//! 4. The tree of the schema is walked: its depth and the length of its column paths are limited.

use super::thrift::{ThriftError, ThriftKind, ThriftReader};
use crate::{panic_hook, size};
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader};
use std::{fs::File, os::unix::fs::FileExt};

/// First and last bytes of a Parquet file.
pub(super) const PARQUET_MAGIC: &[u8; 4] = b"PAR1";

/// Last bytes of a file with an encrypted footer.
const ENCRYPTED_MAGIC: &[u8; 4] = b"PARE";

/// Length of a footer and the magic number at the end of a file.
const TAIL_BYTES: u64 = 8;

/// Memory of a structure in a list of the footer, such as a column of a row group, in bytes.
const STRUCT_BYTES: usize = 640;

/// Maximum nesting of columns. A list has three levels.
const COLUMN_DEPTH_MAX: usize = 48;

/// Maximum length of values of fixed length, in bytes.
const FIXED_LENGTH_MAX: i64 = 1 << 16;

/// Reads the footer of a file of `size` bytes. Its memory is at most about `bytes_max`.
pub(super) fn read_footer(file: &File, size: u64, bytes_max: usize) -> Result<ParquetMetaData, String> {
    let bytes = footer_bytes(file, size, bytes_max)?;
    check_footer(&bytes, bytes_max)?;
    let decoded = panic_hook::catch_panic(|| ParquetMetaDataReader::decode_metadata(&bytes));
    let metadata = decoded.map_err(|panic| format!("its footer is damaged: {panic}"))?;
    metadata.map_err(|error| format!("its footer is damaged: {error}"))
}

fn footer_bytes(file: &File, size: u64, bytes_max: usize) -> Result<Vec<u8>, String> {
    let cannot_read = |error: std::io::Error| format!("cannot read its footer: {error}");
    let body = size.checked_sub(TAIL_BYTES).ok_or("it is too short for a Parquet file")?;
    let mut tail = [0; TAIL_BYTES as usize];
    file.read_exact_at(&mut tail, body).map_err(cannot_read)?;
    let [a, b, c, d, magic @ ..] = tail;
    if magic == *ENCRYPTED_MAGIC {
        return Err("its footer is encrypted; write it without encryption".to_string());
    }
    if magic != *PARQUET_MAGIC {
        return Err("it does not end as a Parquet file; it is truncated or damaged, replace it".to_string());
    }
    let length = u64::from(u32::from_le_bytes([a, b, c, d]));
    if length > body.saturating_sub(PARQUET_MAGIC.len() as u64) {
        return Err(format!(
            "its footer is damaged: it has {} of {} bytes of the file",
            size::show_number(length),
            size::show_number(size)
        ));
    }
    if length > bytes_max as u64 {
        return Err(too_large(length as usize));
    }
    let mut bytes = vec![0; length as usize];
    file.read_exact_at(&mut bytes, body - length).map_err(cannot_read)?;
    Ok(bytes)
}

fn too_large(bytes: usize) -> String {
    format!("its footer needs {}; a larger --memory allows more", size::show_bytes(bytes as u64))
}

/// Checks the structures of a footer, and their memory.
fn check_footer(bytes: &[u8], bytes_max: usize) -> Result<(), String> {
    let damaged = |_: ThriftError| "its footer is damaged: it is not a structure".to_string();
    let mut reader = ThriftReader::new(bytes);
    let (mut last, mut path_bytes) = (0, 0usize);
    while let Some((field, kind)) = reader.next_field(&mut last).map_err(damaged)? {
        match (field, kind) {
            (2, ThriftKind::List) => path_bytes = check_schema(&mut reader, bytes_max)?,
            _ => reader.skip(kind).map_err(damaged)?,
        }
    }
    let structs = reader.list_structs.saturating_mul(STRUCT_BYTES);
    let memory = bytes.len().saturating_add(structs).saturating_add(path_bytes);
    if memory > bytes_max { Err(too_large(memory)) } else { Ok(()) }
}

/// A column of the schema with columns in it.
struct OpenGroup {
    children_left: i64,
    /// Length of its path, in bytes.
    path_bytes: usize,
}

/// Walks the list of the columns of the schema, where each is followed by those in it. Returns the memory of
/// their paths.
fn check_schema(reader: &mut ThriftReader<'_>, bytes_max: usize) -> Result<usize, String> {
    let damaged = |_: ThriftError| "its footer is damaged: its schema is not a structure".to_string();
    let wrong = || "its footer is damaged: its schema is not a tree".to_string();
    let (count, kind) = reader.list().map_err(damaged)?;
    if kind != ThriftKind::Struct || count == 0 {
        return Err(wrong());
    }
    reader.list_structs += count;
    let (mut open, mut memory) = (Vec::<OpenGroup>::new(), 0usize);
    for number in 0..count {
        let column = read_column(reader).map_err(damaged)?;
        if column.fixed_length > FIXED_LENGTH_MAX {
            return Err(format!("it has values of a fixed length of {} bytes", column.fixed_length));
        }
        let above = open.last_mut();
        match &above {
            None if number > 0 => return Err(wrong()),
            Some(group) if group.children_left == 0 => return Err(wrong()),
            _ => {}
        }
        let path_bytes = above.as_ref().map_or(0, |group| group.path_bytes).saturating_add(column.name_bytes);
        if let Some(group) = above {
            group.children_left -= 1;
        }
        if column.children > 0 {
            open.push(OpenGroup { children_left: column.children, path_bytes });
        } else {
            memory = memory.saturating_add(path_bytes).saturating_add(open.len() * size_of::<String>());
            while open.last().is_some_and(|group| group.children_left == 0) {
                open.pop();
            }
        }
        if open.len() > COLUMN_DEPTH_MAX {
            return Err(format!("its columns are nested more than {COLUMN_DEPTH_MAX} deep"));
        }
        if memory > bytes_max {
            return Err(too_large(memory));
        }
    }
    if open.is_empty() { Ok(memory) } else { Err(wrong()) }
}

/// What the footer says of a column of the schema.
#[derive(Default)]
struct FooterColumn {
    name_bytes: usize,
    children: i64,
    fixed_length: i64,
}

fn read_column(reader: &mut ThriftReader<'_>) -> Result<FooterColumn, ThriftError> {
    let (mut column, mut last) = (FooterColumn::default(), 0);
    while let Some((field, kind)) = reader.next_field(&mut last)? {
        match (field, kind) {
            (2, ThriftKind::Integer) => column.fixed_length = reader.integer()?,
            (4, ThriftKind::Binary) => column.name_bytes = reader.binary()?.len(),
            (5, ThriftKind::Integer) => column.children = reader.integer()?,
            (_, kind) => reader.skip(kind)?,
        }
    }
    if column.children < 0 { Err(ThriftError::Malformed) } else { Ok(column) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A footer with these columns: the length of the name, and the number of columns in it.
    fn footer_of(columns: &[(usize, u8)]) -> Vec<u8> {
        let mut bytes = vec![0x15, 2, 0x19, 0xFC, columns.len() as u8];
        for &(name, children) in columns {
            bytes.extend([0x48, name as u8]);
            bytes.extend(vec![b'a'; name]);
            bytes.extend([0x15, 2 * children, 0]);
        }
        bytes.push(0);
        bytes
    }

    #[track_caller]
    fn check(columns: &[(usize, u8)], bytes_max: usize, expected: &str) {
        let error = check_footer(&footer_of(columns), bytes_max).err().unwrap_or_default();
        assert!(error.contains(expected) && error.is_empty() == expected.is_empty(), "{error}");
    }

    #[test]
    fn schemas_are_trees_of_limited_depth_and_memory() {
        check(&[(1, 2), (1, 0), (1, 1), (1, 0)], 1 << 20, "");
        check(&[(1, 2), (1, 0)], 1 << 20, "not a tree");
        check(&[(1, 1), (1, 0), (1, 0)], 1 << 20, "not a tree");
        check(&[(1, 1); 64], 1 << 20, "nested more than 48 deep");
        check(&[(1, 2), (1, 0), (1, 0)], 3 * STRUCT_BYTES, "a larger --memory");
        // Each of 60 paths has the long name.
        let mut wide = vec![(1, 1), (100, 60)];
        wide.extend([(1, 0); 60]);
        check(&wide, 62 * STRUCT_BYTES + 1000, "a larger --memory");
        check(&wide, 1 << 20, "");
    }

    #[test]
    fn lengths_beyond_the_footer_are_errors() {
        let footer = footer_of(&[(1, 1), (1, 0)]);
        for end in 0..footer.len() {
            assert!(check_footer(&footer[..end], 1 << 20).is_err(), "{end}");
        }
    }
}
