//! Reads TREC runs and judgments as `trec_eval` does.
//!
//! Columns are separated by white space. Documents of a query are ordered by score, as `f32`, and those of
//! equal score by descending id; ranks are not used. A relevance is an integer: digits after it are cut off.
//! Lines of judgments that begin with `#` are comments.

use crate::failure::{Failure, Outcome};
use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead, BufReader, Read};
use std::{fs::File, path::Path};

/// Maximum length of a line, in bytes. Ids have at most 4,096 bytes.
const LINE_BYTES_MAX: u64 = 1 << 20;

/// Relevance judgments (qrels): which documents are relevant for which query.
#[derive(Default)]
pub struct Judgments {
    /// Grades by query and document.
    pub grades: BTreeMap<String, HashMap<String, i64>>,
    /// Judgments whose relevance has a fraction, which is cut off.
    pub fractions: u64,
}

/// A TREC run: the score of each document in the results of each query.
#[derive(Default)]
pub struct TrecRun(HashMap<String, HashMap<String, f32>>);

impl TrecRun {
    /// Whether the run has results for a query.
    pub fn has_query(&self, query: &str) -> bool {
        self.0.contains_key(query)
    }

    /// Number of queries with results.
    pub fn query_count(&self) -> usize {
        self.0.len()
    }

    /// The documents of a query, best first.
    pub fn ranking(&self, query: &str) -> impl Iterator<Item = &str> {
        let mut ranking: Vec<_> = self.0.get(query).into_iter().flatten().collect();
        ranking
            .sort_unstable_by(|(id, score), (other_id, other)| other.total_cmp(score).then(other_id.cmp(id)));
        ranking.into_iter().map(|(id, _)| id.as_str())
    }
}

/// Reads judgments; each line is: query 0 document relevance.
///
/// # Errors
/// If the file cannot be read, a line is wrong, or there is no judgment.
pub fn read_judgments(path: &Path) -> Outcome<Judgments> {
    let mut judgments = Judgments::default();
    for_each_line(path, 4, true, |columns| {
        let grade = parse_finite("relevance", columns[3])?;
        judgments.fractions += u64::from(grade.fract() != 0.0);
        insert_once(judgments.grades.entry(columns[0].to_string()).or_default(), columns, grade as i64)
    })?;
    match judgments.grades.is_empty() {
        true => Err(Failure::Failed(format!("{}: no judgments", path.display()))),
        false => Ok(judgments),
    }
}

/// Reads a run; each line is: query Q0 document rank score tag.
///
/// # Errors
/// If the file cannot be read, a line is wrong, or there is no result.
pub fn read_run(path: &Path) -> Outcome<TrecRun> {
    let mut run = TrecRun::default();
    for_each_line(path, 6, false, |columns| {
        let rank = &columns[3];
        rank.parse::<u64>().map_err(|_| format!("rank `{rank}` is not a number"))?;
        let score = parse_finite("score", columns[4])? as f32;
        insert_once(run.0.entry(columns[0].to_string()).or_default(), columns, score)
    })?;
    match run.0.is_empty() {
        true => Err(Failure::Failed(format!("{}: the run is empty", path.display()))),
        false => Ok(run),
    }
}

fn parse_finite(name: &str, text: &str) -> Result<f64, String> {
    let number: Option<f64> = text.parse().ok().filter(|number: &f64| number.is_finite());
    number.ok_or_else(|| format!("{name} `{text}` is not a finite number"))
}

/// Inserts a document, or fails if it appears twice: counted twice, it could make measures exceed 1.
fn insert_once<V>(documents: &mut HashMap<String, V>, columns: &[&str], value: V) -> Result<(), String> {
    match documents.insert(columns[2].to_string(), value) {
        Some(_) => Err(format!("document {} appears twice for query {}", columns[2], columns[0])),
        None => Ok(()),
    }
}

fn for_each_line(
    path: &Path,
    columns: usize,
    has_comments: bool,
    mut body: impl FnMut(&[&str]) -> Result<(), String>,
) -> Outcome {
    let problem = |message: String| Failure::Failed(format!("{}: {message}", path.display()));
    let file = File::open(path).map_err(|error| problem(error.to_string()))?;
    let mut lines = BufReader::new(file);
    let mut line = String::new();
    for number in 1.. {
        line.clear();
        let read = lines.by_ref().take(LINE_BYTES_MAX).read_line(&mut line);
        if read.map_err(|error| problem(format!("line {number}: {error}")))? == 0 {
            break;
        }
        if line.len() as u64 == LINE_BYTES_MAX {
            return Err(problem(format!("line {number}: the line is longer than {LINE_BYTES_MAX} bytes")));
        }
        // Some editors write a byte order mark.
        let line = if number == 1 { line.trim_start_matches('\u{feff}') } else { &line };
        let found: Vec<&str> = line.split_whitespace().collect();
        if found.is_empty() || has_comments && line.starts_with('#') {
            continue;
        }
        if found.len() < columns {
            return Err(problem(format!("line {number}: {} columns, {columns} expected", found.len())));
        }
        body(&found).map_err(|error| problem(format!("line {number}: {error}")))?;
    }
    Ok(())
}
