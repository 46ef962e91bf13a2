//! Expectations: what must hold in a figure, as a range of ratios between points.
//!
//! An expectation selects points by `of` and by `to`, each a set of fields and their values. Every point of
//! `of` is divided by the points of `to` that agree with it in all other dimensions of the figure. The
//! expectation holds if every ratio is in the range.

use crate::paper::points::{Point, measured_points};
use crate::paper::{cell, cell::FigureCell, cell::Row, plot_definition::PlotDefinition};
use serde::Deserialize;
use std::collections::BTreeMap;
use toml::Value;

/// A claim of a paper in a form that can be checked.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Expectation {
    /// The claim, in one line.
    pub(super) claim: String,
    /// The paper's figure for it.
    pub(super) paper: String,
    /// The measure that is compared; by default the first one of the plot.
    measure: Option<String>,
    /// Points whose values are divided.
    #[serde(default)]
    of: Selector,
    /// Points whose values they are divided by.
    #[serde(default)]
    to: Selector,
    /// Conditions that the points of both kinds must meet.
    #[serde(default, rename = "where")]
    among: Selector,
    /// Smallest and largest ratio that agrees with the paper.
    at_least: Option<f64>,
    at_most: Option<f64>,
    /// A possible reason why the claim does not hold on machines other than the paper's.
    pub(super) because: Option<String>,
    /// The figure that tests the reason: the claims of that figure all hold if the reason is right.
    pub(super) control: Option<String>,
}

/// Fields of points and the values that they must have.
type Selector = BTreeMap<String, Value>;

/// Whether an expectation holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FigureVerdict {
    /// All ratios are in the range.
    Agrees,
    /// All ratios are in the range, but some cells that it compares were not measured.
    AgreesInPart,
    /// At least one ratio is outside the range.
    Differs,
    /// There are no points to compare.
    NotMeasured,
}

/// The result of checking an expectation.
pub(super) struct CheckedClaim {
    pub(super) verdict: FigureVerdict,
    /// The ratios: their geometric mean, range and number.
    pub(super) here: String,
}

impl Expectation {
    /// Checks the expectation against the measured rows of its figure.
    pub(super) fn check(&self, plot: &PlotDefinition, rows: &[Row]) -> CheckedClaim {
        let measure = self.measure(plot);
        let all = measured_points(plot, &[measure], rows);
        let mut ratios = Vec::new();
        for one in all.iter().filter(|one| has_values(one, &self.among) && has_values(one, &self.of)) {
            for other in
                all.iter().filter(|other| has_values(other, &self.among) && has_values(other, &self.to))
            {
                let fixed = |(field, _): &&(String, String)| {
                    let measured = plot.measured_x && *field == plot.x;
                    !measured && !self.of.contains_key(field) && !self.to.contains_key(field)
                };
                let same = one.dimensions.iter().filter(fixed).eq(other.dimensions.iter().filter(fixed));
                if same && one.dimensions != other.dimensions && other.median() > 0.0 {
                    ratios.push(one.median() / other.median());
                }
            }
        }
        if ratios.is_empty() {
            return CheckedClaim { verdict: FigureVerdict::NotMeasured, here: "-".to_string() };
        }
        let inside = |ratio: &f64| {
            self.at_least.is_none_or(|least| *ratio >= least)
                && self.at_most.is_none_or(|most| *ratio <= most)
        };
        let verdict = if ratios.iter().all(inside) { FigureVerdict::Agrees } else { FigureVerdict::Differs };
        CheckedClaim { verdict, here: ratios_text(&ratios) }
    }

    /// Whether the points of a cell can be among those that are compared.
    pub(super) fn concerns(&self, cell: &FigureCell) -> bool {
        self.sides(cell).contains(&true)
    }

    /// Whether the points of a cell can be among those of `of`, and among those of `to`.
    pub(super) fn sides(&self, cell: &FigureCell) -> [bool; 2] {
        let among = |selector: &Selector| selector.iter().all(|(field, value)| can_have(cell, field, value));
        [&self.of, &self.to].map(|side| among(&self.among) && among(side))
    }

    /// The measure that is compared.
    pub(super) fn measure<'a>(&'a self, plot: &'a PlotDefinition) -> &'a str {
        self.measure.as_deref().or(plot.y.first().map(String::as_str)).unwrap_or_default()
    }

    /// The condition in words: `qps of mode=direct to mode=base: at least 1`.
    pub(super) fn condition(&self, plot: &PlotDefinition) -> String {
        let mut text = format!("{} of {}", self.measure(plot), selector_text(&self.of));
        text += &format!(", divided by that of {}", selector_text(&self.to));
        if !self.among.is_empty() {
            text += &format!(", where {}", selector_text(&self.among));
        }
        let least = self.at_least.map(|least| format!("at least {least}"));
        let most = self.at_most.map(|most| format!("at most {most}"));
        let range: Vec<String> = least.into_iter().chain(most).collect();
        format!("{text}: {}", range.join(", "))
    }

    /// A reason why the expectation can never be checked, if there is one.
    pub(super) fn problem(&self, plot: &PlotDefinition) -> Option<String> {
        let fields = || self.of.keys().chain(self.to.keys()).chain(self.among.keys());
        let unknown = fields().find(|field| !plot.dimensions().contains(&field.as_str()));
        match unknown {
            Some(field) => Some(format!("`{field}` is no dimension of the figure")),
            None if self.at_least.is_none() && self.at_most.is_none() => {
                Some("neither at-least nor at-most".to_string())
            }
            None if self.control.is_some() && self.because.is_none() => {
                Some("a control without a reason that it tests".to_string())
            }
            None => None,
        }
    }
}

/// Whether a point has all values of a selector. A list selects any of its values.
fn has_values(point: &Point, selector: &Selector) -> bool {
    selector.iter().all(|(field, value)| {
        let found = point.get(field);
        let is = |value: &Value| found == Some(values_text(value).as_str());
        match value {
            Value::Array(any) => any.iter().any(is),
            value => is(value),
        }
    })
}

/// Whether a row of a cell can have a value of a field. The setting of a field has its name, or the plural.
fn can_have(cell: &FigureCell, field: &str, value: &Value) -> bool {
    let settings = ["", "s", "es"].into_iter().filter_map(|end| cell.get(&format!("{field}{end}")));
    let is = |setting: &str| match value {
        Value::Array(any) => any.iter().any(|one| values_text(one) == setting),
        value => values_text(value) == setting,
    };
    settings.into_iter().next().is_none_or(is)
}

/// A value, or the values of a list separated by bars.
fn values_text(value: &Value) -> String {
    match value {
        Value::Array(any) => any.iter().map(values_text).collect::<Vec<_>>().join("|"),
        value => cell::flag_text(value).unwrap_or_default(),
    }
}

fn selector_text(selector: &Selector) -> String {
    let pairs = selector.iter().map(|(field, value)| format!("{field}={}", values_text(value)));
    if selector.is_empty() { "all others".to_string() } else { pairs.collect::<Vec<_>>().join(" ") }
}

/// The geometric mean of ratios, and if there are several their range and number.
fn ratios_text(ratios: &[f64]) -> String {
    let mean = (ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len() as f64).exp();
    let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
    let most = ratios.iter().copied().fold(0.0, f64::max);
    match ratios.len() {
        1 => format!("{mean:.2}"),
        many => format!("{mean:.2} ({least:.2} to {most:.2}, {many} ratios)"),
    }
}

#[cfg(test)]
mod tests {
    use super::{super::points::tests::plot, super::points::tests::row, *};

    fn rows() -> Vec<Row> {
        let row = |shape: &str, size: u32, mode: &str, qps: u32| {
            row(&format!(r#"{{"shape": "{shape}", "size": {size}, "mode": "{mode}", "qps": {qps}}}"#))
        };
        vec![
            row("AND", 5, "base", 10),
            row("AND", 5, "direct", 20),
            row("AND", 100, "base", 40),
            row("AND", 100, "direct", 36),
            row("OR", 5, "base", 10),
            row("OR", 5, "direct", 80),
        ]
    }

    fn check(text: &str) -> (FigureVerdict, String) {
        let text = format!("claim = 'c'\npaper = '2'\n{text}");
        let checked = toml::from_str::<Expectation>(&text).unwrap().check(&plot(), &rows());
        (checked.verdict, checked.here)
    }

    #[test]
    fn ratios_are_between_points_that_agree_in_all_other_dimensions() {
        let modes = "of = { mode = 'direct' }\nto = { mode = 'base' }";
        let (verdict, here) = check(&format!("{modes}\nwhere = {{ size = 5 }}\nat-least = 2"));
        assert_eq!((verdict, here.as_str()), (FigureVerdict::Agrees, "4.00 (2.00 to 8.00, 2 ratios)"));
        let (verdict, here) = check(&format!("{modes}\nat-least = 1"));
        assert_eq!((verdict, here.as_str()), (FigureVerdict::Differs, "2.43 (0.90 to 8.00, 3 ratios)"));
        assert_eq!(check(&format!("{modes}\nat-most = 1")).0, FigureVerdict::Differs);
    }

    #[test]
    fn points_can_be_compared_along_the_axis() {
        let flat = "of = { size = 5 }\nto = { size = 100 }\nwhere = { mode = ['direct'] }\nat-least = 0.5";
        assert_eq!(check(flat), (FigureVerdict::Agrees, "0.56".to_string()));
        // Without a selector all other points of the same line are compared.
        let others = "of = { size = 5 }\nwhere = { mode = 'base', shape = 'AND' }\nat-most = 1";
        assert_eq!(check(others), (FigureVerdict::Agrees, "0.25".to_string()));
    }

    #[test]
    fn an_expectation_concerns_the_cells_that_it_compares() {
        let text = "claim = ''\npaper = ''\nof = { mode = ['direct', 'hybrid'] }\nto = { mode = 'base' }\n\
                    where = { class = 'H' }\nat-least = 1";
        let expected: Expectation = toml::from_str(text).unwrap();
        let concerned = |settings: &[(&str, &str)]| {
            expected.concerns(&FigureCell::new(cell::Experiment::Cache, settings))
        };
        assert!(concerned(&[("modes", "hybrid"), ("classes", "H")]) && concerned(&[("modes", "base")]));
        assert!(!concerned(&[("modes", "memory"), ("classes", "H")]) && !concerned(&[("classes", "M")]));
        // A field that is not a setting can have any value.
        assert!(concerned(&[("size", "5")]));
    }

    #[test]
    fn missing_points_are_not_measured() {
        let missing = "of = { mode = 'hybrid' }\nto = { mode = 'base' }\nat-least = 1";
        assert_eq!(check(missing), (FigureVerdict::NotMeasured, "-".to_string()));
        let unknown = "claim = ''\npaper = ''\nof = { color = 'red' }\nat-least = 1";
        assert!(toml::from_str::<Expectation>(unknown).unwrap().problem(&plot()).unwrap().contains("color"));
    }
}
