//! Tab-separated values: one document a line, no quoting.

use super::options::Column;
use super::report::{Fault, ProblemKind};
use super::sink::Document;
use crate::size;
use memchr::memchr_iter;
use std::borrow::Cow;

/// The columns that the first line of a file with something in it suggests; none when all are blank.
pub(super) fn usual_columns(bytes: &[u8]) -> &'static [Column] {
    let mut lines = bytes.split(|&byte| byte == b'\n');
    let Some(line) = lines.find(|line| !line.trim_ascii().is_empty()) else { return &[] };
    match memchr_iter(b'\t', line).count() {
        0 => &[Column::Text],
        1 => &[Column::Id, Column::Text],
        _ => &[Column::Id, Column::Title, Column::Text],
    }
}

/// The document of a line. Further tabs belong to the last column if that is the text; else what follows the
/// last column is left out.
pub(super) fn document<'l>(line: &'l str, columns: &[Column]) -> Result<Document<'l>, Fault> {
    let mut document = Document::default();
    let mut rest = Some(line);
    for (at, column) in columns.iter().enumerate() {
        let Some(here) = rest else { return Err(too_few(at, columns.len())) };
        let takes_all = at + 1 == columns.len() && *column == Column::Text;
        let (value, after) = match here.split_once('\t') {
            Some((value, after)) if !takes_all => (value, Some(after)),
            _ => (here, None),
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

fn too_few(found: usize, wanted: usize) -> Fault {
    let found = size::count(found as u64, "column", "columns");
    Fault { kind: ProblemKind::Columns, message: format!("{found}, {wanted} expected") }
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
    fn columns_are_taken_apart() {
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
    fn the_first_line_tells_the_columns() {
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
            assert_eq!(usual_columns(bytes).len(), count, "{:?}", String::from_utf8_lossy(bytes));
        }
    }
}
