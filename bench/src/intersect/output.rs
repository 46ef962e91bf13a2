//! Prints results as tables, and writes them into files.

use crate::intersect::{plot, report, results::IntersectResults, row::SweepRow};
use crate::{Error, Result, output_dir};
use serde_json::{Value, json};
use std::io::Write;

impl IntersectResults {
    /// Prints a table per sweep.
    ///
    /// # Errors
    /// If `out` cannot be written.
    pub fn print(&self, out: &mut impl Write) -> Result<()> {
        let mut text = String::new();
        for (title, table) in report::sweep_tables(self) {
            text += &format!("{title}\n{}\n", table.to_text());
        }
        text += &report::paper_comparison(self).to_text();
        out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(Error::Output)
    }

    /// Writes `report.md`, `data.json` and a plot per sweep into the output directory, if the flags name
    /// one.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn save(&self) -> Result<()> {
        let Some(dir) = &self.flags.out else { return Ok(()) };
        let rows: Value = self.rows().iter().map(SweepRow::to_json).collect();
        let cost = self.cost.map(|cost| {
            json!({ "read_seconds": cost.read_seconds, "bytes_per_second": cost.bytes_per_second,
                    "test_seconds": cost.test_seconds })
        });
        let head = json!({ "command": self.flags.command(), "cost": cost, "engine": self.read_method });
        let data = format!("{{\"run\": {head},\n\"rows\": {}}}\n", output_dir::json_lines(&rows));
        output_dir::write_file(dir, "data.json", &data)?;
        output_dir::write_file(dir, "report.md", report::markdown(self))?;
        for sweep in self.sweeps() {
            let rows: Vec<&SweepRow> = self.rows().iter().filter(|row| row.sweep == sweep).collect();
            if let Some(svg) = plot::svg(sweep, &rows)? {
                output_dir::write_file(dir, &format!("{sweep}.svg"), &svg)?;
            }
        }
        Ok(())
    }
}
