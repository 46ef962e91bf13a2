//! Plots with the axes of the paper: time and pages read over the varied parameter, one line per algorithm.

use super::row::SweepRow;
use crate::intersection::Algorithm;
use crate::{Error, Result};
use plotters::coord::Shift;
use plotters::coord::ranged1d::{AsRangedCoord, ValueFormatter};
use plotters::prelude::*;

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn = std::result::Result<(), Box<dyn std::error::Error>>;

/// Width and height of a panel.
const PANEL: (u32, u32) = (440, 320);
/// Width of the legend on the right.
const LEGEND: u32 = 100;
/// Height of a line of the legend.
const LINE: i32 = 22;

/// The figure of a row that a panel shows.
struct Measure {
    name: &'static str,
    of: fn(&SweepRow) -> f64,
}

const MEASURES: [Measure; 2] = [
    Measure { name: "time, ms", of: |row| 1e3 * row.seconds },
    Measure { name: "pages read", of: |row| row.reads.pages as f64 },
];

/// The label of the axis of a sweep, and whether it is logarithmic. `None` if the sweep has no plot.
pub(super) fn axis(sweep: &str) -> Option<(&'static str, bool)> {
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
    let Some(axis) = axis(sweep) else { return Ok(None) };
    let mut text = String::new();
    draw(rows, axis, &mut text)
        .map_err(|error| Error::Failed(format!("cannot draw {sweep}.svg: {error}")))?;
    Ok(Some(text))
}

fn draw(rows: &[&SweepRow], (name, logarithmic): (&str, bool), text: &mut String) -> Drawn {
    let width = PANEL.0 * MEASURES.len() as u32;
    let root = SVGBackend::with_string(text, (width + LEGEND, PANEL.1)).into_drawing_area();
    root.fill(&WHITE)?;
    let (panels, beside) = root.split_horizontally(width);
    let least = rows.iter().map(|row| row.x).fold(f64::INFINITY, f64::min);
    let most = rows.iter().map(|row| row.x).fold(least * 1.01 + 1e-9, f64::max);
    for (area, measure) in panels.split_evenly((1, MEASURES.len())).iter().zip(&MEASURES) {
        if logarithmic {
            panel(area, rows, name, (least..most).log_scale(), measure)?;
        } else {
            panel(area, rows, name, least..most, measure)?;
        }
    }
    let font = ("sans-serif", 14).into_font();
    let shown = Algorithm::ALL.into_iter().filter(|one| rows.iter().any(|row| row.algorithm == *one));
    for (number, algorithm) in shown.enumerate() {
        let y = LINE * (number as i32 + 1);
        beside.draw(&PathElement::new([(10, y + 7), (30, y + 7)], color(algorithm)))?;
        beside.draw(&Text::new(algorithm.name(), (38, y), font.clone()))?;
    }
    root.present()?;
    Ok(())
}

fn panel<X>(area: &Area, rows: &[&SweepRow], name: &str, range: X, measure: &Measure) -> Drawn
where
    X: AsRangedCoord<Value = f64>,
    X::CoordDescType: ValueFormatter<f64>,
{
    let top = 1.1 * rows.iter().map(|row| (measure.of)(row)).fold(0.1, f64::max);
    let mut chart = ChartBuilder::on(area)
        .margin(10)
        .x_label_area_size(34)
        .y_label_area_size(60)
        .build_cartesian_2d(range, 0.0..top)?;
    chart.configure_mesh().light_line_style(TRANSPARENT).x_desc(name).y_desc(measure.name).draw()?;
    for algorithm in Algorithm::ALL {
        let points: Vec<(f64, f64)> = rows
            .iter()
            .filter(|row| row.algorithm == algorithm)
            .map(|row| (row.x, (measure.of)(row)))
            .collect();
        chart.draw_series(LineSeries::new(points, color(algorithm)))?;
    }
    Ok(())
}

fn color(algorithm: Algorithm) -> ShapeStyle {
    let number = Algorithm::ALL.iter().position(|one| *one == algorithm);
    Palette99::pick(number.unwrap_or_default()).stroke_width(2)
}
