//! The words and tables of a run: what was done, on what machine, and what came out.

use super::data::{Kind, Plan};
use super::ours::COPY;
use super::results::Section;
use super::rows::{Row, Rows};
use crate::{Machine, Table};

/// What the report says of the run beside its rows.
pub(super) struct Facts {
    machine: Machine,
    rounds: usize,
    group_ints: usize,
    /// Long terms of the index, and one of how many was taken.
    real: Option<(u64, u64)>,
}

impl Facts {
    pub(super) fn of(plan: &Plan) -> Facts {
        Facts {
            machine: Machine::here(),
            rounds: plan.rounds(),
            group_ints: plan.group_ints(),
            real: plan.real().map(|real| (real.terms, real.stride)),
        }
    }
}

/// The scalar kernel, against which the others are compared.
const SCALAR: &str = "scalar";

/// The whole report.
pub(super) fn markdown(command: &str, facts: &Facts, rows: &Rows, more: &[Section]) -> String {
    let mut text = format!(
        "# Integer codecs\n\n## Machine\n\n{}\n## Command\n\n```\n{command}\n```\n\n## Method\n\n{}\n",
        facts.machine.to_markdown(),
        method(facts)
    );
    let gains = gains(rows);
    for section in totals(rows).iter().chain(&gains).chain(more) {
        text += &format!("## {}\n\n", section.title);
        if !section.about.is_empty() {
            text += &format!("{}\n\n", section.about);
        }
        text += &format!("{}\n", section.table.to_markdown());
    }
    text + "## By list length\n\n![bits and speed by list length](codecs.svg)\n\nAll rows stand in `data.json`.\n"
}

/// For each dataset its contenders with their sums.
pub(super) fn totals(rows: &Rows) -> Vec<Section> {
    let section = |(dataset, kind): (&'static str, Kind)| {
        let totals = rows.totals(dataset);
        let what = if kind == Kind::Ids { "ids" } else { "frequencies" };
        let (ints, lists) = totals.first().map_or((0, 0), |row| (row.ints, row.lists));
        Section {
            title: format!("{dataset}: {:.1} million {what} in {lists} lists", ints as f64 / 1e6),
            about: String::new(),
            table: table(&totals, kind),
        }
    };
    rows.datasets().into_iter().map(section).collect()
}

fn table(totals: &[Row], kind: Kind) -> Table {
    let base = if kind == Kind::Ids { "vbyte-delta" } else { "vbyte" };
    let against = format!("L1/{SCALAR} {base}");
    let mut table =
        Table::new(2, &["codec", "kernel", "bits/int", "L1", "RAM", "encode", "L1/memcpy", &against]);
    let find = |codec: &str, kernel: Option<&str>| {
        totals.iter().find(|row| row.codec == codec && kernel.is_none_or(|kernel| row.kernel == kernel))
    };
    let (copy, base) = (find(COPY, None), find(base, Some(SCALAR)));
    for row in totals {
        table.row(vec![
            row.codec.clone(),
            row.kernel.clone(),
            format!("{:.2}", row.bits()),
            format!("{:.3}", row.decode_l1()),
            format!("{:.3}", row.decode_ram()),
            format!("{:.3}", row.encode()),
            times(copy.map(|base| row.decode_l1() / base.decode_l1())),
            times(base.map(|base| row.decode_l1() / base.decode_l1())),
        ]);
    }
    table
}

fn times(ratio: Option<f64>) -> String {
    ratio.map_or("-".to_string(), |ratio| format!("{ratio:.2}"))
}

/// How much faster `vbyte-delta` is by each other kernel than by the scalar one, by length class.
fn gains(rows: &Rows) -> Option<Section> {
    let codec = "vbyte-delta";
    let ids = rows.datasets().into_iter().filter(|(_, kind)| *kind == Kind::Ids);
    let mut columns = Vec::new();
    for (dataset, _) in ids {
        let totals = rows.totals(dataset);
        let others = totals.iter().filter(|row| row.codec == codec && row.kernel != SCALAR);
        columns.extend(others.map(|row| (dataset, row.kernel.clone())));
    }
    let mut classes: Vec<u32> = columns.iter().flat_map(|(dataset, _)| rows.classes(dataset)).collect();
    classes.sort_unstable();
    classes.dedup();
    let names: Vec<String> = columns.iter().map(|(dataset, kernel)| format!("{dataset}, {kernel}")).collect();
    let heading: Vec<&str> = std::iter::once("K").chain(names.iter().map(String::as_str)).collect();
    let mut table = Table::new(0, &heading);
    let gain = |k, dataset, kernel: &str| {
        let speed = |kernel| rows.class(dataset, k, codec, kernel).map(Row::decode_l1);
        Some(speed(kernel)? / speed(SCALAR)?)
    };
    for k in classes {
        let gains = columns.iter().map(|(dataset, kernel)| times(gain(k, dataset, kernel)));
        table.row(std::iter::once(k.to_string()).chain(gains).collect());
    }
    (!table.is_empty()).then(|| Section {
        title: format!("{codec} against its {SCALAR} kernel"),
        about: "Times as fast into L1, for lists of 2^K to 2^(K+1) - 1 ids.".to_string(),
        table,
    })
}

fn method(facts: &Facts) -> String {
    let rounds = facts.rounds;
    let mut text = format!(
        "One thread. Contenders take turns on the same data, {rounds} rounds; a figure is the median of its rounds, and \
         a sum over list lengths is all integers by the sum of the medians. Before the clock starts every list is \
         decoded and compared with what was encoded; a difference ends the run.\n\n\
         - A list is encoded block after block of 256 values, the last one shorter; `prev` is the last id of the block \
         before. Differences and prefix sums are part of the time. Other block sizes are named with their contender.\n\
         - *bits/int*: all bytes by all integers, whatever a decoder needs but the number of values included.\n\
         - *L1*: billions of integers a second, each list decoded block by block into the same buffer of one block, while \
         the encoded bytes stream past; all lists of the group are decoded once before.\n\
         - *RAM*: the same into a buffer of 256 MiB that the lists fill one after another, round and round.\n\
         - *encode*: lists encoded one after another into a vector that has its memory already.\n\
         - *memcpy*: the values as they are, copied in blocks of 256. It reads four bytes an integer, so that it runs as \
         fast as they come: from memory, or, in the smaller groups of a quick run, from a cache.\n\n\
         Data, the same for the same seed; a group of one list length has at least {} integers:\n\n\
         - `uniform`: lists of 2^K to 2^(K+1) - 1 ids, K from 10 to 22, anywhere in a domain of 50,000,000;\n\
         - `clustered`: the same lengths by the recursive model of Anh and Moffat;\n\
         - `zipf-freq`: frequencies from 1 to 127 by a law of Zipf with an exponent of 1.6 to 2.4, a list its own.\n",
        facts.group_ints
    );
    if let Some((terms, stride)) = facts.real {
        let share = if stride == 1 { "all".to_string() } else { format!("one of {stride}") };
        text += &format!(
            "- `real`, `real-freq`, `real-freq-less-one`: ids, frequencies, and frequencies less one as an index stores \
             them, of {share} of the {terms} terms of the given index that stand in at least 256 documents.\n"
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::rows::tests::rows;
    use super::*;

    #[test]
    fn a_report_says_where_how_and_what() {
        let facts = Facts { machine: Machine::here(), rounds: 5, group_ints: 1 << 19, real: Some((1000, 3)) };
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
    fn nothing_is_compared_with_what_did_not_run() {
        let tables = totals(&rows());
        assert_eq!(tables.len(), 2);
        let text = tables[1].table.to_text();
        let last: Vec<&str> = text.lines().last().unwrap().split_whitespace().collect();
        assert_eq!((last[0], last[6], last[7]), ("vbyte", "-", "1.00"));
    }
}
