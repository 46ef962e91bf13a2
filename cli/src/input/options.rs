//! What the user may say about the inputs, and the checks that need no file.

use std::path::PathBuf;
use std::str::FromStr;

/// How bytes become documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// One JSON object a line.
    JsonLines,
    /// One document a line, columns separated by tabs, no quoting.
    Tsv,
    /// One document a file.
    Text,
}

impl Format {
    /// What the name of a file tells, after `.gz` or `.zst`; `None` when it tells nothing.
    pub fn of_name(name: &str) -> Option<Format> {
        match Format::ending(name)?.to_ascii_lowercase().as_str() {
            "jsonl" | "ndjson" | "json" => Some(Format::JsonLines),
            "tsv" => Some(Format::Tsv),
            "txt" | "text" | "md" | "rst" | "log" | "html" | "htm" | "xml" => Some(Format::Text),
            _ => None,
        }
    }

    /// The ending of a name, before `.gz` or `.zst`.
    pub fn ending(name: &str) -> Option<&str> {
        let (stem, ending) = name.rsplit_once('.')?;
        let packed = ["gz", "zst"].iter().any(|known| ending.eq_ignore_ascii_case(known));
        if packed { Some(stem.rsplit_once('.')?.1) } else { Some(ending) }
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(name: &str) -> Result<Format, String> {
        match name {
            "jsonl" => Ok(Format::JsonLines),
            "tsv" => Ok(Format::Tsv),
            "text" => Ok(Format::Text),
            _ => Err(format!("unknown format `{name}`; use jsonl, tsv or text")),
        }
    }
}

/// What a column of a TSV file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Column {
    /// The document's id.
    Id,
    /// Its title.
    Title,
    /// Its text.
    Text,
    /// Nothing of interest.
    Ignore,
}

impl Column {
    /// Reads a list like `id,-,title,text`.
    pub fn parse_list(list: &str) -> Result<Vec<Column>, String> {
        let columns = list.split(',').map(str::parse).collect::<Result<Vec<Column>, String>>()?;
        Column::check(&columns)?;
        Ok(columns)
    }

    fn check(columns: &[Column]) -> Result<(), String> {
        let count = |wanted| columns.iter().filter(|&&column| column == wanted).count();
        if count(Column::Text) == 0 {
            return Err("no column is named text; name one, as in id,title,text".to_string());
        }
        for (column, name) in [(Column::Id, "id"), (Column::Title, "title"), (Column::Text, "text")] {
            if count(column) > 1 {
                return Err(format!("column {name} appears twice; write - for the one to leave out"));
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
                Err(format!("unknown column `{other}`; use id, title, text, or - to leave a column out"))
            }
        }
    }
}

/// How to read the inputs.
#[derive(Debug, Clone)]
pub struct InputOptions {
    /// The format of every input; without it, names decide, and contents where names do not tell.
    pub format: Option<Format>,
    /// Member of a JSON object that holds the id.
    pub id_field: String,
    /// Member of a JSON object that holds the title.
    pub title_field: String,
    /// Member of a JSON object that holds the text.
    pub text_field: String,
    /// Columns of TSV files; without it, the first line of each file decides: by names, or by its columns'
    /// number.
    pub columns: Option<Vec<Column>>,
    /// Longest text of a document in bytes; longer ones are cut.
    pub split: Option<usize>,
    /// The folder of the index that is written: no input, wherever it is.
    pub output: Option<PathBuf>,
}

impl InputOptions {
    /// Smallest `split`: room for any character and then some.
    pub const SPLIT_MIN: usize = 16;

    /// Whether the options make sense together; the error says what to change.
    pub(super) fn check(&self) -> Result<(), String> {
        if let Some(split) = self.split.filter(|&split| split < InputOptions::SPLIT_MIN) {
            let least = InputOptions::SPLIT_MIN;
            return Err(format!("cannot split texts at {split} bytes; {least} is the least"));
        }
        if let Some(columns) = &self.columns {
            Column::check(columns)?;
        }
        self.check_fields()
    }

    fn check_fields(&self) -> Result<(), String> {
        let fields = [&self.id_field, &self.title_field, &self.text_field];
        match (0..fields.len()).find(|&at| fields[..at].contains(&fields[at])) {
            Some(at) => Err(format!(
                "field `{}` is named for two purposes; id, title and text need their own",
                fields[at]
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
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_formats() {
        let cases = [
            ("a.jsonl", Some(Format::JsonLines)),
            ("a.ndjson.gz", Some(Format::JsonLines)),
            ("a.b.JSON.ZST", Some(Format::JsonLines)),
            ("dir/a.tsv", Some(Format::Tsv)),
            ("a.tsv.gz", Some(Format::Tsv)),
            ("a.txt", Some(Format::Text)),
            ("a.md.gz", Some(Format::Text)),
            ("a.gz", None),
            ("json", None),
            ("", None),
            (".gz", None),
            ("a.tsv.gz.gz", None),
        ];
        for (name, format) in cases {
            assert_eq!(Format::of_name(name), format, "{name}");
        }
        assert_eq!("jsonl".parse(), Ok(Format::JsonLines));
        assert_eq!("tsv".parse(), Ok(Format::Tsv));
        assert_eq!("text".parse(), Ok(Format::Text));
        assert!("csv".parse::<Format>().is_err());
    }

    #[test]
    fn columns_are_checked() {
        use Column::{Id, Ignore, Text, Title};
        assert_eq!(Column::parse_list("id,title,text"), Ok(vec![Id, Title, Text]));
        assert_eq!(Column::parse_list("-,text,-, id"), Ok(vec![Ignore, Text, Ignore, Id]));
        assert_eq!(Column::parse_list("text"), Ok(vec![Text]));
        for bad in ["", "id", "id,id,text", "text,text", "title,text,title", "body", "text,", "-"] {
            assert!(Column::parse_list(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn options_are_checked() {
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
