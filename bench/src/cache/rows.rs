//! What was measured, a row for each cell and round, and the medians of each cell's rounds.

use super::cell::{Cell, Contender};
use super::measured::Measured;
use super::queries::Workload;
use serde_json::{Value, json};
use tierdex::cache::Lookahead;
use tierdex::engine::{Mode, PAGES_AHEAD};

/// One cell in one round.
#[derive(Clone, Debug)]
pub struct Row {
    /// Which cell.
    pub cell: Cell,
    /// Which round, from 1 on.
    pub round: usize,
    /// Bytes of memory that its group could have; none without a group.
    pub limit: Option<u64>,
    /// The most that the group had, page cache included.
    pub peak: Option<u64>,
    /// How often the group met its limit.
    pub limit_met: Option<u64>,
    /// What was found, or how the process ended.
    pub end: Result<Measured, String>,
}

/// All rows in the order in which they were measured.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    rows: Vec<Row>,
}

/// A cell: medians of its rounds, and the largest peaks.
#[derive(Clone, Debug)]
pub(super) struct Median {
    pub(super) cell: Cell,
    pub(super) limit: Option<u64>,
    pub(super) peak: Option<u64>,
    /// Memory of the group's own, without page cache, at the end.
    pub(super) own: Option<u64>,
    pub(super) limit_met: Option<u64>,
    /// None if no round was measured; then this is why.
    pub(super) figures: Result<Figures, String>,
    /// Rounds that were not measured.
    pub(super) died: usize,
}

/// Medians.
#[derive(Clone, Debug)]
pub(super) struct Figures {
    pub(super) qps: f64,
    pub(super) first_qps: f64,
    pub(super) p50: f64,
    pub(super) p99: f64,
    /// Bytes a query.
    pub(super) read: f64,
    pub(super) fetched: Option<f64>,
    pub(super) miss_rate: Option<f64>,
    pub(super) waits: Option<f64>,
    pub(super) lookahead_max: u64,
}

impl Rows {
    /// Adds a row.
    pub fn push(&mut self, row: Row) {
        self.rows.push(row);
    }

    /// All of them.
    pub fn all(&self) -> &[Row] {
        &self.rows
    }

    /// The medians of each cell, in the order of the cells.
    pub(super) fn medians(&self) -> Vec<Median> {
        let mut cells: Vec<Cell> = Vec::new();
        for row in &self.rows {
            if !cells.contains(&row.cell) {
                cells.push(row.cell);
            }
        }
        cells.into_iter().map(|cell| self.median(cell)).collect()
    }

    fn median(&self, cell: Cell) -> Median {
        let rows = || self.rows.iter().filter(|row| row.cell == cell);
        let measured: Vec<&Measured> = rows().filter_map(|row| row.end.as_ref().ok()).collect();
        let of = |value: &dyn Fn(&Measured) -> Option<f64>| {
            let values: Vec<f64> = measured.iter().filter_map(|one| value(one)).collect();
            median(values)
        };
        let figures = || {
            Some(Figures {
                qps: of(&|one| Some(one.qps()))?,
                first_qps: of(&|one| Some(one.first_qps()))?,
                p50: of(&|one| Some(one.p50))?,
                p99: of(&|one| Some(one.p99))?,
                read: of(&|one| Some(one.bytes_read as f64 / one.queries.max(1) as f64))?,
                fetched: of(&|one| Some(one.bytes_fetched? as f64 / one.queries.max(1) as f64)),
                miss_rate: of(&|one| one.miss_rate()),
                waits: of(&|one| one.lists.map(|lists| lists.waits as f64)),
                lookahead_max: measured.iter().map(|one| one.lookahead_max).max().unwrap_or(0),
            })
        };
        let why = || rows().find_map(|row| row.end.clone().err()).unwrap_or_default();
        Median {
            cell,
            limit: rows().find_map(|row| row.limit),
            peak: rows().filter_map(|row| row.peak).max(),
            own: measured.iter().filter_map(|one| one.own).max(),
            limit_met: rows().filter_map(|row| row.limit_met).max(),
            figures: figures().ok_or_else(why),
            died: rows().filter(|row| row.end.is_err()).count(),
        }
    }

    /// The cells whose answers differ from those of the first cell with the same queries: a line each.
    pub fn differences(&self) -> Vec<String> {
        let mut different = Vec::new();
        let mut first: Vec<(&Row, &Measured)> = Vec::new();
        for row in &self.rows {
            let Ok(found) = &row.end else { continue };
            match first.iter().find(|(other, _)| other.cell.workload == row.cell.workload) {
                None => first.push((row, found)),
                Some((other, expected)) if expected.checksum != found.checksum => different.push(format!(
                    "{} answers otherwise than {} ({} hits, {} matches; {} hits, {} matches)",
                    row.cell.describe(),
                    other.cell.describe(),
                    found.hits,
                    found.matches,
                    expected.hits,
                    expected.matches
                )),
                Some(_) => {}
            }
        }
        different
    }

    /// An object a row.
    pub fn to_json(&self) -> Value {
        let row = |row: &Row| {
            let mut object = row.cell.to_json();
            object["name"] = json!(row.cell.name());
            object["round"] = json!(row.round);
            object["limit_bytes"] = json!(row.limit);
            object["peak_bytes"] = json!(row.peak);
            object["limit_met"] = json!(row.limit_met);
            object["died"] = json!(row.end.as_ref().err());
            if let Ok(measured) = &row.end
                && let (Value::Object(object), Value::Object(found)) = (&mut object, measured.to_json())
            {
                object.extend(found);
            }
            object
        };
        self.rows.iter().map(row).collect()
    }
}

/// The cell of `base-prefetch` that another one is compared with: the same queries, device and size, and the thesis'
/// lookahead if that was measured.
pub(super) fn base<'a>(medians: &'a [Median], cell: &Cell) -> Option<&'a Figures> {
    let same = |other: &&Median| {
        other.cell.contender == Contender::Near(Mode::BasePrefetch)
            && (other.cell.workload, other.cell.device, other.cell.size)
                == (cell.workload, cell.device, cell.size)
    };
    let usual = |other: &&Median| other.cell.lookahead == Some(Lookahead::Queries(PAGES_AHEAD));
    let found = medians.iter().filter(same).find(usual).or_else(|| medians.iter().find(same));
    found.and_then(|found| found.figures.as_ref().ok())
}

/// The index in memory that answered the same queries.
pub(super) fn memory(medians: &[Median], workload: Workload) -> Option<&Figures> {
    let found = medians
        .iter()
        .find(|other| other.cell.contender == Contender::Memory && other.cell.workload == workload);
    found.and_then(|found| found.figures.as_ref().ok())
}

/// The middle one, or the mean of the two in the middle.
fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        odd if odd % 2 == 1 => Some(values[middle]),
        _ => Some((values[middle - 1] + values[middle]) / 2.0),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::flags::tests::flags;
    use super::*;

    /// Rows of two rounds of such cells, some of which died; the seconds of a repetition are those of the round.
    pub(in crate::cache) fn rows(line: &str, died: impl Fn(&Cell, usize) -> bool) -> Rows {
        let mut rows = Rows::default();
        for round in 1..=2 {
            for cell in Cell::all(&flags(line)) {
                let seconds = round as f64;
                let measured = Measured {
                    seconds,
                    first_seconds: 2.0 * seconds,
                    queries: 30,
                    p50: 10.0,
                    p99: 20.0,
                    samples: vec![(1, 5), (2, 6)],
                    ..Measured::default()
                };
                let end = if died(&cell, round) { Err("killed".to_string()) } else { Ok(measured) };
                rows.push(Row {
                    cell,
                    round,
                    limit: Some(100),
                    peak: Some(round as u64),
                    limit_met: Some(0),
                    end,
                });
            }
        }
        rows
    }

    #[test]
    fn figures_are_medians_and_peaks_the_largest() {
        let rows = rows("--modes memory,direct --shapes AND --sizes 5,20", |cell, round| {
            cell.size.is_some() && round == 2
        });
        let medians = rows.medians();
        assert_eq!(medians.len(), 1 + 2 * 2);
        let memory = &medians[0];
        assert_eq!((memory.figures.as_ref().unwrap().qps, memory.peak, memory.died), (22.5, Some(2), 0));
        assert_eq!((medians[1].figures.as_ref().unwrap().qps, medians[1].died), (30.0, 1));
        assert_eq!((median(vec![]), median(vec![3.0, 1.0, 2.0])), (None, Some(2.0)));
    }

    #[test]
    fn answers_that_differ_are_named() {
        let mut rows = rows("--modes memory,direct --sizes 5 --lookahead adaptive", |_, _| false);
        assert!(rows.differences().is_empty());
        let other = rows.rows.iter_mut().rev().find(|row| row.cell.size.is_some()).unwrap();
        other.end.as_mut().unwrap().checksum = 7;
        let different = rows.differences();
        assert_eq!(different.len(), 1);
        assert!(
            different[0]
                .starts_with("direct of AND H RP 25% on ssd at 5% answers otherwise than memory of AND H")
        );
    }

    #[test]
    fn a_cell_is_compared_with_the_same_of_base_prefetch_and_memory() {
        let rows = rows("--modes memory,base-prefetch,direct --sizes 5,20 --lookahead 4,16", |cell, _| {
            cell.size.is_some_and(|size| size.to_string() == "20%")
        });
        let medians = rows.medians();
        for one in &medians {
            assert!(memory(&medians, one.cell.workload).is_some());
            let small = one.cell.size.is_some_and(|size| size.to_string() == "5%");
            assert_eq!(base(&medians, &one.cell).is_some(), small, "{:?}", one.cell);
        }
    }

    #[test]
    fn a_row_of_json_has_all_members() {
        let json = rows("--modes direct --shapes AND --sizes 5", |_, round| round == 2).to_json();
        let (first, last) = (&json[0], json.as_array().unwrap().last().unwrap());
        assert_eq!(
            (&first["mode"], &first["size_percent"], &first["qps"]),
            (&json!("direct"), &json!(5.0), &json!(30.0))
        );
        assert_eq!((&last["died"], &last["qps"]), (&json!("killed"), &Value::Null));
    }
}
