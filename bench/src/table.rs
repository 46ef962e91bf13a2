//! Tables, for the terminal and for Markdown.

/// A heading and rows of cells. The first `left` columns are names and stand left; numbers stand right.
pub struct Table {
    heading: Vec<String>,
    left: usize,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table without rows; the first `left` columns stand left.
    pub fn new(left: usize, heading: &[&str]) -> Table {
        Table { heading: heading.iter().map(ToString::to_string).collect(), left, rows: Vec::new() }
    }

    /// Adds a row of as many cells as there are columns.
    pub fn row(&mut self, cells: Vec<String>) {
        assert_eq!(cells.len(), self.heading.len(), "a row has a cell a column");
        self.rows.push(cells);
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Columns under one another, two blanks apart, a line break behind each line.
    pub fn to_text(&self) -> String {
        self.lines("  ", "").collect()
    }

    /// A table of Markdown.
    pub fn to_markdown(&self) -> String {
        let mut lines: Vec<String> = self.lines(" | ", "| ").map(|line| line.replace('\n', " |\n")).collect();
        let rule = (0..self.heading.len()).map(|column| if column < self.left { "---|" } else { "---:|" });
        lines.insert(1, format!("|{}\n", rule.collect::<String>()));
        lines.concat()
    }

    fn lines(&self, between: &'static str, before: &'static str) -> impl Iterator<Item = String> {
        let widths: Vec<usize> = (0..self.heading.len()).map(|column| self.width(column)).collect();
        std::iter::once(&self.heading).chain(&self.rows).map(move |row| {
            let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, &width))| {
                if column < self.left { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
            });
            format!("{before}{}\n", cells.collect::<Vec<_>>().join(between).trim_end())
        })
    }

    fn width(&self, column: usize) -> usize {
        let rows = std::iter::once(&self.heading).chain(&self.rows);
        rows.map(|row| row[column].chars().count()).max().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_left_and_numbers_right() {
        let mut table = Table::new(1, &["codec", "bits"]);
        table.row(vec!["raw".into(), "32.00".into()]);
        assert_eq!(table.to_text(), "codec   bits\nraw    32.00\n");
        assert_eq!(table.to_markdown(), "| codec |  bits |\n|---|---:|\n| raw   | 32.00 |\n");
    }
}
