//! `tierdex eval`: a TREC run against relevance judgements.

use crate::failure::{Failure, Outcome, output};
use clap::Args;
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Write, stdout};
use std::path::{Path, PathBuf};

#[derive(Args)]
pub struct Arguments {
    /// TREC run: query Q0 document rank score tag
    run: PathBuf,
    /// Judgements: query 0 document relevance
    qrels: PathBuf,
}

/// Means over all judged queries that have a relevant document; a query without hits counts as 0.
#[derive(Debug, Default, PartialEq)]
pub struct Measures {
    /// Queries counted.
    pub queries: usize,
    /// Normalised discounted cumulated gain of the first 10; the gain is the grade of relevance.
    pub ndcg_10: f64,
    /// Average precision of the first 1,000.
    pub ap_1000: f64,
    /// Share of the relevant documents among the first 100.
    pub recall_100: f64,
}

type Grades = HashMap<String, HashMap<String, f64>>;
type Rankings = HashMap<String, Vec<(u64, String)>>;

pub fn run(arguments: &Arguments) -> Outcome {
    let grades = read_qrels(&arguments.qrels)?;
    let rankings = read_run(&arguments.run)?;
    let found = measure(&grades, &rankings);
    writeln!(
        stdout(),
        "{} queries: nDCG@10 {:.4}, AP@1000 {:.4}, R@100 {:.4}",
        found.queries,
        found.ndcg_10,
        found.ap_1000,
        found.recall_100
    )
    .map_err(output)
}

fn measure(grades: &Grades, rankings: &Rankings) -> Measures {
    let mut sum = Measures::default();
    let none = Vec::new();
    for (query, judged) in grades {
        let relevant: HashMap<&str, f64> = judged
            .iter()
            .filter(|(_, grade)| **grade > 0.0)
            .map(|(id, grade)| (id.as_str(), *grade))
            .collect();
        if relevant.is_empty() {
            continue;
        }
        let ranking = rankings.get(query).unwrap_or(&none);
        let gains: Vec<f64> =
            ranking.iter().map(|(_, id)| relevant.get(id.as_str()).copied().unwrap_or(0.0)).collect();
        let mut ideal: Vec<f64> = relevant.values().copied().collect();
        ideal.sort_by(|a, b| b.total_cmp(a));
        sum.queries += 1;
        sum.ndcg_10 += discounted(&gains) / discounted(&ideal);
        sum.ap_1000 += average_precision(&gains, relevant.len());
        let early = gains.iter().take(100).filter(|&&gain| gain > 0.0).count();
        sum.recall_100 += early as f64 / relevant.len() as f64;
    }
    let n = sum.queries.max(1) as f64;
    Measures {
        queries: sum.queries,
        ndcg_10: sum.ndcg_10 / n,
        ap_1000: sum.ap_1000 / n,
        recall_100: sum.recall_100 / n,
    }
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
        let grade = columns[3].parse().map_err(|_| format!("relevance `{}` is not a number", columns[3]))?;
        grades.entry(columns[0].to_string()).or_default().insert(columns[2].to_string(), grade);
        Ok(())
    })?;
    Ok(grades)
}

fn read_run(path: &Path) -> Outcome<Rankings> {
    let mut rankings = Rankings::new();
    for_each_line(path, 6, |columns| {
        let rank = columns[3].parse().map_err(|_| format!("rank `{}` is not a number", columns[3]))?;
        rankings.entry(columns[0].to_string()).or_default().push((rank, columns[2].to_string()));
        Ok(())
    })?;
    for ranking in rankings.values_mut() {
        ranking.sort_by_key(|(rank, _)| *rank);
    }
    Ok(rankings)
}

fn for_each_line(
    path: &Path,
    columns: usize,
    mut body: impl FnMut(&[&str]) -> Result<(), String>,
) -> Outcome {
    let problem = |what: String| Failure::Failed(format!("{}: {what}", path.display()));
    let file = File::open(path).map_err(|error| problem(error.to_string()))?;
    for (number, line) in BufReader::new(file).lines().enumerate() {
        let line = line.map_err(|error| problem(format!("line {}: {error}", number + 1)))?;
        let found: Vec<&str> = line.split_whitespace().collect();
        if found.is_empty() {
            continue;
        }
        if found.len() < columns {
            return Err(problem(format!("line {}: {} columns, not {columns}", number + 1, found.len())));
        }
        body(&found).map_err(|what| problem(format!("line {}: {what}", number + 1)))?;
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
        let ranking = ["c", "a", "b"].iter().zip(1..).map(|(id, rank)| (rank, id.to_string())).collect();
        let rankings = Rankings::from([("1".to_string(), ranking)]);
        let found = measure(&grades, &rankings);
        let ideal = 2.0 + 1.0 / 3f64.log2();
        let gained = 1.0 / 3f64.log2() + 2.0 / 2.0;
        assert_eq!(found.queries, 2);
        assert!((found.ndcg_10 - gained / ideal / 2.0).abs() < 1e-12);
        assert!((found.ap_1000 - (1.0 / 2.0 + 2.0 / 3.0) / 2.0 / 2.0).abs() < 1e-12);
        assert!((found.recall_100 - 0.5).abs() < 1e-12);
    }
}
