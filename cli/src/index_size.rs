//! Statistics and file sizes of a commit, summed over its segments.

use tierdex::index::Manifest;
use tierdex::segment::{FieldStats, FileKind};

/// Bytes of an uncompressed posting: four of the document number and four of the frequency.
const RAW_POSTING_BYTES: u64 = 8;

/// Statistics of a field.
pub fn field_stats(manifest: &Manifest, field: usize) -> FieldStats {
    let of = manifest.segments.iter().map(|segment| segment.fields[field]);
    of.fold(FieldStats::default(), |sum, next| FieldStats {
        documents: sum.documents + next.documents,
        terms: sum.terms + next.terms,
        postings: sum.postings + next.postings,
        tokens: sum.tokens + next.tokens,
    })
}

/// Bytes of the files of a kind. `field` is ignored for kinds of which a segment has one file.
pub fn kind_bytes(manifest: &Manifest, field: usize, kind: FileKind) -> u64 {
    manifest.segments.iter().filter_map(|segment| segment.file(field, kind)).map(|file| file.seal.len).sum()
}

/// Bytes of all files.
pub fn total_bytes(manifest: &Manifest) -> u64 {
    manifest.segments.iter().flat_map(|segment| &segment.files).map(|file| file.seal.len).sum()
}

/// Size of uncompressed document numbers and frequencies, relative to document numbers, frequencies and skip
/// data of the index.
pub fn ratio_against_raw(manifest: &Manifest, field: usize) -> f64 {
    let kinds = [FileKind::Docs, FileKind::Freqs, FileKind::Skips];
    let packed: u64 = kinds.iter().map(|&kind| kind_bytes(manifest, field, kind)).sum();
    (field_stats(manifest, field).postings * RAW_POSTING_BYTES) as f64 / packed.max(1) as f64
}
