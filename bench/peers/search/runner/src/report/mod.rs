//! The report of a run: for the terminal, as Markdown and as JSON.

mod json;
mod limit;
mod method;
mod section;
mod tables;

use crate::{flags::Flags, results::Results, tools};
use tierdex_bench::{Machine, Result};

/// The tables, for the terminal.
pub fn text(flags: &Flags, results: &Results) -> String {
    let mut text = String::new();
    for section in tables::all(flags, results) {
        text += &format!("{}\n{}\n", section.title, section.table.to_text());
    }
    for line in results.left_out.iter().chain(&results.unanswered()).chain(&tables::warnings(results)) {
        text += &format!("{line}\n");
    }
    text
}

/// Writes report.md and data.json, where the flags want them.
///
/// # Errors
/// If a file cannot be written.
pub fn save(flags: &Flags, results: &Results) -> Result<()> {
    let Some(dir) = &flags.out else { return Ok(()) };
    tools::write(&dir.join("report.md"), &markdown(flags, results))?;
    tools::write(&dir.join("data.json"), &json::text(results))
}

fn markdown(flags: &Flags, results: &Results) -> String {
    let mut text = format!(
        "# Query evaluation beside other engines\n\n## Machine\n\n{}\n## Command\n\n```\ncargo run --release -- {}\n```\n\n\
         ## Method\n\n{}\n",
        Machine::here().to_markdown(),
        flags.command(),
        method::text(flags, results)
    );
    for section in tables::all(flags, results) {
        text += &format!("## {}\n\n{}", section.title, section.about);
        text += if section.about.is_empty() { "" } else { "\n\n" };
        text += &format!("{}\n", section.table.to_markdown());
    }
    let warnings = tables::warnings(results);
    if !warnings.is_empty() {
        let lines: String = warnings.iter().map(|line| format!("- {line}\n")).collect();
        text += &format!("## Disagreements\n\n{lines}\n");
    }
    text + "The speeds of all rounds and the latencies are in `data.json`.\n"
}
