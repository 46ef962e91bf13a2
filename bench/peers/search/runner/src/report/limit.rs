//! The report of a run under a memory limit: tables, method, rows of JSON.

use super::section::{Section, qps, ratio, section};
use crate::engine::{JAVA_SMALL, Kind};
use crate::{flags::Flags, results::Results};
use crate::limit::{LimitCell, LimitContender, LimitRow, Limited, cache_flags};
use serde_json::{Value, json};
use tierdex_bench::Table;

/// The tables, without that of agreement.
pub fn sections(flags: &Flags, results: &Results, limited: &Limited) -> Vec<Section> {
    vec![contenders(flags, results, limited), speeds(flags, limited), details(flags, limited)]
}

fn contenders(flags: &Flags, results: &Results, limited: &Limited) -> Section {
    let mut table = Table::new(1, &["engine", "index MB", "limit MB", "of it the process's own"]);
    for contender in &limited.contenders {
        let index = results.indexing.iter().find(|row| row.kind == contender.kind);
        table.row(vec![
            contender.title(flags),
            megabytes(index.map(|row| row.index_bytes)),
            megabytes(Some(contender.limit)),
            megabytes(contender.own),
        ]);
    }
    let ahead = limited.read_ahead_kb.map_or("an unknown number of".to_string(), |kb| kb.to_string());
    section("Limits", &format!("The device reads {ahead} kB ahead where it is not told otherwise."), table)
}

fn speeds(flags: &Flags, limited: &Limited) -> Section {
    let titles: Vec<String> = limited.contenders.iter().map(|contender| contender.title(flags)).collect();
    let names = titles.iter().map(String::as_str);
    let heading: Vec<&str> =
        ["set", "command"].into_iter().chain(names).chain(["best peer", "ratio"]).collect();
    let mut table = Table::new(2, &heading);
    for row in &limited.rows {
        let mut cells = vec![row.set.clone(), row.command.clone()];
        let speed = |contender: &LimitContender| qps(row.cell(&contender.name).map(LimitCell::qps));
        cells.extend(limited.contenders.iter().map(speed));
        cells.push(row.best_peer().map_or("-", |cell| cell.name.as_str()).to_string());
        cells.push(ratio(row.ratio()));
        table.row(cells);
    }
    section("Queries a second under the limit", "The ratio is that of tierdex to the best peer.", table)
}

fn details(flags: &Flags, limited: &Limited) -> Section {
    let heading =
        ["set", "command", "engine", "queries/s", "p50 ms", "p99 ms", "MB read a query", "peak MB", "own MB"];
    let mut table = Table::new(3, &heading);
    for row in &limited.rows {
        for contender in &limited.contenders {
            let Some(cell) = row.cell(&contender.name) else { continue };
            table.row(vec![
                row.set.clone(),
                row.command.clone(),
                contender.title(flags),
                format!("{:.0}", cell.qps()),
                format!("{:.2}", cell.p50_ns / 1e6),
                format!("{:.2}", cell.p99_ns / 1e6),
                cell.fetched.map_or("-".to_string(), |bytes| format!("{:.3}", bytes / 1e6)),
                megabytes(cell.peak),
                megabytes(cell.own),
            ]);
        }
    }
    let about = "Megabytes that the device gave, a query; the largest peak of the group, page cache included; and what of it \
                 was no page cache at the end.";
    section("Under the limit, by engine", about, table)
}

fn megabytes(bytes: Option<u64>) -> String {
    bytes.map_or("-".to_string(), |bytes| format!("{:.1}", bytes as f64 / 1e6))
}

/// What did not go as it should, or does not agree.
pub fn warnings(limited: &Limited) -> Vec<String> {
    let sums = limited.rows.iter().filter(|row| !row.agrees()).map(|row| {
        let sums: Vec<String> = row.cells.iter().map(|cell| format!("{} {}", cell.name, cell.sum)).collect();
        format!("{} {}: sums of answers differ: {}", row.set, row.command, sums.join(", "))
    });
    limited.notes.iter().cloned().chain(sums).collect()
}

/// How it was measured.
pub fn method(flags: &Flags, limit: u64) -> String {
    let what = if flags.beyond_own {
        "What it has of its own, and is no page cache, was found out before, when it had answered everything in ample memory; \
         the limit is that and as many bytes for its index"
    } else {
        "The limit is for all of the process: its own memory, its program, and the page cache of what it reads"
    };
    format!(
        "Each engine is a process in a control group of its own that has {limit} bytes of memory. {what}. There is one engine in \
         memory at a time; they take turns within each set and command, another one first in each round; {} rounds, of \
         which figures are medians. Each batch has a new process, and asks each query of the set once (up to {}); when it \
         starts, no page of the index is in memory. Lucene alone answers the batch {} times before, so that its loops \
         are compiled; then the group's page cache is taken from it, mapped pages included. One thread asks.\n\n\
         Peers read mapped files: as the library comes, and (`random`) with the advice that pages are read here and \
         there, so that the system reads none ahead. Lucene's virtual machine: `{}`; those of its libraries that other \
         processes have read are not in its group. A star marks an engine that did not live in the limit, and has as much beyond \
         its own memory. tierdex: `{} --threads 1`, and `--exhaustive` for `TOP_k_COUNT`; a batch is its queue, from which it reads ahead, and \
         the latency of a query is the time from the start of its evaluation to its end, during which others have turns.\n\n",
        flags.rounds(),
        flags.count(),
        flags.warm(),
        JAVA_SMALL.join(" "),
        cache_flags(flags, limit)
    )
}

/// An object a contender and row.
pub fn speeds_json(limited: &Limited) -> Vec<Value> {
    let of_row = |row: &LimitRow| {
        let cell = |cell: &LimitCell| {
            let limit = limited.contenders.iter().find(|contender| contender.name == cell.name);
            json!({
                "set": row.set, "command": row.command, "engine": cell.name, "peer": cell.kind != Kind::Tierdex,
                "limit": limit.map(|contender| contender.limit), "own_before": limit.and_then(|contender| contender.own),
                "read_ahead_kb": limited.read_ahead_kb, "qps": cell.qps(), "rounds": cell.rounds,
                "p50_ns": cell.p50_ns, "p99_ns": cell.p99_ns, "bytes_fetched_a_query": cell.fetched,
                "peak": cell.peak, "own": cell.own, "sum": cell.sum,
            })
        };
        row.cells.iter().map(cell).collect::<Vec<_>>()
    };
    limited.rows.iter().flat_map(of_row).collect()
}
