//! The results of a run: prints tables and writes files.

use crate::codecs::{data::DataPlan, flags::Flags, plot, report, report::ReportSection, report::RunFacts};
use crate::{Error, Result, codecs::rows::CodecRows, output_dir};
use std::io::Write;

/// The results of a run.
pub struct CodecResults {
    flags: Flags,
    facts: RunFacts,
    rows: CodecRows,
}

impl CodecResults {
    pub(super) fn new(flags: &Flags, plan: &DataPlan, rows: CodecRows) -> CodecResults {
        CodecResults { flags: flags.clone(), facts: RunFacts::of(plan), rows }
    }

    /// All rows, in the order of measurement.
    pub fn rows(&self) -> &CodecRows {
        &self.rows
    }

    /// Prints the sums of each dataset, and the sections `more`.
    ///
    /// # Errors
    /// If `out` cannot be written.
    pub fn print(&self, out: &mut impl Write, more: &[ReportSection]) -> Result<()> {
        let sections = report::total_sections(&self.rows);
        let mut text = String::from(
            "billions of integers per second on one thread; the report of --out describes the method\n",
        );
        for section in sections.iter().chain(more) {
            text += &format!("\n{}\n{}", section.title, section.table.to_text());
        }
        out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(Error::Output)
    }

    /// Writes `report.md`, `data.json` and `codecs.svg` into the output directory, if the flags name one.
    /// `program` is the command name in the report.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn save(&self, program: &str, more: &[ReportSection]) -> Result<()> {
        let Some(dir) = &self.flags.out else { return Ok(()) };
        let command = format!("{program} {}", self.flags.command());
        let fastest = self.flags.kernels()?.last().map_or("scalar", |kernel| kernel.name());
        output_dir::write_file(dir, "report.md", report::markdown(&command, &self.facts, &self.rows, more))?;
        output_dir::write_file(dir, "data.json", &(output_dir::json_lines(&self.rows.to_json()) + "\n"))?;
        output_dir::write_file(dir, "codecs.svg", &plot::svg(&self.rows, fastest)?)
    }
}
