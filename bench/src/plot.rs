//! Line plots as SVG or PNG: a grid of panels, and one legend for all of them on the right.

mod bitmap;

use crate::{Error, Result};
use bitmap::Bitmap;
use plotters::backend::DrawingBackend;
use plotters::coord::Shift;
use plotters::coord::ranged1d::{AsRangedCoord, ValueFormatter};
use plotters::prelude::*;

type Drawn = std::result::Result<(), Box<dyn std::error::Error>>;

/// Width and height of a panel.
const PANEL: (u32, u32) = (560, 360);
/// Width of the legend.
const LEGEND: u32 = 260;
/// Height of a line of the legend.
const LINE: i32 = 22;
/// Number of labels of a horizontal axis of numbers.
const LABELS: usize = 10;
/// Lines with at most this number of points have them marked.
const MARKED_POINTS_MAX: usize = 40;

/// Two axes with lines.
pub struct Panel {
    /// Text above the panel.
    pub title: String,
    /// Name of the horizontal axis.
    pub x: String,
    /// Division of the horizontal axis.
    pub scale: Scale,
    /// Name of the vertical axis, which begins at 0.
    pub y: String,
    /// The lines.
    pub series: Vec<Series>,
}

/// Division of a horizontal axis.
pub enum Scale {
    /// From 0 to the largest value.
    FromZero,
    /// From the smallest value, which is above 0, to the largest; logarithmic.
    Logarithmic,
    /// From the smallest value to the largest.
    Linear,
    /// These names instead of the values 0, 1, 2, ...
    Named(Vec<String>),
}

/// A line: its name in the legend, and its points from left to right.
pub struct Series {
    /// Name in the legend. Lines of the same name have the same color in all panels.
    pub name: String,
    /// Points.
    pub points: Vec<(f64, f64)>,
}

/// Draws panels, `columns` in a row. `heading` is the first line of the legend.
///
/// # Errors
/// If they cannot be drawn.
pub fn svg(panels: &[Panel], columns: usize, heading: &str) -> Result<String> {
    let mut text = String::new();
    let backend = SVGBackend::with_string(&mut text, size(panels, columns.max(1)));
    draw(backend, (panels, columns.max(1)), heading).map_err(cannot_draw)?;
    Ok(text)
}

/// The same as PNG.
///
/// # Errors
/// If they cannot be drawn.
pub fn png(panels: &[Panel], columns: usize, heading: &str) -> Result<Vec<u8>> {
    let (mut pixels, size) = (Vec::new(), size(panels, columns.max(1)));
    draw(Bitmap::new(&mut pixels, size), (panels, columns.max(1)), heading).map_err(cannot_draw)?;
    bitmap::encode(&pixels, size)
}

fn cannot_draw(error: Box<dyn std::error::Error>) -> Error {
    Error::Failed(format!("cannot draw a plot: {error}"))
}

/// Width and height in pixels.
fn size(panels: &[Panel], columns: usize) -> (u32, u32) {
    let rows = panels.len().div_ceil(columns).max(1);
    let lines = names(panels).len() as u32 + 3;
    (PANEL.0 * columns as u32 + LEGEND, (PANEL.1 * rows as u32).max(lines * LINE as u32))
}

fn draw<B>(backend: B, (panels, columns): (&[Panel], usize), heading: &str) -> Drawn
where
    B: DrawingBackend,
    B::ErrorType: 'static,
{
    let rows = panels.len().div_ceil(columns).max(1);
    let width = PANEL.0 * columns as u32;
    let names = names(panels);
    let root = backend.into_drawing_area();
    root.fill(&WHITE)?;
    let (left, beside) = root.split_horizontally(width);
    let (grid, _) = left.split_vertically(PANEL.1 * rows as u32);
    for (area, panel) in grid.split_evenly((rows, columns)).iter().zip(panels) {
        let xs = || panel.series.iter().flat_map(|line| &line.points).map(|point| point.0);
        let (least, most) = (xs().fold(f64::INFINITY, f64::min), xs().fold(f64::NEG_INFINITY, f64::max));
        let (least, most) = if least <= most { (least, most) } else { (0.0, 1.0) };
        // An axis has a length, even if there is one value.
        let most = most.max(least + 1e-9 + least.abs() * 0.01);
        match &panel.scale {
            Scale::FromZero => draw_panel(area, panel, 0.0..most, &names)?,
            Scale::Linear => draw_panel(area, panel, least..most, &names)?,
            Scale::Logarithmic => draw_panel(area, panel, (least..most).log_scale(), &names)?,
            Scale::Named(all) => draw_panel(area, panel, -1.0..all.len() as f64, &names)?,
        }
    }
    let font = ("sans-serif", 14).into_font();
    if !heading.is_empty() {
        beside.draw(&Text::new(heading.to_string(), (10, LINE), font.clone()))?;
    }
    for (number, name) in names.iter().enumerate() {
        let y = LINE * (number as i32 + 2);
        beside.draw(&PathElement::new([(10, y + 7), (30, y + 7)], color(number)))?;
        beside.draw(&Text::new((*name).to_string(), (38, y), font.clone()))?;
    }
    root.present()?;
    Ok(())
}

/// The names of all lines, without repetitions.
fn names(panels: &[Panel]) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for line in panels.iter().flat_map(|panel| &panel.series) {
        if !names.contains(&line.name.as_str()) {
            names.push(&line.name);
        }
    }
    names
}

fn draw_panel<B, X>(area: &DrawingArea<B, Shift>, panel: &Panel, range: X, names: &[&str]) -> Drawn
where
    B: DrawingBackend,
    B::ErrorType: 'static,
    X: AsRangedCoord<Value = f64>,
    X::CoordDescType: ValueFormatter<f64>,
{
    let ys = panel.series.iter().flat_map(|line| &line.points).map(|point| point.1);
    let top = 1.1 * ys.fold(0.0, f64::max);
    let top = if top > 0.0 { top } else { 1.0 };
    // One label for each name, and one for the margin on each side.
    let labels = if let Scale::Named(all) = &panel.scale { all.len() + 2 } else { LABELS };
    let mut chart = ChartBuilder::on(area)
        .caption(&panel.title, ("sans-serif", 15))
        .margin(12)
        .x_label_area_size(36)
        .y_label_area_size(64)
        .build_cartesian_2d(range, 0.0..top)?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .x_desc(&panel.x)
        .y_desc(&panel.y)
        .x_labels(labels)
        .x_label_formatter(&|value: &f64| label(&panel.scale, *value))
        .y_label_formatter(&|value: &f64| label(&Scale::FromZero, *value))
        .draw()?;
    for line in &panel.series {
        let number = names.iter().position(|name| *name == line.name).unwrap_or_default();
        chart.draw_series(LineSeries::new(line.points.iter().copied(), color(number)))?;
        if line.points.len() <= MARKED_POINTS_MAX {
            let marks = line.points.iter().map(|point| Circle::new(*point, 3, color(number).filled()));
            chart.draw_series(marks)?;
        }
    }
    Ok(())
}

/// The label of a value of the horizontal axis.
fn label(scale: &Scale, value: f64) -> String {
    match scale {
        Scale::Named(names) if value.fract() == 0.0 && value >= 0.0 => {
            names.get(value as usize).cloned().unwrap_or_default()
        }
        Scale::Named(_) => String::new(),
        _ => format!("{}", (value * 1e6).round() / 1e6),
    }
}

/// Colors that readers with color blindness can distinguish (Okabe and Ito, 2008), without yellow.
const COLORS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(0, 0, 0),
];

fn color(number: usize) -> ShapeStyle {
    match COLORS.get(number) {
        Some(color) => color.stroke_width(2),
        None => Palette99::pick(number - COLORS.len()).stroke_width(2),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn panel(scale: Scale, names: &[&str]) -> Panel {
        let points = vec![(1.0, 3.0), (10.0, 4.0)];
        let line = |name: &&str| Series { name: name.to_string(), points: points.clone() };
        let series = names.iter().map(line).collect();
        Panel { title: "some title".into(), x: "size".into(), scale, y: "speed".into(), series }
    }

    #[test]
    fn the_legend_has_each_name_once() {
        let all = [Scale::FromZero, Scale::Logarithmic, Scale::Linear];
        let panels: Vec<Panel> = all.into_iter().map(|scale| panel(scale, &["one", "two"])).collect();
        let text = svg(&panels, 2, "heading").unwrap();
        assert!(text.starts_with("<svg") && text.trim_end().ends_with("</svg>"));
        let count = |words: &str| text.matches(&format!("\n{words}\n")).count();
        assert_eq!((count("some title"), count("one"), count("two"), count("heading")), (3, 1, 1, 1));
    }

    #[test]
    fn a_png_has_lines_and_text() {
        let panels = [panel(Scale::FromZero, &["one"])];
        let decoded = |heading: &str| {
            let bytes = png(&panels, 1, heading).unwrap();
            let mut reader = png::Decoder::new(std::io::Cursor::new(bytes)).read_info().unwrap();
            let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
            let info = reader.next_frame(&mut pixels).unwrap();
            assert_eq!((info.width, info.height), (PANEL.0 + LEGEND, PANEL.1));
            pixels
        };
        let plain = decoded("");
        let count = |pixels: &[u8], color: [u8; 3]| pixels.chunks(3).filter(|pixel| *pixel == color).count();
        // The line, its marks and its entry in the legend have the first color.
        let first = COLORS[0];
        assert!(count(&plain, [first.0, first.1, first.2]) > 200);
        assert!(count(&plain, [255; 3]) > plain.len() / 3 / 2);
        let headed = decoded("MM");
        let changed = plain.chunks(3).zip(headed.chunks(3)).filter(|(before, after)| before != after);
        assert!((20..2 * 7 * 13).contains(&changed.count()));
    }

    #[test]
    fn panels_without_points_and_names_as_labels_can_be_drawn() {
        let empty = panel(Scale::Logarithmic, &[]);
        let named = panel(Scale::Named(vec!["raw".into(), "packed".into()]), &["one"]);
        assert!(svg(&[empty, named], 1, "").unwrap().contains("packed"));
        assert!(svg(&[], 3, "").is_ok());
        assert_eq!(label(&Scale::Named(vec!["raw".into()]), 0.5), "");
        assert_eq!(
            (label(&Scale::Linear, 0.1 + 0.2), label(&Scale::FromZero, 30.0)),
            ("0.3".into(), "30".into())
        );
    }
}
