//! Plots with the axes of the paper: time and pages read over the varied parameter, one line per algorithm.

use crate::intersect::row::SweepRow;
use crate::{Result, intersection::Algorithm, plot, plot::AxisScale, plot::Panel, plot::Series};

/// What the vertical axis of a panel shows of a measurement.
struct IntersectMeasure {
    name: &'static str,
    of: fn(&SweepRow) -> f64,
}

const PANEL_MEASURES: [IntersectMeasure; 2] = [
    IntersectMeasure { name: "time, ms", of: |row| 1e3 * row.seconds },
    IntersectMeasure { name: "pages read", of: |row| row.reads.pages as f64 },
];

/// The label of the axis of a sweep, and whether it is logarithmic. `None` if the sweep has no plot.
pub(super) fn sweep_axis(sweep: &str) -> Option<(&'static str, bool)> {
    match sweep {
        "threads" => Some(("threads", true)),
        "ratio" => Some(("|L2| / |L1|", true)),
        "intersection" => Some(("intersection, percent of |L1|", true)),
        "depth" => Some(("reads in flight", true)),
        "memory" => Some(("pages in memory, percent", false)),
        "lists" => Some(("lists", false)),
        _ => None,
    }
}

/// The plot of a sweep.
pub(super) fn svg(sweep: &str, rows: &[&SweepRow]) -> Result<Option<String>> {
    let Some((name, logarithmic)) = sweep_axis(sweep) else { return Ok(None) };
    let measured = || Algorithm::ALL.into_iter().filter(|one| rows.iter().any(|row| row.algorithm == *one));
    let line = |algorithm: Algorithm, measure: &IntersectMeasure| {
        let rows = rows.iter().filter(|row| row.algorithm == algorithm);
        let points = rows.map(|row| (row.x, (measure.of)(row))).collect();
        Series { name: algorithm.name().to_string(), points }
    };
    let panels = PANEL_MEASURES.map(|measure| Panel {
        title: String::new(),
        x: name.to_string(),
        scale: if logarithmic { AxisScale::Logarithmic } else { AxisScale::Linear },
        series: measured().map(|algorithm| line(algorithm, &measure)).collect(),
        y: measure.name.to_string(),
    });
    plot::svg(&panels, panels.len(), "").map(Some)
}
