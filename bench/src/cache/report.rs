//! The report of a run: machine, command, set-up, method and tables.

use crate::cache::flags::{Flags, metadata_tier_name, region_name};
use crate::cache::rows::{CellMedian, CellRows, baseline_figures, memory_figures};
use crate::cache::{device::Device, plan::RunPlan, plot::CachePlot};
use crate::{Machine, Table, table::ratio_text, throttle::SAS_BYTES_PER_SECOND};
use tierdex::{internal::engine::MetaTier, io::RegionKind, io::Size};

/// A column of the table: its heading, its width on a terminal, and whether it is left-aligned.
type Column = (&'static str, usize, bool);

const TABLE_COLUMNS: [Column; 15] = [
    ("queries", 17, true),
    ("device", 12, true),
    ("mode", 27, true),
    ("size", 5, false),
    ("QPS", 9, false),
    ("first QPS", 9, false),
    ("p50 ms", 8, false),
    ("p99 ms", 8, false),
    ("MB read", 7, false),
    ("fetched", 7, false),
    ("misses", 7, false),
    ("waits", 6, false),
    ("ahead", 5, false),
    ("limit MB", 8, false),
    ("peak MB", 7, false),
];

/// Longest reason of a failure on a terminal, in characters; the report has the whole text.
const REASON_CHARS_MAX: usize = 120;

/// The heading of the table on a terminal.
pub(super) fn terminal_heading() -> String {
    let cells = TABLE_COLUMNS.map(|(heading, ..)| heading.to_string());
    align_columns(&cells)
}

/// The line of a cell in the table on a terminal.
pub(super) fn terminal_line(one: &CellMedian) -> String {
    match &one.figures {
        Ok(_) => align_columns(&column_texts(one)),
        Err(reason) => {
            let settings = align_columns(&column_texts(one)[..4]);
            let reason: String = reason.chars().take(REASON_CHARS_MAX).collect();
            format!("{}  {reason}\n", settings.trim_end_matches('\n'))
        }
    }
}

fn align_columns(cells: &[String]) -> String {
    let cells = cells.iter().zip(TABLE_COLUMNS).map(|(cell, (_, width, left))| {
        if left { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
    });
    format!("{}\n", cells.collect::<Vec<_>>().join("  ").trim_end())
}

fn column_texts(one: &CellMedian) -> [String; 15] {
    let of = |value: Option<f64>, digits: usize| {
        value.map_or("-".to_string(), |value| format!("{value:.digits$}"))
    };
    let megabytes = |bytes: Option<u64>| of(bytes.map(|bytes| bytes as f64 / 1e6), 1);
    let figures = one.figures.as_ref().ok();
    let cached = figures.and_then(|figures| figures.miss_rate.map(|rate| 100.0 * rate));
    let ahead = figures.filter(|_| cached.is_some()).map(|figures| figures.lookahead_max as f64);
    [
        one.cell.workload.to_string(),
        one.cell.device.title(),
        one.cell.name(),
        one.cell.size.map_or("-".to_string(), |size| size.to_string()),
        of(figures.map(|figures| figures.qps), 1),
        of(figures.map(|figures| figures.first_qps), 1),
        of(figures.map(|figures| figures.p50 / 1e3), 3),
        of(figures.map(|figures| figures.p99 / 1e3), 3),
        of(figures.map(|figures| figures.read / 1e6), 3),
        of(figures.and_then(|figures| figures.fetched.map(|bytes| bytes / 1e6)), 3),
        cached.map_or("-".to_string(), |misses| format!("{misses:.1}%")),
        of(figures.and_then(|figures| figures.waits), 0),
        of(ahead, 0),
        megabytes(one.limit),
        megabytes(one.peak),
    ]
}

/// The whole report. `complete` says whether all cells were measured.
pub(super) fn markdown(
    command: &str,
    machine: &Machine,
    flags: &Flags,
    plan: &RunPlan,
    rows: &CellRows,
    plots: &[CachePlot],
    complete: bool,
) -> String {
    let medians = rows.medians();
    let mut text = format!(
        "# Postings caches\n\n## Machine\n\n{}\n## Command\n\n```\n{command}\n```\n\n",
        machine.to_markdown()
    );
    if !complete {
        text += "**Stopped before all cells were measured.**\n\n";
    }
    for different in rows.differences() {
        text += &format!("**Wrong answers: {different}.**\n\n");
    }
    text += &format!(
        "## Set-up\n\n{}\n\n## Figures\n\n{}\n",
        set_up_text(flags, plan).trim_end(),
        figures_table(&medians)
    );
    text += &failures_text(&medians);
    text += &engines_text(rows);
    text += &format!("## Ratios\n\n{RATIOS_TEXT}\n\n{}\n", ratios_table(&medians).to_markdown());
    text += &format!("## Flatness\n\n{FLATNESS_TEXT}\n\n{}\n", flatness_table(&medians).to_markdown());
    text += "## Plots\n\n";
    for plot in plots {
        text += &format!("![{}]({})\n\n", plot.title, plot.file);
    }
    text + "All rows are in `data.json`.\n"
}

const RATIOS_TEXT: &str = "Queries per second and 99th percentile of the latency as ratios, to `base-prefetch` with a page \
    cache as large as the cache of the mode, and to the index in memory.";

const FLATNESS_TEXT: &str = "For each line of the plots, the smallest and the largest queries per second over all sizes, and their ratio.";

fn figures_table(medians: &[CellMedian]) -> String {
    let headings = TABLE_COLUMNS.map(|(heading, ..)| heading);
    let headings: Vec<&str> = headings.into_iter().chain(["own MB", "limit met"]).collect();
    let mut table = Table::new(3, &headings);
    for one in medians {
        let own = one.own.map_or("-".to_string(), |bytes| format!("{:.1}", bytes as f64 / 1e6));
        let met = one.limit_met.map_or("-".to_string(), |times| times.to_string());
        table.row(column_texts(one).into_iter().chain([own, met]).collect());
    }
    table.to_markdown()
}

/// Cells that failed in some or all rounds.
fn failures_text(medians: &[CellMedian]) -> String {
    let dead = medians.iter().filter(|one| one.failed > 0).map(|one| {
        let why = one.figures.as_ref().err().map_or("in some rounds", String::as_str);
        format!("- {}: {why} ({} rounds)\n", one.cell.describe(), one.failed)
    });
    let dead: String = dead.collect();
    if dead.is_empty() { dead } else { format!("Not measured:\n\n{dead}\n") }
}

/// A paragraph with the read method of each mode.
fn engines_text(rows: &CellRows) -> String {
    let mut lines: Vec<String> = Vec::new();
    for row in rows.all() {
        let Ok(found) = &row.outcome else { continue };
        let why = found.fallback.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
        let line = format!("- {}: {}{why}\n", row.cell.mode, found.engine);
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    if lines.is_empty() { String::new() } else { format!("I/O engines:\n\n{}\n", lines.concat()) }
}

fn ratios_table(medians: &[CellMedian]) -> Table {
    let heading = [
        "queries",
        "device",
        "mode",
        "size",
        "QPS/base-prefetch",
        "p99/base-prefetch",
        "QPS/memory",
        "p99/memory",
    ];
    let mut table = Table::new(3, &heading);
    for one in medians {
        let (Ok(own), Some(size)) = (&one.figures, one.cell.size) else { continue };
        let (base, memory) =
            (baseline_figures(medians, &one.cell), memory_figures(medians, one.cell.workload));
        table.row(vec![
            one.cell.workload.to_string(),
            one.cell.device.title(),
            one.cell.name(),
            size.to_string(),
            ratio_text(base.map(|base| own.qps / base.qps)),
            ratio_text(base.map(|base| own.p99 / base.p99)),
            ratio_text(memory.map(|memory| own.qps / memory.qps)),
            ratio_text(memory.map(|memory| own.p99 / memory.p99)),
        ]);
    }
    table
}

fn flatness_table(medians: &[CellMedian]) -> Table {
    let mut table =
        Table::new(3, &["queries", "device", "mode", "fewest QPS", "at", "most QPS", "at", "fewest/most"]);
    for (number, first) in medians.iter().enumerate() {
        let same = |other: &&CellMedian| other.cell.differs_only_in_size(&first.cell);
        if first.cell.size.is_none() || medians[..number].iter().any(|other| same(&other)) {
            continue;
        }
        let points = medians
            .iter()
            .filter(same)
            .filter_map(|one| Some((one.cell.size?, one.figures.as_ref().ok()?.qps)));
        let mut points: Vec<(Size, f64)> = points.collect();
        points.sort_by(|one, other| one.1.total_cmp(&other.1));
        let (Some(least), Some(most)) = (points.first(), points.last()) else { continue };
        table.row(vec![
            first.cell.workload.to_string(),
            first.cell.device.title(),
            first.cell.name(),
            format!("{:.1}", least.1),
            least.0.to_string(),
            format!("{:.1}", most.1),
            most.0.to_string(),
            format!("{:.2}", least.1 / most.1),
        ]);
    }
    table
}

fn set_up_text(flags: &Flags, plan: &RunPlan) -> String {
    let (index, megabytes) = (&plan.index, |bytes: u64| bytes as f64 / 1e6);
    let mut text = format!(
        "The index has {} documents and {:.1} MB of documents and frequencies in blocks. Terms are those of its field \
         `{}`.\n\n",
        index.documents,
        megabytes(index.postings_bytes),
        index.field
    );
    for &class in &flags.classes {
        let (least, below) = class.bounds(index.documents);
        let below = below.map(|below| format!(" and less than {below}")).unwrap_or_default();
        text += &format!("- Class {class}: terms with a document frequency of at least {least}{below}.\n");
    }
    text += "\nThe thesis has class H from 1,000,000 documents on and class M from 1,000 on, of about 160 million; these \
             are the same shares. Queries are drawn from two queues as in its section 5.2.3: RP is the probability that a \
             term is one of the last hundred drawn. The two terms of a query differ.\n\n";
    text += &workloads_text(flags, plan);
    text += &memory_text(flags);
    text += &method_text(flags);
    text
}

fn workloads_text(flags: &Flags, plan: &RunPlan) -> String {
    let heading = [
        "queries",
        "count",
        "terms of the class",
        "different terms",
        "repeated queries",
        "their lists MB",
        "% of index",
        "in segments MB",
        "asked MB/query",
    ];
    let mut table = Table::new(1, &heading);
    let megabytes = |bytes: u64| format!("{:.1}", bytes as f64 / 1e6);
    for (workload, queries) in &plan.workloads {
        let (count, bytes) = (queries.terms.len(), queries.working_set(None));
        table.row(vec![
            workload.to_string(),
            count.to_string(),
            queries.class_terms.to_string(),
            queries.lists.len().to_string(),
            queries.repeated.to_string(),
            megabytes(bytes),
            format!("{:.1}", 100.0 * bytes as f64 / plan.index.postings_bytes.max(1) as f64),
            megabytes(queries.working_set(flags.segments.first().copied())),
            format!("{:.3}", queries.bytes_asked as f64 / 1e6 / count.max(1) as f64),
        ]);
    }
    let segment = flags.segments.first().map_or(0, |bytes| *bytes);
    format!(
        "{}\nA cache segment holds bytes of one list only. `in segments` is the smallest size of the lists in cache segments \
         of {}: where lists are shorter than a segment, a cache of 100% does not hold all of them.\n\n",
        table.to_markdown(),
        Size::Bytes(segment)
    )
}

fn memory_text(flags: &Flags) -> String {
    let (dram, slack) = (Size::Bytes(flags.dram), flags.slack);
    let mut text = format!(
        "The cache is in the region `{}`, in addition to a DRAM budget of {dram}. Terms, skip data and lengths are in `{}` in \
         all modes except `memory`. Sizes are in percent of the bytes of documents and frequencies. `memory` has the whole \
         index in memory and no limit.\n\n",
        region_name(&flags.region),
        metadata_tier_name(&flags.metadata_tier())
    );
    if flags.no_group {
        return text
            + "**Without control groups: there is no memory limit, so the page cache of the base modes is not limited, and \
                       peak memory is not measured.**\n\n";
    }
    let free = |region: &RegionKind| matches!(region, RegionKind::Hugetlb | RegionKind::Dax(_));
    let meta = matches!(flags.metadata_tier(), MetaTier::Region(region) if !free(&region));
    let beside = match (free(&flags.region), meta) {
        (true, false) => "",
        (true, true) => " + terms, skip data and lengths, whose region is charged to the group",
        (false, false) => " + the cache, whose region is charged to the group",
        (false, true) => " + the cache, terms, skip data and lengths, whose regions are charged to the group",
    };
    text += &format!(
        "Limit of the memory control group of each cell: {dram} + {slack}%{beside}; for base and base-prefetch also the size, \
         because the page cache is their cache, and metadata in DRAM. The peak is the group's largest memory, page cache included, \
         which grows up \
         to the limit; `own` is the group's memory without page cache at the end of the cell. `limit met` is the number of \
         times the group reached the limit and page cache was reclaimed.\n\n"
    );
    text
}

fn method_text(flags: &Flags) -> String {
    let caches =
        if flags.keep_caches { "The page cache is not dropped" } else { "The page cache is dropped" };
    let matching = if flags.exhaustive {
        "all matching documents are scored (exhaustive)"
    } else {
        "documents that cannot be among the best are pruned"
    };
    let rounds = match flags.rounds {
        1 => "One round".to_string(),
        rounds => format!("{rounds} rounds, each of all cells; figures are medians, peaks are maxima"),
    };
    let threads = match flags.threads {
        1 => "one query thread".to_string(),
        threads => format!("{threads} query threads"),
    };
    let mut text = format!(
        "{caches} before each cell, and each cell is a process of its own: it answers its {} queries twice, and figures are \
         of the second repetition (`first QPS` of the first). Top {}, {matching}; {threads}. {rounds}. p50 and p99 are \
         percentiles of the latency of a query, from the start of its evaluation. Misses, waits and `ahead`, the largest \
         lookahead in queries, are those of the postings cache. `MB read` counts the whole pages that a query reads, through \
         the page cache or past it; in base-prefetch both the worker and the query read. `fetched` is the part of it that \
         the kernel read from the device, in MB as well. The answers of all cells to the same queries have the same checksum \
         of documents, score bits and matches, or the run fails.\n\n",
        flags.count, flags.k
    );
    if flags.held.is_given() {
        text += &format!("- `memory`: the index is in {}.\n", region_name(&flags.held.region()));
    }
    if let Some(delay) = flags.held.slow_tier {
        let bandwidth =
            delay.gbps.map_or(String::new(), |gbps| format!(", all reads together at {gbps} GB/s"));
        text += &format!(
            "- `slow={delay} emulated`: lines of 256 bytes of documents and frequencies arrive {} ns later, four in flight \
             when they are read in order{bandwidth}, by busy waiting. Other data of the index is read without delay.\n",
            delay.nanoseconds
        );
    }
    if flags.devices.contains(&Device::Hdd) {
        text += &format!(
            "- `{}`: a file system in user space over the device of the index, with one head: a read that does not follow \
             the one before takes a seek of 1 to 15 ms, by distance on a disk of 1 TB, and half a rotation (4.17 ms); 181 \
             MB/s; requests are not reordered. The first repetition is not delayed, except in mode direct.\n",
            Device::Hdd.title()
        );
    }
    if flags.devices.contains(&Device::Sas) {
        text += &format!(
            "- `{}`: the device of the index, throttled to {} MB/s in the second repetition; in mode direct, and with \
             control groups of version 2, in both.\n",
            Device::Sas.title(),
            SAS_BYTES_PER_SECOND / 1_000_000
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{super::rows::tests::test_rows, *};

    #[test]
    fn ratios_and_flatness_compare_the_same_queries() {
        let rows = test_rows(
            "--modes memory,base-prefetch,hybrid-prefetch --lookahead 16,adaptive --sizes 5,20",
            |cell, _| cell.describe() == "hybrid-prefetch of AND H RP 25% on ssd at 20%",
        );
        let medians = rows.medians();
        let ratios = ratios_table(&medians).to_markdown();
        assert!(
            ratios.contains("| SINGLE H RP 25% | ssd    | hybrid-prefetch          |   5% |"),
            "{ratios}"
        );
        assert_eq!(ratios.matches("1.00").count(), 4 * (4 + 8 - 1), "{ratios}");
        let flatness = flatness_table(&medians).to_markdown();
        assert_eq!(flatness.matches("| AND H RP 25% ").count(), 3, "{flatness}");
        assert_eq!(
            failures_text(&medians),
            "Not measured:\n\n- hybrid-prefetch of AND H RP 25% on ssd at 20%: killed (2 rounds)\n\n"
        );
    }

    #[test]
    fn a_line_has_a_column_under_each_heading() {
        let rows = test_rows("--modes direct --shapes AND --sizes 5 --devices hdd", |_, _| false);
        let line = terminal_line(&rows.medians()[0]);
        assert!(line.starts_with("AND H RP 25%       hdd emulated  direct "), "{line}");
        assert!(terminal_heading().starts_with("queries            device        mode "));
        assert!(line.trim_end().chars().count() <= terminal_heading().trim_end().chars().count());
    }
}
