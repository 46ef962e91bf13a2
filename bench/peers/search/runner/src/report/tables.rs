//! The tables of a report.

use super::limit;
use crate::check::Check;
use crate::engine::Kind;
use crate::flags::Flags;
use crate::results::{Results, Row, geometric_mean};
use crate::sets::JUDGED;
use tierdex_bench::Table;

/// A table with its title and what is to be said of it.
pub struct Section {
    /// The title.
    pub title: String,
    /// Sentences; none if empty.
    pub about: String,
    /// The table.
    pub table: Table,
}

/// All tables that have rows.
pub fn all(flags: &Flags, results: &Results) -> Vec<Section> {
    let mut sections = vec![indexing(results)];
    for &threads in &flags.threads {
        let rows: Vec<&Row> = results.rows.iter().filter(|row| row.threads == threads).collect();
        sections.push(speeds(results, &rows, threads));
        sections.push(means(flags, results, &rows, threads));
    }
    sections.extend([scaling(flags, results), checks(&results.checks)]);
    if let Some(limited) = &results.limited {
        sections.remove(0);
        sections.extend(limit::sections(flags, results, limited));
        sections.push(checks(&limited.checks));
    }
    sections.retain(|section| !section.table.is_empty());
    sections
}

pub(super) fn section(title: &str, about: &str, table: Table) -> Section {
    Section { title: title.to_string(), about: about.to_string(), table }
}

fn kinds(results: &Results) -> Vec<Kind> {
    results.indexing.iter().map(|row| row.kind).collect()
}

fn indexing(results: &Results) -> Section {
    let heading =
        ["engine", "CPU s", "MB/s of CPU", "clock s", "peak memory MB", "index MB", "speed of tierdex by it"];
    let mut table = Table::new(1, &heading);
    let cpu = |row: &crate::indexing::Row| row.usage.cpu_s.max(1e-9);
    let ours = results.indexing.iter().find(|row| row.kind == Kind::Tierdex).map(cpu);
    for row in &results.indexing {
        table.row(vec![
            row.kind.name().to_string(),
            format!("{:.2}", row.usage.cpu_s),
            format!("{:.1}", results.corpus.bytes as f64 / 1e6 / cpu(row)),
            format!("{:.2}", row.usage.wall_s),
            format!("{:.0}", row.usage.peak_bytes as f64 / 1e6),
            format!("{:.1}", row.index_bytes as f64 / 1e6),
            ratio(ours.map(|ours| cpu(row) / ours)),
        ]);
    }
    section("Indexing", "", table)
}

fn speeds(results: &Results, rows: &[&Row], threads: u32) -> Section {
    let kinds = kinds(results);
    let names = kinds.iter().map(|kind| kind.name());
    let heading: Vec<&str> =
        ["set", "command"].into_iter().chain(names).chain(["best peer", "ratio"]).collect();
    let mut table = Table::new(2, &heading);
    for row in rows {
        let mut cells = vec![row.set.clone(), row.command.clone()];
        cells.extend(kinds.iter().map(|&kind| qps(row.cell(kind).map(crate::results::Cell::qps))));
        cells.push(row.best_peer().map_or("-", |cell| cell.kind.name()).to_string());
        cells.push(ratio(row.ratio()));
        table.row(cells);
    }
    let title = format!("Queries a second, {}", threads_of(threads));
    section(&title, "The ratio is that of tierdex to the best peer.", table)
}

/// Geometric means of ratios over sets, by command and over all.
fn means(flags: &Flags, results: &Results, rows: &[&Row], threads: u32) -> Section {
    let peers: Vec<Kind> = kinds(results).into_iter().filter(|&kind| kind != Kind::Tierdex).collect();
    let names = peers.iter().map(|kind| kind.name());
    let heading: Vec<&str> = ["command", "best peer", "least", "where"].into_iter().chain(names).collect();
    let mut table = Table::new(1, &heading);
    let compared: Vec<&Row> = rows.iter().copied().filter(|row| is_compared(&row.set)).collect();
    let rows = if compared.is_empty() { rows } else { &compared[..] };
    for command in flags.commands().iter().map(Some).chain([None]) {
        let of_command = |row: &&&Row| command.is_none_or(|command| row.command == *command);
        let rows: Vec<&Row> = rows.iter().filter(of_command).copied().collect();
        let least = rows.iter().filter_map(|row| Some((row.ratio()?, row)));
        let least = least.min_by(|a, b| a.0.total_cmp(&b.0));
        let Some((value, place)) = least else { continue };
        let mean = |of: &dyn Fn(&Row) -> Option<f64>| {
            ratio(geometric_mean(&rows.iter().filter_map(|row| of(row)).collect::<Vec<_>>()))
        };
        let mut cells = vec![command.map_or("all", String::as_str).to_string(), mean(&Row::ratio)];
        cells.extend([format!("{value:.2}"), format!("{} {}", place.set, place.command)]);
        cells.extend(peers.iter().map(|&peer| mean(&|row: &Row| row.ratio_to(peer))));
        table.row(cells);
    }
    let title = format!("Ratios, geometric means, {}", threads_of(threads));
    section(
        &title,
        "Over the sets above that are compared by default; to each peer over what it answers.",
        table,
    )
}

fn is_compared(set: &str) -> bool {
    JUDGED.contains(&set)
}

/// Queries a second by threads, geometric means over sets.
fn scaling(flags: &Flags, results: &Results) -> Section {
    let kinds = kinds(results);
    let names = kinds.iter().map(|kind| kind.name());
    let heading: Vec<&str> = ["command", "threads"].into_iter().chain(names).collect();
    let mut table = Table::new(1, &heading);
    if flags.threads.len() > 1 {
        for command in &flags.commands() {
            for &threads in &flags.threads {
                let rows =
                    results.rows.iter().filter(|row| row.threads == threads && row.command == *command);
                let rows: Vec<&Row> = rows.collect();
                let mean = |kind| {
                    let speeds = rows.iter().filter_map(|row| Some(row.cell(kind)?.qps()));
                    qps(geometric_mean(&speeds.collect::<Vec<_>>()))
                };
                let mut cells = vec![command.clone(), threads.to_string()];
                cells.extend(kinds.iter().map(|&kind| mean(kind)));
                table.row(cells);
            }
        }
    }
    section("Queries a second over threads", "Geometric means over the sets that an engine answers.", table)
}

fn checks(checks: &[Check]) -> Section {
    let mut table =
        Table::new(2, &["set", "engine", "queries", "numbers of matches that differ", "overlap of ten"]);
    for check in checks {
        let differ = if check.counted == 0 { "-".to_string() } else { check.differ.to_string() };
        table.row(vec![
            check.set.clone(),
            check.name.clone(),
            check.counted.to_string(),
            differ,
            ratio(check.overlap),
        ]);
    }
    let base = checks.first().map_or("the first engine", |check| &check.base);
    let about = format!(
        "Each beside {base}, on the first queries of each set: numbers of matches must be equal; the overlap is the \
         share of hits that both have among their best ten, mean over queries."
    );
    section("Agreement", &about, table)
}

/// What must be equal and is not, one line each.
pub fn warnings(results: &Results) -> Vec<String> {
    let limited = results.limited.as_ref();
    let checks = results.checks.iter().chain(limited.iter().flat_map(|limited| &limited.checks));
    let counts = checks.filter_map(|check| {
        let first = check.first.as_ref()?;
        let (set, name, base) = (&check.set, &check.name, &check.base);
        Some(format!("{set}: {name} counts otherwise than {base}, first at {first}"))
    });
    let sums = results.rows.iter().filter(|row| !row.agrees()).map(|row| {
        let sums: Vec<String> =
            row.cells.iter().map(|cell| format!("{} {}", cell.kind.name(), cell.sum)).collect();
        format!("{} {}: sums of answers differ: {}", row.set, row.command, sums.join(", "))
    });
    let under_limit = limited.iter().flat_map(|limited| limit::warnings(limited));
    counts.chain(sums).chain(under_limit).collect()
}

fn threads_of(threads: u32) -> String {
    if threads == 1 { "1 thread".to_string() } else { format!("{threads} threads") }
}

pub(super) fn ratio(value: Option<f64>) -> String {
    value.map_or("-".to_string(), |value| format!("{value:.2}"))
}

pub(super) fn qps(value: Option<f64>) -> String {
    value.map_or("-".to_string(), |value| format!("{value:.0}"))
}
