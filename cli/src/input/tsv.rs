//! Parses tab-separated values: one document per line. Quotes are text, unless the header is in quotes.

use super::report::{LineProblem, ProblemKind};
use super::{members::InputMembers, options::TsvColumn, sink::InputDocument};
use crate::size;
use memchr::{memchr, memchr_iter, memrchr};
use std::borrow::Cow;

/// Names in a header line by which the column of ids, titles or texts is recognised. Case is ignored.
const ID_COLUMN_NAMES: &[&str] = &["id", "_id", "docid", "doc_id", "docno", "pid"];
const TITLE_COLUMN_NAMES: &[&str] = &["title", "headline", "heading", "name"];
const TEXT_COLUMN_NAMES: &[&str] =
    &["text", "body", "content", "contents", "passage", "abstract", "document"];

/// Maximum length of a column name, in bytes.
const COLUMN_NAME_BYTES_MAX: usize = 64;

/// What the first line of a file that is not blank says about its columns.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct FirstLineColumns {
    pub columns: Vec<TsvColumn>,
    /// Offset of the end of the first line, if that line is a header.
    pub header_end: Option<usize>,
    /// Whether the first line is a header with names in quotes.
    pub quoted: bool,
    /// Names of the columns of a header that are not indexed.
    pub ignored: Vec<String>,
    /// The error of a header that has an id and no text.
    pub without_text: Option<String>,
}

/// Infers the columns from the first line that is not blank; `None` if all lines are blank.
///
/// Without a header the number of columns says what they are, if the schema is the default one.
pub(super) fn inspect_first_line(bytes: &[u8], members: &InputMembers) -> Option<FirstLineColumns> {
    let start = bytes.len() - bytes.trim_ascii_start().len();
    // White space before the first word can be empty columns.
    let start = memrchr(b'\n', &bytes[..start]).map_or(0, |newline| newline + 1);
    let end = memchr(b'\n', &bytes[start..]).map_or(bytes.len(), |length| start + length + 1);
    let line = &bytes[start..end];
    if line.trim_ascii().is_empty() {
        return None;
    }
    let header = std::str::from_utf8(line).ok().and_then(|line| parse_header(line, members));
    if let Some(header) = header {
        return Some(FirstLineColumns { header_end: Some(end), ..header });
    }
    let columns = match (members.title, members.text, memchr_iter(b'\t', line).count()) {
        (Some(title), Some(text), tabs) if members.is_default => {
            let (title, text) = (TsvColumn::Member(title), TsvColumn::Member(text));
            match tabs {
                0 => vec![text],
                1 => vec![TsvColumn::Id, text],
                _ => vec![TsvColumn::Id, title, text],
            }
        }
        _ => vec![TsvColumn::Ignore],
    };
    let without_text = (columns == [TsvColumn::Ignore]).then(|| {
        format!("the first line is no header with an id and members ({})", members.paths.join(", "))
            + "; name the columns with --columns"
    });
    Some(FirstLineColumns { columns, without_text, ..FirstLineColumns::default() })
}

/// The columns of a header line: all values are valid column names, and two of them are those of the id or of
/// members of the schema. With the default schema one of the two is the text, unless there are an id and a
/// title alone. If all values are in quotes, cells may be. Of several columns with one meaning the first
/// counts.
fn parse_header(line: &str, members: &InputMembers) -> Option<FirstLineColumns> {
    let names: Vec<&str> = line.trim_end_matches(['\r', '\n']).split('\t').map(str::trim).collect();
    let unquoted: Option<Vec<&str>> =
        names.iter().map(|name| name.strip_prefix('"')?.strip_suffix('"')).collect();
    let (quoted, names) = (unquoted.is_some(), unquoted.unwrap_or(names));
    let mut found = FirstLineColumns { quoted, ..FirstLineColumns::default() };
    for name in &names {
        let column = column_of_name(name, members)?;
        let is_first = column != TsvColumn::Ignore && !found.columns.contains(&column);
        found.columns.push(if is_first { column } else { TsvColumn::Ignore });
        found.ignored.extend((!is_first).then(|| name.to_string()));
    }
    let has = |column| found.columns.contains(&column);
    let has_member = |member: Option<usize>| member.is_some_and(|member| has(TsvColumn::Member(member)));
    let named = names.len() - found.ignored.len();
    let of_schema = found.columns.iter().any(|column| matches!(column, TsvColumn::Member(_)));
    match () {
        () if !members.is_default && of_schema && named > 1 => Some(found),
        () if has_member(members.text) && named > 1 => Some(found),
        () if has(TsvColumn::Id) && has_member(members.title) && found.ignored.is_empty() => Some(found),
        () if has(TsvColumn::Id) && names.len() > 1 && !names.iter().any(|name| name.contains(' ')) => {
            found.without_text = Some(missing_text_message(&names, &found.columns, members));
            Some(found)
        }
        () => None,
    }
}

/// The error of a header without text, with the flag that names it.
fn missing_text_message(names: &[&str], columns: &[TsvColumn], members: &InputMembers) -> String {
    let has = names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    if !members.is_default {
        let known = members.paths.join(", ");
        return format!(
            "the header has {has}, and no member of the schema ({known}); name them with --columns"
        );
    }
    let text = columns.iter().rposition(|&column| column == TsvColumn::Ignore);
    let columns = columns.iter().enumerate().map(|(number, column)| match column {
        _ if Some(number) == text => "text",
        TsvColumn::Id => "id",
        TsvColumn::Member(member) if Some(*member) == members.title => "title",
        TsvColumn::Member(_) | TsvColumn::Ignore => "-",
    });
    let columns = columns.collect::<Vec<_>>().join(",");
    format!("the header has {has}, and no text; name the columns, as in --columns {columns}")
}

/// Whether a name is a usual one for texts.
pub(super) fn is_text_name(name: &str) -> bool {
    TEXT_COLUMN_NAMES.iter().any(|known| name.eq_ignore_ascii_case(known))
}

/// The meaning of a column name; `None` if the value is not a valid name.
fn column_of_name(name: &str, members: &InputMembers) -> Option<TsvColumn> {
    let is = |names: &[&str]| names.iter().any(|known| name.eq_ignore_ascii_case(known));
    let first = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let rest = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-. ".contains(&byte));
    let member = match () {
        () if !first || !rest || name.len() > COLUMN_NAME_BYTES_MAX => return None,
        () if is(ID_COLUMN_NAMES) => return Some(TsvColumn::Id),
        () if !members.is_default => members.paths.iter().position(|path| path.eq_ignore_ascii_case(name)),
        () if is(TITLE_COLUMN_NAMES) => members.title,
        () if is_text_name(name) => members.text,
        () => {
            let of_column = |member: &usize| members.paths[*member].eq_ignore_ascii_case(name);
            (members.texts..members.paths.len()).find(of_column)
        }
    };
    Some(member.map_or(TsvColumn::Ignore, TsvColumn::Member))
}

/// Parses the document of a line. If the last column is a member, it contains all further tabs; otherwise
/// further columns are ignored.
pub(super) fn parse_tsv_line<'l>(
    line: &'l str,
    columns: &[TsvColumn],
) -> Result<InputDocument<'l>, LineProblem> {
    let mut document = InputDocument::default();
    let mut rest = Some(line);
    for (i, column) in columns.iter().enumerate() {
        let Some(remaining) = rest else { return Err(too_few_columns(i, columns.len())) };
        let takes_all = i + 1 == columns.len() && matches!(column, TsvColumn::Member(_));
        let (value, after) = match remaining.split_once('\t') {
            Some((value, after)) if !takes_all => (value, Some(after)),
            _ => (remaining, None),
        };
        rest = after;
        match column {
            TsvColumn::Id => document.id = Some(Cow::Borrowed(value)),
            TsvColumn::Member(member) => document.values.push((*member, Cow::Borrowed(value))),
            TsvColumn::Ignore => {}
        }
    }
    Ok(document)
}

/// Parses the document of a line whose cells may be in quotes: two quotes in such a cell are one, and tabs
/// are text. The cells end with the line.
pub(super) fn parse_quoted_line<'l>(
    line: &'l str,
    columns: &[TsvColumn],
) -> Result<InputDocument<'l>, LineProblem> {
    let (mut document, mut rest) = (InputDocument::default(), Some(line));
    for (number, column) in columns.iter().enumerate() {
        let Some(remaining) = rest else { return Err(too_few_columns(number, columns.len())) };
        let (value, after) = parse_quoted_cell(remaining).ok_or_else(|| {
            column_problem(format!("column {} has a quote that does not end in this line", number + 1))
        })?;
        rest = after;
        match column {
            TsvColumn::Id => document.id = Some(value),
            TsvColumn::Member(member) => document.values.push((*member, value)),
            TsvColumn::Ignore => {}
        }
    }
    Ok(document)
}

/// The first cell of a line and what follows its tab; `None` if its quotes are not closed.
fn parse_quoted_cell(line: &str) -> Option<(Cow<'_, str>, Option<&str>)> {
    let Some(quoted) = line.strip_prefix('"') else {
        return Some(match line.split_once('\t') {
            Some((value, after)) => (Cow::Borrowed(value), Some(after)),
            None => (Cow::Borrowed(line), None),
        });
    };
    let mut end = 0;
    loop {
        end += memchr(b'"', &quoted.as_bytes()[end..])?;
        let after = &quoted[end + 1..];
        if after.starts_with('"') {
            end += 2;
            continue;
        }
        let value = Cow::Borrowed(&quoted[..end]);
        let value = if value.contains('"') { Cow::Owned(value.replace("\"\"", "\"")) } else { value };
        return match after.strip_prefix('\t') {
            Some(after) => Some((value, Some(after))),
            None => after.is_empty().then_some((value, None)),
        };
    }
}

fn column_problem(message: String) -> LineProblem {
    LineProblem { kind: ProblemKind::Columns, message }
}

fn too_few_columns(found: usize, expected: usize) -> LineProblem {
    let found = size::show_count(found as u64, "column", "columns");
    column_problem(format!("{found}, {expected} expected"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tierdex::schema::{Field, Schema};

    fn inspect(bytes: &[u8]) -> Option<FirstLineColumns> {
        inspect_first_line(bytes, &InputMembers::default())
    }

    #[track_caller]
    fn check_document(columns: &str, line: &str, expected: Result<(Option<&str>, &str, &str), &str>) {
        let columns = TsvColumn::parse_list(columns, &InputMembers::default()).unwrap();
        let found = parse_tsv_line(line, &columns);
        match (&found, expected) {
            (Ok(found), Ok(expected)) => {
                assert_eq!((found.id.as_deref(), &*found.joined(0), &*found.joined(1)), expected)
            }
            (Err(found), Err(expected)) => assert_eq!(found.message, expected),
            _ => panic!("{found:?}, not {expected:?}"),
        }
    }

    #[test]
    fn columns_are_split_at_tabs() {
        check_document("text", "a\tb", Ok((None, "", "a\tb")));
        check_document("id,text", "1\ta\tb", Ok((Some("1"), "", "a\tb")));
        check_document("id,title,text", "1\tt\ta\tb", Ok((Some("1"), "t", "a\tb")));
        check_document("id,title,text", "\t\t", Ok((Some(""), "", "")));
        check_document("id,title,text", "1\tt", Err("2 columns, 3 expected"));
        check_document("id,text", "1", Err("1 column, 2 expected"));
        check_document("text,id", "a\t1\tmore", Ok((Some("1"), "", "a")));
        check_document("id,text,-", "1\ta\tb\tc", Ok((Some("1"), "", "a")));
        check_document("-,-,text", "1\t2\t\"3\"", Ok((None, "", "\"3\"")));
    }

    #[test]
    fn cells_in_quotes_are_unquoted() {
        let columns = TsvColumn::parse_list("id,text", &InputMembers::default()).unwrap();
        for (line, expected) in [
            ("\"1\"\t\"a \"\"b\"\" c\"", Some(("1", "a \"b\" c"))),
            ("1\ta \"b\"", Some(("1", "a \"b\""))),
            ("\"1\"\t\"a\tb\"\tmore", Some(("1", "a\tb"))),
            ("\"\"\t\"\"", Some(("", ""))),
            ("\"\"\"\"\t\"\"\"\"\"\"", Some(("\"", "\"\""))),
            ("\"1\t\"a\"", None),
            ("\"1\" x\ta", None),
            ("\"1\"", None),
        ] {
            let found = parse_quoted_line(line, &columns).ok();
            let found = found.map(|found| (found.id.clone().unwrap(), found.joined(1).into_owned()));
            let expected = expected.map(|(id, text)| (Cow::Borrowed(id), text.to_string()));
            assert_eq!(found, expected, "{line}");
        }
    }

    #[test]
    fn a_header_without_text_is_an_error() {
        let error = |line: &str| inspect(line.as_bytes()).unwrap().without_text;
        let words =
            "the header has `id`, `url`, `story`, and no text; name the columns, as in --columns id,-,text";
        assert_eq!(error("id\turl\tstory\n1\t2\t3"), Some(words.to_string()));
        assert_eq!(error("id\ttitle\n"), None);
        assert_eq!(error("id\tstory\ttext\n"), None);
    }

    #[test]
    fn headers_have_two_columns_of_the_schema() {
        let schema = Schema::of(vec![Field::new("subject", &["subject"]), Field::new("to", &["to"])]);
        let columns = |line: &str| {
            let found = inspect_first_line(line.as_bytes(), &InputMembers::of(&schema)).unwrap();
            found.header_end.map(|_| found.columns)
        };
        let (subject, to) = (TsvColumn::Member(1), TsvColumn::Member(2));
        assert_eq!(columns("id\tTo\tsize\n1\t2\t3"), Some(vec![TsvColumn::Id, to, TsvColumn::Ignore]));
        assert_eq!(columns("subject\tto"), Some(vec![subject, to]));
        for line in ["7\tsubject", "words\tto", "subject", "to\twords", "to\tto"] {
            assert_eq!(columns(line), None, "{line}");
        }
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
            let found = inspect(bytes);
            let columns = found.as_ref().map_or(0, |found| found.columns.len());
            assert_eq!(columns, count, "{:?}", String::from_utf8_lossy(bytes));
            assert!(found.is_none_or(|found| found.header_end.is_none()));
        }
    }

    #[test]
    fn headers_name_the_columns() {
        use TsvColumn::{Id, Ignore};
        let (title, text) = (TsvColumn::Member(0), TsvColumn::Member(1));
        for (line, columns) in [
            ("id\ttitle\ttext\n", vec![Id, title, text]),
            ("\n\r\nDocID\tBody\r\n", vec![Id, text]),
            ("url\tcontents\ttitle\t_id", vec![Ignore, text, title, Id]),
            ("id\ttext\tbody\n", vec![Id, text, Ignore]),
            ("id\ttitle\n", vec![Id, title]),
            ("\"id\"\t\"Text\"\r\n", vec![Id, text]),
        ] {
            let found = inspect(format!("{line}1\t2").as_bytes());
            let found = if line.ends_with('\n') { found } else { inspect(line.as_bytes()) };
            let found = found.map(|found| (found.columns, found.header_end));
            assert_eq!(found, Some((columns, Some(line.len()))), "{line}");
        }
        for line in
            ["1\ttext", "cat\ttext", "a\tb\ttext", "id", "id\t\ttext", "id\tthe text", "text", "\"id\"\ttext"]
        {
            assert_eq!(inspect(line.as_bytes()).unwrap().header_end, None, "{line}");
        }
    }
}
