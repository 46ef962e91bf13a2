//! Measurements, one row per cell and round, and medians over the rounds of a cell.

use crate::cache::{cell::TableCell, cell::size_percent, mode::CellMode};
use crate::{cell::CellMeasurement, cell::QueryWorkload, counters::metrics, median::median};
use serde_json::{Value, json};
use tierdex_thesis::{Lookahead, Mode, QUERIES_AHEAD};

/// One cell in one round.
#[derive(Clone, Debug)]
pub struct CellRow {
    /// The cell.
    pub cell: TableCell,
    /// The round, from 1 on.
    pub round: usize,
    /// Memory limit of the control group in bytes; `None` without a group.
    pub limit: Option<u64>,
    /// Peak memory of the group in bytes, page cache included.
    pub peak: Option<u64>,
    /// Times the group reached its limit.
    pub limit_met: Option<u64>,
    /// The measurement, or why the process failed.
    pub outcome: Result<CellMeasurement, String>,
}

impl CellRow {
    /// Settings and measurements in one object.
    pub fn to_json(&self) -> Value {
        let mut object = self.cell.to_json();
        object["name"] = json!(self.cell.name());
        object["round"] = json!(self.round);
        object["limit_bytes"] = json!(self.limit);
        object["peak_bytes"] = json!(self.peak);
        object["limit_met"] = json!(self.limit_met);
        object["died"] = json!(self.outcome.as_ref().err());
        if let Ok(measured) = &self.outcome
            && let (Value::Object(object), Ok(Value::Object(found))) =
                (&mut object, serde_json::to_value(measured))
        {
            object.extend(found);
            object.insert("qps".to_string(), json!(measured.qps()));
            object.insert("first_qps".to_string(), json!(measured.first_qps()));
            if let Some(Value::Object(lists)) = object.get_mut("lists") {
                lists.insert("miss_rate".to_string(), json!(measured.miss_rate()));
            }
            let metrics = measured.counters.as_ref().map(|counts| metrics(counts, measured.queries));
            object.extend(metrics.into_iter().flatten().map(|(key, value)| (key.to_string(), json!(value))));
        }
        object
    }
}

/// All rows in the order of measurement.
#[derive(Clone, Debug, Default)]
pub struct CellRows {
    rows: Vec<CellRow>,
}

/// All rounds of a cell in one row: medians of speeds and times, maxima of memory.
#[derive(Clone, Debug)]
pub(super) struct CellMedian {
    pub(super) cell: TableCell,
    pub(super) limit: Option<u64>,
    pub(super) peak: Option<u64>,
    /// Memory of the group without page cache at the end.
    pub(super) own: Option<u64>,
    pub(super) limit_met: Option<u64>,
    /// The medians, or why no round succeeded.
    pub(super) figures: Result<MedianFigures, String>,
    /// Number of rounds that failed.
    pub(super) failed: usize,
}

/// Medians over the rounds of a cell.
#[derive(Clone, Debug)]
pub(super) struct MedianFigures {
    pub(super) qps: f64,
    pub(super) first_qps: f64,
    pub(super) p50: f64,
    pub(super) p99: f64,
    /// Bytes read per query.
    pub(super) read: f64,
    pub(super) fetched: Option<f64>,
    pub(super) miss_rate: Option<f64>,
    pub(super) waits: Option<f64>,
    pub(super) lookahead_max: u64,
}

impl CellMedian {
    /// The point of the cell in a plot: cache size in percent, and queries per second. `None` if the cell
    /// has no size or failed.
    pub(super) fn point(&self) -> Option<(f64, f64)> {
        Some((size_percent(self.cell.size?), self.figures.as_ref().ok()?.qps))
    }
}

impl CellRows {
    /// Adds a row.
    pub fn push(&mut self, row: CellRow) {
        self.rows.push(row);
    }

    /// All rows.
    pub fn all(&self) -> &[CellRow] {
        &self.rows
    }

    /// The medians of each cell, in the order of the cells.
    pub(super) fn medians(&self) -> Vec<CellMedian> {
        let mut cells: Vec<TableCell> = Vec::new();
        for row in &self.rows {
            if !cells.contains(&row.cell) {
                cells.push(row.cell);
            }
        }
        cells.into_iter().map(|cell| self.median(cell)).collect()
    }

    fn median(&self, cell: TableCell) -> CellMedian {
        let rows = || self.rows.iter().filter(|row| row.cell == cell);
        let measured: Vec<&CellMeasurement> = rows().filter_map(|row| row.outcome.as_ref().ok()).collect();
        let of = |value: &dyn Fn(&CellMeasurement) -> Option<f64>| {
            let values: Vec<f64> = measured.iter().filter_map(|one| value(one)).collect();
            median(values)
        };
        let figures = || {
            Some(MedianFigures {
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
        let why = || rows().find_map(|row| row.outcome.clone().err()).unwrap_or_default();
        CellMedian {
            cell,
            limit: rows().find_map(|row| row.limit),
            peak: rows().filter_map(|row| row.peak).max(),
            own: measured.iter().filter_map(|one| one.own).max(),
            limit_met: rows().filter_map(|row| row.limit_met).max(),
            figures: figures().ok_or_else(why),
            failed: rows().filter(|row| row.outcome.is_err()).count(),
        }
    }

    /// Cells whose answers differ from those of the first cell with the same queries, one line each.
    pub fn differences(&self) -> Vec<String> {
        let mut different = Vec::new();
        let mut first: Vec<(&CellRow, &CellMeasurement)> = Vec::new();
        for row in &self.rows {
            let Ok(found) = &row.outcome else { continue };
            match first.iter().find(|(other, _)| other.cell.workload == row.cell.workload) {
                None => first.push((row, found)),
                Some((other, expected)) if expected.checksum != found.checksum => different.push(format!(
                    "the answers of {} differ from those of {} ({} hits, {} matches; {} hits, {} matches)",
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

    /// The reason of the first failure, if every cell failed in all rounds.
    pub(super) fn failure_of_all(&self) -> Option<&str> {
        let reasons: Option<Vec<&String>> = self.rows.iter().map(|row| row.outcome.as_ref().err()).collect();
        reasons?.first().map(|why| why.as_str())
    }

    /// A JSON array with an object for each row.
    pub fn to_json(&self) -> Value {
        self.rows.iter().map(CellRow::to_json).collect()
    }
}

/// The baseline of a cell: `base-prefetch` with the same queries, device and size, and with the lookahead of
/// the thesis if that was measured.
pub(super) fn baseline_figures<'a>(medians: &'a [CellMedian], cell: &TableCell) -> Option<&'a MedianFigures> {
    let same = |other: &&CellMedian| {
        other.cell.mode == CellMode::Lists(Mode::BasePrefetch)
            && (other.cell.workload, other.cell.device, other.cell.size)
                == (cell.workload, cell.device, cell.size)
    };
    let default = |other: &&CellMedian| other.cell.lookahead == Some(Lookahead::Queries(QUERIES_AHEAD));
    let found = medians.iter().filter(same).find(default).or_else(|| medians.iter().find(same));
    found.and_then(|found| found.figures.as_ref().ok())
}

/// The figures of mode `memory` for the queries of a workload.
pub(super) fn memory_figures(medians: &[CellMedian], workload: QueryWorkload) -> Option<&MedianFigures> {
    let found =
        medians.iter().find(|other| other.cell.mode == CellMode::Memory && other.cell.workload == workload);
    found.and_then(|found| found.figures.as_ref().ok())
}

#[cfg(test)]
pub(super) mod tests {
    use super::{super::flags::tests::parse_line, *};

    /// Measured rows for the experiment that the flags in `line` describe, two rounds of each cell of its
    /// table. The cells for which `failed` is true have an error. Round n takes n seconds.
    pub(in crate::cache) fn test_rows(line: &str, failed: impl Fn(&TableCell, usize) -> bool) -> CellRows {
        let mut rows = CellRows::default();
        for round in 1..=2 {
            for cell in TableCell::all(&parse_line(line)) {
                let seconds = round as f64;
                let measured = CellMeasurement {
                    seconds,
                    first_seconds: 2.0 * seconds,
                    queries: 30,
                    p50: 10.0,
                    p99: 20.0,
                    samples: vec![(1, 5), (2, 6)],
                    ..CellMeasurement::default()
                };
                let outcome = if failed(&cell, round) { Err("killed".to_string()) } else { Ok(measured) };
                rows.push(CellRow {
                    cell,
                    round,
                    limit: Some(100),
                    peak: Some(round as u64),
                    limit_met: Some(0),
                    outcome,
                });
            }
        }
        rows
    }

    #[test]
    fn figures_are_medians_and_peaks_are_maxima() {
        let rows = test_rows("--modes memory,direct --shapes AND --sizes 5,20", |cell, round| {
            cell.size.is_some() && round == 2
        });
        let medians = rows.medians();
        assert_eq!(medians.len(), 1 + 2);
        let memory = &medians[0];
        assert_eq!((memory.figures.as_ref().unwrap().qps, memory.peak, memory.failed), (22.5, Some(2), 0));
        assert_eq!((medians[1].figures.as_ref().unwrap().qps, medians[1].failed), (30.0, 1));
    }

    #[test]
    fn a_run_fails_if_every_cell_fails_in_every_round() {
        let failure = |failed: &dyn Fn(&TableCell, usize) -> bool| {
            test_rows("--modes memory,direct --sizes 5", failed).failure_of_all().map(str::to_string)
        };
        assert_eq!(failure(&|_, _| true), Some("killed".to_string()));
        assert_eq!((failure(&|_, round| round == 2), failure(&|cell, _| cell.size.is_some())), (None, None));
        assert_eq!(CellRows::default().failure_of_all(), None);
    }

    #[test]
    fn different_answers_are_reported() {
        let mut rows = test_rows("--modes memory,direct --sizes 5 --lookahead adaptive", |_, _| false);
        assert!(rows.differences().is_empty());
        let other = rows.rows.iter_mut().rev().find(|row| row.cell.size.is_some()).unwrap();
        other.outcome.as_mut().unwrap().checksum = 7;
        let different = rows.differences();
        assert_eq!(different.len(), 1);
        assert!(different[0].starts_with(
            "the answers of direct of AND H RP 25% on ssd at 5% differ from those of memory of AND H"
        ));
    }

    #[test]
    fn the_baselines_of_a_cell_have_the_same_settings() {
        let rows =
            test_rows("--modes memory,base-prefetch,direct --sizes 5,20 --lookahead 4,16", |cell, _| {
                cell.size.is_some_and(|size| size.to_string() == "20%")
            });
        let medians = rows.medians();
        for one in &medians {
            assert!(memory_figures(&medians, one.cell.workload).is_some());
            let small = one.cell.size.is_some_and(|size| size.to_string() == "5%");
            assert_eq!(baseline_figures(&medians, &one.cell).is_some(), small, "{:?}", one.cell);
        }
    }

    #[test]
    fn a_json_row_has_all_members() {
        let json = test_rows("--modes direct --shapes AND --sizes 5", |_, round| round == 2).to_json();
        let (first, last) = (&json[0], json.as_array().unwrap().last().unwrap());
        assert_eq!(
            (&first["mode"], &first["size_percent"], &first["qps"]),
            (&json!("direct"), &json!(5.0), &json!(30.0))
        );
        assert_eq!((&last["died"], &last["qps"]), (&json!("killed"), &Value::Null));
    }

    #[test]
    fn a_json_row_has_the_metrics_of_its_counters() {
        let mut row = test_rows("--modes direct --shapes AND --sizes 5", |_, _| false).rows[0].clone();
        let measured = row.outcome.as_mut().unwrap();
        measured.queries = 10;
        measured.counters = serde_json::from_str(r#"{"instructions": [50, 4, 2]}"#).ok();
        assert_eq!(row.to_json()["instructions"], 10.0);
    }
}
