//! Adds up the reports on the pieces of the input, and formats the summary of an indexing run.

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
    /// What was wrong with the input.
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
    /// Warnings held back until the first document is indexed: without one, a single line says all.
    waiting: Vec<String>,
}

impl Tally {
    /// An empty tally with the directory entries that were skipped.
    pub fn new(passed_over: PassedOver) -> Tally {
        Tally { passed_over, ..Tally::default() }
    }

    /// Adds what became of a piece and returns the lines to show for it: for each kind of problem its first
    /// ones.
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
        let clauses = self.problems().into_iter().chain(self.words_left_out());
        clauses.flatten().chain(self.passed_over_in_folders()).collect()
    }

    fn problems(&self) -> [Option<String>; 9] {
        use ProblemKind::{Binary, CutShort, NotLines, Replaced, TooLarge, Unreadable};
        let malformed = ProblemKind::MALFORMED.iter().map(|&kind| self.counts[kind]).sum();
        let (header_lines, ids) = (self.header_lines, self.separated_ids);
        let of = |kind| self.counts[kind];
        [
            clause(malformed, "malformed line", "malformed lines", "left out"),
            clause(of(TooLarge), "document", "documents", "left out as too large"),
            clause(of(Unreadable), "file or folder", "files or folders", "could not be read"),
            clause(of(NotLines), "JSON file", "JSON files", "left out that have not one object a line"),
            clause(of(CutShort), "file", "files", "read in part"),
            clause(of(Binary), "binary file", "binary files", "skipped"),
            clause(of(Replaced), "document that is", "documents that are", "not UTF-8, with replaced bytes"),
            clause(header_lines, "header line", "header lines", "skipped"),
            clause(ids, "id", "ids", "with white space or control characters, which a TREC run cannot hold"),
        ]
    }

    fn words_left_out(&self) -> [Option<String>; 2] {
        let LeftOut { long_words, long_word_documents, tokens_beyond } = self.left_out;
        let documents = count(long_word_documents, "document", "documents");
        let long = format!("longer than {TERM_BYTES_MAX} bytes left out of {documents}");
        let most = group(u64::from(FIELD_TOKENS_MAX));
        let beyond = format!("behind the first {most} of a document left out");
        [clause(long_words, "word", "words", &long), clause(tokens_beyond, "word", "words", &beyond)]
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

fn clause(number: u64, one: &str, more: &str, what: &str) -> Option<String> {
    (number > 0).then(|| format!("{} {what}", count(number, one, more)))
}
