//! Formats hits as a table or as one JSON object. Hits are written one by one, so that memory does not grow
//! with their number.

use crate::columns::{pad_to_width, terminal_columns, truncate_to_width};
use crate::failure::{Failure, Outcome};
use crate::{messages::make_printable, size::show_count};
use console::measure_text_width;
use serde_json::{Value, json};
use std::io::{IsTerminal, Result, Write, stdout};
use std::time::Duration;
use tierdex::{Highlighter, Hits, analysis::Snippet, limits::PREVIEW_TITLE_BYTES, schema::ColumnValue};

/// Width of rank and score in the table, in terminal columns.
const RANK_AND_SCORE_WIDTH: usize = 17;

/// Minimum width of the ids in the table, in terminal columns.
const ID_WIDTH_MIN: usize = 24;

/// Number of first hits that are read to find out whether documents have titles.
const TITLE_PROBE_HITS: usize = 10;

/// Bytes of a title in JSON; a longer one is cut and marked. Less than the title of a preview, so that it is
/// known whether there is more.
const JSON_TITLE_BYTES_MAX: usize = PREVIEW_TITLE_BYTES - 4;

/// A hit with its stored fields.
pub struct DisplayedHit<'a> {
    pub score: f32,
    /// Directory of the index, if several are searched.
    pub index: Option<String>,
    pub id: &'a str,
    pub title: Option<String>,
    pub snippet: Option<Snippet>,
    /// The names of columns, each with the values of the document.
    pub values: &'a [(String, Vec<ColumnValue>)],
}

/// The number of matches and the duration of a search.
pub struct HitsSummary {
    pub total: u64,
    /// Whether the total is exact; otherwise it is a lower bound.
    pub counted: bool,
    pub elapsed: Duration,
}

/// The values of a document in a column: null, a value, or an array of several.
pub fn values_as_json(values: &[ColumnValue]) -> Value {
    match values {
        [] => Value::Null,
        [value] => value_as_json(*value),
        values => values.iter().map(|value| value_as_json(*value)).collect(),
    }
}

/// A number, true or false, or a string: of a date, or of a number that JSON does not have.
fn value_as_json(value: ColumnValue) -> Value {
    match value {
        ColumnValue::I64(number) => number.into(),
        ColumnValue::U64(number) => number.into(),
        ColumnValue::F64(number) if number.is_finite() => number.into(),
        ColumnValue::Bool(value) => value.into(),
        other => other.to_string().into(),
    }
}

/// Writes hits in one output format.
pub trait HitsWriter {
    fn write_start(&mut self, out: &mut dyn Write, summary: &HitsSummary) -> Result<()>;
    fn write_hit(&mut self, out: &mut dyn Write, hit: &DisplayedHit<'_>) -> Result<()>;
    fn write_end(&mut self, out: &mut dyn Write, summary: &HitsSummary) -> Result<()>;
}

/// Writes the results of a query as one JSON object, whose last member is the array of hits.
#[derive(Default)]
pub struct JsonHits {
    rank: usize,
}

impl HitsWriter for JsonHits {
    fn write_start(&mut self, out: &mut dyn Write, summary: &HitsSummary) -> Result<()> {
        let HitsSummary { total, counted, elapsed } = summary;
        let took = elapsed.as_micros();
        write!(out, "{{\"total\":{total},\"counted\":{counted},\"took_us\":{took},\"hits\":[")
    }

    fn write_hit(&mut self, out: &mut dyn Write, hit: &DisplayedHit<'_>) -> Result<()> {
        self.rank += 1;
        let separator = if self.rank > 1 { "," } else { "" };
        let title = hit.title.as_deref();
        let cut = title.is_some_and(|title| title.len() > JSON_TITLE_BYTES_MAX);
        let start = |title: &str| title[..title.floor_char_boundary(JSON_TITLE_BYTES_MAX)].to_string() + "…";
        let mut members = json!({
            "rank": self.rank,
            "score": shortest_decimal(hit.score),
            "id": hit.id,
            "title": if cut { title.map(start) } else { title.map(str::to_string) },
            "title_cut": cut,
            "snippet": hit.snippet.as_ref().map(|snippet| snippet.highlight("**", "**", |text| text.into())),
        });
        if let Some(index) = &hit.index {
            members["index"] = json!(index);
        }
        if !hit.values.is_empty() {
            let values = hit.values.iter().map(|(name, values)| (name.clone(), values_as_json(values)));
            members["values"] = values.collect::<serde_json::Map<_, _>>().into();
        }
        write!(out, "{separator}{members}")
    }

    fn write_end(&mut self, out: &mut dyn Write, _: &HitsSummary) -> Result<()> {
        writeln!(out, "]}}")
    }
}

/// Writes hits as a table that is as wide as the terminal.
pub struct HitTable {
    rank: usize,
    empty: bool,
    id_width: usize,
    title_width: usize,
}

impl HitTable {
    /// A table whose id column fits the longest id of `found`, limited to half of the width if there are
    /// titles.
    pub fn new(highlighter: &mut Highlighter<'_>, found: &Hits) -> Outcome<HitTable> {
        let width = terminal_columns().saturating_sub(RANK_AND_SCORE_WIDTH);
        let mut has_titles = false;
        for hit in found.hits.iter().take(TITLE_PROBE_HITS) {
            has_titles |=
                highlighter.preview(hit.document, 0)?.is_some_and(|preview| !preview.title.is_empty());
        }
        let id_width_max = if has_titles { width / 2 } else { width };
        let mut id_width = ID_WIDTH_MIN;
        found.for_each_id(|_, id| {
            id_width =
                id_width.max(measure_text_width(&truncate_to_width(&make_printable(id), id_width_max)));
            Ok::<(), Failure>(())
        })?;
        let title_width = width.saturating_sub(id_width + 2);
        Ok(HitTable { rank: 0, empty: found.hits.is_empty(), id_width, title_width })
    }
}

impl HitsWriter for HitTable {
    fn write_start(&mut self, out: &mut dyn Write, _: &HitsSummary) -> Result<()> {
        if self.empty {
            return Ok(());
        }
        writeln!(out, "{:>4}  {:>9}  {}  title", "rank", "score", pad_to_width("id", self.id_width))
    }

    fn write_hit(&mut self, out: &mut dyn Write, hit: &DisplayedHit<'_>) -> Result<()> {
        self.rank += 1;
        let (rank, score) = (self.rank, hit.score);
        let id = pad_to_width(&truncate_to_width(&make_printable(hit.id), self.id_width), self.id_width);
        let title =
            truncate_to_width(&make_printable(hit.title.as_deref().unwrap_or_default()), self.title_width);
        writeln!(out, "{}", format!("{rank:>4}  {score:>9.4}  {id}  {title}").trim_end())?;
        let (open, close) = if stdout().is_terminal() { ("\x1b[1m", "\x1b[0m") } else { ("**", "**") };
        if let Some(index) = &hit.index {
            writeln!(out, "{:17}in {}", "", make_printable(index))?;
        }
        let values = hit.values.iter().filter(|(_, values)| !values.is_empty()).map(|(name, values)| {
            let values: Vec<String> = values.iter().map(ToString::to_string).collect();
            format!("{name}: {}", values.join(", "))
        });
        let values: Vec<String> = values.collect();
        if !values.is_empty() {
            writeln!(out, "{:17}{}", "", values.join("  "))?;
        }
        match hit.snippet.as_ref().filter(|snippet| !snippet.text.is_empty()) {
            Some(snippet) => writeln!(
                out,
                "{:17}{}",
                "",
                snippet.highlight(open, close, |text| make_printable(text).into())
            ),
            None => Ok(()),
        }
    }

    fn write_end(&mut self, out: &mut dyn Write, summary: &HitsSummary) -> Result<()> {
        let relation = if summary.counted { "" } else { "at least " };
        let documents = show_count(summary.total, "document", "documents");
        writeln!(out, "{relation}{documents} in {:.1} ms", summary.elapsed.as_secs_f64() * 1e3)
    }
}

/// The score as the shortest decimal number that rounds to it: `0.1`, not `0.10000000149011612`.
pub fn shortest_decimal(score: f32) -> f64 {
    score.to_string().parse().unwrap_or(f64::from(score))
}
