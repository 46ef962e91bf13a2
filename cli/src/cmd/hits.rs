//! Hits as they are written: a table for people, or one JSON object. They are written one by one, so that
//! memory does not grow with what is shown of them.

use super::search::shortest;
use crate::columns::{columns, cut, pad};
use crate::failure::{Failure, Outcome};
use crate::marks::mark;
use crate::messages::printable;
use crate::size::count;
use console::measure_text_width;
use serde_json::json;
use std::io::{IsTerminal, Result, Write, stdout};
use std::time::Duration;
use tierdex::index::{Found, Searcher};
use tierdex::text::Snippet;

/// Columns of a table before the id.
const RANK_AND_SCORE_COLUMNS: usize = 17;

/// Columns that ids take, if the longest does not take more.
const ID_COLUMNS_MIN: usize = 24;

/// Hits that tell whether documents have titles.
const TITLES_PROBED: usize = 10;

/// A hit as it is shown.
pub struct Shown<'a> {
    pub score: f32,
    pub id: &'a str,
    pub title: Option<String>,
    pub snippet: Option<Snippet>,
}

/// What is said of all hits together.
pub struct Summary {
    pub total: u64,
    /// Whether the total is exact; else it is a lower bound.
    pub counted: bool,
    pub took: Duration,
}

/// A form of the output.
pub trait HitsWriter {
    fn begin(&mut self, out: &mut dyn Write, summary: &Summary) -> Result<()>;
    fn hit(&mut self, out: &mut dyn Write, hit: &Shown<'_>) -> Result<()>;
    fn end(&mut self, out: &mut dyn Write, summary: &Summary) -> Result<()>;
}

/// One object, in which the hits come last.
#[derive(Default)]
pub struct Json {
    rank: usize,
}

impl HitsWriter for Json {
    fn begin(&mut self, out: &mut dyn Write, summary: &Summary) -> Result<()> {
        let Summary { total, counted, took } = summary;
        let took = took.as_micros();
        write!(out, "{{\"total\":{total},\"counted\":{counted},\"took_us\":{took},\"hits\":[")
    }

    fn hit(&mut self, out: &mut dyn Write, hit: &Shown<'_>) -> Result<()> {
        self.rank += 1;
        let separator = if self.rank > 1 { "," } else { "" };
        let hit = json!({
            "rank": self.rank,
            "score": shortest(hit.score),
            "id": hit.id,
            "title": hit.title,
            "snippet": hit.snippet.as_ref().map(|snippet| mark(snippet, "**", "**", str::to_string)),
        });
        write!(out, "{separator}{hit}")
    }

    fn end(&mut self, out: &mut dyn Write, _: &Summary) -> Result<()> {
        writeln!(out, "]}}")
    }
}

/// As wide as the terminal.
pub struct Table {
    rank: usize,
    empty: bool,
    id_width: usize,
    title_width: usize,
}

impl Table {
    /// With columns as wide as the ids of these hits need; where there are titles, ids get half of the width
    /// at most.
    pub fn new(searcher: &Searcher, found: &Found) -> Outcome<Table> {
        let width = columns().saturating_sub(RANK_AND_SCORE_COLUMNS);
        let mut has_titles = false;
        for hit in found.hits.iter().take(TITLES_PROBED) {
            has_titles |= searcher.preview(hit.document)?.is_some_and(|stored| !stored.title.is_empty());
        }
        let most = if has_titles { width / 2 } else { width };
        let mut id_width = ID_COLUMNS_MIN;
        searcher.for_each_id(&found.hits, |_, id| {
            id_width = id_width.max(measure_text_width(&cut(&printable(id), most)));
            Ok::<(), Failure>(())
        })?;
        let title_width = width.saturating_sub(id_width + 2);
        Ok(Table { rank: 0, empty: found.hits.is_empty(), id_width, title_width })
    }
}

impl HitsWriter for Table {
    fn begin(&mut self, out: &mut dyn Write, _: &Summary) -> Result<()> {
        if self.empty {
            return Ok(());
        }
        writeln!(out, "{:>4}  {:>9}  {}  title", "rank", "score", pad("id", self.id_width))
    }

    fn hit(&mut self, out: &mut dyn Write, hit: &Shown<'_>) -> Result<()> {
        self.rank += 1;
        let (rank, score) = (self.rank, hit.score);
        let id = pad(&cut(&printable(hit.id), self.id_width), self.id_width);
        let title = cut(&printable(hit.title.as_deref().unwrap_or_default()), self.title_width);
        writeln!(out, "{}", format!("{rank:>4}  {score:>9.4}  {id}  {title}").trim_end())?;
        let (open, close) = if stdout().is_terminal() { ("\x1b[1m", "\x1b[0m") } else { ("**", "**") };
        match hit.snippet.as_ref().filter(|snippet| !snippet.text.is_empty()) {
            Some(snippet) => writeln!(out, "{:17}{}", "", mark(snippet, open, close, printable)),
            None => Ok(()),
        }
    }

    fn end(&mut self, out: &mut dyn Write, summary: &Summary) -> Result<()> {
        let least = if summary.counted { "" } else { "at least " };
        let documents = count(summary.total, "document", "documents");
        writeln!(out, "{least}{documents} in {:.1} ms", summary.took.as_secs_f64() * 1e3)
    }
}
