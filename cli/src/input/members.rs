//! Where the members of documents are in the input.

use std::borrow::Cow;
use tierdex::limits::COLUMN_VALUES_MAX;
use tierdex::schema::{Column, ColumnValue, Schema, Stored};

/// Names of the members of the default schema.
const TITLE: &str = "title";
const TEXT: &str = "text";

/// Where the members of documents are in the input: numbered as in the schema, and behind these the members
/// that only columns have.
#[derive(Debug, Clone)]
pub struct InputMembers {
    /// For each member the path in a JSON object, with dots between the names of nested objects, and the name
    /// of the column in TSV.
    pub paths: Vec<String>,
    /// Number of members of the schema, whose values are text.
    pub texts: usize,
    /// The columns of the schema, each with the number of its member.
    pub columns: Vec<(Column, usize)>,
    /// The member that is the title of text files.
    pub title: Option<usize>,
    /// The member that is the text of text files and that may be split.
    pub text: Option<usize>,
    /// Whether what documents have beside these members is stored.
    pub keeps_others: bool,
    /// Whether the members are those of the default schema: then a document needs a text, and more names of
    /// TSV columns are known.
    pub is_default: bool,
}

impl InputMembers {
    /// Members that are found by their names in the schema.
    pub fn of(schema: &Schema) -> InputMembers {
        let mut paths = schema.members.clone();
        let columns = schema.columns.iter().map(|column| {
            let known = paths.iter().position(|path| *path == column.member);
            let member = known.unwrap_or(paths.len());
            if known.is_none() {
                paths.push(column.member.clone());
            }
            (column.clone(), member)
        });
        let columns = columns.collect();
        InputMembers {
            texts: schema.members.len(),
            paths,
            columns,
            title: schema.member(TITLE),
            text: schema.member(TEXT),
            keeps_others: schema.stored == Stored::All,
            is_default: schema.members == [TITLE, TEXT],
        }
    }

    /// Whether the title and the text of a schema may have other names in the input: it has the members of
    /// the default schema, and those of fields that were added.
    pub fn can_be_renamed(schema: &Schema) -> bool {
        schema.members.len() >= 2 && schema.members[..2] == [TITLE, TEXT]
    }

    /// Sets the paths of title and text in the input.
    ///
    /// # Errors
    /// Another member has the same path; the message says so.
    pub fn rename(&mut self, title: Option<&str>, text: Option<&str>) -> Result<(), String> {
        for (number, name) in [title, text].into_iter().enumerate() {
            self.paths[number] = name.unwrap_or(&self.paths[number]).to_string();
        }
        let twice = (0..2).find(|&number| self.paths[number + 1..].contains(&self.paths[number]));
        match twice {
            None => Ok(()),
            Some(number) => Err(format!(
                "{} is {}, which is another member of the schema too",
                ["--title-field", "--text-field"][number],
                self.paths[number]
            )),
        }
    }

    /// Whether a column has the values of a member: then they need not be text.
    pub fn is_of_column(&self, member: usize) -> bool {
        self.columns.iter().any(|(_, of)| *of == member)
    }

    /// The values of the columns in those of a document, each with the number of its column.
    ///
    /// # Errors
    /// A value is not one of its column, or there are too many; the message says which.
    pub fn column_values(
        &self,
        values: &[(usize, Cow<'_, str>)],
    ) -> Result<Vec<(usize, ColumnValue)>, String> {
        let mut found = Vec::new();
        for (number, (column, member)) in self.columns.iter().enumerate() {
            let before = found.len();
            for (_, text) in values.iter().filter(|(of, text)| of == member && !text.is_empty()) {
                let value = column.values.parse(text.trim());
                found.push((number, value.map_err(|error| format!("column `{}`: {error}", column.name))?));
            }
            let (count, max) = (found.len() - before, if column.multi { COLUMN_VALUES_MAX } else { 1 });
            if count > max {
                let advice = if column.multi { "" } else { "; declare it as multi, or leave out the others" };
                return Err(format!(
                    "column `{}` has {count} values, of which {max} can be kept{advice}",
                    column.name
                ));
            }
        }
        Ok(found)
    }

    /// The member whose path this is.
    pub fn of_path(&self, path: &str) -> Option<usize> {
        self.paths.iter().position(|known| known == path)
    }
}

impl Default for InputMembers {
    fn default() -> InputMembers {
        InputMembers::of(&Schema::default())
    }
}
