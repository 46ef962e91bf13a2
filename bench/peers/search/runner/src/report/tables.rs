//! The tables of a report.

use super::limit;
use super::section::{Section, qps, ratio, section};
use crate::{check::Check, engine::Kind, flags::Flags, mean::geometric_mean};
use crate::results::{Results, Row};
use crate::sets::{Group, JUDGED};
use tierdex_bench::Table;

/// All tables that have rows.
pub fn all(flags: &Flags, results: &Results) -> Vec<Section> {
    let mut sections = vec![indexing(results)];
    for &threads in &flags.threads {
        let rows: Vec<&Row> = results.rows.iter().filter(|row| row.threads == threads).collect();
        sections.push(speeds(results, &rows, threads));
        for group in Group::ALL {
            sections.push(means(flags, results, &rows, threads, group));
        }
        sections.push(own(&rows, threads));
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

fn indexing(results: &Results) -> Section {
    let heading =
        ["index", "CPU s", "MB/s of CPU", "clock s", "peak memory MB", "index MB", "speed of tierdex by it"];
    let mut table = Table::new(1, &heading);
    let cpu = |row: &crate::indexing::IndexingRow| row.usage.cpu_s.max(1e-9);
    for row in &results.indexing {
        let ours = results.indexing.iter().find(|one| one.kind == Kind::Tierdex && one.tail == row.tail);
        let ours = ours.map(cpu);
        table.row(vec![
            row.name.clone(),
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
    let kinds = results.kinds();
    let names = kinds.iter().map(|kind| kind.name());
    let heading: Vec<&str> =
        ["set", "command"].into_iter().chain(names).chain(["best peer", "ratio"]).collect();
    let mut table = Table::new(2, &heading);
    for row in rows {
        let mut cells = vec![row.set.clone(), row.command.clone()];
        cells.extend(kinds.iter().map(|&kind| qps(row.cell(kind).map(crate::results::EngineCell::qps))));
        cells.push(row.best_peer().map_or("-", |cell| cell.kind.name()).to_string());
        cells.push(ratio(row.ratio()));
        table.row(cells);
    }
    let title = format!("Queries a second, {}", threads_of(threads));
    section(
        &title,
        "The ratio is that of tierdex to the best peer, of those whose numbers of matches are equal.",
        table,
    )
}

/// Geometric means of ratios over sets of a group, by command and over all.
fn means(flags: &Flags, results: &Results, rows: &[&Row], threads: u32, group: Group) -> Section {
    let peers: Vec<Kind> = results.kinds().into_iter().filter(|&kind| kind != Kind::Tierdex).collect();
    let names = peers.iter().map(|kind| kind.name());
    let heading: Vec<&str> = ["command", "best peer", "least", "where"].into_iter().chain(names).collect();
    let mut table = Table::new(1, &heading);
    let rows: Vec<&Row> = rows.iter().copied().filter(|row| results.group(&row.set) == Some(group)).collect();
    let is_compared = |row: &&Row| group != Group::Flat || JUDGED.contains(&row.set.as_str());
    let compared: Vec<&Row> = rows.iter().copied().filter(is_compared).collect();
    let rows = if compared.is_empty() { rows } else { compared };
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
    let title = format!("Ratios, geometric means, {}, {}", group.name(), threads_of(threads));
    section(
        &title,
        "Over the sets above that are compared by default; to each peer over what it answers.",
        table,
    )
}

/// tierdex in other variants by tierdex in that of all engines, where they were measured.
fn own(rows: &[&Row], threads: u32) -> Section {
    let ours = |row: &Row| -> Vec<(String, f64)> {
        let cells = row.cells.iter().filter(|cell| cell.kind == Kind::Tierdex);
        cells.map(|cell| (cell.name.clone(), cell.qps())).collect()
    };
    let title = format!("tierdex beside itself, {}", threads_of(threads));
    let names: Vec<String> =
        rows.first().map(|row| ours(row)).unwrap_or_default().into_iter().map(|one| one.0).collect();
    let heading: Vec<&str> = ["set", "command"].into_iter().chain(names.iter().map(String::as_str)).collect();
    let mut table = Table::new(2, &heading);
    if names.len() < 2 {
        return section(&title, "", table);
    }
    let mut ratios: Vec<Vec<f64>> = vec![Vec::new(); names.len() - 1];
    for row in rows {
        let found = ours(row);
        let mut cells = vec![row.set.clone(), row.command.clone(), qps(found.first().map(|one| one.1))];
        for (place, (_, speed)) in found.iter().enumerate().skip(1) {
            let value = speed / found[0].1;
            ratios[place - 1].push(value);
            cells.push(ratio(Some(value)));
        }
        table.row(cells);
    }
    let mut cells = vec!["geometric mean".to_string(), String::new(), String::new()];
    cells.extend(ratios.iter().map(|values| ratio(geometric_mean(values))));
    table.row(cells);
    section(&title, "Queries a second, and the speed of the variants as a ratio to that.", table)
}

/// Queries a second by threads, geometric means over sets.
fn scaling(flags: &Flags, results: &Results) -> Section {
    let kinds = results.kinds();
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
    let mut table = Table::new(
        2,
        &["set", "engine", "queries", "numbers of matches that differ", "overlap of ten", "scores"],
    );
    for check in checks.iter().filter(|check| check.counted > 0 || check.overlap.is_some()) {
        let differ = if check.counted == 0 { "-".to_string() } else { check.differ.to_string() };
        table.row(vec![
            check.set.clone(),
            check.name.clone(),
            check.counted.to_string(),
            differ,
            ratio(check.overlap),
            check.scores.map_or("-".to_string(), |share| format!("{:.1}%", share * 100.0)),
        ]);
    }
    let base = checks.first().map_or("the first engine", |check| &check.base);
    let about = format!(
        "Each beside {base}, on the first queries of each set: numbers of matches must be equal; the overlap is the \
         share of hits that both have among their best ten, mean over queries; and scores at the same place among these \
         differ by no more than this in 95% of the places, beside a constant factor."
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
        let sums: Vec<String> = row.cells.iter().map(|cell| format!("{} {}", cell.name, cell.sum)).collect();
        format!("{} {}: sums of answers differ: {}", row.set, row.command, sums.join(", "))
    });
    let under_limit = limited.iter().flat_map(|limited| limit::warnings(limited));
    counts.chain(sums).chain(under_limit).collect()
}

fn threads_of(threads: u32) -> String {
    if threads == 1 { "1 thread".to_string() } else { format!("{threads} threads") }
}
