//! `tierdex explain`: how a query is answered, list by list.

use super::search::{Asked, Format, shortest};
use crate::failure::{Outcome, output};
use crate::messages::printable;
use crate::size::{count, group, show};
use clap::Args;
use serde_json::{Value, json};
use std::io::{BufWriter, Write, stdout};
use tierdex::index::{Explanation, SegmentExplanation};
use tierdex::query::explain::{Cost, ListUse, Need};
use tierdex::query::prune::Way;

#[derive(Args)]
#[command(after_help = "\
The query is answered as `tierdex search` answers it, on one thread. For each segment: the way chosen, the documents that
match, and what a hit had to score before and after it (least). For each list that was opened:
  documents  documents of the segment that hold the term
  weight     inverse document frequency * (k1 + 1) * boost; no score of the term reaches it
  bound      what the term adds to a score at most, by the bounds of its blocks; - where nobody asks for bounds
  blocks     blocks of up to 256 postings; blocks = decoded + by bound + by range
  decoded    blocks whose documents or frequencies were decoded, each counted once, and their share of the list
  docs freqs of these, the blocks whose documents, and whose frequencies, were decoded
  by bound   blocks that were passed over because their bound, or that of a window of documents which they overlap, told
             that they cannot matter
  by range   blocks of which no document was asked for
  bytes      of the skip record, of documents and of frequencies; `used`: of the documents and frequencies decoded. A
             list shorter than a block stands in its skip record
Phrases, filters, minimums, prefixes, and words that must or must not be there beside alternatives run by operators,
which know no bounds.
With --io, for each file:
  first      what the plan asks for before any score is known: the page of the dictionary, the skip record, the lengths of
             documents, and of one term the first blocks in the order of their bounds
  at most    what it may ask for at all, by nothing but skip data: of one term the blocks whose bounds reach a hit so far, of
             required terms the blocks of the rarest that may hold a hit and those of the others that overlap them, else
             whole lists. Each is given as ranges, their bytes, and the reads that it takes to read them once: neighbouring
             pages of 4 KiB together, and a page of checksums for each 4 MiB of file
  used       reads and bytes that were made. Blocks are read one by one, so that a page may be read more than once; what is
             in memory already, as lengths are after the first query, is not read
")]
pub struct Arguments {
    #[command(flatten)]
    pub asked: Asked,
    /// Say what must be read from disk, before and after
    #[arg(long)]
    io: bool,
    /// Form of the output
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
}

pub fn run(arguments: &Arguments) -> Outcome {
    let options = arguments.asked.options(1)?;
    let (index, query) = arguments.asked.open()?;
    let explanation = index.searcher().explain(&query, &options)?;
    match arguments.format {
        Format::Json => write_json(&explanation, arguments.io).map_err(output),
        Format::Table => as_text(&explanation, options.count, arguments.io).map_err(output),
    }
}

fn name(way: Way) -> &'static str {
    match way {
        Way::Nothing => "nothing to look for",
        Way::Dictionary => "counted by the dictionary",
        Way::OneTerm => "one term by impact order",
        Way::All => "all by blocks",
        Way::Any => "any by MaxScore over windows",
        Way::Candidates => "candidates of the lists so far",
        Way::Few => "few merged",
        Way::CountAny => "any counted by windows",
        Way::CountFrequent => "all counted by windows",
        Way::Operators => "operators over all documents",
    }
}

fn as_text(explanation: &Explanation, counted: bool, io: bool) -> std::io::Result<()> {
    let mut out = BufWriter::new(stdout().lock());
    for segment in &explanation.segments {
        let least = |score: Option<f32>| score.map_or("-".to_string(), |score| format!("{score:.4}"));
        let (before, after) = (least(segment.least_before), least(segment.least_after));
        let met = if counted { "matching" } else { "met" };
        writeln!(
            out,
            "segment {}: {}; {}, {} {met}, least {before} then {after}",
            segment.id,
            name(segment.evaluation.way),
            count(u64::from(segment.documents), "document", "documents"),
            group(segment.matches)
        )?;
        for (depth, operator) in &segment.evaluation.operators {
            writeln!(out, "  {:1$}{2}", "", 2 * depth, printable(operator))?;
        }
        if !segment.evaluation.lists.is_empty() {
            let rows: Vec<_> = segment.evaluation.lists.iter().map(list_row).collect();
            table(&mut out, &LIST_HEAD, &rows)?;
        }
        if io {
            table(&mut out, &FILE_HEAD, &file_rows(segment))?;
            if segment.evaluation.walks {
                writeln!(
                    out,
                    "  prefixes and fuzzy words read terms, and prefixes lists, that are only among those used"
                )?;
            }
        }
    }
    let (hits, total) = (explanation.found.hits.len() as u64, explanation.found.total);
    let least = if counted { "" } else { "at least " };
    let threshold =
        explanation.threshold.map_or(String::new(), |score| format!(", the last scores {score:.4}"));
    writeln!(out, "{} of {least}{}{threshold}", count(hits, "hit", "hits"), group(total))?;
    out.flush()
}

const LIST_HEAD: [&str; 14] = [
    "list",
    "documents",
    "weight",
    "bound",
    "blocks",
    "decoded",
    "share",
    "docs",
    "freqs",
    "by bound",
    "by range",
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
        show(list.skips_bytes),
        format!("{}+{}", show(of.docs_bytes), show(of.freqs_bytes)),
        format!("{}+{}", show(of.docs_decoded), show(of.freqs_decoded)),
    ]
}

const FILE_HEAD: [&str; 9] =
    ["file", "first: ranges", "bytes", "reads", "at most: ranges", "bytes", "reads", "used: reads", "bytes"];

/// A row for each file that may be read or was, and one for all together.
fn file_rows(segment: &SegmentExplanation) -> Vec<Vec<String>> {
    let needs = &segment.evaluation.needs;
    let used = |file: &str| {
        segment.files.iter().find(|used| used.file == file).map_or((0, 0), |u| (u.reads, u.bytes))
    };
    let unforeseen = segment.files.iter().filter(|used| needs.iter().all(|need| need.file != used.file));
    let unforeseen = unforeseen.map(|used| Need { file: used.file.clone(), first: vec![], at_most: vec![] });
    let (mut first, mut most, mut sum) = (Cost::default(), Cost::default(), (0, 0));
    let mut rows = Vec::new();
    for need in needs.iter().cloned().chain(unforeseen) {
        let (a, b, c) = (Cost::of(&need.first), Cost::of(&need.at_most), used(&need.file));
        (first, most, sum) = (first.and(a), most.and(b), (sum.0 + c.0, sum.1 + c.1));
        rows.push(file_row(&need.file, a, b, c));
    }
    rows.push(file_row("all", first, most, sum));
    rows
}

fn file_row(name: &str, first: Cost, most: Cost, (reads, bytes): (u64, u64)) -> Vec<String> {
    let cost = |of: Cost| [group(of.ranges), show(of.bytes), group(of.reads)];
    let used = [group(reads), show(bytes)];
    [name.to_string()].into_iter().chain(cost(first)).chain(cost(most)).chain(used).collect()
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
    let operators = segment.evaluation.operators.iter();
    let mut value = json!({
        "segment": segment.id,
        "way": name(segment.evaluation.way),
        "documents": segment.documents,
        "matches": segment.matches,
        "least_before": segment.least_before.map(shortest),
        "least_after": segment.least_after.map(shortest),
        "operators": operators.map(|(depth, what)| json!({ "depth": depth, "what": what })).collect::<Vec<_>>(),
        "lists": segment.evaluation.lists.iter().map(list_json).collect::<Vec<_>>(),
    });
    if io {
        let needs = segment.evaluation.needs.iter().map(|need| {
            json!({ "file": need.file, "first": cost_json(&need.first), "at_most": cost_json(&need.at_most) })
        });
        let used = segment.files.iter();
        value["needs"] = needs.collect();
        value["used"] = used.map(|f| json!({ "file": f.file, "reads": f.reads, "bytes": f.bytes })).collect();
    }
    value
}

fn cost_json(ranges: &[std::ops::Range<u64>]) -> Value {
    let cost = Cost::of(ranges);
    let places: Vec<[u64; 2]> = ranges.iter().map(|range| [range.start, range.end]).collect();
    json!({ "ranges": places, "bytes": cost.bytes, "reads": cost.reads, "read_bytes": cost.read_bytes })
}

fn list_json(list: &ListUse) -> Value {
    let of = &list.blocks;
    json!({
        "field": list.field,
        "term": list.term,
        "documents": list.documents,
        "weight": shortest(list.weight),
        "bound": list.highest_bound.map(shortest),
        "blocks": of.blocks,
        "decoded": of.decoded,
        "decoded_docs": of.documents,
        "decoded_freqs": of.frequencies,
        "by_bound": of.by_bound,
        "by_range": of.by_range,
        "skips_bytes": list.skips_bytes,
        "docs_bytes": of.docs_bytes,
        "freqs_bytes": of.freqs_bytes,
        "docs_bytes_decoded": of.docs_decoded,
        "freqs_bytes_decoded": of.freqs_decoded,
    })
}
