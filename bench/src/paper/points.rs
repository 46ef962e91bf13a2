//! Points: the rows of a figure's cells, grouped by the fields that its plot uses.

use crate::{median::median, paper::cell::Row, paper::plot_definition::PlotDefinition};
use serde_json::Value;

/// The values of a measure over the rounds, at one combination of the figure's dimensions.
#[derive(Clone, Debug)]
pub(super) struct Point {
    /// Field and value of each dimension: panels, lines, horizontal axis.
    pub(super) dimensions: Vec<(String, String)>,
    /// The measure's field.
    pub(super) measure: String,
    /// One value for each round, sorted.
    values: Vec<f64>,
}

impl Point {
    /// The value of a dimension.
    pub(super) fn get(&self, field: &str) -> Option<&str> {
        self.dimensions.iter().find(|(name, _)| name == field).map(|(_, value)| value.as_str())
    }

    /// The values of several dimensions, separated by spaces.
    pub(super) fn text(&self, fields: &[String]) -> String {
        let values = fields.iter().filter_map(|field| self.get(field)).filter(|value| !value.is_empty());
        values.collect::<Vec<_>>().join(" ")
    }

    /// The median: the middle value, or the mean of the two middle values.
    pub(super) fn median(&self) -> f64 {
        median(self.values.clone()).expect("a point has a value")
    }

    /// The smallest and the largest value.
    pub(super) fn spread(&self) -> (f64, f64) {
        (self.values[0], self.values[self.values.len() - 1])
    }

    /// Number of rounds.
    pub(super) fn rounds(&self) -> usize {
        self.values.len()
    }
}

/// The points of each of `measures`, in the order of the rows. Rows without the measure or without a
/// dimension give none.
pub(super) fn measured_points(plot: &PlotDefinition, measures: &[&str], rows: &[Row]) -> Vec<Point> {
    let mut points: Vec<Point> = Vec::new();
    for measure in measures {
        for row in rows {
            let Some(value) = row.get(*measure).and_then(Value::as_f64) else { continue };
            let dimension = |field: &str| Some((field.to_string(), value_text(row.get(field)?)));
            let Some(dimensions) = plot.dimensions().into_iter().map(dimension).collect() else { continue };
            match points.iter_mut().find(|one| one.measure == *measure && one.dimensions == dimensions) {
                Some(point) => point.values.push(value),
                None => {
                    points.push(Point { dimensions, measure: measure.to_string(), values: vec![value] });
                }
            }
        }
    }
    points.iter_mut().for_each(|point| point.values.sort_by(f64::total_cmp));
    points
}

/// A value as text: 5.0 as `5`, and null as an empty text.
pub(super) fn value_text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        value => value.as_f64().map_or_else(|| value.to_string(), |number| number.to_string()),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in super::super) fn plot() -> PlotDefinition {
        let text = "x = 'size'\nx-label = 'size'\ny = ['qps']\ny-label = 'QPS'\nlines = ['mode']\npanels = ['shape']";
        toml::from_str(text).unwrap()
    }

    pub(in super::super) fn row(text: &str) -> Row {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn rounds_of_equal_dimensions_are_one_point() {
        let rows = [
            r#"{"size": 5.0, "mode": "base", "shape": "AND", "qps": 3}"#,
            r#"{"size": 5, "mode": "base", "shape": "AND", "qps": 1}"#,
            r#"{"size": 5, "mode": "direct", "shape": "AND", "qps": 7}"#,
            r#"{"size": 5, "mode": "base", "shape": "AND", "qps": 2.5}"#,
            r#"{"size": 5, "mode": "base", "shape": "AND"}"#,
            r#"{"size": 5, "mode": "base", "qps": 2}"#,
        ];
        let points = measured_points(&plot(), &["qps"], &rows.map(row));
        assert_eq!(points.len(), 2);
        assert_eq!((points[0].median(), points[0].spread(), points[0].rounds()), (2.5, (1.0, 3.0), 3));
        assert_eq!((points[1].median(), points[1].get("size")), (7.0, Some("5")));
        assert_eq!(points[0].text(&["shape".into(), "mode".into()]), "AND base");
    }
}
