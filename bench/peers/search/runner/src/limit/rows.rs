//! Measurements under a memory limit, and their medians and ratios.

use super::contender::LimitContender;
use crate::{engine::Kind, mean::median, server::Batch};

/// One batch.
pub struct LimitedBatch {
    /// Its times.
    pub batch: Batch,
    /// Bytes fetched from devices meanwhile.
    pub fetched: Option<u64>,
    /// The most memory that its group had, page cache included.
    pub peak: Option<u64>,
    /// Memory at the end that was no page cache.
    pub own: Option<u64>,
}

/// All contenders at one command on one set.
pub struct LimitRow {
    /// Name of the set.
    pub set: String,
    /// The command.
    pub command: String,
    /// A contender each, without those that ended in every round.
    pub cells: Vec<LimitCell>,
}

/// A contender: medians over rounds.
pub struct LimitCell {
    /// Which engine.
    pub kind: Kind,
    /// Its name.
    pub name: String,
    /// Queries a second, a round each.
    pub rounds: Vec<f64>,
    /// Latency in the middle.
    pub p50_ns: f64,
    /// Latency that one query of a hundred exceeds.
    pub p99_ns: f64,
    /// Bytes fetched from devices for a query; none if the kernel does not say.
    pub fetched: Option<f64>,
    /// The largest peak of its group.
    pub peak: Option<u64>,
    /// Memory at the end that was no page cache.
    pub own: Option<u64>,
    /// All answers.
    pub sum: u64,
}

impl LimitCell {
    /// The medians; none of nothing.
    pub fn of(contender: &LimitContender, measured: &[LimitedBatch]) -> Option<LimitCell> {
        let first = measured.first()?;
        let middle = |of: &dyn Fn(&LimitedBatch) -> f64| median(measured.iter().map(of).collect());
        let fetched = measured.iter().all(|one| one.fetched.is_some());
        Some(LimitCell {
            kind: contender.kind,
            name: contender.name.clone(),
            rounds: measured
                .iter()
                .map(|one| one.batch.n as f64 / (one.batch.wall_ns as f64 / 1e9))
                .collect(),
            p50_ns: middle(&|one| one.batch.p50_ns as f64),
            p99_ns: middle(&|one| one.batch.p99_ns as f64),
            fetched: fetched
                .then(|| middle(&|one| one.fetched.unwrap_or_default() as f64 / one.batch.n.max(1) as f64)),
            peak: measured.iter().filter_map(|one| one.peak).max(),
            own: measured.iter().filter_map(|one| one.own).max(),
            sum: first.batch.sum,
        })
    }

    /// Queries a second.
    pub fn qps(&self) -> f64 {
        median(self.rounds.clone())
    }
}

impl LimitRow {
    /// The cell of a contender.
    pub fn cell(&self, name: &str) -> Option<&LimitCell> {
        self.cells.iter().find(|cell| cell.name == name)
    }

    /// The fastest peer, in whichever way it reads.
    pub fn best_peer(&self) -> Option<&LimitCell> {
        let peers = self.cells.iter().filter(|cell| cell.kind != Kind::Tierdex);
        peers.max_by(|a, b| a.qps().total_cmp(&b.qps()))
    }

    /// Queries a second of tierdex by those of the fastest peer.
    pub fn ratio(&self) -> Option<f64> {
        let ours = self.cells.iter().find(|cell| cell.kind == Kind::Tierdex)?;
        Some(ours.qps() / self.best_peer()?.qps())
    }

    /// Whether all came to the same sum of answers.
    pub fn agrees(&self) -> bool {
        self.cells.windows(2).all(|pair| pair[0].sum == pair[1].sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_against_the_best_way_of_the_best_peer() {
        let cell = |kind: Kind, name: &str, qps| LimitCell {
            kind,
            name: name.to_string(),
            rounds: vec![qps],
            p50_ns: 0.0,
            p99_ns: 0.0,
            fetched: None,
            peak: None,
            own: None,
            sum: 1,
        };
        let cells = vec![
            cell(Kind::Tierdex, "tierdex", 30.0),
            cell(Kind::Tantivy, "tantivy random", 20.0),
            cell(Kind::Tantivy, "tantivy", 10.0),
        ];
        let row = LimitRow { set: "s".into(), command: "TOP_10".into(), cells };
        assert!((row.ratio().unwrap() - 1.5).abs() < 1e-9);
        assert!(row.agrees() && row.cell("lucene").is_none());
    }
}
