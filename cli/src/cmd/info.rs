//! `tierdex info`: describes fields, segments and file sizes of an index.

use super::search::OutputFormat;
use crate::failure::{Outcome, output_error};
use crate::index_size::{field_stats, kind_bytes, ratio_against_raw, total_bytes};
use crate::{open, size};
use clap::Args;
use serde_json::{Value, json};
use std::io::{BufWriter, Write, stdout};
use std::path::PathBuf;
use tierdex::index::{Index, Manifest};
use tierdex::schema::{Field, Tokenizer};
use tierdex::segment::FileKind;

#[derive(Args)]
pub struct Arguments {
    /// Directory of the index
    pub dir: PathBuf,
    /// Output format
    #[arg(long, value_enum, default_value_t = OutputFormat::Table)]
    format: OutputFormat,
}

pub fn run(arguments: &Arguments) -> Outcome {
    let index = open::index(&arguments.dir)?;
    match arguments.format {
        OutputFormat::Json => writeln!(stdout(), "{}", as_json(index.manifest())).map_err(output_error),
        OutputFormat::Table => as_table(&index).map_err(output_error),
    }
}

/// Kinds of files of a field, with their codec.
fn kinds(field: &Field) -> impl Iterator<Item = (FileKind, &'static str)> {
    let (docs, freqs) = (field.doc_codec.name(), field.freq_codec.name());
    FileKind::OF_FIELD.into_iter().map(move |kind| match kind {
        FileKind::Docs => (kind, docs),
        FileKind::Freqs | FileKind::Positions => (kind, freqs),
        _ => (kind, ""),
    })
}

/// The steps of the analysis.
fn analysis(field: &Field) -> String {
    let analysis = &field.analysis;
    let mut steps = vec![analysis.tokenizer.name().to_string()];
    if analysis.tokenizer == Tokenizer::Alphanumeric {
        steps.push("lower case".to_string());
    }
    if analysis.fold_accents {
        steps.push("accents folded".to_string());
    }
    if !analysis.stop_words.is_empty() {
        steps.push(format!("{} stop words", analysis.stop_words.len()));
    }
    steps.extend(analysis.stemmer.map(|language| format!("{} stems", language.name())));
    steps.join(", ")
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
        let stats = field_stats(manifest, number);
        let average = stats.tokens as f64 / f64::from(stats.documents.max(1));
        writeln!(out, "\nfield {} (of {}; {})", field.name, field.source.name(), analysis(field))?;
        writeln!(
            out,
            "  {}, {}, {} in {}, {average:.3} per document",
            size::count(stats.terms, "term", "terms"),
            size::count(stats.postings, "posting", "postings"),
            size::count(stats.tokens, "token", "tokens"),
            size::count(u64::from(stats.documents), "document", "documents")
        )?;
        for (kind, codec) in kinds(field) {
            let bytes = kind_bytes(manifest, number, kind);
            if bytes > 0 {
                let bits = 8.0 * bytes as f64 / stats.postings.max(1) as f64;
                let line = format!(
                    "  {:<10}{:>12}  {bits:>7.3} bits per posting  {codec}",
                    kind.name(),
                    size::show(bytes)
                );
                writeln!(out, "{}", line.trim_end())?;
            }
        }
        let ratio = ratio_against_raw(manifest, number);
        writeln!(
            out,
            "  document numbers, frequencies and skip data are {ratio:.2} times smaller than uncompressed postings"
        )?;
    }
    writeln!(out, "\nids       {:>14}", size::show(kind_bytes(manifest, 0, FileKind::Ids)))?;
    writeln!(out, "stored    {:>14}", size::show(kind_bytes(manifest, 0, FileKind::Stored)))?;
    out.flush()
}

fn as_json(manifest: &Manifest) -> Value {
    let fields = manifest.schema.fields.iter().enumerate().map(|(number, field)| {
        let stats = field_stats(manifest, number);
        let files: serde_json::Map<String, Value> = kinds(field)
            .filter(|(kind, _)| kind_bytes(manifest, number, *kind) > 0)
            .map(|(kind, _)| (kind.name().to_string(), kind_bytes(manifest, number, kind).into()))
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
        "ids_bytes": kind_bytes(manifest, 0, FileKind::Ids),
        "stored_bytes": kind_bytes(manifest, 0, FileKind::Stored),
        "fields": fields.collect::<Vec<_>>(),
    })
}
