//! Parses tab-separated values: one document per line, no quoting.

use super::options::Column;
use super::report::{LineProblem, ProblemKind};
use super::sink::InputDocument;
use crate::size;
use memchr::{memchr, memchr_iter, memrchr};
use std::borrow::Cow;

/// Header names of id, title and text columns. Case is ignored.
const ID_NAMES: &[&str] = &["id", "_id", "docid", "doc_id", "docno", "pid"];
const TITLE_NAMES: &[&str] = &["title", "headline", "heading", "name"];
const TEXT_NAMES: &[&str] = &["text", "body", "content", "contents", "passage", "abstract", "document"];

/// Maximum length of a column name, in bytes.
const NAME_BYTES_MAX: usize = 64;

/// Columns inferred from the first line of a file that is not blank.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FirstLine {
    pub columns: Vec<Column>,
    /// End of the line, if it is a header.
    pub header_end: Option<usize>,
}

/// Infers the columns from the first line that is not blank; `None` if all lines are blank.
pub(super) fn first_line(bytes: &[u8]) -> Option<FirstLine> {
    let start = bytes.len() - bytes.trim_ascii_start().len();
    // White space before the first word can be empty columns.
    let start = memrchr(b'\n', &bytes[..start]).map_or(0, |newline| newline + 1);
    let end = memchr(b'\n', &bytes[start..]).map_or(bytes.len(), |length| start + length + 1);
    let line = &bytes[start..end];
    if line.trim_ascii().is_empty() {
        return None;
    }
    let by_count = || match memchr_iter(b'\t', line).count() {
        0 => vec![Column::Text],
        1 => vec![Column::Id, Column::Text],
        _ => vec![Column::Id, Column::Title, Column::Text],
    };
    let header = std::str::from_utf8(line).ok().and_then(header);
    let header_end = header.is_some().then_some(end);
    Some(FirstLine { columns: header.unwrap_or_else(by_count), header_end })
}

/// The columns of a header line: all values are valid column names, one names the text, and another the id
/// or the title. Of several columns with one meaning the first counts.
fn header(line: &str) -> Option<Vec<Column>> {
    let mut columns = Vec::new();
    for name in line.trim_end_matches(['\r', '\n']).split('\t').map(str::trim) {
        let column = column_of_name(name)?;
        columns.push(if columns.contains(&column) { Column::Ignore } else { column });
    }
    let named = columns.iter().filter(|&&column| column != Column::Ignore).count();
    (columns.contains(&Column::Text) && named > 1).then_some(columns)
}

/// The meaning of a column name; `None` if the value is not a valid name.
fn column_of_name(name: &str) -> Option<Column> {
    let is = |names: &[&str]| names.iter().any(|known| name.eq_ignore_ascii_case(known));
    let first = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let rest = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-. ".contains(&byte));
    match () {
        () if !first || !rest || name.len() > NAME_BYTES_MAX => None,
        () if is(ID_NAMES) => Some(Column::Id),
        () if is(TITLE_NAMES) => Some(Column::Title),
        () if is(TEXT_NAMES) => Some(Column::Text),
        () => Some(Column::Ignore),
    }
}

/// Parses the document of a line. If the last column is the text, it contains all further tabs; otherwise
/// further columns are ignored.
pub(super) fn document<'l>(line: &'l str, columns: &[Column]) -> Result<InputDocument<'l>, LineProblem> {
    let mut document = InputDocument::default();
    let mut rest = Some(line);
    for (i, column) in columns.iter().enumerate() {
        let Some(remaining) = rest else { return Err(too_few(i, columns.len())) };
        let takes_all = i + 1 == columns.len() && *column == Column::Text;
        let (value, after) = match remaining.split_once('\t') {
            Some((value, after)) if !takes_all => (value, Some(after)),
            _ => (remaining, None),
        };
        rest = after;
        match column {
            Column::Id => document.id = Some(Cow::Borrowed(value)),
            Column::Title => document.title = Cow::Borrowed(value),
            Column::Text => document.text = Cow::Borrowed(value),
            Column::Ignore => {}
        }
    }
    Ok(document)
}

fn too_few(found: usize, expected: usize) -> LineProblem {
    let found = size::count(found as u64, "column", "columns");
    LineProblem { kind: ProblemKind::Columns, message: format!("{found}, {expected} expected") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(columns: &str, line: &str, expected: Result<(Option<&str>, &str, &str), &str>) {
        let columns = Column::parse_list(columns).unwrap();
        let found = document(line, &columns);
        match (&found, expected) {
            (Ok(found), Ok(expected)) => {
                assert_eq!((found.id.as_deref(), &*found.title, &*found.text), expected)
            }
            (Err(found), Err(expected)) => assert_eq!(found.message, expected),
            _ => panic!("{found:?}, not {expected:?}"),
        }
    }

    #[test]
    fn columns_are_split_at_tabs() {
        check("text", "a\tb", Ok((None, "", "a\tb")));
        check("id,text", "1\ta\tb", Ok((Some("1"), "", "a\tb")));
        check("id,title,text", "1\tt\ta\tb", Ok((Some("1"), "t", "a\tb")));
        check("id,title,text", "\t\t", Ok((Some(""), "", "")));
        check("id,title,text", "1\tt", Err("2 columns, 3 expected"));
        check("id,text", "1", Err("1 column, 2 expected"));
        check("text,id", "a\t1\tmore", Ok((Some("1"), "", "a")));
        check("id,text,-", "1\ta\tb\tc", Ok((Some("1"), "", "a")));
        check("-,-,text", "1\t2\t\"3\"", Ok((None, "", "\"3\"")));
    }

    #[test]
    fn the_number_of_columns_determines_their_meaning() {
        let cases: [(&[u8], usize); 7] = [
            (b"", 0),
            (b"\n\r\n \n", 0),
            (b"a", 1),
            (b"\na b\nc\td\n", 1),
            (b"\r\n1\ta\n", 2),
            (b"1\tt\ta", 3),
            (b"1\tt\ta\t\t", 3),
        ];
        for (bytes, count) in cases {
            let found = first_line(bytes);
            let columns = found.as_ref().map_or(0, |found| found.columns.len());
            assert_eq!(columns, count, "{:?}", String::from_utf8_lossy(bytes));
            assert!(found.is_none_or(|found| found.header_end.is_none()));
        }
    }

    #[test]
    fn headers_name_the_columns() {
        use Column::{Id, Ignore, Text, Title};
        for (line, columns) in [
            ("id\ttitle\ttext\n", vec![Id, Title, Text]),
            ("\n\r\nDocID\tBody\r\n", vec![Id, Text]),
            ("url\tcontents\tTitle\t_id", vec![Ignore, Text, Title, Id]),
            ("id\ttext\tbody\n", vec![Id, Text, Ignore]),
        ] {
            let found = first_line(format!("{line}1\t2").as_bytes());
            let found = if line.ends_with('\n') { found } else { first_line(line.as_bytes()) };
            assert_eq!(found, Some(FirstLine { columns, header_end: Some(line.len()) }), "{line}");
        }
        for line in
            ["1\ttext", "cat\ttext", "a\tb\ttext", "id\ttitle", "id", "id\t\ttext", "id\tthe text", "text"]
        {
            assert_eq!(first_line(line.as_bytes()).unwrap().header_end, None, "{line}");
        }
    }
}
