//! What a run of indexing did with its input, added up piece by piece, and put into words.

use crate::input::{PassedOver, PieceReport, Problem, ProblemCounts, ProblemKind};
use crate::size::{count, group};
use tierdex::index::LeftOut;
use tierdex::limits::{FIELD_TOKENS_MAX, TERM_BYTES_MAX};

/// The first problem of a kind that is not listed.
const FURTHER: u64 = PieceReport::LISTED_MAX + 1;

/// Sums over all pieces.
#[derive(Default)]
pub struct Tally {
    /// Documents that were indexed.
    pub documents: u64,
    /// Uncompressed bytes of the input.
    pub bytes: u64,
    /// What gave no document.
    pub counts: ProblemCounts,
    /// Header lines of TSV files.
    header_lines: u64,
    /// Documents whose id holds white space or control characters.
    separated_ids: u64,
    /// What could not be indexed of the documents.
    pub left_out: LeftOut,
    passed_over: PassedOver,
    listed: ProblemCounts,
    first: Option<Problem>,
    /// Messages that wait until there is a document: without one, a single line says all.
    waiting: Vec<String>,
}

impl Tally {
    /// Nothing yet but what folders hold beside files.
    pub fn new(passed_over: PassedOver) -> Tally {
        Tally { passed_over, ..Tally::default() }
    }

    /// Adds what became of a piece and returns the lines to show for it: for each kind of problem its first ones.
    pub fn add(&mut self, report: PieceReport) -> Vec<String> {
        self.documents += report.documents;
        self.bytes += report.bytes;
        self.header_lines += report.header_lines;
        self.separated_ids += report.separated_ids;
        self.counts += report.counts;
        for problem in report.problems {
            self.list(&problem);
            self.first.get_or_insert(problem);
        }
        if self.documents == 0 { Vec::new() } else { std::mem::take(&mut self.waiting) }
    }

    fn list(&mut self, problem: &Problem) {
        let outcome = match problem.kind {
            ProblemKind::CutShort => "the lines before are kept",
            ProblemKind::Replaced => "the document is kept",
            _ => "left out",
        };
        match self.listed.increment(problem.kind) {
            ..=PieceReport::LISTED_MAX => self.waiting.push(format!("tierdex: {problem}; {outcome}")),
            FURTHER => {
                self.waiting.push("tierdex: further problems of this kind are only counted".to_string())
            }
            _ => {}
        }
    }

    /// Whether there is nothing to index: no document, or empty text files alone, such as a failed download.
    pub fn is_empty(&self) -> bool {
        self.documents == 0 || self.bytes == 0
    }

    /// Why there is nothing to index.
    pub fn nothing_indexed(&self) -> String {
        let mut clauses = self.clauses();
        clauses.extend(self.first.iter().map(|problem| format!("the first is {problem}")));
        let why = if clauses.is_empty() { "the input is empty".to_string() } else { clauses.join("; ") };
        format!("no document was indexed and nothing was committed: {why}")
    }

    /// What a summary adds to the number of documents.
    pub fn clauses(&self) -> Vec<String> {
        let malformed = ProblemKind::MALFORMED.iter().map(|&kind| self.counts[kind]).sum();
        let (words, beyond) = (self.left_out.long_words, self.left_out.tokens_beyond);
        let clauses = [
            (malformed, "malformed line", "malformed lines", " left out".to_string()),
            (
                self.counts[ProblemKind::TooLarge],
                "document",
                "documents",
                " left out as too large".to_string(),
            ),
            (
                self.counts[ProblemKind::Unreadable],
                "file or folder",
                "files or folders",
                " could not be read".to_string(),
            ),
            (
                self.counts[ProblemKind::NotLines],
                "JSON file",
                "JSON files",
                " left out that have not one object a line".to_string(),
            ),
            (self.header_lines, "header line", "header lines", " skipped".to_string()),
            (self.counts[ProblemKind::CutShort], "file", "files", " read in part".to_string()),
            (self.counts[ProblemKind::Binary], "binary file", "binary files", " skipped".to_string()),
            (
                self.counts[ProblemKind::Replaced],
                "document that is",
                "documents that are",
                " not UTF-8, with replaced bytes".to_string(),
            ),
            (
                self.separated_ids,
                "id",
                "ids",
                " with white space or control characters, which a TREC run cannot hold".to_string(),
            ),
            (
                words,
                "word",
                "words",
                format!(
                    " longer than {TERM_BYTES_MAX} bytes left out of {}",
                    count(self.left_out.long_word_documents, "document", "documents")
                ),
            ),
            (
                beyond,
                "word",
                "words",
                format!(" behind the first {} of a document left out", group(u64::from(FIELD_TOKENS_MAX))),
            ),
        ];
        let clauses = clauses.into_iter().filter(|(number, ..)| *number > 0);
        let clauses = clauses.map(|(number, one, more, rest)| count(number, one, more) + &rest);
        clauses.chain(self.passed_over_in_folders()).collect()
    }

    fn passed_over_in_folders(&self) -> Option<String> {
        let PassedOver { hidden, links, special } = self.passed_over;
        let all = [
            (hidden, "hidden name", "hidden names"),
            (links, "link to a folder", "links to folders"),
            (special, "special file", "special files"),
        ];
        let some = all.iter().filter(|(number, ..)| *number > 0);
        let some: Vec<String> = some.map(|(number, one, more)| count(*number, one, more)).collect();
        (!some.is_empty()).then(|| format!("passed over in folders: {}", some.join(", ")))
    }
}
