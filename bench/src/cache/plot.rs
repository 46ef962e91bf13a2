//! Plots of queries per second by cache size, and of the lookahead by completed queries (thesis, figures 8.9
//! to 8.14).
//!
//! One SVG per workload and device with a line per mode; and, if lookahead samples were kept, one per
//! workload, device and size with the lookahead.

use crate::cache::{cell::TableCell, mode::CellMode, rows::CellMedian, rows::CellRows};
use crate::{Result, plot, plot::AxisScale, plot::Panel, plot::Series};

/// A plot: its title in the report, its file, and the content of that file.
pub(super) struct CachePlot {
    pub(super) title: String,
    pub(super) file: String,
    pub(super) svg: String,
}

/// All plots of a run.
///
/// # Errors
/// If a plot cannot be drawn.
pub(super) fn draw_all(rows: &CellRows) -> Result<Vec<CachePlot>> {
    let medians = rows.medians();
    let mut plots = Vec::new();
    for first in group_firsts(&medians, |one, other| is_in_same_plot(&one.cell, &other.cell)) {
        let TableCell { workload, device, .. } = first.cell;
        let title = format!("{workload}, {}", device.title());
        let series = qps_by_size(&medians, &first.cell);
        let x = "cache or page cache, % of documents and frequencies";
        plots.push(CachePlot {
            file: format!("qps-{}-{device}.svg", workload.file_name()),
            svg: plot_svg(&title, x, "queries a second", series)?,
            title,
        });
    }
    for first in group_firsts(&medians, |one, other| {
        is_in_same_plot(&one.cell, &other.cell) && one.cell.size == other.cell.size
    }) {
        let TableCell { workload, device, size: Some(size), .. } = first.cell else { continue };
        let series = lookahead_series(rows, &first.cell);
        if series.is_empty() {
            continue;
        }
        let title = format!("lookahead of {workload}, {}, {size}", device.title());
        let file_size = size.to_string().replace('%', "");
        plots.push(CachePlot {
            file: format!("lookahead-{}-{device}-{file_size}.svg", workload.file_name()),
            svg: plot_svg(&title, "queries answered", "queries fetched ahead", series)?,
            title,
        });
    }
    Ok(plots)
}

fn is_in_same_plot(one: &TableCell, other: &TableCell) -> bool {
    (one.workload, one.device) == (other.workload, other.device)
}

/// Groups the measured combinations of settings that have a cache size by `same`, and returns the first of
/// each group.
fn group_firsts(medians: &[CellMedian], same: impl Fn(&CellMedian, &CellMedian) -> bool) -> Vec<&CellMedian> {
    let mut found: Vec<&CellMedian> = Vec::new();
    for one in medians.iter().filter(|one| one.cell.size.is_some()) {
        if !found.iter().any(|other| same(one, other)) {
            found.push(one);
        }
    }
    found
}

/// Queries per second by cache size, one curve per mode. That of `memory` is a horizontal line.
fn qps_by_size(medians: &[CellMedian], of: &TableCell) -> Vec<Series> {
    let here: Vec<&CellMedian> = medians.iter().filter(|one| is_in_same_plot(&one.cell, of)).collect();
    let sizes: Vec<f64> = here.iter().filter_map(|one| one.point()).map(|point| point.0).collect();
    let ends = (sizes.iter().copied().fold(f64::MAX, f64::min), sizes.iter().copied().fold(0.0, f64::max));
    let mut series: Vec<Series> = Vec::new();
    let memory =
        medians.iter().filter(|one| one.cell.mode == CellMode::Memory && one.cell.workload == of.workload);
    for qps in
        memory.filter_map(|one| Some(one.figures.as_ref().ok()?.qps)).take(usize::from(!sizes.is_empty()))
    {
        let points = vec![(ends.0, qps), (ends.1, qps)];
        series.push(Series { name: CellMode::Memory.to_string(), points });
    }
    for one in here {
        let (name, Some(point)) = (one.cell.name(), one.point()) else { continue };
        match series.iter_mut().find(|line| line.name == name) {
            Some(line) => line.points.push(point),
            None => series.push(Series { name, points: vec![point] }),
        }
    }
    series.iter_mut().for_each(|line| line.points.sort_by(|one, other| one.0.total_cmp(&other.0)));
    series
}

/// The lookahead samples of the first round of each cell with the same workload, device and size.
fn lookahead_series(rows: &CellRows, of: &TableCell) -> Vec<Series> {
    let here = rows.all().iter().filter(|row| row.round == 1 && row.cell.size == of.size);
    let here = here.filter(|row| is_in_same_plot(&row.cell, of));
    let series = here.filter_map(|row| {
        let samples = &row.outcome.as_ref().ok()?.samples;
        let points: Vec<_> = samples.iter().map(|(ended, ahead)| (*ended as f64, *ahead as f64)).collect();
        (!points.is_empty()).then(|| Series { name: row.cell.name(), points })
    });
    series.collect()
}

fn plot_svg(title: &str, x: &str, y: &str, series: Vec<Series>) -> Result<String> {
    let (title, x, y) = (title.to_string(), x.to_string(), y.to_string());
    plot::svg(&[Panel { title, x, scale: AxisScale::FromZero, y, series }], 1, "")
}

#[cfg(test)]
mod tests {
    use super::{super::rows::tests::test_rows, *};

    #[test]
    fn one_plot_per_workload_and_device_and_one_line_per_mode() {
        let line =
            "--modes memory,base,direct --sizes 5,20 --devices ssd,hdd --lookahead adaptive --repeats 0,50";
        let plots = draw_all(&test_rows(line, |_, _| false)).unwrap();
        let files: Vec<&str> = plots.iter().map(|plot| plot.file.as_str()).collect();
        let count = |start: &str| files.iter().filter(|file| file.starts_with(start)).count();
        assert_eq!((count("qps-"), count("lookahead-")), (2 * 2 * 2, 2 * 2 * 2 * 2), "{files:?}");
        assert!(
            files.contains(&"qps-AND-H-rp50-hdd.svg") && files.contains(&"lookahead-SINGLE-H-rp0-ssd-5.svg")
        );
        for plot in plots.iter().filter(|plot| plot.file.starts_with("qps-")) {
            assert!(plot.svg.starts_with("<svg") && plot.svg.trim_end().ends_with("</svg>"));
            assert_eq!(plot.svg.contains("emulated"), plot.file.contains("hdd"));
            for name in ["memory", "base", "direct"] {
                assert_eq!(plot.svg.matches(&format!("\n{name}\n")).count(), 1, "{name} in {}", plot.file);
            }
        }
    }

    #[test]
    fn failed_cells_leave_gaps() {
        let plots = draw_all(&test_rows("--modes direct --sizes 5 --shapes AND", |_, _| true)).unwrap();
        assert_eq!(plots.len(), 1);
        assert!(plots[0].svg.starts_with("<svg"));
    }
}
