//! Bytes of the parts of an index, from its manifest.

use crate::{Error, Result, request::experiment::ExperimentRequest};
use serde::Deserialize;
use serde_json::{Value, json};
use std::path::PathBuf;
use tierdex::{StopSignal, commit::FileKind, commit::Manifest, io::PosixDisk};

/// Bytes of an uncompressed document number, which are also those of a frequency.
const RAW_VALUE_BYTES: u64 = 4;

/// An index.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct SizesRequest {
    /// Directory of the index.
    pub(crate) index: PathBuf,
    /// Whether uncompressed lists have no frequencies.
    #[serde(default)]
    pub(crate) ids_only: bool,
}

impl ExperimentRequest for SizesRequest {
    /// One row. Posting lists of fewer than 256 documents are `short_bytes`: documents and frequencies
    /// together, in the file of skip data.
    fn answer(&self, _: &StopSignal) -> Result<Value> {
        let manifest = Manifest::read_newest(&PosixDisk::open(&self.index)?)?;
        let missing = || Error::Failed(format!("{} has no index", self.index.display()));
        let manifest = manifest.ok_or_else(missing)?;
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
        let raw = RAW_VALUE_BYTES * if self.ids_only { 1 } else { 2 };
        let percent = 100.0 * lists as f64 / (raw * postings) as f64;
        Ok(json!({ "rows": [{
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
        }] }))
    }
}
