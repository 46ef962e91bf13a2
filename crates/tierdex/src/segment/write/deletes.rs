//! Writes the deleted documents of a segment, and a layer of their statistics, in files with numbers of their
//! own (docs/format/deletes.md, docs/format/deleted-statistics.md).

use super::super::deleted_statistics::DeletedStatistics;
use super::super::deletes::DeletedDocuments;
use super::super::layout::{DELETES_CODEC, FileKind};
use super::super::manifest_segment::NumberedFile;
use super::file::create;
use crate::{Result, bytes::push_varint, limits::BLOCK};
use tierdex_io::Disk;

/// Writes all deleted documents of a segment to the file of this number.
pub fn write_deletes(
    disk: &dyn Disk,
    number: u64,
    segment: u64,
    deleted: &DeletedDocuments,
) -> Result<NumberedFile> {
    write_numbered(disk, number, FileKind::Deletes, segment, |out| encode_documents(deleted, out))
}

/// Writes statistics of deleted documents of a segment to the file of this number.
pub fn write_deleted_statistics(
    disk: &dyn Disk,
    number: u64,
    segment: u64,
    statistics: &DeletedStatistics,
) -> Result<NumberedFile> {
    write_numbered(disk, number, FileKind::DeletedStatistics, segment, |out| statistics.write(out))
}

fn write_numbered(
    disk: &dyn Disk,
    number: u64,
    kind: FileKind,
    segment: u64,
    append: impl FnOnce(&mut Vec<u8>),
) -> Result<NumberedFile> {
    let mut payload = Vec::new();
    push_varint(&mut payload, segment);
    append(&mut payload);
    let mut file = create(disk, number, 0, kind)?;
    file.write(&payload)?;
    Ok(NumberedFile { number, seal: file.finish()? })
}

/// Appends the number of documents in the segment, the number of deleted ones, and these in blocks.
fn encode_documents(deleted: &DeletedDocuments, out: &mut Vec<u8>) {
    push_varint(out, u64::from(deleted.documents()));
    push_varint(out, u64::from(deleted.len()));
    let mut documents = deleted.iter();
    let (mut block, mut previous) = (Vec::with_capacity(BLOCK), u32::MAX);
    loop {
        block.clear();
        block.extend(documents.by_ref().take(BLOCK));
        let Some(last) = block.last() else { return };
        DELETES_CODEC.encode(&block, previous, out);
        previous = *last;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The codec against a bitset and against gaps as varints, the simplest encodings: about as long as the
    /// shortest of them at 50% deleted, and much shorter at 0.1% and 10%.
    #[test]
    fn deleted_documents_take_few_bytes() {
        const DOCUMENTS: u32 = 1_000_000;
        for (share, bytes_max) in [(0.001, 0.85), (0.1, 0.7), (0.5, 1.05)] {
            // The high bits of a multiplicative hash, as random numbers.
            let is_deleted = |document: &u32| {
                let mixed = u64::from(*document).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                ((mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 40) as f64 / (1 << 24) as f64
                    <= share
            };
            let deleted = DeletedDocuments::none(DOCUMENTS).with((0..DOCUMENTS).filter(is_deleted));
            let (mut encoded, mut gaps, mut next) = (Vec::new(), Vec::new(), 0);
            encode_documents(&deleted, &mut encoded);
            for document in deleted.iter() {
                push_varint(&mut gaps, u64::from(document - next));
                next = document + 1;
            }
            let simplest = gaps.len().min(DOCUMENTS as usize / 8);
            println!(
                "{share}: {} deleted, {} bytes, gaps {}, bitset {}",
                deleted.len(),
                encoded.len(),
                gaps.len(),
                DOCUMENTS / 8
            );
            assert!((encoded.len() as f64) < bytes_max * simplest as f64, "{share}: {} bytes", encoded.len());
        }
    }
}
