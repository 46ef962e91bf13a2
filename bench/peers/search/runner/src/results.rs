//! The results of a run, and their medians and ratios.

use crate::{check::Check, engine::Kind, indexing, limit::Limited, mean::median, tokens::Corpus};
use crate::sets::{Group, Set};

/// The results of a run.
pub struct Results {
    /// A line for each engine that could not be built.
    pub left_out: Vec<String>,
    /// The text.
    pub corpus: Corpus,
    /// What indexing took, by engine.
    pub indexing: Vec<indexing::IndexingRow>,
    /// The query sets.
    pub sets: Vec<Set>,
    /// How answers agree.
    pub checks: Vec<Check>,
    /// Speeds in memory.
    pub rows: Vec<Row>,
    /// Speeds under a limit of memory, where there is one; nothing is measured in memory then.
    pub limited: Option<Limited>,
}

/// The speeds of all engines at one command on one set.
pub struct Row {
    /// Threads that asked.
    pub threads: u32,
    /// Name of the set.
    pub set: String,
    /// The command.
    pub command: String,
    /// Number of repetitions of the set in a batch.
    pub times: u64,
    /// An engine each; those that do not answer the command are missing.
    pub cells: Vec<EngineCell>,
}

/// The speed of one engine.
pub struct EngineCell {
    /// Which engine.
    pub kind: Kind,
    /// Its name, with that of its variant if it is one of several.
    pub name: String,
    /// Queries a second, a round each.
    pub rounds: Vec<f64>,
    /// Median over rounds of the latency in the middle.
    pub p50_ns: f64,
    /// Median over rounds of the latency that one query of a hundred exceeds.
    pub p99_ns: f64,
    /// All answers of one pass over the set.
    pub sum: u64,
    /// Whether it counts otherwise than the first engine on the sample of the set.
    pub differs: bool,
}

impl EngineCell {
    /// Queries a second.
    pub fn qps(&self) -> f64 {
        median(self.rounds.clone())
    }
}

impl Results {
    /// The group of a set.
    pub fn group(&self, name: &str) -> Option<Group> {
        self.sets.iter().find(|set| set.name == name).map(|set| set.recipe.group())
    }

    /// The engines that could be built.
    pub fn kinds(&self) -> Vec<Kind> {
        let mut kinds = Vec::new();
        for row in &self.indexing {
            if !kinds.contains(&row.kind) {
                kinds.push(row.kind);
            }
        }
        kinds
    }

    /// A line for each engine that has no answer to some sets.
    pub fn unanswered(&self) -> Vec<String> {
        let answers =
            |kind, set: &Set| self.rows.iter().any(|row| row.set == set.name && row.cell(kind).is_some());
        let line = |kind: Kind| {
            let sets = self.sets.iter().filter(|set| !answers(kind, set));
            let names: Vec<&str> = sets.map(|set| set.name.as_str()).collect();
            let measured = !self.rows.is_empty() && !names.is_empty();
            measured.then(|| {
                format!("{} is left out of {}: it does not have such queries", kind.name(), names.join(", "))
            })
        };
        self.kinds().into_iter().filter_map(line).collect()
    }
}

impl Row {
    /// The cell of an engine, of several variants the first, which is that of all engines.
    pub fn cell(&self, kind: Kind) -> Option<&EngineCell> {
        self.cells.iter().find(|cell| cell.kind == kind)
    }

    /// The fastest peer of those that count alike.
    pub fn best_peer(&self) -> Option<&EngineCell> {
        let peers = self.cells.iter().filter(|cell| cell.kind != Kind::Tierdex && !cell.differs);
        peers.max_by(|a, b| a.qps().total_cmp(&b.qps()))
    }

    /// Queries a second of tierdex by those of the fastest peer.
    pub fn ratio(&self) -> Option<f64> {
        Some(self.cell(Kind::Tierdex)?.qps() / self.best_peer()?.qps())
    }

    /// Queries a second of tierdex by those of one peer.
    pub fn ratio_to(&self, peer: Kind) -> Option<f64> {
        Some(self.cell(Kind::Tierdex)?.qps() / self.cell(peer)?.qps())
    }

    /// Whether all engines came to the same sum of answers.
    pub fn agrees(&self) -> bool {
        self.cells.windows(2).all(|pair| pair[0].sum == pair[1].sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_against_the_best_peer() {
        let cell = |kind, qps| EngineCell {
            kind,
            name: String::new(),
            rounds: vec![qps],
            p50_ns: 0.0,
            p99_ns: 0.0,
            sum: 1,
            differs: qps > 90.0,
        };
        let cells = vec![cell(Kind::Tierdex, 30.0), cell(Kind::Tantivy, 10.0), cell(Kind::Lucene, 20.0)];
        let mut row = Row { threads: 1, set: "s".into(), command: "COUNT".into(), times: 1, cells };
        assert!((row.ratio().unwrap() - 1.5).abs() < 1e-9);
        assert!((row.ratio_to(Kind::Tantivy).unwrap() - 3.0).abs() < 1e-9);
        assert!(row.agrees() && row.ratio_to(Kind::Pisa).is_none());
        row.cells.push(cell(Kind::Seekstorm, 99.0));
        assert!(row.best_peer().is_some_and(|peer| peer.kind == Kind::Lucene));
    }
}
