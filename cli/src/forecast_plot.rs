//! A plot of forecasts as SVG: speed and latency by the size of the cache.

use crate::size;
use std::fmt::Write;
use tierdex::advise::CacheForecast;

/// Width and height of the image and of the space between the axes, and the corner of the latter, in pixels.
const IMAGE: (f64, f64) = (640.0, 400.0);
const AREA: (f64, f64) = (500.0, 300.0);
const CORNER: (f64, f64) = (70.0, 40.0);

/// Colors that readers with color blindness can distinguish (Okabe and Ito, 2008).
const SPEED_COLOR: &str = "#0072B2";
const LATENCY_COLOR: &str = "#D55E00";

/// Parts into which labels divide a vertical axis.
const PARTS: usize = 4;

/// Draws forecasts in the order of their sizes, at equal distances: the speed relative to an index in memory
/// with the axis on the left, and the 99th percentile of the latency with that on the right.
pub fn forecast_svg(forecasts: &[CacheForecast]) -> String {
    let mut sorted: Vec<&CacheForecast> = forecasts.iter().collect();
    sorted.sort_by_key(|forecast| forecast.cache_bytes);
    let percent = |forecast: &CacheForecast| 100.0 * forecast.share;
    let milliseconds = |forecast: &CacheForecast| 1e3 * forecast.p99.as_secs_f64();
    let top = |of: &dyn Fn(&CacheForecast) -> f64, least: f64| {
        sorted.iter().map(|forecast| of(forecast)).fold(least, f64::max)
    };
    let (speed_top, latency_top) = (top(&percent, 100.0), top(&milliseconds, 0.01));
    let (left, bottom) = (CORNER.0, CORNER.1 + AREA.1);
    let x = |number: usize| left + AREA.0 * (number as f64 + 0.5) / sorted.len() as f64;
    let y = |value: f64, top: f64| bottom - AREA.1 * value / top;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" font-family=\"sans-serif\" \
         font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
        IMAGE.0, IMAGE.1
    );
    let mut text = |x: f64, y: f64, anchor: &str, color: &str, text: &str| {
        let _ = writeln!(
            svg,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" fill=\"{color}\">{text}</text>"
        );
    };
    text(left - 50.0, 20.0, "start", SPEED_COLOR, "queries/s, % of an index in memory");
    text(IMAGE.0 - 10.0, 20.0, "end", LATENCY_COLOR, "p99, ms");
    text(left + AREA.0 / 2.0, IMAGE.1 - 8.0, "middle", "black", "size of the postings cache");
    for part in 0..=PARTS {
        let share = part as f64 / PARTS as f64;
        let at = bottom - AREA.1 * share + 4.0;
        text(left - 8.0, at, "end", SPEED_COLOR, &format!("{:.0}", speed_top * share));
        let latency = format!("{:.2}", latency_top * share);
        text(left + AREA.0 + 8.0, at, "start", LATENCY_COLOR, &latency);
    }
    for (number, forecast) in sorted.iter().enumerate() {
        text(x(number), bottom + 18.0, "middle", "black", &forecast.size.to_string());
        let bytes = size::show_bytes(forecast.cache_bytes);
        text(x(number), bottom + 34.0 + 14.0 * (number % 2) as f64, "middle", "gray", &bytes);
    }
    let _ = writeln!(
        svg,
        "<rect x=\"{left}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"none\" stroke=\"black\"/>",
        CORNER.1, AREA.0, AREA.1
    );
    let mut line = |color: &str, of: &dyn Fn(&CacheForecast) -> f64, top: f64| {
        let point = |(number, forecast): (usize, &&CacheForecast)| (x(number), y(of(forecast), top));
        let points: Vec<(f64, f64)> = sorted.iter().enumerate().map(point).collect();
        let path: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let _ = writeln!(
            svg,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{color}\" stroke-width=\"2\"/>",
            path.join(" ")
        );
        for (x, y) in points {
            let _ = writeln!(svg, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\" fill=\"{color}\"/>");
        }
    };
    line(SPEED_COLOR, &percent, speed_top);
    line(LATENCY_COLOR, &milliseconds, latency_top);
    svg + "</svg>\n"
}
