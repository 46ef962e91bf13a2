//! Brings segments of an older commit up to date: those of an older format version are written again, and
//! fields that the schema did not have are added, without documents.

use super::{merge::merge_segments, stop::StopSignal};
use crate::segment::layout::FileKind;
use crate::segment::write::{FieldTarget, FieldWriter, write_lengths};
use crate::{Result, schema::Schema, segment::SegmentMeta, segment::read::Segment};
use std::iter::repeat_n;
use tierdex_io::Disk;

/// Writes a segment again, as the new segment `id`, in the current format version.
pub(super) fn rewrite_segment(
    disk: &dyn Disk,
    schema: &Schema,
    meta: SegmentMeta,
    id: u64,
    stop: &StopSignal,
) -> Result<SegmentMeta> {
    let segment = Segment::open(disk, schema, meta)?;
    merge_segments(disk, schema, &[segment], id, stop)
}

/// Writes the files of the fields that a segment does not have yet, in which no document has a token. Until a
/// commit names them, they are files that the next writer removes.
pub(super) fn add_fields(disk: &dyn Disk, schema: &Schema, meta: &mut SegmentMeta) -> Result<()> {
    for (number, field) in schema.fields.iter().enumerate().skip(meta.fields.len()) {
        let target = FieldTarget { disk, segment: meta.id, number, field };
        let lengths = write_lengths(target, || repeat_n(0, meta.documents as usize))?;
        let (stats, mut files) = FieldWriter::write(target, &lengths.codes, lengths.tokens, |_| Ok(()))?;
        files.push(lengths.file);
        meta.fields.push(stats);
        // Files of fields are before those of the whole segment.
        let at = meta.files.iter().position(|file| file.kind == FileKind::Ids).unwrap_or(meta.files.len());
        meta.files.splice(at..at, files);
    }
    Ok(())
}
