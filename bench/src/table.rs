//! Tables, for the terminal and for Markdown.

/// A heading and rows of cells. The first `left` columns are left-aligned, the others right-aligned.
pub struct Table {
    heading: Vec<String>,
    left: usize,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// An empty table whose first `left` columns are left-aligned.
    pub fn new(left: usize, heading: &[&str]) -> Table {
        Table { heading: heading.iter().map(ToString::to_string).collect(), left, rows: Vec::new() }
    }

    /// Adds a row, one cell per column.
    pub fn row(&mut self, cells: Vec<String>) {
        assert_eq!(cells.len(), self.heading.len(), "a row has one cell per column");
        self.rows.push(cells);
    }

    /// Whether the table has no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Plain text: aligned columns separated by two spaces, each line ended by a line break.
    pub fn to_text(&self) -> String {
        self.aligned_lines("  ", "").collect()
    }

    /// A Markdown table. Bars in cells are escaped.
    pub fn to_markdown(&self) -> String {
        let escaped = |row: &Vec<String>| row.iter().map(|cell| cell.replace('|', "\\|")).collect();
        let rows = self.rows.iter().map(escaped).collect();
        let escaped = Table { heading: escaped(&self.heading), left: self.left, rows };
        let mut lines: Vec<String> =
            escaped.aligned_lines(" | ", "| ").map(|line| line.replace('\n', " |\n")).collect();
        let rule = (0..self.heading.len()).map(|column| if column < self.left { "---|" } else { "---:|" });
        lines.insert(1, format!("|{}\n", rule.collect::<String>()));
        lines.concat()
    }

    fn aligned_lines(&self, between: &'static str, before: &'static str) -> impl Iterator<Item = String> {
        let widths: Vec<usize> = (0..self.heading.len()).map(|column| self.column_width(column)).collect();
        std::iter::once(&self.heading).chain(&self.rows).map(move |row| {
            let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, &width))| {
                if column < self.left { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
            });
            format!("{before}{}\n", cells.collect::<Vec<_>>().join(between).trim_end())
        })
    }

    fn column_width(&self, column: usize) -> usize {
        let rows = std::iter::once(&self.heading).chain(&self.rows);
        rows.map(|row| row[column].chars().count()).max().unwrap_or_default()
    }
}

/// A ratio as text with two decimals; `-` if it cannot be computed.
pub(crate) fn ratio_text(ratio: Option<f64>) -> String {
    ratio.map_or("-".to_string(), |ratio| format!("{ratio:.2}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_left_aligned_and_numbers_right_aligned() {
        let mut table = Table::new(1, &["codec", "bits"]);
        table.row(vec!["raw".into(), "32.00".into()]);
        assert_eq!(table.to_text(), "codec   bits\nraw    32.00\n");
        assert_eq!(table.to_markdown(), "| codec |  bits |\n|---|---:|\n| raw   | 32.00 |\n");
    }

    #[test]
    fn a_bar_in_a_cell_starts_no_column() {
        let mut table = Table::new(1, &["of", "n"]);
        table.row(vec!["a|b".into(), "1".into()]);
        assert_eq!(table.to_markdown(), "| of   | n |\n|---|---:|\n| a\\|b | 1 |\n");
        assert_eq!(table.to_text(), "of   n\na|b  1\n");
    }
}
