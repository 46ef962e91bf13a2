//! How the input files are read, and the checks of these options that need no file.

use super::members::InputMembers;
use std::{path::PathBuf, str::FromStr};
use tierdex::Schema;

/// Format of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputFormat {
    /// One JSON object per line.
    JsonLines,
    /// One document per line, columns separated by tabs, no quoting.
    Tsv,
    /// One document per file.
    Text,
    /// One document per row of a Parquet file.
    Parquet,
    /// One document per row of an Arrow IPC file or stream.
    Arrow,
}

impl InputFormat {
    /// Format by file extension, before `.gz` or `.zst`; `None` if the extension is unknown.
    pub fn from_file_name(name: &str) -> Option<InputFormat> {
        match InputFormat::file_extension(name)?.to_ascii_lowercase().as_str() {
            "jsonl" | "ndjson" | "json" => Some(InputFormat::JsonLines),
            "tsv" => Some(InputFormat::Tsv),
            "txt" | "text" | "md" | "rst" | "log" | "html" | "htm" | "xml" => Some(InputFormat::Text),
            "parquet" | "pq" => Some(InputFormat::Parquet),
            "arrow" | "arrows" | "feather" | "ipc" => Some(InputFormat::Arrow),
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
            "parquet" => Ok(InputFormat::Parquet),
            "arrow" => Ok(InputFormat::Arrow),
            _ => Err(format!("unknown format `{name}`; use jsonl, tsv, text, parquet or arrow")),
        }
    }
}

/// Content of a TSV column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TsvColumn {
    /// The id of the document.
    Id,
    /// A member of the document, by its number in the schema.
    Member(usize),
    /// Ignored.
    Ignore,
}

impl TsvColumn {
    /// Parses a list such as `id,-,title,text`.
    pub fn parse_list(list: &str, members: &InputMembers) -> Result<Vec<TsvColumn>, String> {
        let names: Vec<&str> = list.split(',').map(str::trim).collect();
        let columns =
            names.iter().map(|name| TsvColumn::parse(name, members)).collect::<Result<Vec<_>, _>>()?;
        let needed = match members.text.filter(|_| members.is_default) {
            Some(text) => columns.contains(&TsvColumn::Member(text)).then_some(()).ok_or("text"),
            None => {
                let is_member = |column: &TsvColumn| matches!(column, TsvColumn::Member(_));
                columns.iter().any(is_member).then_some(()).ok_or("a member of the schema")
            }
        };
        needed.map_err(|what| format!("no column is named {what}; name one, as in id,title,text"))?;
        let repeated = (0..columns.len())
            .find(|&at| columns[at] != TsvColumn::Ignore && columns[..at].contains(&columns[at]));
        match repeated {
            Some(at) => Err(format!("column {} appears twice; write - for a column to ignore", names[at])),
            None => Ok(columns),
        }
    }

    fn parse(name: &str, members: &InputMembers) -> Result<TsvColumn, String> {
        let member = members.of_path(name).map(TsvColumn::Member);
        match name {
            "id" => Ok(TsvColumn::Id),
            "-" => Ok(TsvColumn::Ignore),
            "title" if members.is_default => Ok(TsvColumn::Member(0)),
            "text" if members.is_default => Ok(TsvColumn::Member(1)),
            name => member.ok_or_else(|| {
                let known =
                    if members.is_default { "title, text".to_string() } else { members.paths.join(", ") };
                format!("unknown column `{name}`; use id, {known}, or - for a column to ignore")
            }),
        }
    }
}

/// How the input files are read and split into documents.
#[derive(Debug, Clone)]
pub struct InputOptions {
    /// Format of all inputs. `None`: by file extension, or else by content.
    pub format: Option<InputFormat>,
    /// Path of the id in a JSON object.
    pub id_field: String,
    /// Where the members of the schema are.
    pub members: InputMembers,
    /// Columns of TSV files. `None`: inferred from the first line of each file, by a header or by the number
    /// of columns.
    pub columns: Option<Vec<TsvColumn>>,
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

    /// What determines the documents of a file beside its content, in one line: these options, and the fields
    /// and members of the schema.
    pub fn settings(&self, schema: &Schema) -> String {
        let names: Vec<_> = schema.fields.iter().map(|field| (&field.name, &field.members)).collect();
        let InputOptions { format, id_field, members, columns, split, .. } = self;
        format!("{:?}", (format, id_field, members, columns, split, &schema.members, names))
    }

    /// Validates the options. The error message says what to change.
    pub(super) fn check(&self) -> Result<(), String> {
        if let Some(split) = self.split.filter(|&split| split < InputOptions::SPLIT_MIN) {
            let minimum = InputOptions::SPLIT_MIN;
            return Err(format!("--split of {split} bytes is too small; give at least {minimum}"));
        }
        if self.split.is_some() && self.members.text.is_none() {
            return Err("--split divides the member `text`, which the schema does not have".to_string());
        }
        let paths: Vec<&String> = std::iter::once(&self.id_field).chain(&self.members.paths).collect();
        match (0..paths.len()).find(|&at| paths[..at].contains(&paths[at])) {
            Some(at) => Err(format!(
                "member `{}` is named twice; the id and each member of the schema need their own",
                paths[at]
            )),
            None => Ok(()),
        }
    }

    /// The member that is split and the maximum bytes of a part, if documents are split.
    pub(super) fn split_member(&self) -> Option<(usize, usize)> {
        self.members.text.zip(self.split)
    }
}

impl Default for InputOptions {
    fn default() -> InputOptions {
        InputOptions {
            format: None,
            id_field: "id".to_string(),
            members: InputMembers::default(),
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
            ("a.parquet", Some(InputFormat::Parquet)),
            ("a.arrow.zst", Some(InputFormat::Arrow)),
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
        assert_eq!("parquet".parse(), Ok(InputFormat::Parquet));
        assert!("csv".parse::<InputFormat>().is_err());
    }

    #[test]
    fn invalid_column_lists_are_rejected() {
        use TsvColumn::{Id, Ignore};
        let (title, text) = (TsvColumn::Member(0), TsvColumn::Member(1));
        let parse = |list| TsvColumn::parse_list(list, &InputMembers::default());
        assert_eq!(parse("id,title,text"), Ok(vec![Id, title, text]));
        assert_eq!(parse("-,text,-, id"), Ok(vec![Ignore, text, Ignore, Id]));
        assert_eq!(parse("text"), Ok(vec![text]));
        for bad in ["", "id", "id,id,text", "text,text", "title,text,title", "body", "text,", "-"] {
            assert!(parse(bad).is_err(), "{bad}");
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
        assert!(check(&|options| options.id_field = "text".to_string()).is_err());
    }
}
