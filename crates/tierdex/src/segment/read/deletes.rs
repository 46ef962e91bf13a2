//! Reads the deleted documents of a segment and the layers of their statistics (docs/format/deletes.md,
//! docs/format/deleted-statistics.md).

use crate::bytes::ByteReader;
use crate::limits::BLOCK;
use crate::segment::deleted_statistics::DeletedStatistics;
use crate::segment::layout::{DELETES_CODEC, FileKind, SegmentMeta};
use crate::segment::manifest_segment::{DeletesMeta, ManifestSegment, NamedFile, NumberedFile};
use crate::segment::{DeletedDocuments, SegmentDeletes};
use crate::{Error, Result};
use std::sync::Arc;
use tierdex_io::Disk;

/// Opens the deletes of a segment, if it has any; its other files are not read.
///
/// # Errors
/// [`Error::Storage`] when a file cannot be read, is damaged, or does not fit the manifest.
pub fn open_deletes(disk: &dyn Disk, segment: &ManifestSegment) -> Result<Option<SegmentDeletes>> {
    open_deletes_sharing(disk, segment, None)
}

/// The deleted documents of a segment, if it has any, without their statistics.
///
/// # Errors
/// As [`open_deletes`].
pub(crate) fn open_deleted_documents(
    disk: &dyn Disk,
    segment: &ManifestSegment,
) -> Result<Option<DeletedDocuments>> {
    let Some(deletes) = &segment.deletes else { return Ok(None) };
    let file = segment.named_files().find(|file| file.identity.kind == FileKind::Deletes as u8);
    let file = file.expect("the manifest names a file of deleted documents");
    Ok(Some(read_documents(disk, &file, &segment.meta, deletes)?))
}

/// As [`open_deletes`]; layers that an older commit of the segment has open are shared.
pub(crate) fn open_deletes_sharing(
    disk: &dyn Disk,
    segment: &ManifestSegment,
    older: Option<(&DeletesMeta, &SegmentDeletes)>,
) -> Result<Option<SegmentDeletes>> {
    let Some(deletes) = &segment.deletes else { return Ok(None) };
    let (mut documents, mut layers) = (None, Vec::with_capacity(deletes.layers.len()));
    let shared = |layer: &NumberedFile| {
        let (meta, open) = older?;
        let at = meta.layers.iter().position(|of_older| of_older == layer)?;
        open.layers().get(at).cloned()
    };
    for file in segment.named_files() {
        if file.identity.kind == FileKind::Deletes as u8 {
            documents = Some(read_documents(disk, &file, &segment.meta, deletes)?);
        } else if file.identity.kind == FileKind::DeletedStatistics as u8 {
            let layer = match shared(&deletes.layers[layers.len()]) {
                Some(layer) => layer,
                None => Arc::new(read_layer(disk, &file, &segment.meta)?),
            };
            layers.push(layer);
            check_sums(&file, &segment.meta, deletes, &layers)?;
        }
    }
    let documents = documents.expect("the manifest names a file of deleted documents");
    Ok(Some(SegmentDeletes::new(documents, layers)))
}

fn read_documents(
    disk: &dyn Disk,
    file: &NamedFile,
    meta: &SegmentMeta,
    deletes: &DeletesMeta,
) -> Result<DeletedDocuments> {
    // Each document has at least a byte in this file, so that memory is bounded by what is on the disk.
    let norms = meta.file(0, FileKind::Norms).map_or(0, |norms| norms.seal.len);
    // Two varints, and the largest blocks.
    let blocks = (deletes.documents as usize).div_ceil(BLOCK);
    let bytes_max = 20 + blocks * DELETES_CODEC.max_len(BLOCK);
    let payload = read_payload(disk, file, bytes_max as u64)?;
    let mut view = payload.view(meta.id)?;
    if view.varint()? != u64::from(meta.documents) || view.varint()? != u64::from(deletes.documents) {
        return Err(view.corrupt("another number of documents than the manifest says"));
    }
    if u64::from(meta.documents) > norms {
        return Err(view.corrupt("more documents than the segment has lengths"));
    }
    let mut deleted = DeletedDocuments::none(meta.documents);
    let (mut block, mut previous) = ([0; BLOCK], u32::MAX);
    while deleted.len() < deletes.documents {
        let documents = &mut block[..BLOCK.min((deletes.documents - deleted.len()) as usize)];
        let decoded = DELETES_CODEC.decode(view.rest(), previous, documents);
        view.bytes(decoded.map_err(|error| view.corrupt(error.to_string()))?)?;
        for document in documents {
            if *document >= meta.documents || previous != u32::MAX && *document <= previous {
                return Err(
                    view.corrupt("deleted documents that are not in order, or that the segment lacks")
                );
            }
            deleted.insert(*document);
            previous = *document;
        }
    }
    view.finish()?;
    Ok(deleted)
}

fn read_layer(disk: &dyn Disk, file: &NamedFile, meta: &SegmentMeta) -> Result<DeletedStatistics> {
    let documents: Vec<u32> = meta.fields.iter().map(|field| field.documents).collect();
    // What `DeletedStatistics` can hold, and the numbers of its fields.
    let payload = read_payload(disk, file, u64::from(u32::MAX) + (1 << 20))?;
    DeletedStatistics::read(&mut payload.view(meta.id)?, &documents)
}

/// Checks that the layers so far have no more documents and tokens than are deleted.
fn check_sums(
    file: &NamedFile,
    meta: &SegmentMeta,
    deletes: &DeletesMeta,
    layers: &[Arc<DeletedStatistics>],
) -> Result<()> {
    for (number, stats) in meta.fields.iter().enumerate() {
        let of_layers = || layers.iter().map(|layer| layer.field(number));
        let documents: u64 = of_layers().map(|field| u64::from(field.documents)).sum();
        let tokens = of_layers().fold(0, |sum: u64, field| sum.saturating_add(field.tokens));
        let is_known = layers.iter().all(|layer| layer.are_terms_known());
        if documents > u64::from(deletes.documents.min(stats.documents)) || is_known && tokens > stats.tokens
        {
            return Err(Error::corrupt(&file.name, 0, "statistics of more documents than are deleted"));
        }
    }
    Ok(())
}

/// The payload of a file, and its offset.
struct DeletesPayload<'a> {
    file: &'a str,
    start: u64,
    bytes: Vec<u8>,
}

impl DeletesPayload<'_> {
    /// What follows the number of the segment, which is checked.
    fn view(&self, segment: u64) -> Result<ByteReader<'_>> {
        let mut view = ByteReader::new(self.file, self.start, &self.bytes);
        if view.varint()? == segment { Ok(view) } else { Err(view.corrupt("deletes of another segment")) }
    }
}

/// Reads a file whose payload has at most `bytes_max` bytes beside the number of the segment.
fn read_payload<'a>(disk: &dyn Disk, file: &'a NamedFile, bytes_max: u64) -> Result<DeletesPayload<'a>> {
    let open = file.open(disk)?;
    let payload = open.payload();
    if payload.end - payload.start > bytes_max + 10 {
        return Err(Error::corrupt(&file.name, payload.start, "impossibly large"));
    }
    let bytes = open.read(payload.start, (payload.end - payload.start) as usize)?;
    Ok(DeletesPayload { file: &file.name, start: payload.start, bytes })
}
