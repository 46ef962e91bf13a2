//! The report of a run: machine, command, method and tables.

use crate::codecs::{data::DataPlan, list_group::ValueKind, own::MEMCPY, rows::CodecRow, rows::CodecRows};
use crate::{Machine, Table, table::ratio_text};

/// A section of the report: a title, text and a table.
pub struct ReportSection {
    /// The title.
    pub title: String,
    /// The text before the table; can be empty.
    pub about: String,
    /// The table.
    pub table: Table,
}

/// Facts of the run for the report, in addition to its rows.
pub(super) struct RunFacts {
    machine: Machine,
    rounds: usize,
    group_ints: usize,
    /// Number of long terms of the index, and the stride at which they were taken.
    index: Option<(u64, u64)>,
}

impl RunFacts {
    pub(super) fn of(plan: &DataPlan) -> RunFacts {
        RunFacts {
            machine: Machine::here(),
            rounds: plan.scale.rounds,
            group_ints: plan.scale.group_ints,
            index: plan.index.as_ref().map(|lists| (lists.terms, lists.stride)),
        }
    }
}

/// Name of the kernel without vector instructions, to which the others are compared.
const BASELINE_KERNEL: &str = "scalar";

/// The report as Markdown: machine, command, method and tables.
pub(super) fn markdown(command: &str, facts: &RunFacts, rows: &CodecRows, more: &[ReportSection]) -> String {
    let mut text = format!(
        "# Integer codecs\n\n## Machine\n\n{}\n## Command\n\n```\n{command}\n```\n\n## Method\n\n{}\n",
        facts.machine.to_markdown(),
        method_text(facts)
    );
    let speedups = speedups_section(rows);
    for section in total_sections(rows).iter().chain(&speedups).chain(more) {
        text += &format!("## {}\n\n", section.title);
        if !section.about.is_empty() {
            text += &format!("{}\n\n", section.about);
        }
        text += &format!("{}\n", section.table.to_markdown());
    }
    text + "## By list length\n\n![bits and speed by list length](codecs.svg)\n\nAll rows are in `data.json`.\n"
}

/// One section per dataset with the sums of its contenders.
pub(super) fn total_sections(rows: &CodecRows) -> Vec<ReportSection> {
    let section = |(dataset, kind): (&'static str, ValueKind)| {
        let totals = rows.totals(dataset);
        let what = if kind == ValueKind::Ids { "ids" } else { "frequencies" };
        let (ints, lists) = totals.first().map_or((0, 0), |row| (row.ints, row.lists));
        ReportSection {
            title: format!("{dataset}: {:.1} million {what} in {lists} lists", ints as f64 / 1e6),
            about: String::new(),
            table: totals_table(&totals, kind),
        }
    };
    rows.datasets().into_iter().map(section).collect()
}

fn totals_table(totals: &[CodecRow], kind: ValueKind) -> Table {
    let base = if kind == ValueKind::Ids { "vbyte-delta" } else { "vbyte" };
    let against = format!("L1/{BASELINE_KERNEL} {base}");
    let mut table =
        Table::new(2, &["codec", "kernel", "bits/int", "L1", "RAM", "encode", "L1/memcpy", &against]);
    let find = |codec: &str, kernel: Option<&str>| {
        totals.iter().find(|row| row.codec == codec && kernel.is_none_or(|kernel| row.kernel == kernel))
    };
    let (copy, base) = (find(MEMCPY, None), find(base, Some(BASELINE_KERNEL)));
    for row in totals {
        table.row(vec![
            row.codec.clone(),
            row.kernel.clone(),
            format!("{:.2}", row.bits()),
            format!("{:.3}", row.decode_l1()),
            format!("{:.3}", row.decode_ram()),
            format!("{:.3}", row.encode()),
            ratio_text(copy.map(|base| row.decode_l1() / base.decode_l1())),
            ratio_text(base.map(|base| row.decode_l1() / base.decode_l1())),
        ]);
    }
    table
}

/// Speedup of `vbyte-delta` by each vector kernel over the scalar kernel, by length class.
fn speedups_section(rows: &CodecRows) -> Option<ReportSection> {
    let codec = "vbyte-delta";
    let ids = rows.datasets().into_iter().filter(|(_, kind)| *kind == ValueKind::Ids);
    let mut columns = Vec::new();
    for (dataset, _) in ids {
        let totals = rows.totals(dataset);
        let others = totals.iter().filter(|row| row.codec == codec && row.kernel != BASELINE_KERNEL);
        columns.extend(others.map(|row| (dataset, row.kernel.clone())));
    }
    let mut classes: Vec<u32> = columns.iter().flat_map(|(dataset, _)| rows.classes(dataset)).collect();
    classes.sort_unstable();
    classes.dedup();
    let names: Vec<String> = columns.iter().map(|(dataset, kernel)| format!("{dataset}, {kernel}")).collect();
    let heading: Vec<&str> = std::iter::once("K").chain(names.iter().map(String::as_str)).collect();
    let mut table = Table::new(0, &heading);
    let gain = |k, dataset, kernel: &str| {
        let speed = |kernel| rows.class(dataset, k, codec, kernel).map(CodecRow::decode_l1);
        Some(speed(kernel)? / speed(BASELINE_KERNEL)?)
    };
    for k in classes {
        let gains = columns.iter().map(|(dataset, kernel)| ratio_text(gain(k, dataset, kernel)));
        table.row(std::iter::once(k.to_string()).chain(gains).collect());
    }
    (!table.is_empty()).then(|| ReportSection {
        title: format!("{codec} against its {BASELINE_KERNEL} kernel"),
        about: "Ratio of the speeds into L1, for lists of 2^K to 2^(K+1) - 1 ids.".to_string(),
        table,
    })
}

fn method_text(facts: &RunFacts) -> String {
    let rounds = facts.rounds;
    let mut text = format!(
        "One thread. Contenders alternate on the same data for {rounds} rounds. A figure is the median over the rounds; a \
         speed over several list lengths is the number of all integers divided by the sum of the medians. Before the \
         timing every list is decoded and compared with its input; a difference ends the run.\n\n\
         - A list is encoded in blocks of 256 values, the last one shorter; `prev` is the last id of the block before. \
         Differences and prefix sums are part of the time. Other block sizes are listed with their contender.\n\
         - *bits/int*: encoded bits divided by integers. Everything that a decoder needs is included, except the number of \
         values.\n\
         - *L1*: billions of integers per second, each list decoded block by block into the same buffer of one block, while \
         the encoded bytes are streamed; all lists of the group are decoded once before.\n\
         - *RAM*: the same into a ring buffer of 256 MiB.\n\
         - *encode*: lists encoded one after another into a vector that is already allocated.\n\
         - *memcpy*: the plain values, copied in blocks of 256. It reads four bytes per integer, so its speed is that of \
         memory, or of a cache in the smaller groups of a quick run.\n\n\
         Data, determined by the seed; a group of one list length has at least {} integers:\n\n\
         - `uniform`: lists of 2^K to 2^(K+1) - 1 ids, K from 10 to 22, uniform in a domain of 50,000,000;\n\
         - `clustered`: the same lengths by the recursive model of Anh and Moffat;\n\
         - `zipf-freq`: frequencies from 1 to 127 of a Zipf distribution; each list has an exponent from 1.6 to 2.4.\n",
        facts.group_ints
    );
    if let Some((terms, stride)) = facts.index {
        let share = if stride == 1 { "all".to_string() } else { format!("one of {stride}") };
        text += &format!(
            "- `real`, `real-freq`, `real-freq-less-one`: ids, frequencies, and frequencies minus one as an index stores \
             them, of {share} of the {terms} terms of the given index with at least 256 documents.\n"
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{super::rows::tests::rows, *};

    #[test]
    fn a_report_has_machine_command_method_and_tables() {
        let facts =
            RunFacts { machine: Machine::here(), rounds: 5, group_ints: 1 << 19, index: Some((1000, 3)) };
        let text = markdown("tierdex-bench codecs --seed 1", &facts, &rows(), &[]);
        for words in [
            "- CPU: ",
            "\ntierdex-bench codecs --seed 1\n",
            "5 rounds",
            "one of 3 of the 1000 terms",
            "## uniform: 2.0 million ids in 20 lists",
            "| vbyte-delta | avx2   |    11.00 | 0.083 |",
            "## vbyte-delta against its scalar kernel",
            "|  K | uniform, avx2 |",
            "codecs.svg",
        ] {
            assert!(text.contains(words), "`{words}` is not in\n{text}");
        }
    }

    #[test]
    fn a_missing_baseline_gives_no_ratio() {
        let tables = total_sections(&rows());
        assert_eq!(tables.len(), 2);
        let text = tables[1].table.to_text();
        let last: Vec<&str> = text.lines().last().unwrap().split_whitespace().collect();
        assert_eq!((last[0], last[6], last[7]), ("vbyte", "-", "1.00"));
    }
}
