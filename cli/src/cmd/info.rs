//! `tierdex info`: describes fields, columns, segments and file sizes of an index.

use super::search::OutputFormat;
use crate::failure::{Outcome, output_error};
use crate::index_size::{
    PartSize, deletes_bytes, field_stats, input_files_bytes, kind_bytes, part_sizes, ratio_against_raw,
    total_bytes,
};
use crate::{open, size};
use clap::Args;
use serde_json::{Value, json};
use std::io::{BufWriter, Write, stdout};
use std::path::PathBuf;
use tierdex::Index;
use tierdex::commit::{ColumnSizes, FORMAT_VERSION, FileKind, Manifest};
use tierdex::schema::{Field, Tokenizer};

#[derive(Args)]
pub struct InfoCommandArguments {
    /// Directory of the index
    pub dir: PathBuf,
    /// Output format
    #[arg(long, value_enum, default_value_t = OutputFormat::Table)]
    format: OutputFormat,
}

pub fn run_info(arguments: &InfoCommandArguments) -> Outcome {
    let index = open::index(&arguments.dir)?;
    match arguments.format {
        OutputFormat::Json => writeln!(stdout(), "{}", as_json(&index)).map_err(output_error),
        OutputFormat::Table => write_table(&index).map_err(output_error),
    }
}

/// The steps of the text analysis of a field, such as tokenizer and stemmer, as text.
fn analysis_steps(field: &Field) -> String {
    let analysis = &field.analysis;
    let mut steps = vec![analysis.tokenizer.name().to_string()];
    if analysis.tokenizer != Tokenizer::Whitespace {
        steps.push("lower case".to_string());
    }
    if analysis.tokenizer == Tokenizer::Unicode {
        steps.push("NFC".to_string());
    }
    if analysis.fold_accents {
        steps.push("accents folded".to_string());
    }
    if !analysis.stop_words.is_empty() {
        steps.push(format!("{} stop words", analysis.stop_words.len()));
    }
    steps.extend(analysis.stemmer.map(|language| format!("{} stems", language.name())));
    let rules = field.synonyms.rules().len() as u64;
    if rules > 0 {
        steps.push(format!("{} for synonyms", size::show_count(rules, "rule", "rules")));
    }
    steps.join(", ")
}

fn write_table(index: &Index) -> std::io::Result<()> {
    let manifest = index.manifest();
    let mut out = BufWriter::new(stdout().lock());
    writeln!(
        out,
        "commit {}: {} in {}, {}",
        manifest.generation,
        size::show_count(manifest.live_documents(), "document", "documents"),
        size::show_count(manifest.segments.len() as u64, "segment", "segments"),
        size::show_bytes(total_bytes(manifest))
    )?;
    if manifest.version < FORMAT_VERSION && !manifest.segments.is_empty() {
        writeln!(
            out,
            "format version {}; the next commit writes all segments again, in version {FORMAT_VERSION}",
            manifest.version
        )?;
    }
    write_deletes(&mut out, index)?;
    for (number, field) in manifest.schema.fields.iter().enumerate() {
        let stats = field_stats(manifest, number);
        let average = stats.tokens as f64 / f64::from(stats.documents.max(1));
        writeln!(
            out,
            "\nfield {} (of {}; {})",
            field.name,
            field.members.join(" and "),
            analysis_steps(field)
        )?;
        writeln!(
            out,
            "  {}, {}, {} in {}, {average:.3} per document",
            size::show_count(stats.terms, "term", "terms"),
            size::show_count(stats.postings, "posting", "postings"),
            size::show_count(stats.tokens, "token", "tokens"),
            size::show_count(u64::from(stats.documents), "document", "documents")
        )?;
        for PartSize { name, bytes, postings, codec } in part_sizes(manifest, number) {
            if bytes > 0 {
                let bits = 8.0 * bytes as f64 / postings.max(1) as f64;
                let line = format!(
                    "  {name:<10}{:>12}  {bits:>7.3} bits per posting  {codec}",
                    size::show_bytes(bytes)
                );
                writeln!(out, "{}", line.trim_end())?;
            }
        }
        writeln!(
            out,
            "  docs, freqs and skips: lists of at least 256 documents, {:.1}% of all postings",
            100.0 * stats.lists.block_postings as f64 / stats.postings.max(1) as f64
        )?;
        let ratio = ratio_against_raw(manifest, number);
        writeln!(
            out,
            "  document numbers, frequencies and skip data are {ratio:.2} times smaller than uncompressed postings"
        )?;
    }
    write_columns(&mut out, index)?;
    writeln!(out)?;
    write_parts(&mut out, manifest)?;
    out.flush()
}

/// Writes the columns with their sizes.
fn write_columns(out: &mut dyn Write, index: &Index) -> std::io::Result<()> {
    for (number, column) in index.schema().columns.iter().enumerate() {
        let multi = if column.multi { ", multi-valued" } else { "" };
        writeln!(out, "\ncolumn {} (of {}; {}{multi})", column.name, column.member, column.values.name())?;
        let sizes = index.column_sizes(number);
        let values = size::show_count(sizes.values, "value", "values");
        let documents = size::show_count(sizes.documents, "document", "documents");
        writeln!(out, "  {values} in {documents}")?;
        if sizes.values > 0 {
            let (bytes, bits) = (size::show_bytes(sizes.bytes), bits_per_value(sizes));
            writeln!(out, "  {:<10}{bytes:>12}  {bits:>7.3} bits per value", FileKind::Column.name())?;
        }
    }
    Ok(())
}

/// Bits of the files of a column, per value.
fn bits_per_value(sizes: ColumnSizes) -> f64 {
    8.0 * sizes.bytes as f64 / sizes.values.max(1) as f64
}

/// The columns with their sizes.
fn columns_as_json(index: &Index) -> Value {
    let columns = index.schema().columns.iter().enumerate().map(|(number, column)| {
        let sizes = index.column_sizes(number);
        json!({
            "name": column.name,
            "member": column.member,
            "type": column.values.name(),
            "multi": column.multi,
            "documents": sizes.documents,
            "values": sizes.values,
            "bytes": sizes.bytes,
            "bits_per_value": bits_per_value(sizes),
        })
    });
    columns.collect()
}

/// Writes the sizes of the files that all fields share.
fn write_parts(out: &mut dyn Write, manifest: &Manifest) -> std::io::Result<()> {
    let parts = [
        ("ids", kind_bytes(manifest, 0, FileKind::Ids)),
        ("stored", kind_bytes(manifest, 0, FileKind::Stored)),
    ];
    let added = [
        ("keys", kind_bytes(manifest, 0, FileKind::Keys)),
        ("deletes", deletes_bytes(manifest)),
        ("input-files", input_files_bytes(manifest)),
    ];
    for (name, bytes) in parts.into_iter().chain(added.into_iter().filter(|(_, bytes)| *bytes > 0)) {
        writeln!(out, "{name:<12}{:>12}", size::show_bytes(bytes))?;
    }
    Ok(())
}

/// Writes whether the index is updatable, and its deleted documents.
fn write_deletes(out: &mut dyn Write, index: &Index) -> std::io::Result<()> {
    if index.is_updatable() {
        writeln!(out, "updatable: a document replaces the one that has its id")?;
    }
    let manifest = index.manifest();
    let deleted = manifest.documents() - manifest.live_documents();
    if deleted == 0 {
        return Ok(());
    }
    let in_segments = manifest.segments.iter().zip(1..).filter_map(|(segment, number)| {
        let deleted = u64::from(segment.deletes.as_ref()?.documents);
        let all = size::show_number(segment.documents.into());
        Some(format!("{} of {all} in segment {number}", size::show_number(deleted)))
    });
    let in_segments = in_segments.collect::<Vec<_>>().join(", ");
    let documents = |number| size::show_count(number, "deleted document", "deleted documents");
    writeln!(out, "{}, which the figures of fields and columns count: {in_segments}", documents(deleted))?;
    match index.inexact_deletes() {
        0 => Ok(()),
        inexact => writeln!(
            out,
            "scores are approximate: {} without stored text, or analysed by another version",
            documents(inexact)
        ),
    }
}

fn as_json(index: &Index) -> Value {
    let manifest = index.manifest();
    let fields = manifest.schema.fields.iter().enumerate().map(|(number, field)| {
        let stats = field_stats(manifest, number);
        let parts: serde_json::Map<String, Value> = part_sizes(manifest, number)
            .into_iter()
            .filter(|part| part.bytes > 0)
            .map(|part| (part.name.to_string(), part.bytes.into()))
            .collect();
        json!({
            "name": field.name,
            "members": field.members,
            "analysis": analysis_steps(field),
            "positions": field.positions,
            "norms": field.norms.name(),
            "doc_codec": field.doc_codec.name(),
            "freq_codec": field.freq_codec.name(),
            "documents": stats.documents,
            "terms": stats.terms,
            "postings": stats.postings,
            "tokens": stats.tokens,
            "block_postings": stats.lists.block_postings,
            "bytes": parts,
            "ratio_against_raw": ratio_against_raw(manifest, number),
        })
    });
    let segments = manifest.segments.iter().map(|segment| {
        let live = segment.live_documents();
        json!({ "documents": live, "deleted_documents": segment.documents - live })
    });
    json!({
        "generation": manifest.generation,
        "format_version": manifest.version,
        "members": manifest.schema.members,
        "title": manifest.schema.title,
        "stored": manifest.schema.stored.name(),
        "updatable": index.is_updatable(),
        "documents": manifest.live_documents(),
        "deleted_documents": manifest.documents() - manifest.live_documents(),
        "scores_exact": index.inexact_deletes() == 0,
        "segments": manifest.segments.len(),
        "documents_by_segment": segments.collect::<Vec<_>>(),
        "bytes": total_bytes(manifest),
        "ids_bytes": kind_bytes(manifest, 0, FileKind::Ids),
        "stored_bytes": kind_bytes(manifest, 0, FileKind::Stored),
        "keys_bytes": kind_bytes(manifest, 0, FileKind::Keys),
        "deletes_bytes": deletes_bytes(manifest),
        "input_files_bytes": input_files_bytes(manifest),
        "fields": fields.collect::<Vec<_>>(),
        "columns": columns_as_json(index),
    })
}
