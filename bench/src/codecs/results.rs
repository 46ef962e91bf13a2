//! What a run found: printed as tables, written as files.

use super::data::Plan;
use super::flags::Flags;
use super::plot;
use super::report::{self, Facts};
use super::rows::Rows;
use crate::{Error, Result, Table, folder};
use std::io::Write;

/// What a run found.
pub struct Results {
    flags: Flags,
    facts: Facts,
    rows: Rows,
}

/// A table with a title and what is to be said of it.
pub struct Section {
    /// The title.
    pub title: String,
    /// Sentences; none if empty.
    pub about: String,
    /// The table.
    pub table: Table,
}

impl Results {
    pub(super) fn new(flags: &Flags, plan: &Plan, rows: Rows) -> Results {
        Results { flags: flags.clone(), facts: Facts::of(plan), rows }
    }

    /// All rows.
    pub fn rows(&self) -> &Rows {
        &self.rows
    }

    /// Prints the sums of each dataset, and `more`.
    ///
    /// # Errors
    /// If `out` takes no more.
    pub fn print(&self, out: &mut impl Write, more: &[Section]) -> Result<()> {
        let sections = report::totals(&self.rows);
        let mut text =
            String::from("billions of integers a second on one thread; see --out for the method\n");
        for section in sections.iter().chain(more) {
            text += &format!("\n{}\n{}", section.title, section.table.to_text());
        }
        out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(Error::Output)
    }

    /// Writes `report.md`, `data.json` and `codecs.svg` where the flags want them; `program` is how one calls the
    /// program that ran.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn save(&self, program: &str, more: &[Section]) -> Result<()> {
        let Some(dir) = &self.flags.out else { return Ok(()) };
        let command = format!("{program} {}", self.flags.command());
        let fastest = self.flags.kernels()?.last().map_or("scalar", |kernel| kernel.name());
        folder::write(dir, "report.md", &report::markdown(&command, &self.facts, &self.rows, more))?;
        folder::write(dir, "data.json", &(folder::lines(&self.rows.to_json()) + "\n"))?;
        folder::write(dir, "codecs.svg", &plot::svg(&self.rows, fastest)?)
    }
}
