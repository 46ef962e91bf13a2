//! Compares two builds by the same cells, in pairs of processes that alternate.
//!
//! *Input*: two programs and [cells](crate::cell), one line of JSON each. *Output*: for each cell, and for
//! the geometric mean of all, how many times as fast the second build is, with an interval.
//!
//! 1. A pair runs a cell with both programs, one after the other; which is first alternates. Their answers
//!    must be equal.
//! 2. A round runs a pair of each cell, so that a change of the machine's speed meets all cells.
//! 3. The ratio of a pair is the time of the first program divided by that of the second. The interval of
//!    their geometric mean is that of a bootstrap (`statistics`).
//! 4. After the rounds that the flags ask for, cells whose intervals are wide and decide nothing are measured
//!    again, until the intervals are narrow enough or the maximum of rounds is reached.

mod flags;
mod pair;
mod statistics;

pub use flags::Flags;

use crate::{Error, Result, Table, cell::Cell};
use pair::{Builds, Pair};
use serde_json::Value;
use statistics::{Estimate, Verdict, geometric_mean_of_all};
use std::{fmt::Display, io::BufRead, io::Write};
use tierdex::StopSignal;

/// A cell and its pairs.
struct ComparedCell {
    /// The member `name` of its line, or its number.
    name: String,
    cell: Cell,
    /// The line without its name, as it is sent to both programs (one may be an older version of this one).
    json: Value,
    pairs: Vec<Pair>,
}

impl ComparedCell {
    fn ratios(&self) -> Vec<f64> {
        self.pairs.iter().map(Pair::ratio).collect()
    }

    fn estimate(&self) -> Estimate {
        Estimate::of(&self.ratios())
    }
}

/// Rounds of all cells end when the interval of their geometric mean is at most this wide.
const MEAN_INTERVAL_WIDTH_MAX: f64 = 0.02;

/// Compares the builds by the cells of `input`. Prints a table to `out`.
///
/// # Errors
/// If a line is not a cell, a process fails, answers differ, or `stop` is raised; the table of the pairs so
/// far is printed before.
pub fn run(flags: &Flags, input: &mut dyn BufRead, stop: &StopSignal, out: &mut dyn Write) -> Result<()> {
    flags.check()?;
    let mut cells = read_cells(input)?;
    // Fails before the first measurement.
    flags.rows.as_ref().map_or(Ok(()), |path| write_rows(path, &[]))?;
    let builds = Builds::new(&flags.a, &flags.b, cells.iter().map(|compared| &compared.cell))?;
    let measured = run_rounds(flags, &builds, &mut cells, stop);
    if cells.iter().any(|compared| !compared.pairs.is_empty()) {
        out.write_all(comparison_table(&cells).as_bytes()).map_err(Error::Output)?;
        flags.rows.as_ref().map_or(Ok(()), |path| write_rows(path, &cells))?;
    }
    measured
}

/// Reads cells, one a line; each may have a member `name`.
fn read_cells(input: &mut dyn BufRead) -> Result<Vec<ComparedCell>> {
    let mut cells = Vec::new();
    for (number, line) in input.lines().enumerate() {
        let wrong = |error: &dyn Display| Error::Usage(format!("line {} of the cells: {error}", number + 1));
        let line = line.map_err(Error::failed("cannot read the cells"))?;
        if line.trim().is_empty() {
            continue;
        }
        let mut value: Value = serde_json::from_str(&line).map_err(|error| wrong(&error))?;
        let name = match value.as_object_mut().and_then(|object| object.remove("name")) {
            None => format!("cell {}", number + 1),
            Some(Value::String(name)) => name,
            Some(other) => return Err(wrong(&format!("`name` is {other}, and must be a text"))),
        };
        let cell: Cell = serde_json::from_value(value.clone()).map_err(|error| wrong(&error))?;
        cell.check().map_err(|error| wrong(&error))?;
        cells.push(ComparedCell { name, cell, json: value, pairs: Vec::new() });
    }
    if cells.is_empty() {
        return Err(Error::Usage("there is no cell on standard input".to_string()));
    }
    Ok(cells)
}

/// Measures rounds of pairs until the intervals are narrow enough.
fn run_rounds(flags: &Flags, builds: &Builds, cells: &mut [ComparedCell], stop: &StopSignal) -> Result<()> {
    for round in 0..flags.pairs_max {
        let all = round < flags.pairs || mean_of_all(cells).interval_width() > MEAN_INTERVAL_WIDTH_MAX;
        let mut measured = false;
        for compared in cells.iter_mut() {
            if all || compared.estimate().needs_more_pairs() {
                let pair = builds.measure(&compared.cell, &compared.json, round, stop)?;
                let pair = pair.map_err(|why| Error::Failed(format!("{}: {why}", compared.name)))?;
                compared.pairs.push(pair);
                measured = true;
            }
        }
        if !measured {
            break;
        }
    }
    Ok(())
}

/// The geometric mean of all cells that have pairs.
fn mean_of_all(cells: &[ComparedCell]) -> Estimate {
    let ratios: Vec<_> = cells.iter().map(ComparedCell::ratios).filter(|ratios| !ratios.is_empty()).collect();
    geometric_mean_of_all(&ratios)
}

/// The table: a row for each cell, and one for the geometric mean of all.
fn comparison_table(cells: &[ComparedCell]) -> String {
    let mut table = Table::new(1, &["cell", "A, q/s", "B, q/s", "pairs", "B / A", "from", "to", "verdict"]);
    let mut row = |name: &str, speeds: Option<(f64, f64)>, pairs: usize, found: Estimate| {
        let speed = |speed: fn((f64, f64)) -> f64| {
            speeds.map_or("-".to_string(), |speeds| format!("{:.1}", speed(speeds)))
        };
        table.row(vec![
            name.to_string(),
            speed(|speeds| speeds.0),
            speed(|speeds| speeds.1),
            pairs.to_string(),
            format!("{:.3}", found.ratio),
            format!("{:.3}", found.from),
            format!("{:.3}", found.to),
            Verdict::of(&found).to_string(),
        ]);
    };
    let measured = || cells.iter().filter(|compared| !compared.pairs.is_empty());
    for compared in measured() {
        let (speeds, pairs) = (pair::median_speeds(&compared.pairs), compared.pairs.len());
        row(&compared.name, Some(speeds), pairs, compared.estimate());
    }
    let pairs = measured().map(|compared| compared.pairs.len()).sum();
    row("geometric mean", None, pairs, mean_of_all(cells));
    table.to_text()
}

/// Writes one line of JSON for each pair.
fn write_rows(path: &std::path::Path, cells: &[ComparedCell]) -> Result<()> {
    let mut text = String::new();
    for compared in cells {
        for pair in &compared.pairs {
            let row = serde_json::json!({ "name": compared.name, "a": pair.a, "b": pair.b });
            text += &format!("{row}\n");
        }
    }
    std::fs::write(path, text).map_err(Error::failed(format!("cannot write {}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_not_a_cell_is_named() {
        let wrong = [
            ("", "there is no cell"),
            ("\n{\"index\": \"i\"}\n", "line 2 of the cells: missing field `queries`"),
            ("x", "line 1 of the cells: "),
            (r#"{"index": "i", "queries": {"texts": []}, "name": 5}"#, "`name` is 5"),
            (r#"{"index": "i", "queries": {"texts": []}, "threads": 0}"#, "`threads` must be 1"),
        ];
        for (text, words) in wrong {
            let Err(Error::Usage(error)) = read_cells(&mut text.as_bytes()) else { panic!("{text}") };
            assert!(error.contains(words), "{error}");
        }
        let text = r#"{"index": "i", "queries": {"texts": ["a"]}, "name": "one"}
            {"index": "i", "queries": {"texts": ["a"]}}"#;
        let names: Vec<String> =
            read_cells(&mut text.as_bytes()).unwrap().into_iter().map(|compared| compared.name).collect();
        assert_eq!(names, ["one", "cell 2"]);
    }
}
