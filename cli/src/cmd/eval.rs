//! `tierdex eval`: computes nDCG@10, AP@1000 and R@100 of a TREC run from relevance judgments.
//!
//! As in `trec_eval`, the documents of a query are ordered by score, as `f32`, and those of equal score by
//! descending id; ranks are not used.

use crate::failure::{Failure, Outcome, output_error};
use crate::size;
use clap::Args;
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write, stdout};
use std::path::{Path, PathBuf};

#[derive(Args)]
pub struct Arguments {
    /// TREC run; each line is: query Q0 document rank score tag
    run: PathBuf,
    /// Relevance judgments (qrels); each line is: query 0 document relevance
    qrels: PathBuf,
    /// Number of decimal places
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u8).range(1..=12))]
    digits: u8,
}

/// Means over all judged queries, as of `ir_measures`. A query without hits or relevant documents counts 0.
#[derive(Debug, Default, PartialEq)]
pub struct Measures {
    /// Number of queries.
    pub queries: usize,
    /// Normalized discounted cumulative gain at rank 10; the gain is the relevance grade.
    pub ndcg_10: f64,
    /// Average precision at rank 1,000.
    pub ap_1000: f64,
    /// Recall at rank 100.
    pub recall_100: f64,
}

/// Relevance grades by query and document.
type Grades = HashMap<String, HashMap<String, f64>>;
/// Scores by query and document.
type Scores = HashMap<String, HashMap<String, f32>>;

pub fn run(arguments: &Arguments) -> Outcome {
    let grades = read_qrels(&arguments.qrels)?;
    let scores = read_run(&arguments.run)?;
    let measures = measure(&grades, &scores);
    let digits = usize::from(arguments.digits);
    writeln!(
        stdout(),
        "{}: nDCG@10 {:.digits$}, AP@1000 {:.digits$}, R@100 {:.digits$}",
        size::count(measures.queries as u64, "query", "queries"),
        measures.ndcg_10,
        measures.ap_1000,
        measures.recall_100
    )
    .map_err(output_error)
}

fn measure(grades: &Grades, scores: &Scores) -> Measures {
    let mut sum = Measures::default();
    for (query, judged) in grades {
        let relevant: HashMap<&str, f64> = judged
            .iter()
            .filter(|(_, grade)| **grade > 0.0)
            .map(|(id, grade)| (id.as_str(), *grade))
            .collect();
        let gains: Vec<f64> =
            ranking(scores, query).map(|id| relevant.get(id).copied().unwrap_or(0.0)).collect();
        let mut ideal: Vec<f64> = relevant.values().copied().collect();
        ideal.sort_by(|a, b| b.total_cmp(a));
        sum.queries += 1;
        if relevant.is_empty() {
            continue;
        }
        sum.ndcg_10 += discounted(&gains) / discounted(&ideal);
        sum.ap_1000 += average_precision(&gains, relevant.len());
        let recalled = gains.iter().take(100).filter(|&&gain| gain > 0.0).count();
        sum.recall_100 += recalled as f64 / relevant.len() as f64;
    }
    let n = sum.queries.max(1) as f64;
    Measures {
        queries: sum.queries,
        ndcg_10: sum.ndcg_10 / n,
        ap_1000: sum.ap_1000 / n,
        recall_100: sum.recall_100 / n,
    }
}

/// The documents of a query, best first.
fn ranking<'r>(scores: &'r Scores, query: &str) -> impl Iterator<Item = &'r str> + use<'r> {
    let mut ranking: Vec<_> = scores.get(query).into_iter().flatten().collect();
    ranking.sort_unstable_by(|(id, score), (other_id, other)| other.total_cmp(score).then(other_id.cmp(id)));
    ranking.into_iter().map(|(id, _)| id.as_str())
}

fn discounted(gains: &[f64]) -> f64 {
    gains.iter().take(10).enumerate().map(|(i, gain)| gain / (i as f64 + 2.0).log2()).sum()
}

fn average_precision(gains: &[f64], relevant: usize) -> f64 {
    let mut seen = 0;
    let mut sum = 0.0;
    for (i, _) in gains.iter().take(1000).enumerate().filter(|(_, gain)| **gain > 0.0) {
        seen += 1;
        sum += f64::from(seen) / (i + 1) as f64;
    }
    sum / relevant as f64
}

fn read_qrels(path: &Path) -> Outcome<Grades> {
    let mut grades = Grades::new();
    for_each_line(path, 4, |columns| {
        let grade = finite("relevance", columns[3])?;
        insert_once(grades.entry(columns[0].to_string()).or_default(), columns, grade)
    })?;
    Ok(grades)
}

fn read_run(path: &Path) -> Outcome<Scores> {
    let mut scores = Scores::new();
    for_each_line(path, 6, |columns| {
        let rank = &columns[3];
        rank.parse::<u64>().map_err(|_| format!("rank `{rank}` is not a number"))?;
        let score = finite("score", columns[4])? as f32;
        insert_once(scores.entry(columns[0].to_string()).or_default(), columns, score)
    })?;
    Ok(scores)
}

fn finite(name: &str, text: &str) -> Result<f64, String> {
    let number: Option<f64> = text.parse().ok().filter(|number: &f64| number.is_finite());
    number.ok_or_else(|| format!("{name} `{text}` is not a finite number"))
}

/// Maximum length of a line, in bytes. Ids have at most 4,096 bytes.
const LINE_BYTES_MAX: u64 = 1 << 20;

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
        if found.is_empty() {
            continue;
        }
        if found.len() < columns {
            return Err(problem(format!("line {number}: {} columns, {columns} expected", found.len())));
        }
        body(&found).map_err(|error| problem(format!("line {number}: {error}")))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measures_follow_their_definitions() {
        let judged = |pairs: &[(&str, f64)]| pairs.iter().map(|(id, g)| (id.to_string(), *g)).collect();
        let grades = Grades::from([
            ("1".to_string(), judged(&[("a", 1.0), ("b", 2.0), ("c", 0.0)])),
            ("2".to_string(), judged(&[("x", 1.0)])),
            ("3".to_string(), judged(&[("y", 0.0)])),
        ]);
        // Documents of equal score are ordered by descending id.
        let scores = [("a", 2.0), ("b", 2.0), ("c", 3.0)].map(|(id, score)| (id.to_string(), score)).into();
        let found = measure(&grades, &Scores::from([("1".to_string(), scores)]));
        let ideal = 2.0 + 1.0 / 3f64.log2();
        let gained = 2.0 / 3f64.log2() + 1.0 / 2.0;
        assert_eq!(found.queries, 3);
        assert!((found.ndcg_10 - gained / ideal / 3.0).abs() < 1e-12);
        assert!((found.ap_1000 - (1.0 / 2.0 + 2.0 / 3.0) / 2.0 / 3.0).abs() < 1e-12);
        assert!((found.recall_100 - 1.0 / 3.0).abs() < 1e-12);
    }
}
