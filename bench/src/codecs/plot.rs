//! The plot of bits and speed by list length: for each dataset of ids a panel of speed above a panel of
//! bits, with a line for every delta codec of one kernel.

use super::list_group::ValueKind;
use super::own::MEMCPY;
use super::rows::{CodecRow, CodecRows};
use crate::{Error, Result};
use plotters::coord::Shift;
use plotters::prelude::*;

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn = std::result::Result<(), Box<dyn std::error::Error>>;

/// Width and height of a panel.
const PANEL: (u32, u32) = (500, 330);
/// Width of the legend on the right.
const LEGEND: u32 = 180;
/// Height of a line of the legend.
const LINE: i32 = 22;

/// The figure of a row that a panel shows.
struct Measure {
    name: &'static str,
    of: fn(&CodecRow) -> f64,
}

const MEASURES: [Measure; 2] = [
    Measure { name: "decoded into L1, billions per second", of: CodecRow::decode_l1 },
    Measure { name: "bits per id", of: CodecRow::bits },
];

/// Draws the codecs of `kernel`.
pub(super) fn svg(rows: &CodecRows, kernel: &str) -> Result<String> {
    let mut text = String::new();
    draw(rows, kernel, &mut text)
        .map_err(|error| Error::Failed(format!("cannot draw codecs.svg: {error}")))?;
    Ok(text)
}

fn draw(rows: &CodecRows, kernel: &str, text: &mut String) -> Drawn {
    let ids = rows.datasets().into_iter().filter(|(_, kind)| *kind == ValueKind::Ids);
    let datasets: Vec<&str> = ids.map(|(dataset, _)| dataset).collect();
    let columns = datasets.len().max(1);
    let (width, height) = (PANEL.0 * columns as u32, PANEL.1 * MEASURES.len() as u32);
    let root = SVGBackend::with_string(text, (width + LEGEND, height)).into_drawing_area();
    root.fill(&WHITE)?;
    let (panels, beside) = root.split_horizontally(width);
    let panels = panels.split_evenly((MEASURES.len(), columns));
    for (row, measure) in MEASURES.iter().enumerate() {
        for (column, dataset) in datasets.iter().enumerate() {
            panel(&panels[row * columns + column], rows, (dataset, kernel), measure)?;
        }
    }
    let codecs = datasets.first().map(|dataset| codecs(rows, dataset, kernel)).unwrap_or_default();
    legend(&beside, kernel, &codecs)?;
    root.present()?;
    Ok(())
}

/// The legend: the color of each codec.
fn legend(area: &Area, kernel: &str, codecs: &[String]) -> Drawn {
    let font = ("sans-serif", 14).into_font();
    area.draw(&Text::new(format!("kernel {kernel}"), (10, LINE), font.clone()))?;
    for (number, codec) in codecs.iter().enumerate() {
        let y = LINE * (number as i32 + 2);
        area.draw(&PathElement::new([(10, y + 7), (30, y + 7)], color(number)))?;
        area.draw(&Text::new(codec.clone(), (38, y), font.clone()))?;
    }
    Ok(())
}

fn panel(area: &Area, rows: &CodecRows, (dataset, kernel): (&str, &str), measure: &Measure) -> Drawn {
    let classes = rows.classes(dataset);
    let (first, last) = (classes.first().copied().unwrap_or(0), classes.last().copied().unwrap_or(1));
    let line = |codec: &String| -> Vec<(u32, f64)> {
        let value = |&k| rows.class(dataset, k, codec, kernel).map(|row| (k, (measure.of)(row)));
        classes.iter().filter_map(value).collect()
    };
    let lines: Vec<_> = codecs(rows, dataset, kernel).iter().map(line).collect();
    let top = 1.1 * lines.iter().flatten().map(|point| point.1).fold(0.1, f64::max);
    let mut chart = ChartBuilder::on(area)
        .caption(dataset, ("sans-serif", 15))
        .margin(10)
        .x_label_area_size(34)
        .y_label_area_size(46)
        .build_cartesian_2d(first..last.max(first + 1), 0.0..top)?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .x_desc("K: lists of 2^K to 2^(K+1) - 1 ids")
        .y_desc(measure.name)
        .x_labels(classes.len())
        .draw()?;
    for (number, points) in lines.into_iter().enumerate() {
        chart.draw_series(LineSeries::new(points, color(number)))?;
    }
    Ok(())
}

fn color(number: usize) -> ShapeStyle {
    Palette99::pick(number).stroke_width(2)
}

/// The measured codecs of `kernel`.
fn codecs(rows: &CodecRows, dataset: &str, kernel: &str) -> Vec<String> {
    let totals = rows.totals(dataset).into_iter();
    totals.filter(|row| row.kernel == kernel && row.codec != MEMCPY).map(|row| row.codec).collect()
}

#[cfg(test)]
mod tests {
    use super::super::rows::tests::rows;
    use super::*;

    #[test]
    fn one_panel_per_dataset_and_figure_and_one_name_per_codec() {
        let svg = svg(&rows(), "avx2").unwrap();
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
        assert_eq!((svg.matches("uniform").count(), svg.matches("bits per id").count()), (2, 1));
        assert_eq!((svg.matches("vbyte-delta").count(), svg.matches("kernel avx2").count()), (1, 1));
        assert!(!svg.contains("memcpy") && !svg.contains("zipf"));
    }

    #[test]
    fn no_rows_give_an_empty_plot() {
        assert!(svg(&CodecRows::default(), "scalar").unwrap().starts_with("<svg"));
    }
}
