//! One run of indexing: documents from a source to a commit, with progress, problems and Ctrl-C.

use crate::cmd::info::total_bytes;
use crate::failure::{Failure, Outcome};
use crate::input::{InputOptions, PieceReport, Source, parse};
use crate::interrupt;
use crate::progress::Progress;
use crate::size;
use std::io::{Write, stdout};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tierdex::index::{IndexWriter, Manifest, Merge, OpenMode, Stop, WriterOptions, ingest};
use tierdex::io::Disk;
use tierdex::schema::Schema;

/// Problems that are printed one by one; further ones are counted.
const PROBLEMS_SHOWN: u64 = 20;

/// All that indexing needs to know.
pub struct Job {
    pub disk: Arc<dyn Disk>,
    pub schema: Schema,
    pub mode: OpenMode,
    pub options: InputOptions,
    pub threads: usize,
    pub memory: usize,
    pub merge: Merge,
    pub stop_at_problem: bool,
}

/// What indexing did.
pub struct Done {
    pub documents: u64,
    pub total: u64,
    pub bytes: u64,
    pub problems: u64,
    pub skipped_binary: u64,
    pub index_bytes: u64,
    pub elapsed: Duration,
}

impl Job {
    /// Indexes all of `source` and commits.
    pub fn run(self, mut source: Source) -> Outcome<Done> {
        let start = Instant::now();
        let stop = Stop::default();
        let _watched = interrupt::raises(stop.clone());
        let options = WriterOptions { memory: self.memory, stop: stop.clone() };
        let mut writer = IndexWriter::open(self.disk.clone(), self.schema.clone(), self.mode, options)?;
        source.stop_on(stop.clone());
        let mut progress = Progress::new(&source);
        if writer.threads_max() < self.threads {
            let (memory, most) = (size::show(self.memory as u64), writer.threads_max());
            progress.print(&format!(
                "tierdex: {memory} of memory keep {most} of {} threads at work",
                self.threads
            ));
        }
        let mut counts = Counts { stop_at_problem: self.stop_at_problem, ..Counts::default() };
        // A stream whose reading was stopped fails; that it was stopped is what matters.
        let failed = |problem| stop.check().err().unwrap_or(tierdex::Error::Failed(problem));
        let result = ingest(
            &mut writer,
            self.threads,
            || source.next().map_err(failed),
            |piece, add| parse(piece, &self.options, add),
            |report| {
                progress.advance(report.documents, report.bytes);
                counts.add(report, &progress)
            },
        );
        let result = result.and_then(|()| {
            progress.say("writing");
            writer.commit(self.merge)
        });
        progress.finish();
        if let Err(error) = result {
            return Err(if writer.in_doubt() { doubtful(&error) } else { error.into() });
        }
        let manifest = Manifest::read_newest(self.disk.as_ref())?;
        Ok(Done {
            documents: counts.documents,
            total: writer.documents(),
            bytes: counts.bytes,
            problems: counts.problems,
            skipped_binary: counts.skipped_binary,
            index_bytes: manifest.as_ref().map_or(0, total_bytes),
            elapsed: start.elapsed(),
        })
    }
}

impl Done {
    /// Prints one line.
    pub fn summary(&self, out: &Path) -> std::io::Result<()> {
        let seconds = self.elapsed.as_secs_f64().max(1e-9);
        let mut line = format!(
            "{} documents, {} of text in {seconds:.1} s ({:.1} MB/s); {} holds {} documents in {}",
            size::group(self.documents),
            size::show(self.bytes),
            self.bytes as f64 / 1e6 / seconds,
            out.display(),
            size::group(self.total),
            size::show(self.index_bytes)
        );
        if self.problems > 0 {
            line += &format!("; {} malformed and left out", size::group(self.problems));
        }
        if self.skipped_binary > 0 {
            line += &format!("; {} binary files skipped", size::group(self.skipped_binary));
        }
        writeln!(stdout(), "{line}")
    }
}

/// The directory could not be synced after the manifest was renamed.
pub fn doubtful(error: &tierdex::Error) -> Failure {
    Failure::Failed(format!(
        "{error}; the commit may stand nevertheless: `tierdex info` tells what the index holds"
    ))
}

#[derive(Default)]
struct Counts {
    documents: u64,
    bytes: u64,
    problems: u64,
    skipped_binary: u64,
    stop_at_problem: bool,
}

impl Counts {
    fn add(&mut self, report: PieceReport, progress: &Progress) -> tierdex::Result<()> {
        self.documents += report.documents;
        self.bytes += report.bytes;
        self.skipped_binary += report.skipped_binary;
        self.problems += report.problems_unlisted;
        for problem in report.problems {
            if self.stop_at_problem {
                return Err(tierdex::Error::Failed(format!("{problem}; nothing was committed")));
            }
            self.problems += 1;
            if self.problems <= PROBLEMS_SHOWN {
                progress.print(&format!("tierdex: {problem}; left out"));
            } else if self.problems == PROBLEMS_SHOWN + 1 {
                progress.print("tierdex: further problems are only counted");
            }
        }
        Ok(())
    }
}
