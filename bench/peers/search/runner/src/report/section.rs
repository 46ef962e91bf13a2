//! A section of a report: a table with its title, and the text of its figures.

use tierdex_bench::Table;

/// A table with its title and what is to be said of it.
pub struct Section {
    /// The title.
    pub title: String,
    /// Sentences; none if empty.
    pub about: String,
    /// The table.
    pub table: Table,
}

/// A section.
pub(super) fn section(title: &str, about: &str, table: Table) -> Section {
    Section { title: title.to_string(), about: about.to_string(), table }
}

/// A ratio; `-` if there is none.
pub(super) fn ratio(value: Option<f64>) -> String {
    value.map_or("-".to_string(), |value| format!("{value:.2}"))
}

/// Queries a second; `-` if there are none.
pub(super) fn qps(value: Option<f64>) -> String {
    value.map_or("-".to_string(), |value| format!("{value:.0}"))
}
