//! Statistics and file sizes of a commit, summed over its segments.

use tierdex::commit::{FieldStats, FileKind, Manifest};

/// Bytes of an uncompressed posting: four of the document number and four of the frequency.
const RAW_POSTING_BYTES: u64 = 8;

/// Statistics of a field, summed over the segments.
pub fn field_stats(manifest: &Manifest, field: usize) -> FieldStats {
    let of = manifest.segments.iter().map(|segment| segment.stats(field));
    of.fold(FieldStats::default(), |mut sum, next| {
        sum.documents += next.documents;
        sum.terms += next.terms;
        sum.postings += next.postings;
        sum.tokens += next.tokens;
        sum.lists.add(next.lists);
        sum
    })
}

/// Bytes of the files of a kind. `field` is ignored for kinds of which a segment has one file.
pub fn kind_bytes(manifest: &Manifest, field: usize, kind: FileKind) -> u64 {
    manifest.segments.iter().filter_map(|segment| segment.file(field, kind)).map(|file| file.seal.len).sum()
}

/// Bytes of the files of deleted documents and of their statistics.
pub fn deletes_bytes(manifest: &Manifest) -> u64 {
    let deletes = manifest.segments.iter().filter_map(|segment| segment.deletes.as_ref());
    let files = deletes.flat_map(|deletes| deletes.layers.iter().chain([&deletes.file]));
    files.map(|file| file.seal.len).sum()
}

/// Bytes of the list of files from which documents were read.
pub fn input_files_bytes(manifest: &Manifest) -> u64 {
    manifest.input_files.map_or(0, |file| file.seal.len)
}

/// Bytes of all files of a commit.
pub fn total_bytes(manifest: &Manifest) -> u64 {
    manifest.named_files().map(|file| file.seal.len).sum()
}

/// Size of one part of the postings of a field, from which bits per posting are computed.
pub struct PartSize {
    /// Name of the part: of its files, except that the lists are divided into `docs`, `freqs` and `inline`.
    pub name: &'static str,
    /// Bytes of the part in all segments.
    pub bytes: u64,
    /// Number of postings that the part describes.
    pub postings: u64,
    /// Codec, if it has one.
    pub codec: &'static str,
}

/// Sizes of the parts of a field. Lists of at least 256 documents are blocks of documents (`docs`) and
/// frequencies (`freqs`) with skip data (`skips`); shorter lists are `inline` in the file of skip data.
pub fn part_sizes(manifest: &Manifest, number: usize) -> Vec<PartSize> {
    let (field, stats) = (&manifest.schema.fields[number], field_stats(manifest, number));
    let file = |kind| kind_bytes(manifest, number, kind);
    let (docs_codec, freqs_codec, lists) = (field.doc_codec.name(), field.freq_codec.name(), stats.lists);
    let inline_postings = stats.postings - lists.block_postings.min(stats.postings);
    let skips_bytes = file(FileKind::Skips) - lists.inline_bytes.min(file(FileKind::Skips));
    let part = |name, bytes, postings, codec| PartSize { name, bytes, postings, codec };
    vec![
        part("terms", file(FileKind::Terms), stats.postings, ""),
        part("docs", lists.docs_bytes, lists.block_postings, docs_codec),
        part("freqs", lists.freqs_bytes, lists.block_postings, freqs_codec),
        part("skips", skips_bytes, lists.block_postings, ""),
        part("inline", lists.inline_bytes, inline_postings, docs_codec),
        part("positions", file(FileKind::Positions), stats.postings, freqs_codec),
        part("norms", file(FileKind::Norms), stats.postings, ""),
    ]
}

/// Compression ratio: bytes of uncompressed document numbers and frequencies, divided by the bytes of
/// document numbers, frequencies and skip data in the index.
pub fn ratio_against_raw(manifest: &Manifest, field: usize) -> f64 {
    let kinds = [FileKind::Postings, FileKind::Skips];
    let packed: u64 = kinds.iter().map(|&kind| kind_bytes(manifest, field, kind)).sum();
    (field_stats(manifest, field).postings * RAW_POSTING_BYTES) as f64 / packed.max(1) as f64
}
