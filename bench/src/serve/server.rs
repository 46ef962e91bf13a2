//! Evaluates one line of the protocol, from memory or through an engine.

use crate::HeldIndex;
use tierdex::explain::SearchResult;
use tierdex::{Bm25, Engine, Hits, Index, Priority, Query, Result, SearchOptions, SearchRequest};
use tierdex_bench_protocol::{Answer, LineCommand};

/// The index behind the protocol, and how its queries are evaluated.
pub(super) struct Server<'a> {
    pub(super) index: &'a Index,
    pub(super) backend: ServedBackend,
    pub(super) exhaustive: bool,
    pub(super) bm25: Bm25,
}

/// What evaluates the queries: a searcher over an index in memory, or an engine that reads postings.
pub(super) enum ServedBackend {
    Memory(HeldIndex),
    Engine(Engine),
}

/// The answer to a command, from the result of its query.
pub(super) fn answer_of(command: LineCommand, found: SearchResult) -> Answer {
    match command {
        LineCommand::Count | LineCommand::TopCount(_) => Answer::Number(found.total),
        LineCommand::Top(_) => Answer::Number(found.hits.len() as u64),
        LineCommand::Docs(_) => {
            Answer::Documents(found.hits.iter().map(|hit| (u64::from(hit.document), hit.score)).collect())
        }
    }
}

impl Server<'_> {
    /// Answers `COMMAND<TAB>QUERY`.
    pub(super) fn answer(&self, line: &str) -> Result<Answer> {
        let Some((command, query)) = LineCommand::parse(line) else { return Ok(Answer::Unsupported) };
        let query = Query::parse(query, self.index.schema())?;
        let options = self.options(command);
        match &self.backend {
            ServedBackend::Memory(held) => Ok(answer_of(command, held.search(&query, &options)?)),
            ServedBackend::Engine(engine) => {
                let request = SearchRequest::new(query).options(options).priority(Priority::Batch);
                engine.search(request).map(Hits::into_result).map(|found| answer_of(command, found))
            }
        }
    }

    /// The search options of a command.
    pub(super) fn options(&self, command: LineCommand) -> SearchOptions {
        let (k, count) = match command {
            LineCommand::Count => (0, true),
            LineCommand::Top(k) | LineCommand::Docs(k) => (k, false),
            LineCommand::TopCount(k) => (k, true),
        };
        let (exhaustive, scorer) = (self.exhaustive, self.bm25.into());
        SearchOptions { k, count, exhaustive, scorer, ..SearchOptions::default() }
    }
}
