//! `tierdex explain`: answers a query and prints the evaluation log, for each segment and posting list.

use super::hits::shortest_decimal;
use super::search::{OutputFormat, QueryArguments};
use crate::failure::{Outcome, output_error};
use crate::size::{show_bytes, show_count, show_number};
use crate::{memory_flags::one_query_options, messages::make_printable, read_costs};
use clap::Args;
use serde::Serialize;
use serde_json::{Value, json};
use std::io::{BufWriter, Write, stdout};
use tierdex::explain::{Explanation, ListUse, SegmentExplanation};
use tierdex::{Engine, ReadCosts, SearchRequest};
use tierdex_server::ExplainedSegment;

#[derive(Args)]
#[command(after_help = "\
The query is evaluated as by `tierdex search`, on one thread. For each segment
the output has the strategy, the number of matching documents (without
--count: of evaluated documents), and the top-k threshold before and after the
segment: the score that a document must reach to become a hit. For each
posting list it has:
  documents  document frequency in the segment
  weight     inverse document frequency * (k1 + 1) * boost: upper bound of the
             score of any term frequency
  max score  upper bound of the scores in the list, from block max scores; -
             if no scores were needed
  blocks     blocks of up to 256 postings; blocks = decoded + by bound + by
             range
  decoded    blocks of which document numbers or frequencies were decoded;
             share: as a percentage of blocks
  docs       decoded blocks of document numbers
  freqs      decoded blocks of frequencies
  by bound   blocks skipped because their max score, or that of a window of
             documents that they overlap, cannot reach the threshold
  by range   blocks skipped because no candidate lies in their range of
             documents
  looked up  candidates from other clauses that were looked up in the list
  kept       of these, the candidates that were kept: found in the list; for
             an exclusion, not found; for an optional clause, all
  skips      bytes of skip data; for a list shorter than a block, of the whole
             list
  docs+freqs bytes of document numbers and of frequencies
  used       bytes of these in decoded blocks
With --io, a second table has the reads of each file, and their bytes in whole
pages. Blocks are read one by one, so a page may be read more than once; data
that is in memory, such as norms after the first query, is not read. A third
table has the reads by which an engine with an empty cache reads the blocks
that were used: pages of 4 KiB that are needed, pages that are read with those
between them, reads, and their time by the costs of reads (--read-costs).
")]
pub struct ExplainCommandArguments {
    #[command(flatten)]
    pub query: QueryArguments,
    /// Print the reads and bytes of each file
    #[arg(long)]
    io: bool,
    /// What reads of the device cost, in nanoseconds for 1, 4, 16 and 64 pages of 4 KiB [default: as `tierdex
    /// batch` has measured it in the last day, else that of a fast cloud disk]
    #[arg(long, value_name = "NS,NS,NS,NS", requires = "io")]
    read_costs: Option<ReadCosts>,
    /// Output format
    #[arg(long, value_enum, default_value_t = OutputFormat::Table)]
    format: OutputFormat,
}

pub fn run_explain(arguments: &ExplainCommandArguments) -> Outcome {
    let options = arguments.query.options()?;
    let (index, query) = arguments.query.open_index()?;
    let engine = Engine::new(&index, &one_query_options(options.k))?;
    let explanation = engine.snapshot().explain(&SearchRequest::new(query).options(options))?;
    let counted = options.is_exact(explanation.result.hits.len());
    let costs =
        arguments.read_costs.or_else(|| read_costs::stored(&arguments.query.dirs()[0])).unwrap_or_default();
    let io = arguments.io.then_some(costs);
    match arguments.format {
        OutputFormat::Json => write_json(&explanation, counted, io).map_err(output_error),
        OutputFormat::Table => write_table(&explanation, counted, io).map_err(output_error),
    }
}

fn write_table(explanation: &Explanation, counted: bool, io: Option<ReadCosts>) -> std::io::Result<()> {
    let mut out = BufWriter::new(stdout().lock());
    for segment in &explanation.segments {
        let show_score = |score: Option<f32>| score.map_or("-".to_string(), |score| format!("{score:.4}"));
        let (before, after) = (show_score(segment.threshold_before), show_score(segment.threshold_after));
        let counter = if counted { "matching" } else { "evaluated" };
        writeln!(
            out,
            "segment {}: {}; {}, {} {counter}, threshold {before} before, {after} after",
            segment.id,
            segment.evaluation.strategy.name(),
            show_count(u64::from(segment.documents), "document", "documents"),
            show_number(segment.matches)
        )?;
        for (depth, node) in &segment.evaluation.nodes {
            writeln!(out, "  {:1$}{2}", "", 2 * depth, make_printable(node))?;
        }
        if !segment.evaluation.lists.is_empty() {
            let rows: Vec<_> = segment.evaluation.lists.iter().map(list_row).collect();
            write_columns(&mut out, &LIST_COLUMN_NAMES, &rows)?;
        }
        if let Some(costs) = io {
            write_columns(&mut out, &FILE_COLUMN_NAMES, &file_rows(segment))?;
            let lists = segment.evaluation.lists.iter().filter(|list| !list.pages.is_empty());
            let rows: Vec<_> = lists.map(|list| planned_row(list, costs)).collect();
            if !rows.is_empty() {
                writeln!(out, "  planned, if reads cost {costs} ns:")?;
                write_columns(&mut out, &PLANNED_COLUMN_NAMES, &rows)?;
            }
        }
    }
    let (hits, total) = (explanation.result.hits.len() as u64, explanation.result.total);
    let relation = if counted { "" } else { "at least " };
    let threshold =
        explanation.threshold.map_or(String::new(), |score| format!(", score of the last {score:.4}"));
    writeln!(out, "{} of {relation}{}{threshold}", show_count(hits, "hit", "hits"), show_number(total))?;
    out.flush()
}

const LIST_COLUMN_NAMES: [&str; 16] = [
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
    let blocks = &list.blocks;
    vec![
        list_name(list),
        show_number(u64::from(list.documents)),
        format!("{:.4}", list.weight),
        list.highest_bound.map_or("-".to_string(), |bound| format!("{bound:.4}")),
        show_number(blocks.blocks),
        show_number(blocks.decoded),
        format!("{:.1}%", 100.0 * blocks.decoded as f64 / blocks.blocks.max(1) as f64),
        show_number(blocks.documents),
        show_number(blocks.frequencies),
        show_number(blocks.by_bound),
        show_number(blocks.by_range),
        show_number(list.candidates),
        show_number(list.kept),
        show_bytes(list.skips_bytes),
        format!("{}+{}", show_bytes(blocks.docs_bytes), show_bytes(blocks.freqs_bytes)),
        format!("{}+{}", show_bytes(blocks.docs_decoded), show_bytes(blocks.freqs_decoded)),
    ]
}

const FILE_COLUMN_NAMES: [&str; 3] = ["file", "reads", "bytes"];

/// A row for each file that was read, and a row of totals.
fn file_rows(segment: &SegmentExplanation) -> Vec<Vec<String>> {
    let row =
        |name: &str, reads: u64, bytes: u64| vec![name.to_string(), show_number(reads), show_bytes(bytes)];
    let mut rows: Vec<_> = segment.files.iter().map(|used| row(&used.file, used.reads, used.bytes)).collect();
    let reads = segment.files.iter().map(|used| used.reads).sum();
    rows.push(row("total", reads, segment.files.iter().map(|used| used.bytes).sum()));
    rows
}

const PLANNED_COLUMN_NAMES: [&str; 5] = ["list", "pages needed", "pages read", "reads", "time"];

fn planned_row(list: &ListUse, costs: ReadCosts) -> Vec<String> {
    let planned = costs.plan(list.pages.iter().cloned());
    vec![
        list_name(list),
        show_number(needed_pages(list)),
        show_number(planned.pages()),
        show_number(planned.reads()),
        format!("{:.3} ms", planned.cost() as f64 / 1e6),
    ]
}

fn needed_pages(list: &ListUse) -> u64 {
    list.pages.iter().map(|pages| pages.end - pages.start).sum()
}

fn list_name(list: &ListUse) -> String {
    make_printable(&format!("{}:{}", list.field, list.term)).to_string()
}

/// Writes a table. The first column is aligned left, the others right.
fn write_columns(out: &mut impl Write, header: &[&str], rows: &[Vec<String>]) -> std::io::Result<()> {
    let header: Vec<String> = header.iter().map(ToString::to_string).collect();
    let all = || std::iter::once(&header).chain(rows);
    let width = |column: usize| all().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..header.len()).map(width).collect();
    for row in all() {
        write!(out, "  {:<1$}", row[0], widths[0])?;
        for (cell, width) in row.iter().zip(&widths).skip(1) {
            write!(out, "  {cell:>width$}")?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// A segment as JSON, with its reads if they were requested.
#[derive(Serialize)]
struct SegmentJson {
    #[serde(flatten)]
    segment: ExplainedSegment,
    #[serde(flatten)]
    reads: Option<SegmentReads>,
}

/// Reads that were made, and those that an engine would make.
#[derive(Serialize)]
struct SegmentReads {
    used: Value,
    read_costs: String,
    planned: Value,
}

/// Writes one JSON object. The hits are its last member and are written one by one, so that memory does not
/// grow with their number.
fn write_json(explanation: &Explanation, counted: bool, io: Option<ReadCosts>) -> std::io::Result<()> {
    let mut out = BufWriter::new(stdout().lock());
    let segments = explanation.segments.iter().map(|segment| SegmentJson {
        segment: segment.into(),
        reads: io.map(|costs| SegmentReads::new(segment, costs)),
    });
    let segments = serde_json::to_string(&segments.collect::<Vec<_>>())?;
    let (total, threshold) = (explanation.result.total, json!(explanation.threshold.map(shortest_decimal)));
    write!(
        out,
        "{{\"total\":{total},\"counted\":{counted},\"threshold\":{threshold},\"segments\":{segments},\"hits\":["
    )?;
    let mut separator = "";
    for hit in &explanation.result.hits {
        write!(
            out,
            "{separator}{}",
            json!({ "document": hit.document, "score": shortest_decimal(hit.score) })
        )?;
        separator = ",";
    }
    writeln!(out, "]}}")?;
    out.flush()
}

impl SegmentReads {
    fn new(segment: &SegmentExplanation, costs: ReadCosts) -> SegmentReads {
        let used = segment.files.iter();
        let planned = segment.evaluation.lists.iter().map(|list| {
            let planned = costs.plan(list.pages.iter().cloned());
            json!({
                "field": list.field,
                "term": list.term,
                "pages_needed": needed_pages(list),
                "pages_read": planned.pages(),
                "reads": planned.reads(),
                "nanoseconds": planned.cost(),
            })
        });
        SegmentReads {
            used: used.map(|f| json!({ "file": f.file, "reads": f.reads, "bytes": f.bytes })).collect(),
            read_costs: costs.to_string(),
            planned: planned.collect(),
        }
    }
}
