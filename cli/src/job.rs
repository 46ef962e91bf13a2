//! One run of indexing: documents from a source to a commit, with progress, problems and Ctrl-C.

use crate::cmd::info::total_bytes;
use crate::failure::{Failure, Outcome};
use crate::input::{InputOptions, Problem, Source, parse};
use crate::interrupt;
use crate::messages::printable;
use crate::progress::Progress;
use crate::size;
use crate::tally::Tally;
use std::io::{Write, stdout};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tierdex::index::{IndexWriter, Manifest, Merge, OpenMode, Stop, WriterOptions, ingest};
use tierdex::io::Disk;
use tierdex::schema::Schema;

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
    pub tally: Tally,
    pub total: u64,
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
        source.limit_documents(writer.document_bytes_max());
        let mut progress = Progress::new(&source);
        if writer.threads_max() < self.threads {
            let (memory, most) = (size::show(self.memory as u64), writer.threads_max());
            progress.print(&format!(
                "tierdex: {memory} of memory keep {most} of {} threads at work",
                self.threads
            ));
        }
        let mut tally = Tally::new(source.passed_over());
        // A stream whose reading was stopped fails; that it was stopped is what matters.
        let failed = |problem| stop.check().err().unwrap_or(tierdex::Error::Failed(problem));
        let result = ingest(
            &mut writer,
            self.threads,
            || source.next().map_err(failed),
            |piece, add| parse(piece, &self.options, add),
            |report| {
                progress.advance(report.documents, report.bytes);
                let stops = |problem: &&Problem| self.stop_at_problem && !problem.kind.is_kept();
                if let Some(problem) = report.problems.iter().find(stops) {
                    return Err(tierdex::Error::Failed(format!("{problem}; nothing was committed")));
                }
                tally.add(report).iter().for_each(|line| progress.print(line));
                Ok(())
            },
        );
        // A commit without a document would put an empty index in the place of a good one.
        let result = result.and_then(|()| {
            if tally.is_empty() {
                return Err(tierdex::Error::Failed(tally.nothing_indexed()));
            }
            progress.say("writing");
            writer.commit(self.merge)
        });
        progress.finish();
        if let Err(error) = result {
            return Err(if writer.in_doubt() { doubtful(&error) } else { error.into() });
        }
        tally.left_out = writer.left_out();
        // The commit is durable: that its size cannot be told is no failure.
        let manifest = Manifest::read_newest(self.disk.as_ref()).unwrap_or_default();
        Ok(Done {
            tally,
            total: writer.documents(),
            index_bytes: manifest.as_ref().map_or(0, total_bytes),
            elapsed: start.elapsed(),
        })
    }
}

impl Done {
    /// Prints one line.
    pub fn summary(&self, out: &Path) -> std::io::Result<()> {
        let seconds = self.elapsed.as_secs_f64().max(1e-9);
        let documents = |number| size::count(number, "document", "documents");
        let mut line = format!(
            "{}, {} of text in {seconds:.1} s ({:.1} MB/s); {} holds {} in {}",
            documents(self.tally.documents),
            size::show(self.tally.bytes),
            self.tally.bytes as f64 / 1e6 / seconds,
            printable(&out.display().to_string()),
            documents(self.total),
            size::show(self.index_bytes)
        );
        for clause in self.tally.clauses() {
            line += &format!("; {clause}");
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
