//! How the input files are read, and the checks of these options that need no file.

use std::{path::PathBuf, str::FromStr};

/// Format of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputFormat {
    /// One JSON object per line.
    JsonLines,
    /// One document per line, columns separated by tabs, no quoting.
    Tsv,
    /// One document per file.
    Text,
}

impl InputFormat {
    /// Format by file extension, before `.gz` or `.zst`; `None` if the extension is unknown.
    pub fn from_file_name(name: &str) -> Option<InputFormat> {
        match InputFormat::file_extension(name)?.to_ascii_lowercase().as_str() {
            "jsonl" | "ndjson" | "json" => Some(InputFormat::JsonLines),
            "tsv" => Some(InputFormat::Tsv),
            "txt" | "text" | "md" | "rst" | "log" | "html" | "htm" | "xml" => Some(InputFormat::Text),
            _ => None,
        }
    }

    /// File extension, before `.gz` or `.zst`.
    pub fn file_extension(name: &str) -> Option<&str> {
        let (stem, extension) = name.rsplit_once('.')?;
        let compressed = ["gz", "zst"].iter().any(|known| extension.eq_ignore_ascii_case(known));
        if compressed { Some(stem.rsplit_once('.')?.1) } else { Some(extension) }
    }
}

impl FromStr for InputFormat {
    type Err = String;

    fn from_str(name: &str) -> Result<InputFormat, String> {
        match name {
            "jsonl" => Ok(InputFormat::JsonLines),
            "tsv" => Ok(InputFormat::Tsv),
            "text" => Ok(InputFormat::Text),
            _ => Err(format!("unknown format `{name}`; use jsonl, tsv or text")),
        }
    }
}

/// Content of a TSV column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Column {
    /// The id of the document.
    Id,
    /// The title of the document.
    Title,
    /// The text of the document.
    Text,
    /// Ignored.
    Ignore,
}

impl Column {
    /// Parses a list such as `id,-,title,text`.
    pub fn parse_list(list: &str) -> Result<Vec<Column>, String> {
        let columns = list.split(',').map(str::parse).collect::<Result<Vec<Column>, String>>()?;
        Column::check_columns(&columns)?;
        Ok(columns)
    }

    fn check_columns(columns: &[Column]) -> Result<(), String> {
        let count = |kind| columns.iter().filter(|&&column| column == kind).count();
        if count(Column::Text) == 0 {
            return Err("no column is named text; name one, as in id,title,text".to_string());
        }
        for (column, name) in [(Column::Id, "id"), (Column::Title, "title"), (Column::Text, "text")] {
            if count(column) > 1 {
                return Err(format!("column {name} appears twice; write - for a column to ignore"));
            }
        }
        Ok(())
    }
}

impl FromStr for Column {
    type Err = String;

    fn from_str(name: &str) -> Result<Column, String> {
        match name.trim() {
            "id" => Ok(Column::Id),
            "title" => Ok(Column::Title),
            "text" => Ok(Column::Text),
            "-" => Ok(Column::Ignore),
            other => {
                Err(format!("unknown column `{other}`; use id, title, text, or - for a column to ignore"))
            }
        }
    }
}

/// How the input files are read and split into documents.
#[derive(Debug, Clone)]
pub struct InputOptions {
    /// Format of all inputs. `None`: by file extension, or else by content.
    pub format: Option<InputFormat>,
    /// Member of a JSON object that holds the id.
    pub id_field: String,
    /// Member of a JSON object that holds the title.
    pub title_field: String,
    /// Member of a JSON object that holds the text.
    pub text_field: String,
    /// Columns of TSV files. `None`: inferred from the first line of each file, by a header or by the number
    /// of columns.
    pub columns: Option<Vec<Column>>,
    /// Maximum length of a document's text in bytes. Longer texts are split.
    pub split: Option<usize>,
    /// Directory of the index that is written. It is excluded from the input.
    pub output: Option<PathBuf>,
    /// Whether all problems are listed, not only the first of each kind.
    pub list_all: bool,
}

impl InputOptions {
    /// Minimum of `split`. Any character fits.
    pub const SPLIT_MIN: usize = 16;

    /// Validates the options. The error message says what to change.
    pub(super) fn check(&self) -> Result<(), String> {
        if let Some(split) = self.split.filter(|&split| split < InputOptions::SPLIT_MIN) {
            let minimum = InputOptions::SPLIT_MIN;
            return Err(format!("--split of {split} bytes is too small; give at least {minimum}"));
        }
        if let Some(columns) = &self.columns {
            Column::check_columns(columns)?;
        }
        self.check_fields()
    }

    fn check_fields(&self) -> Result<(), String> {
        let fields = [&self.id_field, &self.title_field, &self.text_field];
        match (0..fields.len()).find(|&i| fields[..i].contains(&fields[i])) {
            Some(i) => Err(format!(
                "member `{}` is named twice; id, title and text need different members",
                fields[i]
            )),
            None => Ok(()),
        }
    }
}

impl Default for InputOptions {
    fn default() -> InputOptions {
        InputOptions {
            format: None,
            id_field: "id".to_string(),
            title_field: "title".to_string(),
            text_field: "text".to_string(),
            columns: None,
            split: None,
            output: None,
            list_all: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_follow_from_file_extensions() {
        let cases = [
            ("a.jsonl", Some(InputFormat::JsonLines)),
            ("a.ndjson.gz", Some(InputFormat::JsonLines)),
            ("a.b.JSON.ZST", Some(InputFormat::JsonLines)),
            ("dir/a.tsv", Some(InputFormat::Tsv)),
            ("a.tsv.gz", Some(InputFormat::Tsv)),
            ("a.txt", Some(InputFormat::Text)),
            ("a.md.gz", Some(InputFormat::Text)),
            ("a.gz", None),
            ("json", None),
            ("", None),
            (".gz", None),
            ("a.tsv.gz.gz", None),
        ];
        for (name, format) in cases {
            assert_eq!(InputFormat::from_file_name(name), format, "{name}");
        }
        assert_eq!("jsonl".parse(), Ok(InputFormat::JsonLines));
        assert_eq!("tsv".parse(), Ok(InputFormat::Tsv));
        assert_eq!("text".parse(), Ok(InputFormat::Text));
        assert!("csv".parse::<InputFormat>().is_err());
    }

    #[test]
    fn invalid_column_lists_are_rejected() {
        use Column::{Id, Ignore, Text, Title};
        assert_eq!(Column::parse_list("id,title,text"), Ok(vec![Id, Title, Text]));
        assert_eq!(Column::parse_list("-,text,-, id"), Ok(vec![Ignore, Text, Ignore, Id]));
        assert_eq!(Column::parse_list("text"), Ok(vec![Text]));
        for bad in ["", "id", "id,id,text", "text,text", "title,text,title", "body", "text,", "-"] {
            assert!(Column::parse_list(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn inconsistent_options_are_rejected() {
        let check = |change: &dyn Fn(&mut InputOptions)| {
            let mut options = InputOptions::default();
            change(&mut options);
            options.check()
        };
        assert!(check(&|_| ()).is_ok());
        assert!(check(&|options| options.split = Some(16)).is_ok());
        assert!(check(&|options| options.split = Some(15)).is_err());
        assert!(check(&|options| options.split = Some(0)).is_err());
        assert!(check(&|options| options.columns = Some(vec![Column::Id])).is_err());
        assert!(check(&|options| options.text_field = "id".to_string()).is_err());
    }
}
