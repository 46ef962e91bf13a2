//! Sums the reports of all input chunks, and formats the warnings and the summary of an indexing run.

use crate::input::{ChunkReport, Problem, ProblemCounts, ProblemKind, SkippedEntries, Unindexed};
use crate::size::{show_count, show_number};
use serde_json::{Map, Value, json};
use tierdex::SkippedTokens;
use tierdex::limits::{FIELD_TOKENS_MAX, TERM_BYTES_MAX};

/// Ordinal number of the first problem of a kind that is counted, but not printed.
const FIRST_UNLISTED_PROBLEM: u64 = ChunkReport::LISTED_MAX + 1;

/// The reports of all chunks of the input, summed.
#[derive(Default)]
pub struct Tally {
    /// Documents that were indexed.
    pub documents: u64,
    /// Uncompressed bytes of the input.
    pub bytes: u64,
    /// Problems of the input by kind.
    pub counts: ProblemCounts,
    /// Header lines of TSV files.
    header_lines: u64,
    /// Documents whose id contains white space.
    separated_ids: u64,
    /// Tokens that the index does not store.
    pub skipped_tokens: SkippedTokens,
    skipped_entries: SkippedEntries,
    unindexed: Unindexed,
    listed: ProblemCounts,
    pub first: Option<Problem>,
    /// Warnings held back until a document is indexed: a run without a document prints one error line only.
    held_back: Vec<String>,
}

impl Tally {
    /// An empty tally with the directory entries that were skipped.
    pub fn new(skipped_entries: SkippedEntries) -> Tally {
        Tally { skipped_entries, ..Tally::default() }
    }

    /// Adds the report of a chunk. Returns the warnings to print: the first problems of each kind.
    pub fn add_report(&mut self, report: ChunkReport) -> Vec<String> {
        self.documents += report.documents;
        self.bytes += report.bytes;
        self.header_lines += report.header_lines;
        self.separated_ids += report.separated_ids;
        self.counts += report.counts;
        self.unindexed.merge(&report.unindexed);
        for problem in report.problems {
            self.take_warning(&problem);
            self.first.get_or_insert(problem);
        }
        if self.documents == 0 { Vec::new() } else { std::mem::take(&mut self.held_back) }
    }

    fn take_warning(&mut self, problem: &Problem) {
        let outcome = match problem.kind {
            ProblemKind::CutShort => "what is before it is indexed",
            ProblemKind::Replaced => "the document is indexed",
            _ => "skipped",
        };
        match self.listed.increment(problem.kind) {
            ..=ChunkReport::LISTED_MAX => self.held_back.push(format!("tierdex: {problem}; {outcome}")),
            FIRST_UNLISTED_PROBLEM => {
                self.held_back.push("tierdex: further problems of this kind are only counted".to_string())
            }
            _ => {}
        }
    }

    /// Whether there is nothing to index: no document, or only empty text files, such as a failed download.
    pub fn is_empty(&self) -> bool {
        self.documents == 0 || self.bytes == 0
    }

    /// The error message of a run without a document.
    pub fn nothing_indexed(&self) -> String {
        let mut clauses = self.summary_clauses();
        clauses.extend(self.first.iter().map(|problem| format!("first: {problem}")));
        let reason = if clauses.is_empty() { "the input is empty".to_string() } else { clauses.join("; ") };
        format!("no document was indexed and nothing was committed: {reason}")
    }

    /// Clauses of the summary after the number of documents.
    pub fn summary_clauses(&self) -> Vec<String> {
        let clauses = self.problem_clauses().into_iter().chain(self.skipped_word_clauses());
        clauses
            .flatten()
            .chain(self.unindexed.summary_clause())
            .chain(self.skipped_entries_clause())
            .collect()
    }

    /// The counts as a JSON object.
    pub fn as_json(&self) -> Value {
        let mut problems = Map::new();
        for &kind in &ProblemKind::ALL {
            let before = problems.get(kind.name()).and_then(Value::as_u64).unwrap_or(0);
            problems.insert(kind.name().to_string(), (before + self.counts[kind]).into());
        }
        let SkippedEntries { hidden, links, special } = self.skipped_entries;
        let SkippedTokens { long_words, long_word_documents, tokens_beyond } = self.skipped_tokens;
        json!({
            "documents": self.documents,
            "bytes": self.bytes,
            "problems": problems,
            "header_lines": self.header_lines,
            "ids_with_white_space": self.separated_ids,
            "not_indexed": self.unindexed.as_json(),
            "skipped_in_folders": { "hidden": hidden, "links": links, "special": special },
            "skipped_words": {
                "too_long": long_words,
                "documents_with_too_long": long_word_documents,
                "beyond_the_last": tokens_beyond,
            },
        })
    }

    fn problem_clauses(&self) -> [Option<String>; 10] {
        use ProblemKind::{Binary, BinaryInFolder, CutShort, NotLines, Replaced, Rows, TooLarge, Unreadable};
        let malformed = ProblemKind::MALFORMED.iter().map(|&kind| self.counts[kind]).sum();
        let (header_lines, ids) = (self.header_lines, self.separated_ids);
        let of = |kind| self.counts[kind];
        [
            count_clause(malformed, "malformed line", "malformed lines", "skipped"),
            count_clause(of(TooLarge), "document", "documents", "skipped as too large"),
            count_clause(of(Unreadable), "file or folder", "files or folders", "could not be read"),
            count_clause(of(NotLines), "JSON file", "JSON files", "skipped that are not JSON lines"),
            count_clause(of(CutShort), "file", "files", "read only in part"),
            count_clause(of(Rows), "range of rows", "ranges of rows", "skipped as damaged"),
            count_clause(of(Binary) + of(BinaryInFolder), "binary file", "binary files", "skipped"),
            count_clause(of(Replaced), "document", "documents", "with invalid UTF-8, replaced by U+FFFD"),
            count_clause(header_lines, "header line", "header lines", "skipped"),
            count_clause(ids, "id", "ids", "with white space, which is percent-encoded in TREC runs"),
        ]
    }

    fn skipped_word_clauses(&self) -> [Option<String>; 2] {
        let SkippedTokens { long_words, long_word_documents, tokens_beyond } = self.skipped_tokens;
        let documents = show_count(long_word_documents, "document", "documents");
        let long = format!("longer than {TERM_BYTES_MAX} bytes skipped in {documents}");
        let most = show_number(u64::from(FIELD_TOKENS_MAX));
        let beyond = format!("behind the first {most} positions of a document skipped");
        [
            count_clause(long_words, "word", "words", &long),
            count_clause(tokens_beyond, "word", "words", &beyond),
        ]
    }

    fn skipped_entries_clause(&self) -> Option<String> {
        let SkippedEntries { hidden, links, special } = self.skipped_entries;
        let all = [
            (hidden, "hidden name", "hidden names"),
            (links, "link to a folder", "links to folders"),
            (special, "special file", "special files"),
        ];
        let nonzero = all.iter().filter(|(number, ..)| *number > 0);
        let counts: Vec<String> = nonzero.map(|(number, one, many)| show_count(*number, one, many)).collect();
        (!counts.is_empty()).then(|| format!("skipped in folders: {}", counts.join(", ")))
    }
}

fn count_clause(number: u64, one: &str, many: &str, predicate: &str) -> Option<String> {
    (number > 0).then(|| format!("{} {predicate}", show_count(number, one, many)))
}
