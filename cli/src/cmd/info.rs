//! `tierdex info`: what an index holds, and how large each part is.

use super::search::Format;
use crate::failure::{Outcome, output};
use crate::{open, size};
use clap::Args;
use serde_json::{Value, json};
use std::io::{BufWriter, Write, stdout};
use std::path::PathBuf;
use tierdex::index::{Index, Manifest};
use tierdex::schema::{Field, Tokenizer};
use tierdex::segment::{FieldStats, FileKind};

#[derive(Args)]
pub struct Arguments {
    /// Directory of the index
    pub dir: PathBuf,
    /// Form of the output
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
}

/// Bytes that ids and frequencies take uncompressed: four each.
const RAW_POSTING: u64 = 8;

pub fn run(arguments: &Arguments) -> Outcome {
    let index = open::index(&arguments.dir)?;
    match arguments.format {
        Format::Json => writeln!(stdout(), "{}", as_json(index.manifest())).map_err(output),
        Format::Table => as_table(&index).map_err(output),
    }
}

/// Statistics of a field over all segments.
fn stats(manifest: &Manifest, field: usize) -> FieldStats {
    let of = manifest.segments.iter().map(|segment| segment.fields[field]);
    of.fold(FieldStats::default(), |sum, next| FieldStats {
        documents: sum.documents + next.documents,
        terms: sum.terms + next.terms,
        postings: sum.postings + next.postings,
        tokens: sum.tokens + next.tokens,
    })
}

/// Bytes of the files of a kind, of one field where there is one a field.
fn bytes(manifest: &Manifest, field: usize, kind: FileKind) -> u64 {
    manifest.segments.iter().filter_map(|segment| segment.file(field, kind)).map(|file| file.seal.len).sum()
}

/// Bytes of all segments' files.
pub fn total_bytes(manifest: &Manifest) -> u64 {
    manifest.segments.iter().flat_map(|segment| &segment.files).map(|file| file.seal.len).sum()
}

/// How many times ids, frequencies and skip data are smaller than raw ids and frequencies.
pub fn ratio_against_raw(manifest: &Manifest, field: usize) -> f64 {
    let kinds = [FileKind::Docs, FileKind::Freqs, FileKind::Skips];
    let packed: u64 = kinds.iter().map(|&kind| bytes(manifest, field, kind)).sum();
    (stats(manifest, field).postings * RAW_POSTING) as f64 / packed.max(1) as f64
}

fn kinds(field: &Field) -> impl Iterator<Item = (FileKind, &'static str)> {
    let (docs, freqs) = (field.doc_codec.name(), field.freq_codec.name());
    FileKind::OF_FIELD.into_iter().map(move |kind| match kind {
        FileKind::Docs => (kind, docs),
        FileKind::Freqs | FileKind::Positions => (kind, freqs),
        _ => (kind, ""),
    })
}

fn analysis(field: &Field) -> String {
    let of = &field.analysis;
    let mut chain = vec![of.tokenizer.name().to_string()];
    if of.tokenizer == Tokenizer::Alphanumeric {
        chain.push("lower case".to_string());
    }
    if of.fold_accents {
        chain.push("accents folded".to_string());
    }
    if !of.stop_words.is_empty() {
        chain.push(format!("{} stop words", of.stop_words.len()));
    }
    chain.extend(of.stemmer.map(|language| format!("{} stems", language.name())));
    chain.join(", ")
}

fn as_table(index: &Index) -> std::io::Result<()> {
    let manifest = index.manifest();
    let mut out = BufWriter::new(stdout().lock());
    writeln!(
        out,
        "commit {}: {} in {}, {}",
        manifest.generation,
        size::count(manifest.documents(), "document", "documents"),
        size::count(manifest.segments.len() as u64, "segment", "segments"),
        size::show(total_bytes(manifest))
    )?;
    for (number, field) in manifest.schema.fields.iter().enumerate() {
        let stats = stats(manifest, number);
        let average = stats.tokens as f64 / f64::from(stats.documents.max(1));
        writeln!(out, "\nfield {} (of {}; {})", field.name, field.source.name(), analysis(field))?;
        writeln!(
            out,
            "  {}, {}, {} in {}, {average:.3} each",
            size::count(stats.terms, "term", "terms"),
            size::count(stats.postings, "posting", "postings"),
            size::count(stats.tokens, "token", "tokens"),
            size::count(u64::from(stats.documents), "document", "documents")
        )?;
        for (kind, codec) in kinds(field) {
            let bytes = bytes(manifest, number, kind);
            if bytes > 0 {
                let bits = 8.0 * bytes as f64 / stats.postings.max(1) as f64;
                let line = format!(
                    "  {:<10}{:>12}  {bits:>7.3} bits a posting  {codec}",
                    kind.name(),
                    size::show(bytes)
                );
                writeln!(out, "{}", line.trim_end())?;
            }
        }
        let ratio = ratio_against_raw(manifest, number);
        writeln!(
            out,
            "  raw ids and frequencies would be {ratio:.2} times as large as ids, frequencies and skips"
        )?;
    }
    writeln!(out, "\nids       {:>14}", size::show(bytes(manifest, 0, FileKind::Ids)))?;
    writeln!(out, "stored    {:>14}", size::show(bytes(manifest, 0, FileKind::Stored)))?;
    out.flush()
}

fn as_json(manifest: &Manifest) -> Value {
    let fields = manifest.schema.fields.iter().enumerate().map(|(number, field)| {
        let stats = stats(manifest, number);
        let files: serde_json::Map<String, Value> = kinds(field)
            .filter(|(kind, _)| bytes(manifest, number, *kind) > 0)
            .map(|(kind, _)| (kind.name().to_string(), bytes(manifest, number, kind).into()))
            .collect();
        json!({
            "name": field.name,
            "analysis": analysis(field),
            "positions": field.positions,
            "norms": field.norms.name(),
            "doc_codec": field.doc_codec.name(),
            "freq_codec": field.freq_codec.name(),
            "documents": stats.documents,
            "terms": stats.terms,
            "postings": stats.postings,
            "tokens": stats.tokens,
            "bytes": files,
            "ratio_against_raw": ratio_against_raw(manifest, number),
        })
    });
    json!({
        "generation": manifest.generation,
        "documents": manifest.documents(),
        "segments": manifest.segments.len(),
        "bytes": total_bytes(manifest),
        "ids_bytes": bytes(manifest, 0, FileKind::Ids),
        "stored_bytes": bytes(manifest, 0, FileKind::Stored),
        "fields": fields.collect::<Vec<_>>(),
    })
}
