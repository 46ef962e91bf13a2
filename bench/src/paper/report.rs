//! The report of a figure: what the paper found and what was measured here, the plot, all values, and the
//! cells. Its files are `report.md`, `data.json`, `plot.svg` and `plot.png`.

use crate::paper::measure::SIMULATED_QUERIES_MAX;
use crate::paper::{control::Controls, plot_definition::PlotDefinition, points::Point, result::FigureResult};
use crate::{Machine, Result, Table, output_dir, plot, plot::AxisScale, plot::Panel, plot::Series};
use serde_json::Value;
use std::path::Path;

/// Writes the files of a figure into `dir`. `command` is the command line in the report; `controls` test the
/// reasons of claims that differ.
///
/// # Errors
/// If a file cannot be written.
pub(super) fn save(dir: &Path, result: &FigureResult<'_>, controls: &Controls, command: &str) -> Result<()> {
    output_dir::create(dir)?;
    let plots = result.figure.figure.plot.as_ref().filter(|_| !result.points.is_empty());
    if let Some(definition) = plots {
        let panels = figure_panels(definition, &result.points);
        let columns = panels.len().min(3);
        output_dir::write_file(dir, "plot.svg", plot::svg(&panels, columns, "")?)?;
        output_dir::write_file(dir, "plot.png", plot::png(&panels, columns, "")?)?;
    }
    let rows = Value::Array(result.rows.iter().cloned().map(Value::Object).collect());
    output_dir::write_file(dir, "data.json", output_dir::json_lines(&rows) + "\n")?;
    output_dir::write_file(dir, "report.md", markdown(result, controls, command))
}

fn markdown(result: &FigureResult<'_>, controls: &Controls, command: &str) -> String {
    let (paper, figure) = (result.figure.paper, result.figure.figure);
    let mut text = format!("# {}: {}\n\n{}\n\n", result.figure.name(), figure.title, paper.title);
    let found = if paper.controls { "Tests" } else { "The paper" };
    text += &format!("**{found}**: {}\n\n", figure.found);
    if let Some(why) = &figure.unavailable {
        return text + &format!("**Not measurable here**: {why}\n");
    }
    text += &emulation_text(result);
    text += &claims_text(result, controls);
    if let Some(plot) = &figure.plot {
        if !result.points.is_empty() {
            text += "## Plot\n\n![plot](plot.svg)\n\n";
        }
        text += &format!("## Measurements\n\n{}\n", measurements_text(plot, result));
    }
    text += &set_up_text(result);
    text +=
        &format!("## Command\n\n```\n{command}\n```\n\n## Machine\n\n{}\n", Machine::here().to_markdown());
    text += "## Cells\n\nEach cell is an experiment of `tierdex-bench` with these settings.\n\n";
    text + &result.cells.iter().map(|cell| format!("- `{cell}`\n")).collect::<String>()
}

/// A paragraph which says that the second memory tier is emulated; empty if it is not.
fn emulation_text(result: &FigureResult<'_>) -> String {
    let delay = result.rows.iter().find_map(|row| row.get("slow_tier")?.as_str());
    delay.map_or(String::new(), |delay| {
        format!(
            "**The second tier (`keep-in=tier`) is emulated**, by `--slow-tier {delay}`: nanoseconds of latency for a line of \
             256 bytes of postings, four in flight when they are read in order, and GB/s. Its figures show the effect of \
             such a delay, and are no evidence about real memory.\n\n"
        )
    })
}

/// The section with a table of all claims, and the exact condition of each.
fn claims_text(result: &FigureResult<'_>, controls: &Controls) -> String {
    let figure = result.figure.figure;
    let Some(plot) = figure.plot.as_ref().filter(|_| !figure.expect.is_empty()) else { return String::new() };
    let mut table = Table::new(5, &["claim", "paper", "here", "result", "reason"]);
    for (number, expected) in figure.expect.iter().enumerate() {
        let (verdict, reasons) = result.verdict(number, controls);
        let reason = reasons.join("; ");
        let here = result.checks[number].here.clone();
        table.row(vec![expected.claim.clone(), expected.paper.clone(), here, verdict.to_string(), reason]);
    }
    let conditions = figure.expect.iter().map(|expected| format!("- {}\n", expected.condition(plot)));
    format!(
        "## Claims\n\n{}\n`here` has ratios of medians. The conditions, one for each claim:\n\n{}\n",
        table.to_markdown(),
        conditions.collect::<String>()
    )
}

/// With more points than this, the table of measurements shows only some of them.
const MEASUREMENT_ROWS_MAX: usize = 1000;

/// A thinned table shows only the points whose number is a multiple of this.
const THINNING_STEP: usize = 50;

/// The table of all points: median, smallest and largest value over the rounds.
fn measurements_text(plot: &PlotDefinition, result: &FigureResult<'_>) -> String {
    if result.points.is_empty() {
        return "None.\n".to_string();
    }
    let dimensions = plot.dimensions();
    let mut heading = dimensions.clone();
    heading.extend(["measure", "median", "min", "max", "rounds"]);
    let mut table = Table::new(dimensions.len() + 1, &heading);
    let step = if result.points.len() > MEASUREMENT_ROWS_MAX { THINNING_STEP } else { 1 };
    for point in result.points.iter().step_by(step) {
        let (least, most) = point.spread();
        let mut cells: Vec<String> = point.dimensions.iter().map(|(_, value)| value.clone()).collect();
        cells.push(point.measure.clone());
        cells.extend([point.median(), least, most].map(|value| three_digits(value * plot.factor)));
        cells.push(point.rounds().to_string());
        table.row(cells);
    }
    let unit = if plot.factor == 1.0 { String::new() } else { format!("Unit: {}.\n\n", plot.y_label) };
    let thinned = match step {
        1 => String::new(),
        step => format!("Every {step}th of {}; `data.json` has all.\n\n", result.points.len()),
    };
    format!("{unit}{thinned}{}", table.to_markdown())
}

/// The section on the set-up: scale, differences from the paper, and why cells were not measured.
fn set_up_text(result: &FigureResult<'_>) -> String {
    let (paper, figure) = (result.figure.paper, result.figure.figure);
    let mut text = format!("## Set-up\n\n- scale: {}", result.scale);
    let postings = result.cells.iter().filter_map(|cell| cell.get("postings")?.parse::<u64>().ok()).max();
    if let Some(postings) = postings.filter(|_| paper.postings > 0) {
        let factor = postings as f64 / paper.postings as f64;
        text += &format!(
            "; scale factor {}: {postings} postings, the paper {}",
            three_digits(factor),
            paper.postings
        );
    }
    text += "\n";
    if let Some(differences) = &figure.differences {
        text += &format!("- differs from the paper: {differences}\n");
    }
    if figure.simulated {
        text += &simulation_text(result);
    }
    let reasons = result.reasons();
    text += &reasons.iter().map(|why| format!("- some cells were not measured: {why}\n")).collect::<String>();
    text + "\n"
}

/// How simulated measures were made.
fn simulation_text(result: &FigureResult<'_>) -> String {
    let first = |field: &str| result.rows.iter().find_map(|row| row.get(field)?.as_str()).unwrap_or("-");
    format!(
        "- **simulated** by {} with kernel `{}`, because valgrind does not run AVX-512: instructions and misses of \
         the thread that answers, over the first repetition of at most {SIMULATED_QUERIES_MAX} queries per cell; no \
         pipeline, no prefetching by hardware\n- simulated caches: {}\n",
        first("simulator"),
        first("kernel"),
        first("simulated_caches")
    )
}

/// A number with three significant digits, or all digits before the point.
pub(super) fn three_digits(value: f64) -> String {
    let digits = if value == 0.0 { 0 } else { 2 - value.abs().log10().floor() as i32 };
    format!("{value:.*}", digits.clamp(0, 9) as usize)
}

/// A panel for each combination of the fields that name panels, and for each measure that has an axis of its
/// own.
fn figure_panels(definition: &PlotDefinition, points: &[Point]) -> Vec<Panel> {
    let labels: Vec<&str> = definition.y_label.split("; ").collect();
    let own_axes = labels.len() > 1 && labels.len() == definition.y.len();
    let axis = |point: &Point| {
        let of = definition.y.iter().position(|measure| *measure == point.measure).filter(|_| own_axes);
        of.map_or(definition.y_label.as_str(), |at| labels[at])
    };
    let panel = |point: &Point| (panel_title(definition, point), axis(point));
    let mut kinds: Vec<(String, &str)> = Vec::new();
    for kind in points.iter().map(panel) {
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    let xs: Vec<&str> = points.iter().filter_map(|point| point.get(&definition.x)).collect();
    let numbers = xs.iter().all(|x| x.parse::<f64>().is_ok());
    let mut names: Vec<String> = Vec::new();
    for x in xs.iter().filter(|_| !numbers) {
        if !names.iter().any(|name| name == x) {
            names.push(x.to_string());
        }
    }
    let position = |point: &Point| {
        let x = point.get(&definition.x).unwrap_or_default();
        let named = names.iter().position(|name| name == x).unwrap_or_default();
        if numbers { x.parse().unwrap_or_default() } else { named as f64 }
    };
    let of = |kind: (String, &str)| {
        let mut series: Vec<Series> = Vec::new();
        for point in points.iter().filter(|point| panel(point) == kind) {
            let measure = if definition.y.len() > 1 && !own_axes { point.measure.as_str() } else { "" };
            let name = format!("{} {measure}", point.text(&definition.lines)).trim().to_string();
            let at = (position(point), point.median() * definition.factor);
            match series.iter_mut().find(|line| line.name == name) {
                Some(line) => line.points.push(at),
                None => series.push(Series { name, points: vec![at] }),
            }
        }
        series.iter_mut().for_each(|line| line.points.sort_by(|one, other| one.0.total_cmp(&other.0)));
        let scale = match (numbers, definition.logarithmic) {
            (false, _) => AxisScale::Named(names.clone()),
            (true, true) => AxisScale::Logarithmic,
            (true, false) => AxisScale::FromZero,
        };
        Panel { title: kind.0, x: definition.x_label.clone(), scale, y: kind.1.to_string(), series }
    };
    kinds.into_iter().map(of).collect()
}

/// The title of the panel of a point: the values of its fields, numbers with the name of the field.
fn panel_title(definition: &PlotDefinition, point: &Point) -> String {
    let values = definition.panels.iter().filter_map(|field| {
        let value = point.get(field).filter(|value| !value.is_empty())?;
        let is_number = value.parse::<f64>().is_ok();
        Some(if is_number { format!("{} {value}", field.replace('_', " ")) } else { value.to_string() })
    });
    values.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::{super::points::measured_points, super::points::tests::plot, super::points::tests::row, *};

    #[test]
    fn numbers_have_three_significant_digits() {
        let shown = [0.0, 0.012345, 1.2345, 123.45, 123456.7].map(three_digits);
        assert_eq!(shown, ["0", "0.0123", "1.23", "123", "123457"]);
    }

    #[test]
    fn a_panel_for_each_combination_and_a_line_for_each_name() {
        let row = |shape: &str, size: &str, mode: &str| {
            row(&format!(r#"{{"shape": "{shape}", "size": "{size}", "mode": "{mode}", "qps": 3}}"#))
        };
        let numbers = [row("AND", "20", "base"), row("AND", "5", "base"), row("OR", "5", "direct")];
        let found = figure_panels(&plot(), &measured_points(&plot(), &["qps"], &numbers));
        let titles: Vec<&str> = found.iter().map(|panel| panel.title.as_str()).collect();
        assert_eq!(titles, ["AND", "OR"]);
        assert_eq!(found[0].series[0].points, [(5.0, 3.0), (20.0, 3.0)]);
        let names = [row("AND", "disk", "base"), row("AND", "dram", "base")];
        let found = figure_panels(&plot(), &measured_points(&plot(), &["qps"], &names));
        assert!(matches!(&found[0].scale, AxisScale::Named(names) if names == &["disk", "dram"]));
        assert_eq!(found[0].series[0].points, [(0.0, 3.0), (1.0, 3.0)]);
        let rows = [r#"{"shape": 25, "size": 1, "mode": "base", "qps": 3, "reads": 4}"#]
            .map(super::super::points::tests::row);
        let two = PlotDefinition {
            y: ["qps", "reads"].map(str::to_string).to_vec(),
            y_label: "queries per second; reads".to_string(),
            ..plot()
        };
        let found = figure_panels(&two, &measured_points(&two, &["qps", "reads"], &rows));
        let titles: Vec<_> = found.iter().map(|panel| (panel.title.as_str(), panel.y.as_str())).collect();
        assert_eq!(titles, [("shape 25", "queries per second"), ("shape 25", "reads")]);
        assert_eq!(found[1].series[0].name, "base");
    }
}
