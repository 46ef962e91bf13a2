//! Measures by the names of `ir_measures`: `nDCG@10`, `AP(rel=2)@1000`, `Rprec`. Values are those of
//! `trec_eval`, which `ir_measures` computes them with.

use std::{collections::HashMap, fmt, str::FromStr};

/// What is measured. `rel` is the smallest grade of a relevant document, `cutoff` the last rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Measure {
    kind: MeasureKind,
    rel: i64,
    cutoff: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MeasureKind {
    /// Normalised discounted cumulative gain; the gain is the grade.
    Ndcg,
    /// Average precision.
    Ap,
    /// Precision.
    P,
    /// Recall.
    R,
    /// Reciprocal rank of the first relevant document.
    Rr,
    /// Precision at the rank of the number of relevant documents.
    Rprec,
    /// Whether there is a relevant document.
    Success,
}

const MEASURE_NAMES: [(&str, MeasureKind); 7] = [
    ("nDCG", MeasureKind::Ndcg),
    ("AP", MeasureKind::Ap),
    ("P", MeasureKind::P),
    ("R", MeasureKind::R),
    ("RR", MeasureKind::Rr),
    ("Rprec", MeasureKind::Rprec),
    ("Success", MeasureKind::Success),
];

/// The ranking of a query with the grades of its documents.
pub struct JudgedRanking {
    /// Grades in order of ranks; 0 if a document is not judged.
    grades: Vec<i64>,
    /// Grades of all judged documents of the query, best first.
    ideal: Vec<i64>,
}

impl JudgedRanking {
    /// The documents of a query, best first, with its judgments.
    pub fn new<'r>(documents: impl Iterator<Item = &'r str>, judged: &HashMap<String, i64>) -> JudgedRanking {
        let grades = documents.map(|id| judged.get(id).copied().unwrap_or(0)).collect();
        let mut ideal: Vec<i64> = judged.values().copied().collect();
        ideal.sort_unstable_by(|a, b| b.cmp(a));
        JudgedRanking { grades, ideal }
    }
}

impl Measure {
    /// The value for a query; 0 if no document is relevant.
    pub fn evaluate(&self, ranking: &JudgedRanking) -> f64 {
        let relevant = ranking.ideal.iter().filter(|&&grade| grade >= self.rel).count();
        let cutoff = match self.kind {
            MeasureKind::Rprec => relevant,
            _ => self.cutoff.unwrap_or(usize::MAX),
        };
        if relevant == 0 {
            return 0.0;
        }
        let top = &ranking.grades[..ranking.grades.len().min(cutoff)];
        let hits = || top.iter().enumerate().filter(|(_, grade)| **grade >= self.rel).map(|(at, _)| at + 1);
        let found = hits().count() as f64;
        match self.kind {
            MeasureKind::Ndcg => {
                discounted_gain(top) / discounted_gain(&ranking.ideal[..ranking.ideal.len().min(cutoff)])
            }
            MeasureKind::Ap => {
                sum_or_zero(hits().zip(1..).map(|(rank, seen)| f64::from(seen) / rank as f64))
                    / relevant as f64
            }
            MeasureKind::P => found / self.cutoff.unwrap_or(top.len()).max(1) as f64,
            MeasureKind::R => found / relevant as f64,
            MeasureKind::Rr => hits().next().map_or(0.0, |rank| 1.0 / rank as f64),
            MeasureKind::Rprec => found / relevant as f64,
            MeasureKind::Success => f64::from(u8::from(found > 0.0)),
        }
    }
}

/// The sum of values; 0 without any, where `Iterator::sum` gives -0.
fn sum_or_zero(values: impl Iterator<Item = f64>) -> f64 {
    values.fold(0.0, |sum, value| sum + value)
}

/// Discounted cumulative gain. Grades below 0 count as 0.
fn discounted_gain(grades: &[i64]) -> f64 {
    let gains = grades.iter().enumerate().map(|(at, &grade)| grade.max(0) as f64 / (at as f64 + 2.0).log2());
    sum_or_zero(gains)
}

impl FromStr for Measure {
    type Err = String;

    fn from_str(text: &str) -> Result<Measure, String> {
        let unknown = || {
            let names: Vec<&str> = MEASURE_NAMES.iter().map(|(name, _)| *name).collect();
            format!(
                "`{text}` is not a measure; there are {}, as in nDCG@10, AP(rel=2)@1000, Rprec",
                names.join(", ")
            )
        };
        let (name, cutoff) = text.split_once('@').map_or((text, None), |(name, cutoff)| (name, Some(cutoff)));
        let positive = |text: &str| text.parse().ok().filter(|number| *number > 0);
        let cutoff = cutoff.map(|cutoff| positive(cutoff).ok_or_else(unknown)).transpose()?;
        let (name, rel) = name.split_once("(rel=").map_or((name, None), |(name, rel)| (name, Some(rel)));
        let rel = rel.map(|rel| rel.strip_suffix(')').and_then(positive).ok_or_else(unknown)).transpose()?;
        let kind = MEASURE_NAMES
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, kind)| *kind)
            .ok_or_else(unknown)?;
        let unfit = match kind {
            MeasureKind::Ndcg if rel.is_some() => "nDCG uses the grades themselves; write it without (rel=N)",
            MeasureKind::Rprec if cutoff.is_some() => "Rprec has no cutoff; write it without @N",
            MeasureKind::P | MeasureKind::R | MeasureKind::Success if cutoff.is_none() => {
                "the cutoff is missing; write it as in P@10"
            }
            _ => return Ok(Measure { kind, rel: rel.unwrap_or(1) as i64, cutoff }),
        };
        Err(format!("`{text}`: {unfit}"))
    }
}

impl fmt::Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = MEASURE_NAMES.iter().find(|(_, kind)| *kind == self.kind).map_or("", |(name, _)| name);
        f.write_str(name)?;
        if self.rel != 1 {
            write!(f, "(rel={})", self.rel)?;
        }
        self.cutoff.map_or(Ok(()), |cutoff| write!(f, "@{cutoff}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ranked grades 0, 2, 1, and one relevant document that was not found.
    fn value_of_measure(measure: &str) -> f64 {
        let judged =
            [("a", 0), ("b", 2), ("c", 1), ("d", 1)].map(|(id, grade)| (id.to_string(), grade)).into();
        measure
            .parse::<Measure>()
            .unwrap()
            .evaluate(&JudgedRanking::new(["a", "b", "c"].into_iter(), &judged))
    }

    #[test]
    fn measures_follow_their_definitions() {
        let (log3, ideal) = (3f64.log2(), 2.0 + 1.0 / 3f64.log2() + 0.5);
        for (measure, expected) in [
            ("nDCG", (2.0 / log3 + 0.5) / ideal),
            ("nDCG@2", 2.0 / log3 / (2.0 + 1.0 / log3)),
            ("AP", (1.0 / 2.0 + 2.0 / 3.0) / 3.0),
            ("AP@2", 1.0 / 2.0 / 3.0),
            ("AP(rel=2)", 1.0 / 2.0),
            ("P@2", 0.5),
            ("P@10", 0.2),
            ("R@2", 1.0 / 3.0),
            ("RR", 0.5),
            ("RR(rel=2)@10", 0.5),
            ("RR@1", 0.0),
            ("RR(rel=3)", 0.0),
            ("Rprec", 2.0 / 3.0),
            ("Success@1", 0.0),
            ("Success@2", 1.0),
        ] {
            let value = value_of_measure(measure);
            assert!((value - expected).abs() < 1e-12, "{measure}: {value}");
            assert_eq!(measure.parse::<Measure>().unwrap().to_string(), measure);
        }
    }

    #[test]
    fn names_that_are_no_measures_are_rejected() {
        for wrong in
            ["", "ndcg@10", "P", "R@", "P@0", "AP@-1", "AP(rel=0)", "AP(rel=2", "nDCG(rel=2)@10", "Rprec@5"]
        {
            assert!(wrong.parse::<Measure>().is_err(), "{wrong}");
        }
    }
}
