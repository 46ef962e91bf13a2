//! Compares the answers of engines: numbers of matches, which must be equal, and the overlap of the ten best
//! hits, which depends on the scores. Engines encode document lengths and break ties differently.
//!
//! Scores are compared by rank. Engines may multiply all scores by a constant: the median of the quotients.
//! The reported figure is the largest deviation of 95% of the quotients from it.

use crate::{mean::median, server::Server, sets::Set, tools::say};
use tierdex_bench::{Error, Result};

/// Queries of a set that are asked one by one.
const SAMPLE: usize = 100;

/// What was found of one engine on one set, beside the first engine.
pub struct Check {
    /// Name of the set.
    pub set: String,
    /// The engine that the other is compared with.
    pub base: String,
    /// The other.
    pub name: String,
    /// Queries whose numbers of matches were compared; 0 if the engine does not count.
    pub counted: usize,
    /// Those of them that differ.
    pub differ: usize,
    /// The first of those, with both numbers.
    pub first: Option<String>,
    /// Hits of both among the best ten, by the larger number of hits, mean over queries; none if it names no
    /// documents.
    pub overlap: Option<f64>,
    /// How much scores of equal places differ, as a share, in 95% of the places; none if it names none.
    pub scores: Option<f64>,
}

/// Compares every engine with the first on a sample of each set.
///
/// # Errors
/// If an engine fails or answers what is no number.
pub fn run(sets: &[Set], servers: &mut [Server]) -> Result<Vec<Check>> {
    say("comparing answers");
    let samples = servers.iter_mut().map(|server| Sample::take(sets, server)).collect::<Result<Vec<_>>>()?;
    Ok(compare_all(sets, &samples))
}

/// What an engine answers to the first queries of each set.
pub struct Sample {
    name: String,
    sets: Vec<Vec<Answers>>,
}

impl Sample {
    /// Asks them.
    ///
    /// # Errors
    /// If the engine fails or answers what is no number.
    pub fn take(sets: &[Set], server: &mut Server) -> Result<Sample> {
        let of_set = |set: &Set| {
            let counts = set.recipe.is_counted();
            first(set).iter().map(|query| answers(server, query, counts)).collect()
        };
        let found = sets.iter().map(of_set).collect::<Result<Vec<_>>>()?;
        Ok(Sample { name: server.name.clone(), sets: found })
    }
}

/// Compares every sample with the first.
pub fn compare_all(sets: &[Set], samples: &[Sample]) -> Vec<Check> {
    let Some((base, others)) = samples.split_first() else { return Vec::new() };
    let mut checks = Vec::new();
    for (place, set) in sets.iter().enumerate() {
        for other in others {
            let names = (base.name.as_str(), other.name.as_str());
            let check = compare(set, names, first(set), &base.sets[place], &other.sets[place]);
            if let Some(first) = &check.first {
                say(&format!("{} counts otherwise than {}: {first}", other.name, base.name));
            }
            checks.push(check);
        }
    }
    checks
}

fn first(set: &Set) -> &[String] {
    &set.queries[..set.queries.len().min(SAMPLE)]
}

/// The number of matches and the best ten, of one query; nothing where the engine does not answer.
struct Answers {
    count: Option<u64>,
    hits: Option<Vec<(u64, f64)>>,
}

fn answers(server: &mut Server, query: &str, counts: bool) -> Result<Answers> {
    let name = server.name.clone();
    let wrong = |line: &str| Error::Failed(format!("{name} answers `{query}` by `{line}`"));
    let count = match counts.then(|| server.ask(&format!("COUNT\t{query}"))).transpose()?.as_deref() {
        None | Some("UNSUPPORTED") => None,
        Some(line) => Some(line.parse().map_err(|_| wrong(line))?),
    };
    let hits = match server.ask(&format!("DOCS_10\t{query}"))?.as_str() {
        "UNSUPPORTED" => None,
        line => Some(hits_of(line).ok_or_else(|| wrong(line))?),
    };
    Ok(Answers { count, hits })
}

/// Ordinals and scores.
fn hits_of(line: &str) -> Option<Vec<(u64, f64)>> {
    let hit = |hit: &str| {
        let (document, score) = hit.split_once(':')?;
        Some((document.parse().ok()?, score.parse().ok()?))
    };
    line.split_ascii_whitespace().map(hit).collect()
}

fn compare(
    set: &Set,
    (base, name): (&str, &str),
    sample: &[String],
    expected: &[Answers],
    found: &[Answers],
) -> Check {
    let mut check = Check {
        set: set.name.clone(),
        base: base.to_string(),
        name: name.to_string(),
        counted: 0,
        differ: 0,
        first: None,
        overlap: None,
        scores: None,
    };
    let (mut overlaps, mut quotients) = (Vec::new(), Vec::new());
    for (query, (one, other)) in sample.iter().zip(expected.iter().zip(found)) {
        if let (Some(one), Some(other)) = (one.count, other.count) {
            check.counted += 1;
            if one != other {
                check.differ += 1;
                check.first.get_or_insert_with(|| format!("`{query}` {other}, not {one}"));
            }
        }
        if let (Some(one), Some(other)) = (&one.hits, &other.hits) {
            overlaps.push(overlap(one, other));
            let pairs = one.iter().zip(other).filter(|((_, one), _)| *one > 0.0);
            quotients.extend(pairs.map(|((_, one), (_, other))| other / one));
        }
    }
    if !overlaps.is_empty() {
        check.overlap = Some(overlaps.iter().sum::<f64>() / overlaps.len() as f64);
    }
    check.scores = spread(&quotients);
    check
}

/// How far 95% of the values are from their median, as a share of it; none of nothing.
fn spread(values: &[f64]) -> Option<f64> {
    let middle = median(values.to_vec());
    let mut off: Vec<f64> = values.iter().map(|value| (value / middle - 1.0).abs()).collect();
    off.sort_by(f64::total_cmp);
    off.get((off.len() * 95 / 100).min(off.len().saturating_sub(1))).copied()
}

/// The share of common members, 1 if both have none.
fn overlap(one: &[(u64, f64)], other: &[(u64, f64)]) -> f64 {
    let most = one.len().max(other.len());
    let contains = |document: u64| other.iter().any(|(known, _)| *known == document);
    let both = one.iter().filter(|(document, _)| contains(*document)).count();
    if most == 0 { 1.0 } else { both as f64 / most as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlaps_are_shares_of_the_longer_list() {
        let hits = |documents: &[u64]| documents.iter().map(|one| (*one, 1.0)).collect::<Vec<_>>();
        assert!((overlap(&hits(&[1, 2, 3, 4]), &hits(&[4, 5])) - 0.25).abs() < 1e-9);
        assert!((overlap(&[], &[]) - 1.0).abs() < 1e-9);
        assert_eq!(hits_of("7:1.5 3:0.5"), Some(vec![(7, 1.5), (3, 0.5)]));
        assert_eq!(hits_of(""), Some(Vec::new()));
        assert_eq!(hits_of("x"), None);
    }

    #[test]
    fn a_constant_factor_of_scores_is_no_difference() {
        assert!(spread(&[2.2, 2.2, 2.2]).unwrap() < 1e-9);
        assert!((spread(&[2.0, 2.0, 2.0, 2.5]).unwrap() - 0.25).abs() < 1e-9);
        assert_eq!(spread(&[]), None);
    }
}
