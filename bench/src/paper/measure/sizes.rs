//! Bytes of the parts of an index, from its manifest.

use crate::paper::{cell::Row, data::IndexSpec, measure::context::Context, measure::settings::members_of};
use crate::{Error, Result};
use serde_json::json;
use tierdex::{commit::FileKind, commit::Manifest, io::PosixDisk};

/// Bytes of an uncompressed document number, which are also those of a frequency.
const RAW_VALUE_BYTES: u64 = 4;

pub(super) fn measure(spec: &IndexSpec, context: &Context<'_>) -> Result<Vec<Row>> {
    Ok(vec![sizes_row(spec, context)?])
}

/// The sizes. Posting lists of fewer than 256 documents are `short_bytes`: documents and frequencies
/// together, in the file of skip data.
pub(super) fn sizes_row(spec: &IndexSpec, context: &Context<'_>) -> Result<Row> {
    let path = context.data.path(spec);
    let manifest = Manifest::read_newest(&PosixDisk::open(&path)?)?;
    let manifest = manifest.ok_or_else(|| Error::Failed(format!("{} has no index", path.display())))?;
    let file = |kind| {
        let files = manifest.segments.iter().filter_map(|segment| segment.file(0, kind));
        files.map(|file| file.seal.len).sum::<u64>()
    };
    let stats = || manifest.segments.iter().map(|segment| segment.fields[0]);
    let sum = |of: fn(tierdex::internal::segment::ListSizes) -> u64| {
        stats().map(|stats| of(stats.lists)).sum::<u64>()
    };
    let docs = sum(|lists| lists.docs_bytes);
    let freqs = sum(|lists| lists.freqs_bytes);
    let short = sum(|lists| lists.inline_bytes);
    let postings = stats().map(|stats| stats.postings).sum::<u64>();
    let block_postings = sum(|lists| lists.block_postings).max(1);
    let lists = docs + freqs + short;
    let bits = |bytes: u64| 8.0 * bytes as f64 / block_postings as f64;
    let raw = RAW_VALUE_BYTES * if spec.ids_only { 1 } else { 2 };
    let percent = 100.0 * lists as f64 / (raw * postings) as f64;
    Ok(members_of(json!({
        "docs_bytes": docs,
        "freqs_bytes": freqs,
        "short_bytes": short,
        "skips_bytes": file(FileKind::Skips) - short.min(file(FileKind::Skips)),
        "terms_bytes": file(FileKind::Terms),
        "index_bytes": lists,
        "index_percent": (percent * 100.0).round() / 100.0,
        "docs_bits": bits(docs),
        "freqs_bits": bits(freqs),
        "documents": manifest.documents(),
        "segments": manifest.segments.len(),
    })))
}
