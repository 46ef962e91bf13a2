//! Evaluates one line of the protocol, from memory or through an executor.

use tierdex::Result;
use tierdex::engine::Executor;
use tierdex::index::{Index, SearchOptions, SearchResult, Searcher};
use tierdex::query::Query;
use tierdex::rank::Bm25;

/// The index behind the protocol, and how its queries are evaluated.
pub(super) struct Server<'a> {
    pub(super) index: &'a Index,
    pub(super) backend: Backend,
    pub(super) exhaustive: bool,
    pub(super) bm25: Bm25,
}

/// Evaluates queries: a searcher over an index in memory, or an executor that reads postings.
pub(super) enum Backend {
    Memory(Searcher),
    Executor(Box<Executor>),
}

/// The answer to a line.
pub(super) enum Answer {
    Number(u64),
    /// Documents and scores, best first.
    Documents(Vec<(u32, f32)>),
    /// The command is unknown.
    Unsupported,
}

impl Answer {
    /// The number in the answer, the number of hits of a list, or `None` if the command is unknown.
    pub(super) fn value(&self) -> Option<u64> {
        match self {
            Answer::Number(number) => Some(*number),
            Answer::Documents(hits) => Some(hits.len() as u64),
            Answer::Unsupported => None,
        }
    }
}

impl std::fmt::Display for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Answer::Number(number) => write!(f, "{number}"),
            Answer::Unsupported => f.write_str("UNSUPPORTED"),
            Answer::Documents(hits) => {
                for (rank, (document, score)) in hits.iter().enumerate() {
                    write!(f, "{}{document}:{score}", if rank == 0 { "" } else { " " })?;
                }
                Ok(())
            }
        }
    }
}

/// A command of the protocol, with its k.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Command {
    /// `COUNT`
    Count,
    /// `TOP_k`
    Top(usize),
    /// `TOP_k_COUNT`
    TopCount(usize),
    /// `DOCS_k`
    Docs(usize),
}

impl Command {
    pub(super) fn parse(word: &str) -> Option<Command> {
        if word == "COUNT" {
            return Some(Command::Count);
        }
        if let Some(k) = word.strip_prefix("DOCS_") {
            return k.parse().ok().map(Command::Docs);
        }
        let k = word.strip_prefix("TOP_")?;
        match k.strip_suffix("_COUNT") {
            Some(k) => k.parse().ok().map(Command::TopCount),
            None => k.parse().ok().map(Command::Top),
        }
    }

    /// The part of a search result that the command reports.
    pub(super) fn answer(self, found: SearchResult) -> Answer {
        match self {
            Command::Count | Command::TopCount(_) => Answer::Number(found.total),
            Command::Top(_) => Answer::Number(found.hits.len() as u64),
            Command::Docs(_) => {
                Answer::Documents(found.hits.iter().map(|hit| (hit.document, hit.score)).collect())
            }
        }
    }
}

impl Server<'_> {
    /// Answers `COMMAND<TAB>QUERY`.
    pub(super) fn answer(&self, line: &str) -> Result<Answer> {
        let Some((command, query)) = line.split_once('\t') else { return Ok(Answer::Unsupported) };
        let Some(command) = Command::parse(command) else { return Ok(Answer::Unsupported) };
        let query = Query::parse(query, self.index.schema())?;
        let options = self.options(command);
        match &self.backend {
            Backend::Memory(searcher) => Ok(command.answer(searcher.search(&query, &options)?)),
            Backend::Executor(executor) => {
                let (mut query, mut answer) = (Some(query), Ok(Answer::Unsupported));
                let ended: Result<()> = executor.run(
                    || Ok(query.take()),
                    &options,
                    |_, found| {
                        answer = found.map(|found| command.answer(found));
                        Ok(())
                    },
                );
                ended.and(answer)
            }
        }
    }

    /// The search options of a command.
    pub(super) fn options(&self, command: Command) -> SearchOptions {
        let (k, count) = match command {
            Command::Count => (0, true),
            Command::Top(k) | Command::Docs(k) => (k, false),
            Command::TopCount(k) => (k, true),
        };
        SearchOptions { k, count, exhaustive: self.exhaustive, bm25: self.bm25 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_parsed() {
        let cases = [
            ("COUNT", Some(Command::Count)),
            ("TOP_10", Some(Command::Top(10))),
            ("TOP_1024_COUNT", Some(Command::TopCount(1024))),
            ("DOCS_3", Some(Command::Docs(3))),
        ];
        for (word, command) in cases {
            assert_eq!(Command::parse(word), command);
        }
        for word in ["", "TOP_", "TOP_x", "TOP__COUNT", "count", "DOCS_-1", "TOP_10_SUM"] {
            assert_eq!(Command::parse(word), None, "{word}");
        }
    }
}
