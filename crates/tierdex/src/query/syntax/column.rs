//! The clause after the name of a column: a range, a comparison, values in parentheses, one value, or `*`.

use super::suffix::is_number;
use super::tree::ColumnRange;

/// A clause on a column as it is written.
#[derive(Debug, PartialEq)]
pub(super) struct WrittenColumn {
    pub(super) ranges: Vec<ColumnRange>,
    pub(super) boost: f64,
    /// Bytes of its text.
    pub(super) len: usize,
}

/// Parses the clause at the start of `text`.
///
/// # Errors
/// What is wrong with it, and the number of bytes to leave out.
pub(super) fn parse_column(text: &str) -> std::result::Result<WrittenColumn, (usize, &'static str)> {
    let blanks = text.len() - text.trim_start().len();
    let clause = &text[blanks..];
    let (ranges, len) = match clause.chars().next() {
        Some('[' | '{') => parse_range(clause),
        Some('<' | '>') => parse_comparison(clause),
        Some('(') => parse_list(clause),
        Some(_) => {
            let (value, len) = parse_value(clause).ok_or((clause.len(), NO_VALUE))?;
            Ok((vec![value], len))
        }
        None => Err((0, NO_VALUE)),
    }
    .map_err(|(len, message)| (blanks + len, message))?;
    let (boost, boost_len) = parse_boost(&clause[len..]);
    Ok(WrittenColumn { ranges, boost, len: blanks + len + boost_len })
}

type Parsed = std::result::Result<(Vec<ColumnRange>, usize), (usize, &'static str)>;

const NO_VALUE: &str = "a value is missing after the name of the column";

/// `[low TO high]`, with braces for ends that do not belong to the range.
fn parse_range(clause: &str) -> Parsed {
    let message =
        "write a range as `[low TO high]`, with `*` for an open end, and `{` or `}` to leave it out";
    let Some(end) = clause.find([']', '}']) else { return Err((clause.len(), message)) };
    let words: Vec<&str> = clause[1..end].split_whitespace().collect();
    let [low, "TO", high] = words[..] else { return Err((end + 1, message)) };
    let bound = |text: &str, included: bool| {
        let text = text.trim_matches('"');
        (text != "*").then(|| (text.to_string(), included))
    };
    let range = ColumnRange {
        low: bound(low, clause.starts_with('[')),
        high: bound(high, clause[end..].starts_with(']')),
    };
    Ok((vec![range], end + 1))
}

/// `>=value` and the like.
fn parse_comparison(clause: &str) -> Parsed {
    let included = clause[1..].starts_with('=');
    let operator = 1 + usize::from(included);
    let Some((value, len)) = parse_value(&clause[operator..]) else { return Err((operator, NO_VALUE)) };
    let bound = value.low.map(|(text, _)| (text, included));
    let range = match clause.starts_with('>') {
        true => ColumnRange { low: bound, high: None },
        false => ColumnRange { low: None, high: bound },
    };
    Ok((vec![range], operator + len))
}

/// `(value value)`: any of these values.
fn parse_list(clause: &str) -> Parsed {
    let (mut ranges, mut at) = (Vec::new(), 1);
    loop {
        at += clause[at..].len() - clause[at..].trim_start().len();
        if clause[at..].starts_with(')') {
            break;
        }
        let Some((value, len)) = parse_value(&clause[at..]) else {
            return Err((clause.len(), "a `)` is missing after the values of the column"));
        };
        if &clause[at..at + len] != "OR" {
            ranges.push(value);
        }
        at += len;
    }
    if ranges.is_empty() { Err((at + 1, NO_VALUE)) } else { Ok((ranges, at + 1)) }
}

/// One value, which may be quoted, or `*` for any.
fn parse_value(text: &str) -> Option<(ColumnRange, usize)> {
    let (value, len) = match text.strip_prefix('"') {
        Some(quoted) => {
            let end = quoted.find('"')?;
            (&quoted[..end], end + 2)
        }
        None => {
            let end = text.find(|c: char| c.is_whitespace() || matches!(c, '(' | ')' | '"'));
            let value = &text[..end.unwrap_or(text.len())];
            // A boost is no part of the value.
            let value = value.rsplit_once('^').map_or(value, |(value, boost)| {
                if is_number(boost) { value } else { &text[..end.unwrap_or(text.len())] }
            });
            (value, value.len())
        }
    };
    if value.is_empty() {
        return None;
    }
    let bound = (value != "*").then(|| (value.to_string(), true));
    Some((ColumnRange { low: bound.clone(), high: bound }, len))
}

/// The factor of `^factor` at the start of a text, and its bytes; 0 without one: a column only filters.
fn parse_boost(text: &str) -> (f64, usize) {
    let Some(rest) = text.strip_prefix('^') else { return (0.0, 0) };
    let end = rest.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(rest.len());
    match rest[..end].parse() {
        Ok(boost) => (boost, 1 + end),
        Err(_) => (0.0, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(text: &str) -> String {
        let Ok(WrittenColumn { ranges, boost, len }) = parse_column(text) else { return "fault".to_string() };
        let end = |bound: &Option<(String, bool)>| match bound {
            None => "*".to_string(),
            Some((text, included)) => format!("{}{text}", if *included { "=" } else { "" }),
        };
        let ranges: Vec<_> =
            ranges.iter().map(|range| format!("{}..{}", end(&range.low), end(&range.high))).collect();
        format!("{} ^{boost} +{:?}", ranges.join(" "), &text[len..])
    }

    #[test]
    fn clauses_are_ranges() {
        for (text, expected) in [
            ("[1990 TO 2000} rest", "=1990..2000 ^0 +\" rest\""),
            ("{* TO -1.5]^2", "*..=-1.5 ^2 +\"\""),
            (">=5)", "=5..* ^0 +\")\""),
            (" <now-7d/d x", "*..now-7d/d ^0 +\" x\""),
            ("(1 OR 2 \"3 4\")^0.5", "=1..=1 =2..=2 =3 4..=3 4 ^0.5 +\"\""),
            ("*", "*..* ^0 +\"\""),
            ("2024-05-01T10:00:00Z^3 b", "=2024-05-01T10:00:00Z..=2024-05-01T10:00:00Z ^3 +\" b\""),
            ("\"2024-05-01 10:00\"", "=2024-05-01 10:00..=2024-05-01 10:00 ^0 +\"\""),
        ] {
            assert_eq!(show(text), expected, "{text}");
        }
        for text in ["", " ", "[1 2]", "[1 TO]", "[1 TO 2", ">=", ">", "(", "()", "(1", "\"1", ")"] {
            assert_eq!(show(text), "fault", "{text}");
        }
    }
}
