//! The report of a run: machine, command, method, tables, and a comparison with the figures of the paper.

use crate::intersect::{plot, results::IntersectResults, row::SweepRow};
use crate::{Table, intersection::Algorithm};
use tierdex::io::Size;

/// The whole report.
pub(super) fn markdown(results: &IntersectResults) -> String {
    let mut text = format!(
        "# List intersection on disk\n\n## Machine\n\n{}\n## Command\n\n```\n{}\n```\n\n## Method\n\n{}\n\n",
        results.machine.to_markdown(),
        results.flags.command(),
        method_text(results)
    );
    text += &format!("## Comparison with the paper\n\n{}\n", paper_comparison(results).to_markdown());
    for (title, table) in sweep_tables(results) {
        let sweep = title.split(':').next().unwrap_or_default();
        text += &format!("## {title}\n\n{}\n", table.to_markdown());
        if results.sweeps().contains(&sweep) && plot::sweep_axis(sweep).is_some() {
            text += &format!("![time and pages]({sweep}.svg)\n\n");
        }
    }
    text + "All rows are in `data.json`.\n"
}

fn method_text(results: &IntersectResults) -> String {
    let settings = &results.settings;
    let mut text = format!(
        "Wang, Lin, Papakonstantinou, Swanson, \"Evaluating List Intersection on SSDs for Parallel I/O Skipping\". Default \
         parameters: two uniform lists of {} and {} ids, {}% of the shorter list in both, raw in pages of 4 KiB, {} bits of \
         Bloom filter per id, {} threads for `bl`, `sl`, `zz` and `bf`, one for `direct` with {} reads in flight of at most \
         {} into {}. A thread of `bl` has {} reads of 1 MiB in flight. Threads, engines and memory are created before the \
         timing; skip pointers and filters are in memory. Reads bypass the page cache, so that every read goes to the \
         device. All algorithms run in turn in each of {} rounds; times are medians; CPU is that of all threads. IntersectResults \
         are compared with an intersection in memory.",
        settings.short,
        settings.long,
        100.0 * settings.common,
        settings.filter,
        settings.threads,
        settings.depth,
        Size::Bytes(settings.read_bytes as u64),
        settings.region,
        settings.bl_depth,
        settings.rounds
    );
    if settings.hdd {
        text += " **The device is emulated**: a file system in user space delays reads by the seeks of a hard disk (1 to 15 ms \
                 by distance, and 4.17 ms of rotation; 181 MB/s); requests are not reordered.";
    }
    if let Some(bytes) = results.flags.bandwidth {
        text += &format!(
            " **The device is emulated**: a control group limits its reads to {:.0} MB/s.",
            bytes as f64 / 1e6
        );
    }
    if let Some(cost) = results.cost {
        text += &format!(
            "\n\nEngine: {}. Cost model: {:.1} us per read plus the bytes at {:.2} GB/s. So two pages are read together when \
             at most {} pages are between them. Testing an id against a filter takes {:.0} ns.",
            results.read_method,
            1e6 * cost.read_seconds,
            cost.bytes_per_second / 1e9,
            cost.gap_pages(),
            1e9 * cost.test_seconds
        );
    }
    if let Some((queries, terms)) = results.queries {
        text += &format!(
            "\n\nQuery log: {queries} queries with {terms} different terms; figures are sums over the queries."
        );
    }
    text
}

/// One table per sweep, with its title.
pub(super) fn sweep_tables(results: &IntersectResults) -> Vec<(String, Table)> {
    let of = |sweep: &'static str| {
        let rows: Vec<&SweepRow> = results.rows().iter().filter(|row| row.sweep == sweep).collect();
        (format!("{sweep}: {}", sweep_description(sweep)), sweep_table(sweep, &rows))
    };
    results.sweeps().into_iter().map(of).collect()
}

fn sweep_description(sweep: &str) -> &'static str {
    match sweep {
        "threads" => "threads of bl, sl, zz and bf (figure 2)",
        "ratio" => "ratio of the lengths of the longer and the shorter list (figure 3)",
        "intersection" => "share of the shorter list in both (figure 4)",
        "lists" => {
            "number of lists; the third and the fourth have a tenth and a third of the length of the longest"
        }
        "codec" => "codecs of the ids",
        "depth" => "reads in flight of direct",
        "memory" => "share of the pages of both lists in memory",
        _ => "queries of a log over the lists of an index (figure 5), sums over all queries",
    }
}

fn sweep_table(sweep: &str, rows: &[&SweepRow]) -> Table {
    let heading = [
        sweep,
        "algorithm",
        "ms",
        "min",
        "max",
        "CPU ms",
        "pages read",
        "of",
        "MB read",
        "reads",
        "false positives",
        "bl/this",
    ];
    let mut table = Table::new(2, &heading);
    let ms = |seconds: f64| format!("{:.1}", 1e3 * seconds);
    for row in rows {
        let base = rows.iter().find(|other| other.label == row.label && other.algorithm == Algorithm::Bl);
        table.row(vec![
            row.label.clone(),
            row.algorithm.name().to_string(),
            ms(row.seconds),
            ms(row.spread.0),
            ms(row.spread.1),
            ms(row.cpu_seconds),
            row.reads.pages.to_string(),
            row.pages.to_string(),
            format!("{:.2}", row.reads.bytes as f64 / 1e6),
            row.reads.reads.to_string(),
            row.reads.false_positives.to_string(),
            base.map_or("-".to_string(), |base| format!("{:.2}", base.seconds / row.seconds.max(1e-9))),
        ]);
    }
    table
}

/// The claims of the paper that this run has figures for.
pub(super) fn paper_comparison(results: &IntersectResults) -> Table {
    let mut table = Table::new(3, &["claim", "paper", "here"]);
    let find = |sweep: &str, x: f64, algorithm| {
        results.rows().iter().find(|row| row.sweep == sweep && row.x == x && row.algorithm == algorithm)
    };
    let most =
        results.rows().iter().filter(|row| row.sweep == "threads").map(|row| row.x).fold(0.0, f64::max);
    let at = |x, algorithm| find("threads", x, algorithm);
    let mut say = |claim: &str, paper: &str, here: Option<String>| {
        if let Some(here) = here {
            table.row(vec![claim.to_string(), paper.to_string(), here]);
        }
    };
    let ratio_text = |one: Option<&SweepRow>, other: Option<&SweepRow>| {
        Some(format!("{:.2}", one?.seconds / other?.seconds.max(1e-9)))
    };
    use Algorithm::{Bf, Bl, Direct, Sl, Zz};
    if let (Some(sl), Some(bl)) = (at(1.0, Sl), at(1.0, Bl)) {
        let (short, long) = (f64::from(results.settings.short), f64::from(results.settings.long));
        let pages = (long / 1024.0).ceil();
        let hit = pages * (1.0 - (-short / pages).exp()) + (short / 1024.0).ceil();
        say(
            "pages that sl reads, one thread",
            "6,553 of 11,177",
            Some(format!("{} of {}; {hit:.0} by theory", sl.reads.pages, bl.reads.pages)),
        );
    }
    say("pages that bf reads, one thread", "far fewer", at(1.0, Bf).map(|row| row.reads.pages.to_string()));
    say(
        "zz reads as many pages as sl, of two lists",
        "the same",
        at(1.0, Zz).map(|row| row.reads.pages.to_string()),
    );
    say("time of sl / bl, one thread", "more than 1", ratio_text(at(1.0, Sl), at(1.0, Bl)));
    let threads = format!("{most} threads");
    say(&format!("time of bl / sl, {threads}"), "1.6", ratio_text(at(most, Bl), at(most, Sl)));
    say(&format!("time of bl / bf, {threads}"), "more than sl", ratio_text(at(most, Bl), at(most, Bf)));
    say(&format!("time of bl / direct, {threads}"), "-", ratio_text(at(most, Bl), at(most, Direct)));
    say(&format!("time of sl / direct, {threads}"), "-", ratio_text(at(most, Sl), at(most, Direct)));
    let cpu = |direct: Option<&SweepRow>, sl: Option<&SweepRow>| {
        Some(format!("{:.2}", direct?.cpu_seconds / sl?.cpu_seconds.max(1e-9)))
    };
    say(&format!("CPU of direct / sl, {threads}"), "-", cpu(at(most, Direct), at(most, Sl)));
    for ratio in [1.0, 10.0, 100.0, 1000.0, 10_000.0] {
        let claim = format!("share of pages that sl and bf skip at a size ratio of {ratio}");
        let paper = if ratio <= 10.0 { "none" } else { "some" };
        let share = |row: &SweepRow| 100.0 * row.reads.skipped as f64 / row.pages.max(1) as f64;
        let both = find("ratio", ratio, Sl).zip(find("ratio", ratio, Bf));
        say(&claim, paper, both.map(|(sl, bf)| format!("{:.1}%, {:.1}%", share(sl), share(bf))));
    }
    for (algorithm, paper) in [(Bl, "flat"), (Sl, "flat"), (Bf, "grows")] {
        let pages: Vec<u64> = results
            .rows()
            .iter()
            .filter(|row| row.sweep == "intersection" && row.algorithm == algorithm)
            .map(|row| row.reads.pages)
            .collect();
        let claim =
            format!("pages of {} from the smallest intersection ratio to the largest", algorithm.name());
        say(&claim, paper, pages.first().zip(pages.last()).map(|(first, last)| format!("{first} to {last}")));
    }
    let (zz, sl) = (find("lists", 3.0, Zz), find("lists", 3.0, Sl));
    let pages = zz.zip(sl).map(|(zz, sl)| format!("{} and {}", zz.reads.pages, sl.reads.pages));
    say("pages of zz and of sl, of three lists", "zz more", pages);
    table
}
