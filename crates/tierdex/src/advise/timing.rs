//! Measurements of a sample of queries: their times in memory, with all pages cached, and with a small cache.

use super::model::percentile;
use crate::engine::{Engine, EngineOptions, SearchRequest};
use crate::{Result, index::Index, index::SearchOptions, query::Query};
use std::time::Instant;
use tierdex_io::RegionKind;

/// The sample is asked this often of each engine, after once to warm it. Times are medians: those of single
/// runs on a shared machine differ by a fifth.
const ROUNDS: usize = 5;

/// And this often one query after the other: for medians of the latency of each.
const ROUNDS_ALONE: usize = 3;

/// Seconds of a run, at least: a small sample is asked repeatedly.
const RUN_SECONDS_MIN: f64 = 0.1;

/// Queries that are measured.
pub(super) struct Sample {
    pub(super) queries: Vec<Query>,
    pub(super) search: SearchOptions,
}

/// Times of the queries of a sample.
pub(super) struct SampleTimes {
    /// Seconds of a query of a batch with the index in memory, if it is held.
    pub(super) memory: Option<f64>,
    /// Seconds of a query of a batch with all pages cached, and with the small cache.
    pub(super) batch: [f64; 2],
    /// Median seconds of each query that is asked alone, with all pages cached, and with the small cache.
    pub(super) alone: [Vec<f64>; 2],
}

impl Sample {
    /// Asks the sample of two caches of these sizes, alternating, and of the index in memory if `holds`.
    pub(super) fn measure(
        &self,
        index: &Index,
        options: &EngineOptions,
        cache_bytes: [u64; 2],
        holds: bool,
        progress: impl Fn(f64),
    ) -> Result<SampleTimes> {
        let [full, small] = cache_bytes.map(|bytes| options.clone().cache(RegionKind::Dram, bytes));
        let mut engines = vec![Engine::new(index, &full)?, Engine::new(index, &small)?];
        if holds {
            engines.push(Engine::new(&index.open_unshared()?, &options.clone().keep_in(RegionKind::Dram))?);
        }
        let mut runs = vec![Vec::with_capacity(ROUNDS); engines.len()];
        for round in 0..=ROUNDS {
            for (engine, runs) in engines.iter().zip(&mut runs) {
                let run = self.ask_batch(engine)?;
                if round > 0 {
                    runs.push(run);
                }
            }
            progress((round + 1) as f64 / (ROUNDS + 2) as f64);
        }
        let alone = [self.ask_alone(&engines[0])?, self.ask_alone(&engines[1])?];
        let mut medians = runs.into_iter().map(|runs| percentile(runs, 0.5));
        let batch = [(); 2].map(|()| medians.next().unwrap_or_default());
        Ok(SampleTimes { memory: medians.next(), batch, alone })
    }

    /// Asks all queries as a batch, repeatedly if they are few. Returns the mean seconds of a query.
    fn ask_batch(&self, engine: &Engine) -> Result<f64> {
        let (began, mut asked) = (Instant::now(), 0);
        loop {
            let mut queries = self.queries.iter();
            let next = || Ok(queries.next().map(|query| request(query, &self.search)));
            engine.run_ordered(next, |_, hits| hits.map(drop))?;
            asked += self.queries.len();
            let seconds = began.elapsed().as_secs_f64();
            if seconds >= RUN_SECONDS_MIN {
                return Ok(seconds / asked as f64);
            }
        }
    }

    /// Asks the queries one after the other, repeatedly. Returns the median seconds of each.
    fn ask_alone(&self, engine: &Engine) -> Result<Vec<f64>> {
        let mut rounds = vec![Vec::with_capacity(ROUNDS_ALONE); self.queries.len()];
        for _ in 0..ROUNDS_ALONE {
            for (query, seconds) in self.queries.iter().zip(&mut rounds) {
                seconds.push(engine.search(request(query, &self.search))?.took.as_secs_f64());
            }
        }
        Ok(rounds.into_iter().map(|seconds| percentile(seconds, 0.5)).collect())
    }
}

pub(super) fn request(query: &Query, search: &SearchOptions) -> SearchRequest {
    SearchRequest::new(query.clone()).options(*search)
}
