//! `tierdex explain`: how a query is answered, list by list.

use super::search::{Asked, Format, shortest};
use crate::failure::{Outcome, output};
use crate::messages::printable;
use crate::size::{count, group, show};
use clap::Args;
use serde_json::{Value, json};
use std::io::{BufWriter, Write, stdout};
use tierdex::index::{Explanation, ListUse, SegmentExplanation, Strategy};

#[derive(Args)]
#[command(after_help = "\
The query is answered as `tierdex search` answers it, on one thread. For each segment: the strategy, the documents that
match (or were evaluated), and the score that a hit had to reach before and after it (threshold). For each list that was
opened:
  documents  documents of the segment that hold the term
  weight     inverse document frequency * (k1 + 1) * boost: no score of the term is higher
  max score  upper bound of the scores, by the maximum scores of blocks; - where no score was asked for
  blocks     blocks of up to 256 postings; blocks = decoded + by bound + by range
  decoded    blocks whose documents or frequencies were decoded, each counted once, and their share of the list
  docs freqs of these, the blocks whose documents, and whose frequencies, were decoded
  by bound   blocks that were skipped because their maximum score, or that of a window of documents which they overlap,
             cannot reach a hit
  by range   blocks of which no document was asked for
  looked up  candidates that other clauses proposed and that were looked up in the list, and how many of them were kept
  bytes      of the skip record, of documents and of frequencies; `used`: of the documents and frequencies decoded. A
             list shorter than a block is stored in its skip record
With --io, for each file the reads and bytes that were made. Blocks are read one by one, so that a page may be read more
than once; what is in memory already, as lengths are after the first query, is not read.
")]
pub struct Arguments {
    #[command(flatten)]
    pub asked: Asked,
    /// Show what was read from each file
    #[arg(long)]
    io: bool,
    /// Form of the output
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
}

pub fn run(arguments: &Arguments) -> Outcome {
    let options = arguments.asked.options()?;
    let (index, query) = arguments.asked.open()?;
    let explanation = index.searcher().explain(&query, &options)?;
    match arguments.format {
        Format::Json => write_json(&explanation, arguments.io).map_err(output),
        Format::Table => as_text(&explanation, options.is_exact(explanation.found.hits.len()), arguments.io)
            .map_err(output),
    }
}

fn name(strategy: Strategy) -> &'static str {
    match strategy {
        Strategy::Nothing => "nothing can match",
        Strategy::Dictionary => "counted by the dictionary",
        Strategy::ImpactOrdered => "impact order",
        Strategy::Conjunction => "conjunction",
        Strategy::MaxScore => "MaxScore over windows",
        Strategy::SmallMerge => "small lists merged",
        Strategy::Windows => "every window",
        Strategy::Count => "counted",
    }
}

fn as_text(explanation: &Explanation, counted: bool, io: bool) -> std::io::Result<()> {
    let mut out = BufWriter::new(stdout().lock());
    for segment in &explanation.segments {
        let least = |score: Option<f32>| score.map_or("-".to_string(), |score| format!("{score:.4}"));
        let (before, after) = (least(segment.least_before), least(segment.least_after));
        let met = if counted { "matching" } else { "evaluated" };
        writeln!(
            out,
            "segment {}: {}; {}, {} {met}, threshold {before} then {after}",
            segment.id,
            name(segment.evaluation.strategy),
            count(u64::from(segment.documents), "document", "documents"),
            group(segment.matches)
        )?;
        for (depth, node) in &segment.evaluation.nodes {
            writeln!(out, "  {:1$}{2}", "", 2 * depth, printable(node))?;
        }
        if !segment.evaluation.lists.is_empty() {
            let rows: Vec<_> = segment.evaluation.lists.iter().map(list_row).collect();
            table(&mut out, &LIST_HEAD, &rows)?;
        }
        if io {
            table(&mut out, &FILE_HEAD, &file_rows(segment))?;
        }
    }
    let (hits, total) = (explanation.found.hits.len() as u64, explanation.found.total);
    let least = if counted { "" } else { "at least " };
    let threshold =
        explanation.threshold.map_or(String::new(), |score| format!(", the last scores {score:.4}"));
    writeln!(out, "{} of {least}{}{threshold}", count(hits, "hit", "hits"), group(total))?;
    out.flush()
}

const LIST_HEAD: [&str; 16] = [
    "list",
    "documents",
    "weight",
    "max score",
    "blocks",
    "decoded",
    "share",
    "docs",
    "freqs",
    "by bound",
    "by range",
    "looked up",
    "kept",
    "skips",
    "docs+freqs",
    "used",
];

fn list_row(list: &ListUse) -> Vec<String> {
    let of = &list.blocks;
    vec![
        printable(&format!("{}:{}", list.field, list.term)).to_string(),
        group(u64::from(list.documents)),
        format!("{:.4}", list.weight),
        list.highest_bound.map_or("-".to_string(), |bound| format!("{bound:.4}")),
        group(of.blocks),
        group(of.decoded),
        format!("{:.1}%", 100.0 * of.decoded as f64 / of.blocks.max(1) as f64),
        group(of.documents),
        group(of.frequencies),
        group(of.by_bound),
        group(of.by_range),
        group(list.candidates),
        group(list.kept),
        show(list.skips_bytes),
        format!("{}+{}", show(of.docs_bytes), show(of.freqs_bytes)),
        format!("{}+{}", show(of.docs_decoded), show(of.freqs_decoded)),
    ]
}

const FILE_HEAD: [&str; 3] = ["file", "reads", "bytes"];

/// A row for each file that was read, and one for all together.
fn file_rows(segment: &SegmentExplanation) -> Vec<Vec<String>> {
    let row = |name: &str, reads: u64, bytes: u64| vec![name.to_string(), group(reads), show(bytes)];
    let mut rows: Vec<_> = segment.files.iter().map(|used| row(&used.file, used.reads, used.bytes)).collect();
    let reads = segment.files.iter().map(|used| used.reads).sum();
    rows.push(row("all", reads, segment.files.iter().map(|used| used.bytes).sum()));
    rows
}

/// Columns as wide as they must be; the first one stands to the left.
fn table(out: &mut impl Write, head: &[&str], rows: &[Vec<String>]) -> std::io::Result<()> {
    let head: Vec<String> = head.iter().map(ToString::to_string).collect();
    let all = || std::iter::once(&head).chain(rows);
    let width = |column: usize| all().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    for row in all() {
        write!(out, "  {:<1$}", row[0], widths[0])?;
        for (cell, width) in row.iter().zip(&widths).skip(1) {
            write!(out, "  {cell:>width$}")?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// Writes one object, the hits last and one by one: there may be many.
fn write_json(explanation: &Explanation, io: bool) -> std::io::Result<()> {
    let mut out = BufWriter::new(stdout().lock());
    let segments: Vec<Value> = explanation.segments.iter().map(|segment| segment_json(segment, io)).collect();
    let (total, threshold) = (explanation.found.total, json!(explanation.threshold.map(shortest)));
    write!(
        out,
        "{{\"total\":{total},\"threshold\":{threshold},\"segments\":{},\"hits\":[",
        Value::from(segments)
    )?;
    let mut separator = "";
    for hit in &explanation.found.hits {
        write!(out, "{separator}{}", json!({ "document": hit.document, "score": shortest(hit.score) }))?;
        separator = ",";
    }
    writeln!(out, "]}}")?;
    out.flush()
}

fn segment_json(segment: &SegmentExplanation, io: bool) -> Value {
    let nodes = segment.evaluation.nodes.iter();
    let mut value = json!({
        "segment": segment.id,
        "strategy": name(segment.evaluation.strategy),
        "documents": segment.documents,
        "matches": segment.matches,
        "threshold_before": segment.least_before.map(shortest),
        "threshold_after": segment.least_after.map(shortest),
        "nodes": nodes.map(|(depth, what)| json!({ "depth": depth, "what": what })).collect::<Vec<_>>(),
        "lists": segment.evaluation.lists.iter().map(list_json).collect::<Vec<_>>(),
    });
    if io {
        let used = segment.files.iter();
        value["used"] = used.map(|f| json!({ "file": f.file, "reads": f.reads, "bytes": f.bytes })).collect();
    }
    value
}

fn list_json(list: &ListUse) -> Value {
    let of = &list.blocks;
    json!({
        "field": list.field,
        "term": list.term,
        "documents": list.documents,
        "weight": shortest(list.weight as f32),
        "max_score": list.highest_bound.map(shortest),
        "blocks": of.blocks,
        "decoded": of.decoded,
        "decoded_docs": of.documents,
        "decoded_freqs": of.frequencies,
        "by_bound": of.by_bound,
        "by_range": of.by_range,
        "looked_up": list.candidates,
        "kept": list.kept,
        "skips_bytes": list.skips_bytes,
        "docs_bytes": of.docs_bytes,
        "freqs_bytes": of.freqs_bytes,
        "docs_bytes_decoded": of.docs_decoded,
        "freqs_bytes_decoded": of.freqs_decoded,
    })
}
