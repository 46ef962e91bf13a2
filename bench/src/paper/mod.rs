//! The tables and figures of five papers, one command each.
//!
//! *Input*: names of figures and a scale. *Output*: for each figure a report, its data and a plot, and a
//! summary that has the papers' claims beside what was measured here.
//!
//! 1. `registry` has the definitions of all figures (`definition`), from `bench/definitions`.
//! 2. `expand` gives the cells of a figure: single measurements, each an experiment with a value for each
//!    setting.
//! 3. `runner` generates the indexes (`data`) and measures the cells (`measure`), which calls the other
//!    experiments of this crate. Finished cells are in a file (`store`), so an interrupted run continues.
//! 4. `points` groups rows into the lines of a plot; an `expectation` is a range for ratios of points. A
//!    `control` is a figure that tests why expectations of others do not hold.
//! 5. `report` and `summary` write the files.

mod cell;
mod control;
mod data;
mod definition;
mod expand;
mod expectation;
mod flags;
mod measure;
mod plot_definition;
mod points;
mod registry;
mod report;
mod result;
mod runner;
mod scale;
mod store;
mod summary;

pub use flags::Flags;
pub use scale::Scale;

use crate::cell::Launch;
use crate::{Error, Machine, Result, cache, cache::ReadAhead, callgrind, output_dir, throttle::block_device};
use cell::Row;
use control::Controls;
use data::DataSets;
use measure::{Context, MissingFeatures};
use registry::{Figure, Registry};
use result::FigureResult;
use runner::FigureRunPlan;
use serde_json::{Value, json};
use std::{collections::BTreeMap, hash::DefaultHasher, hash::Hasher, io::Write};
use store::ResultStore;
use tierdex::StopSignal;

/// Read-ahead of the device in kilobytes: the default of Linux. Some devices of virtual machines have 8 MB,
/// with which the modes that read through the page cache evict what they need.
const READ_AHEAD_KB: u32 = 128;

/// Prints the names of all figures, and which cannot be measured on this machine whatever the flags of a run:
/// those that need performance counters, unless `callgrind` simulates them.
///
/// # Errors
/// If a definition is malformed, or the output fails.
pub fn list_figures(callgrind: bool, out: &mut dyn Write) -> Result<()> {
    list_definitions(Registry::new()?, callgrind, &MissingFeatures::counters(), out)
}

fn list_definitions(
    mut registry: Registry,
    callgrind: bool,
    missing: &MissingFeatures,
    out: &mut dyn Write,
) -> Result<()> {
    if callgrind {
        registry.simulate();
    }
    let figures = registry.figures();
    let (mut text, mut unavailable) = (String::new(), 0);
    let mut paper = "";
    for figure in &figures {
        if figure.paper.title != paper {
            paper = &figure.paper.title;
            text += &format!("\n{paper}\n");
        }
        text += &format!("  {:<34} {}\n", figure.name(), figure.figure.title);
        if let Some(why) = why_unmeasurable(*figure, missing)? {
            text += &format!("  {:<34} not measurable: {why}\n", "");
            unavailable += usize::from(!figure.paper.controls);
        }
    }
    let count = figures.iter().filter(|figure| !figure.paper.controls).count();
    text += &format!("\n{count} tables and figures, {unavailable} of them not measurable here\n");
    out.write_all(text.trim_start().as_bytes()).map_err(Error::Output)
}

/// Why no cell of a figure can be measured; `None` if one can.
fn why_unmeasurable(figure: Figure<'_>, missing: &MissingFeatures) -> Result<Option<String>> {
    if figure.figure.unavailable.is_some() {
        return Ok(figure.figure.unavailable.clone());
    }
    let cells = expand::figure_cells(figure.paper, figure.figure, Scale::Small)?;
    let reasons: Option<Vec<String>> = cells.iter().map(|planned| missing.of(&planned.cell)).collect();
    Ok(reasons.and_then(|reasons| reasons.into_iter().next()))
}

/// Makes the figures that the flags name: measures what is missing, and writes all reports.
///
/// # Errors
/// If a flag is wrong, a definition is malformed, a file cannot be written, answers differ or cells fail;
/// [`Error::Interrupted`] if `stop` was raised, after the reports of what was measured are written.
pub fn run_paper(flags: &Flags, launch: &Launch, stop: &StopSignal, out: &mut dyn Write) -> Result<()> {
    run_definitions(Registry::new()?, flags, launch, stop, out)
}

fn run_definitions(
    mut registry: Registry,
    flags: &Flags,
    launch: &Launch,
    stop: &StopSignal,
    out: &mut dyn Write,
) -> Result<()> {
    if flags.callgrind {
        callgrind::check_installed()?;
        registry.simulate();
    }
    let figures = registry.select(&flags.names)?;
    let scale = flags.scale.ok_or_else(|| Error::Usage("--scale is missing".to_string()))?;
    let plan = FigureRunPlan::new(&figures, scale)?;
    [Some(&flags.region), flags.tier.as_ref()].into_iter().flatten().try_for_each(cache::check_region)?;
    let dir = flags.out.join(scale.to_string());
    output_dir::create(&dir)?;
    let mut store = ResultStore::open(&dir.join("cells.jsonl"), &store_header(flags))?;
    let data = DataSets::new(&flags.data_dir())?;
    let context = Context {
        data: &data,
        launch,
        stop,
        region: flags.region.to_string(),
        tier: flags.tier.as_ref().map(ToString::to_string),
        slow_tier: flags.slow_tier.map(|delay| delay.to_string()),
        groups: !flags.no_group,
    };
    let missing = MissingFeatures::here(&context);
    let of_a_device = missing.has_groups() && block_device(&data.dir).is_ok();
    let _read_ahead = of_a_device.then(|| ReadAhead::set(&data.dir, READ_AHEAD_KB)).transpose()?;
    let measured = plan.measure_missing(&context, &missing, &mut store, out);
    let of = |figure| FigureResult::new(figure, scale, &store, &missing);
    let all = registry.figures().into_iter().map(of).collect::<Result<Vec<_>>>()?;
    let verdicts = |result: &FigureResult<'_>| result.checks.iter().map(|check| check.verdict).collect();
    // Nothing at scale small shows anything about a claim or a reason.
    let tested = all.iter().filter(|_| scale != Scale::Small);
    let controls = Controls::new(tested.map(|result| (result.figure.name(), verdicts(result))));
    let selected = |name: &str| figures.iter().any(|figure| figure.name() == name);
    for result in all.iter().filter(|result| selected(&result.figure.name())) {
        let Figure { paper, figure } = result.figure;
        let name = result.figure.name();
        let command = format!("tierdex-bench paper {name} --scale {scale}{}", command_options(flags));
        report::save(&dir.join(&paper.name).join(&figure.name), result, &controls, &command)?;
    }
    output_dir::write_file(&dir, "summary.md", summary::markdown(&all, &controls, scale))?;
    measured?;
    let line = format!("{}\n{}\n", summary::counts_text(&all, &controls), dir.join("summary.md").display());
    out.write_all(line.as_bytes()).map_err(Error::Output)?;
    match different_answers(all.iter().flat_map(|result| &result.rows)) {
        Some(first) => Err(Error::Failed(format!(
            "wrong answers: {first}; to measure again, remove {}",
            dir.join("cells.jsonl").display()
        ))),
        None => plan.check(&store, &missing),
    }
}

/// The flags of the command line that change what is measured. Paths are replaced by `PATH`.
fn command_options(flags: &Flags) -> String {
    let named = |region: String| match region.split_once(':') {
        Some((kind @ ("file" | "dax"), _)) => format!("{kind}:PATH"),
        _ => region,
    };
    let mut text = format!(" --region {}", named(flags.region.to_string()));
    text += &flags.tier.as_ref().map_or(String::new(), |tier| format!(" --tier {}", named(tier.to_string())));
    text += if flags.callgrind { " --callgrind" } else { "" };
    text += &flags.slow_tier.map_or(String::new(), |delay| format!(" --slow-tier {delay}"));
    text + if flags.no_group { " --no-group" } else { "" }
}

/// A hash of the file of this program. The results of two builds are not mixed in one file.
fn program_hash() -> u64 {
    let program = std::env::current_exe().and_then(std::fs::read).unwrap_or_default();
    let mut hasher = DefaultHasher::new();
    hasher.write(&program);
    hasher.finish()
}

/// What must be equal for measurements to be compared: the first line of the file of finished cells. Paths
/// are left out, because results are published.
fn store_header(flags: &Flags) -> Value {
    let machine = Machine::here();
    let kind = |region: String| region.split(':').next().unwrap_or_default().to_string();
    json!({
        "program": format!("tierdex-bench {}, build {:016x}", env!("CARGO_PKG_VERSION"), program_hash()),
        "cpu": machine.cpu,
        "threads": machine.threads,
        "memory_bytes": machine.memory_bytes,
        "region": kind(flags.region.to_string()),
        "tier": flags.tier.as_ref().map(|tier| kind(tier.to_string())),
        "slow_tier": flags.slow_tier.map(|delay| delay.to_string()),
        "groups": !flags.no_group,
    })
}

/// Fields that determine the answers to the queries of a row.
const QUERY_FIELDS: [&str; 11] = [
    "docs",
    "postings",
    "vocabulary",
    "class",
    "shape",
    "repeats_percent",
    "queries",
    "k",
    "exhaustive",
    "ids-only",
    "b",
];

/// The first two rows with the same queries over the same documents and different answers.
fn different_answers<'a>(rows: impl Iterator<Item = &'a Row>) -> Option<String> {
    let mut first: BTreeMap<String, &Row> = BTreeMap::new();
    for row in rows.filter(|row| row.contains_key("checksum")) {
        let queries =
            QUERY_FIELDS.map(|field| row.get(field).map(points::value_text).unwrap_or_default()).join(" ");
        let other = *first.entry(queries.clone()).or_insert(row);
        if other["checksum"] != row["checksum"] {
            let name = |row: &Row| {
                let name = |field: &str| row.get(field).map(points::value_text).unwrap_or_default();
                format!("{} with codec {}", name("name"), name("codec"))
            };
            return Some(format!("{} and {} differ for {queries}", name(other), name(row)));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse_flags;
    use std::{fs, path::Path};

    /// Sizes and rates of two codecs, small enough for a test, and a figure that cannot be made.
    const TEST_DEFINITION: &str = r#"
        name = "test"
        title = "A test"
        postings = 1_000_000
        settings = { docs = 5000, postings = 200_000, vocabulary = 2000, codec = ["raw", "pfor256-delta"] }
        scale.small = { rounds = 2 }
        [[figure]]
        name = "table-1"
        title = "sizes"
        found = "smaller"
        experiment = "sizes"
        plot = { x = "codec", x-label = "codec", y = ["docs_bytes"], y-label = "bytes" }
        [[figure.expect]]
        claim = "packed is smaller"
        paper = "0.2"
        of = { codec = "pfor256-delta" }
        to = { codec = "raw" }
        at-most = 0.5
        [[figure.expect]]
        claim = "packed is larger"
        paper = "2"
        of = { codec = "pfor256-delta" }
        to = { codec = "raw" }
        at-least = 1.0
        [[figure.expect]]
        claim = "there is a third codec"
        paper = "1"
        of = { codec = "vbyte" }
        to = { codec = "raw" }
        at-least = 1.0
        [[figure]]
        name = "fig-2"
        title = "rates"
        found = "faster"
        experiment = "cache"
        settings = { shapes = "AND", classes = "H", count = 5, repeats = 0 }
        cells = [
            { settings = { modes = "memory", region = "dram", cores = [1, 2] } },
            { settings = { modes = "base", sizes = 5, lookahead = 16 } },
            { settings = { modes = "memory", keep-in = "tier", cores = 3 } },
        ]
        plot = { x = "cores", x-label = "cores", y = ["qps"], y-label = "QPS", lines = ["codec"] }
        [[figure.expect]]
        claim = "the tier is as fast"
        paper = "1"
        of = { codec = "vbyte" }
        at-least = 1.0
        [[figure]]
        name = "fig-3"
        title = "counters"
        found = "stalls"
        unavailable = "no counters"
    "#;

    fn run_in(dir: &Path, line: &str, stop: &StopSignal) -> (Result<()>, String) {
        let dir = dir.to_str().unwrap();
        let words = ["paper", "--out", dir, "--no-group", "--region", "dram"].into_iter();
        let flags: Flags = parse_flags(words.chain(line.split_whitespace())).unwrap();
        let registry = Registry::parse(&[("test.toml", TEST_DEFINITION)]).unwrap();
        let mut out = Vec::new();
        let result = run_definitions(registry, &flags, &Launch::InProcess, stop, &mut out);
        (result, String::from_utf8(out).unwrap())
    }

    fn text_of(dir: &Path, name: &str) -> String {
        fs::read_to_string(dir.join("small").join(name)).unwrap()
    }

    #[test]
    fn reports_say_what_agrees_what_differs_and_what_was_not_measured() {
        let dir = tempfile::tempdir().unwrap();
        let (result, out) = run_in(dir.path(), "all --scale small", &StopSignal::default());
        result.unwrap();
        // Two codecs, two rounds: one cell of sizes and two of rates; the other cells are not possible.
        assert_eq!(out.lines().filter(|line| line.contains(" left: ")).count(), 2 * 2 * 3, "{out}");
        assert_eq!(out.lines().filter(|line| line.contains(": index ")).count(), 2, "{out}");
        let summary = text_of(dir.path(), "summary.md");
        let cell = |claim: &str| {
            let line = summary.lines().find(|line| line.contains(claim)).unwrap();
            line.split('|').nth(5).unwrap().trim().to_string()
        };
        assert_eq!(
            (cell("packed is smaller"), cell("packed is larger")),
            ("agrees".into(), "differs".into())
        );
        assert_eq!(cell("there is a third codec"), "not measured");
        assert_eq!(cell("the tier is as fast"), "not measurable here");
        assert!(
            summary.contains("] no counters\n") && summary.contains("2 of 3 tables and figures measured")
        );
        let report = text_of(dir.path(), "test/table-1/report.md");
        assert!(
            report.contains("scale factor 0.200") && report.contains("docs_bytes of codec=pfor256-delta")
        );
        let text = text_of(dir.path(), "test/fig-2/report.md");
        assert!(text.contains("not measured: --no-group") && text.contains("name one by --tier"), "{text}");
        assert!(text_of(dir.path(), "test/fig-2/plot.svg").starts_with("<svg"));
        assert!(fs::read(dir.path().join("small/test/fig-2/plot.png")).unwrap().starts_with(b"\x89PNG"));
        let rows: Value = serde_json::from_str(&text_of(dir.path(), "test/fig-2/data.json")).unwrap();
        assert_eq!(rows.as_array().unwrap().len(), 2 * 2 * 2);
        assert!(text_of(dir.path(), "test/fig-3/report.md").contains("**Not measurable here**: no counters"));
    }

    #[test]
    fn an_emulated_tier_is_labelled() {
        let dir = tempfile::tempdir().unwrap();
        let (result, out) =
            run_in(dir.path(), "test/fig-2 --scale small --slow-tier 5,100", &StopSignal::default());
        result.unwrap();
        assert!(out.contains("keep-in=tier"), "{out}");
        let report = text_of(dir.path(), "test/fig-2/report.md");
        assert!(report.contains("is emulated**, by `--slow-tier 5,100`"), "{report}");
        let rows: Vec<Value> = serde_json::from_str(&text_of(dir.path(), "test/fig-2/data.json")).unwrap();
        let emulated = |row: &&Value| row["emulated"] == true && row["slow_tier"] == "5,100";
        assert_eq!(rows.iter().filter(emulated).count(), 2 * 2);
        assert_eq!(rows.iter().filter(|row| row["keep-in"] == "tier").count(), 2 * 2);
    }

    #[test]
    fn an_interrupted_run_continues_with_the_cells_that_are_missing() {
        let dir = tempfile::tempdir().unwrap();
        let stop = StopSignal::default();
        stop.raise();
        let (result, _) = run_in(dir.path(), "test/table-1 --scale small", &stop);
        assert!(matches!(result, Err(Error::Interrupted)));
        run_in(dir.path(), "test/table-1 --scale small", &StopSignal::default()).0.unwrap();
        let cells = text_of(dir.path(), "cells.jsonl");
        assert_eq!(cells.lines().count(), 1 + 2 * 2);
        // As if the run had been stopped after the second cell.
        let kept: String = cells.lines().take(3).map(|line| format!("{line}\n")).collect();
        fs::write(dir.path().join("small/cells.jsonl"), kept).unwrap();
        run_in(dir.path(), "test/table-1 --scale small", &stop).0.unwrap_err();
        let summary = text_of(dir.path(), "summary.md");
        assert!(summary.contains("The run was stopped: 2 cells have fewer rounds"), "{summary}");
        let (result, out) = run_in(dir.path(), "test --scale small", &StopSignal::default());
        result.unwrap();
        assert!(out.starts_with("1/10 "), "{out}");
        let again = run_in(dir.path(), "test --scale small", &StopSignal::default()).1;
        assert!(again.lines().all(|line| !line.contains(" left: ")), "{again}");
        assert!(!text_of(dir.path(), "summary.md").contains("The run was stopped"));
    }

    #[test]
    fn wrong_names_and_missing_flags_are_usage_errors() {
        let dir = tempfile::tempdir().unwrap();
        let result = run_in(dir.path(), "test/fig-9 --scale small", &StopSignal::default()).0;
        assert!(matches!(result, Err(Error::Usage(message)) if message.contains("`test/fig-9`")));
        let result = run_in(dir.path(), "all --scale small --tier numa:9999", &StopSignal::default()).0;
        assert!(matches!(result, Err(Error::Failed(message)) if message.contains("there is no node 9999")));
        assert!(!dir.path().join("small").exists());
        for wrong in ["", "all", "all --scale tiny", "--scale small"] {
            assert!(parse_flags::<Flags>(["paper"].into_iter().chain(wrong.split_whitespace())).is_err());
        }
        assert!(parse_flags::<Flags>(["paper", "--list"]).is_ok());
    }

    #[test]
    fn the_list_has_every_figure_and_why_some_are_missing() {
        let mut out = Vec::new();
        list_figures(true, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains("\n70 tables and figures, 0 of") && text.contains("  apcache/fig-8.3 "));
        let mut out = Vec::new();
        list_definitions(Registry::new().unwrap(), false, &MissingFeatures::without_counters(), &mut out)
            .unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text.matches(" not measurable: no counters\n").count(), 18, "{text}");
        assert!(text.ends_with("\n70 tables and figures, 18 of them not measurable here\n"), "{text}");
    }

    #[test]
    fn different_answers_to_the_same_queries_are_found() {
        let row = |codec: &str, class: &str, checksum: &str| {
            let row = json!({ "codec": codec, "class": class, "checksum": checksum, "name": "memory" });
            row.as_object().unwrap().clone()
        };
        let same = [row("raw", "H", "1"), row("vbyte", "H", "1"), row("vbyte", "M", "2")];
        assert_eq!(different_answers(same.iter()), None);
        let other = [row("raw", "H", "1"), row("vbyte", "H", "3")];
        assert!(different_answers(other.iter()).unwrap().contains("memory with codec vbyte"));
    }
}
