//! Plots as SVG: a grid of panels, and one legend for all of them on the right.

use crate::{Error, Result};
use plotters::coord::ranged1d::{AsRangedCoord, ValueFormatter};
use plotters::{backend::DrawingBackend, coord::Shift, prelude::*};

type DrawResult = std::result::Result<(), Box<dyn std::error::Error>>;

/// Width and height of a panel in pixels.
const PANEL_PIXELS: (u32, u32) = (560, 360);
/// Width of the legend in pixels.
const LEGEND_WIDTH_PIXELS: u32 = 260;
/// Height of one name in the legend, in pixels.
const LEGEND_LINE_PIXELS: i32 = 22;
/// Approximate number of labels on a horizontal axis of numbers.
const AXIS_LABELS: usize = 10;
/// Width and height of a character of a label in pixels.
const LABEL_CHARACTER_PIXELS: (u32, u32) = (7, 14);
/// A curve with at most this number of points has a mark at each point.
const MARKED_POINTS_MAX: usize = 40;

/// One diagram: two axes and the curves between them.
pub struct Panel {
    /// Text above the panel.
    pub title: String,
    /// Name of the horizontal axis.
    pub x: String,
    /// How the values of the horizontal axis are placed.
    pub scale: AxisScale,
    /// Name of the vertical axis, which begins at 0.
    pub y: String,
    /// The curves.
    pub series: Vec<Series>,
}

/// How the values of a horizontal axis are placed.
pub enum AxisScale {
    /// From 0 to the largest value.
    FromZero,
    /// From the smallest value, which is above 0, to the largest; logarithmic.
    Logarithmic,
    /// From the smallest value to the largest.
    Linear,
}

/// A curve: its name in the legend, and its points from left to right.
pub struct Series {
    /// Name in the legend. Curves of the same name have the same color in all panels.
    pub name: String,
    /// Horizontal and vertical value of each point.
    pub points: Vec<(f64, f64)>,
}

/// Draws panels, `columns` in a row. `heading` is the first line of the legend.
///
/// # Errors
/// If they cannot be drawn.
pub fn svg(panels: &[Panel], columns: usize, heading: &str) -> Result<String> {
    let mut text = String::new();
    let backend = SVGBackend::with_string(&mut text, image_pixels(panels, columns.max(1)));
    draw_panels(backend, panels, columns.max(1), heading).map_err(Error::failed("cannot draw a plot"))?;
    Ok(text)
}

/// Width and height of the whole image in pixels.
fn image_pixels(panels: &[Panel], columns: usize) -> (u32, u32) {
    let rows = panels.len().div_ceil(columns).max(1);
    let lines = series_names(panels).len() as u32 + 3;
    (
        PANEL_PIXELS.0 * columns as u32 + LEGEND_WIDTH_PIXELS,
        (PANEL_PIXELS.1 * rows as u32).max(lines * LEGEND_LINE_PIXELS as u32),
    )
}

fn draw_panels<B>(backend: B, panels: &[Panel], columns: usize, heading: &str) -> DrawResult
where
    B: DrawingBackend,
    B::ErrorType: 'static,
{
    let rows = panels.len().div_ceil(columns).max(1);
    let width = PANEL_PIXELS.0 * columns as u32;
    let names = series_names(panels);
    let root = backend.into_drawing_area();
    root.fill(&WHITE)?;
    let (left, beside) = root.split_horizontally(width);
    let (grid, _) = left.split_vertically(PANEL_PIXELS.1 * rows as u32);
    for (area, panel) in grid.split_evenly((rows, columns)).iter().zip(panels) {
        let xs = || panel.series.iter().flat_map(|line| &line.points).map(|point| point.0);
        let (least, most) = (xs().fold(f64::INFINITY, f64::min), xs().fold(f64::NEG_INFINITY, f64::max));
        let (least, most) = if least <= most { (least, most) } else { (0.0, 1.0) };
        // The ends of an axis differ, even if all points have the same value.
        let most = most.max(least + 1e-9 + least.abs() * 0.01);
        match &panel.scale {
            AxisScale::FromZero => draw_panel(area, panel, 0.0..most, &names)?,
            AxisScale::Linear => draw_panel(area, panel, least..most, &names)?,
            AxisScale::Logarithmic => draw_panel(area, panel, (least..most).log_scale(), &names)?,
        }
    }
    let font = ("sans-serif", 14).into_font();
    if !heading.is_empty() {
        beside.draw(&Text::new(heading.to_string(), (10, LEGEND_LINE_PIXELS), font.clone()))?;
    }
    for (number, name) in names.iter().enumerate() {
        let y = LEGEND_LINE_PIXELS * (number as i32 + 2);
        beside.draw(&PathElement::new([(6, y + 7), (34, y + 7)], series_color(number)))?;
        beside.draw(&point_mark((20, y + 7), number))?;
        beside.draw(&Text::new((*name).to_string(), (38, y), font.clone()))?;
    }
    root.present()?;
    Ok(())
}

/// The names of all curves, without repetitions.
fn series_names(panels: &[Panel]) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for line in panels.iter().flat_map(|panel| &panel.series) {
        if !names.contains(&line.name.as_str()) {
            names.push(&line.name);
        }
    }
    names
}

fn draw_panel<B, X>(area: &DrawingArea<B, Shift>, panel: &Panel, range: X, names: &[&str]) -> DrawResult
where
    B: DrawingBackend,
    B::ErrorType: 'static,
    X: AsRangedCoord<Value = f64>,
    X::CoordDescType: ValueFormatter<f64>,
{
    let ys = panel.series.iter().flat_map(|line| &line.points).map(|point| point.1);
    let top = 1.1 * ys.fold(0.0, f64::max);
    let top = if top > 0.0 { top } else { 1.0 };
    let left = 5 * LABEL_CHARACTER_PIXELS.0 + LABEL_CHARACTER_PIXELS.0 * tick_characters(top);
    let below = 3 * LABEL_CHARACTER_PIXELS.1 + 8;
    let mut chart = ChartBuilder::on(area)
        .caption(&panel.title, ("sans-serif", 15))
        .margin(12)
        .x_label_area_size(below)
        .y_label_area_size(left)
        .build_cartesian_2d(range, 0.0..top)?;
    let mut mesh = chart.configure_mesh();
    mesh.light_line_style(TRANSPARENT)
        .x_desc(&panel.x)
        .y_desc(&panel.y)
        .x_labels(AXIS_LABELS)
        .x_label_formatter(&|value: &f64| axis_label(*value))
        .y_label_formatter(&|value: &f64| axis_label(*value));
    mesh.draw()?;
    for line in &panel.series {
        let number = names.iter().position(|name| *name == line.name).unwrap_or_default();
        chart.draw_series(LineSeries::new(line.points.iter().copied(), series_color(number)))?;
        if line.points.len() <= MARKED_POINTS_MAX {
            chart.draw_series(line.points.iter().map(|point| point_mark(*point, number)))?;
        }
    }
    Ok(())
}

/// Characters of the longest label of a vertical axis from 0 to `top` with about ten labels.
fn tick_characters(top: f64) -> u32 {
    let step = 10f64.powf((top / 10.0).log10().floor());
    let ticks = (1..=9).map(|number| axis_label(step * f64::from(number)).len());
    ticks.chain([axis_label((top / step).floor() * step).len()]).max().unwrap_or(1) as u32
}

/// A value of an axis as text, rounded to six decimals.
fn axis_label(value: f64) -> String {
    format!("{}", (value * 1e6).round() / 1e6)
}

/// Colors that readers with color blindness can distinguish (Okabe and Ito, 2008), without yellow.
const SERIES_COLORS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(0, 0, 0),
];

/// The color of a curve by its number in the legend. Curves of the same color have different marks.
fn series_color(number: usize) -> ShapeStyle {
    SERIES_COLORS[number % SERIES_COLORS.len()].stroke_width(2)
}

/// The mark at a point of the curve with this number: a filled circle, a circle or a cross, another one each
/// time that the colors repeat.
fn point_mark<B: DrawingBackend, C: Clone + 'static>(at: C, number: usize) -> DynElement<'static, B, C> {
    let style = series_color(number);
    match number / SERIES_COLORS.len() % 3 {
        0 => Circle::new(at, 4, style.filled()).into_dyn(),
        1 => Circle::new(at, 4, style).into_dyn(),
        _ => Cross::new(at, 4, style).into_dyn(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn panel(scale: AxisScale, names: &[&str]) -> Panel {
        let points = vec![(1.0, 3.0), (10.0, 4.0)];
        let line = |name: &&str| Series { name: name.to_string(), points: points.clone() };
        let series = names.iter().map(line).collect();
        Panel { title: "some title".into(), x: "size".into(), scale, y: "speed".into(), series }
    }

    #[test]
    fn the_legend_has_each_name_once() {
        let all = [AxisScale::FromZero, AxisScale::Logarithmic, AxisScale::Linear];
        let panels: Vec<Panel> = all.into_iter().map(|scale| panel(scale, &["one", "two"])).collect();
        let text = svg(&panels, 2, "heading").unwrap();
        assert!(text.starts_with("<svg") && text.trim_end().ends_with("</svg>"));
        let count = |words: &str| text.matches(&format!("\n{words}\n")).count();
        assert_eq!((count("some title"), count("one"), count("two"), count("heading")), (3, 1, 1, 1));
    }

    #[test]
    fn panels_without_points_can_be_drawn() {
        assert!(svg(&[panel(AxisScale::Logarithmic, &[])], 1, "").is_ok());
        assert!(svg(&[], 3, "").is_ok());
        assert_eq!((axis_label(0.1 + 0.2), axis_label(30.0)), ("0.3".into(), "30".into()));
    }

    #[test]
    fn lines_of_the_same_colour_have_another_mark() {
        let names: Vec<String> = (0..=SERIES_COLORS.len()).map(|number| number.to_string()).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let text = svg(&[panel(AxisScale::Linear, &names)], 1, "").unwrap();
        let of_first = SERIES_COLORS[0];
        let color = format!("#{:02X}{:02X}{:02X}", of_first.0, of_first.1, of_first.2);
        let marks = |fill: &str| {
            let circles = text.split("<circle ").skip(1).map(|rest| rest.split("/>").next().unwrap_or(""));
            circles.filter(|circle| circle.contains(&format!("fill=\"{fill}\""))).count()
        };
        // Two points and the legend.
        assert_eq!((marks(&color), marks("none")), (3, 3));
    }

    #[test]
    fn tick_labels_have_their_width() {
        assert_eq!((tick_characters(12.0), tick_characters(45_000_000.0), tick_characters(0.3)), (2, 8, 4));
    }
}
