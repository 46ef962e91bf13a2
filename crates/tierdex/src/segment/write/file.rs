//! Creates and seals the files of a segment.

use super::super::layout::{FileKind, FileMeta, file_name, identity};
use crate::Result;
use tierdex_io::{Disk, SealedWriter};

/// Creates a file of a segment.
pub(super) fn create(disk: &dyn Disk, segment: u64, field: usize, kind: FileKind) -> Result<SealedWriter> {
    Ok(SealedWriter::create(disk, &file_name(segment, field, kind), identity(segment, field, kind))?)
}

/// Seals a file and returns its manifest entry.
pub(super) fn seal(writer: SealedWriter, field: usize, kind: FileKind) -> Result<FileMeta> {
    Ok(FileMeta { kind, field, seal: writer.finish()? })
}
