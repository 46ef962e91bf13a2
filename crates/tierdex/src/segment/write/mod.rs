//! Writing the files of a segment. Readers of each stand under the same name in `read/`.

mod field;
mod ids;
mod lists;
mod stored;
mod superblock;
mod terms;

pub(crate) use field::default_share;
pub use field::{FieldWriter, Lengths, Postings, write_lengths, write_norms};
pub use ids::IdsWriter;
pub use stored::{StoredBlocks, StoredWriter};
pub use superblock::{Superblock, SuperblockEncoder};

use super::layout::{FileKind, FileMeta, file_name, identity};
use crate::error::Result;
use tierdex_io::{Disk, SealedWriter};

/// Creates a file of a segment.
fn create(disk: &dyn Disk, segment: u64, field: usize, kind: FileKind) -> Result<SealedWriter> {
    Ok(SealedWriter::create(disk, &file_name(segment, field, kind), identity(segment, field, kind))?)
}

/// Seals a file and says what the manifest must know of it.
fn seal(writer: SealedWriter, field: usize, kind: FileKind) -> Result<FileMeta> {
    Ok(FileMeta { kind, field, seal: writer.finish()? })
}
