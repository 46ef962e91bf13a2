//! What a run found: printed as tables, written as files.

use super::flags::{Flags, Settings};
use super::row::Row;
use super::{plot, report};
use crate::intersection::CostModel;
use crate::{Error, Machine, Result, folder};
use serde_json::{Value, json};
use std::io::Write;

/// What a run found.
pub struct Results {
    pub(super) flags: Flags,
    pub(super) settings: Settings,
    pub(super) machine: Machine,
    /// What reads of the made lists cost.
    pub(super) cost: Option<CostModel>,
    /// One line on the engine.
    pub(super) engine: String,
    /// Queries of a log, and their terms.
    pub(super) queries: Option<(usize, usize)>,
    rows: Vec<Row>,
}

impl Results {
    pub(super) fn new(flags: &Flags, settings: &Settings) -> Results {
        Results {
            flags: flags.clone(),
            settings: settings.clone(),
            machine: Machine::here(),
            cost: None,
            engine: String::new(),
            queries: None,
            rows: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, rows: Vec<Row>) {
        self.rows.extend(rows);
    }

    pub(super) fn set_cost(&mut self, cost: CostModel, engine: &str) {
        self.cost = Some(cost);
        engine.clone_into(&mut self.engine);
    }

    pub(super) fn set_queries(&mut self, queries: usize, terms: usize) {
        self.queries = Some((queries, terms));
    }

    /// All rows.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// The sweeps that there are rows of, in their order.
    pub(super) fn sweeps(&self) -> Vec<&'static str> {
        let mut sweeps: Vec<&'static str> = self.rows.iter().map(|row| row.sweep).collect();
        sweeps.dedup();
        sweeps
    }

    /// Prints a table a sweep.
    ///
    /// # Errors
    /// If `out` takes no more.
    pub fn print(&self, out: &mut impl Write) -> Result<()> {
        let mut text = String::new();
        for (title, table) in report::tables(self) {
            text += &format!("{title}\n{}\n", table.to_text());
        }
        text += &report::against_the_paper(self).to_text();
        out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(Error::Output)
    }

    /// Writes `report.md`, `data.json` and a plot a sweep where the flags want them.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn save(&self) -> Result<()> {
        let Some(dir) = &self.flags.out else { return Ok(()) };
        let rows: Value = self.rows.iter().map(Row::to_json).collect();
        let cost = self.cost.map(|cost| {
            json!({ "read_seconds": cost.read_seconds, "bytes_per_second": cost.bytes_per_second,
                    "test_seconds": cost.test_seconds })
        });
        let head = json!({ "command": self.flags.command(), "cost": cost, "engine": self.engine });
        let data = format!("{{\"run\": {head},\n\"rows\": {}}}\n", folder::lines(&rows));
        folder::write(dir, "data.json", &data)?;
        folder::write(dir, "report.md", &report::markdown(self))?;
        for sweep in self.sweeps() {
            let rows: Vec<&Row> = self.rows.iter().filter(|row| row.sweep == sweep).collect();
            if let Some(svg) = plot::svg(sweep, &rows)? {
                folder::write(dir, &format!("{sweep}.svg"), &svg)?;
            }
        }
        Ok(())
    }
}
