//! Indexes an input source and commits: progress, warnings about input problems, cancellation by a signal.

use crate::failure::{Failure, Outcome};
use crate::folder_update::{FolderOptions, FolderUpdate};
use crate::index_size::{field_stats, total_bytes};
use crate::input::{InputOptions, InputSource, Problem, parse};
use crate::problem_file::ProblemFile;
use crate::{interrupt, open, size};
use crate::{messages::make_printable, progress::IndexProgress, tally::Tally};
use serde_json::json;
use std::io::{Write, stdout};
use std::time::{Duration, Instant};
use std::{path::Path, sync::Arc};
use tierdex::{IndexWriter, Merge, OpenMode, StopSignal, WriterOptions, commit::Manifest, io::Disk};
use tierdex::{input_files::InputFilesReader, schema::Field};

/// Part of the memory of a writer that the pages of a batch of rows of Parquet may have, in each thread; a
/// thread has an eighth at least.
const DECODED_SHARE: usize = 8;

/// One run of `tierdex index`: where it writes, and with which settings.
pub struct IndexJob {
    pub disk: Arc<dyn Disk>,
    pub schema: open::WriterSchema,
    pub mode: OpenMode,
    /// Whether the index must be updatable, or is made so.
    pub updatable: bool,
    pub options: InputOptions,
    pub threads: usize,
    pub memory: usize,
    pub merge: Merge,
    /// Time to wait for another writer; `None` if the command has no flag for it.
    pub wait: Option<Duration>,
    pub stop_at_problem: bool,
    pub folders: FolderOptions,
    /// The file of `--report`, which lists all problems of the input.
    pub problems: Option<ProblemFile>,
}

/// What an indexing run has read and written.
pub struct IndexSummary {
    pub tally: Tally,
    /// Documents of the index.
    pub total: u64,
    /// Documents that later ones with their ids replaced; `None` if the index is not updatable.
    pub replaced: Option<u64>,
    /// What the files of folders changed; `None` if the index is not updatable or no input is a folder.
    pub folders: Option<FolderSummary>,
    pub index_bytes: u64,
    /// The fields of which no document has a word: the names of their members may be wrong.
    pub empty_fields: Vec<Field>,
    pub elapsed: Duration,
}

/// What a run found in folders.
pub struct FolderSummary {
    /// Number of files that were not read, as they have not changed.
    pub unchanged: u64,
    /// Number of documents that were deleted.
    pub deleted: u64,
}

impl IndexJob {
    /// Indexes all documents of `source` and commits.
    pub fn run_job(mut self, mut source: InputSource) -> Outcome<IndexSummary> {
        let start = Instant::now();
        let stop = StopSignal::default();
        let _watched = interrupt::raise_on_signal(stop.clone());
        let mut writer = self.open_writer(stop)?;
        let before = self.commit_before()?;
        let last = before.as_ref().map(|before| InputFilesReader::open(self.disk.as_ref(), before));
        let last = last.transpose()?.flatten();
        let before = before.map_or(0, |before| before.live_documents());
        let mut update = FolderUpdate::plan(self.folders.clone(), last, &mut source, &mut writer)?;
        // Raised by Ctrl-C, and by an error of the writer.
        let stop = writer.stop().clone();
        source.stop_on(stop.clone());
        source.limit_documents(writer.document_bytes_max());
        source.limit_decoding(self.memory / DECODED_SHARE);
        let mut progress = IndexProgress::new(&source);
        self.print_unused_threads(&writer, &mut progress);
        let mut tally = Tally::new(source.skipped_entries());
        // A read that fails after the stop signal is reported as an interruption.
        let failed = |problem| stop.check().err().unwrap_or(tierdex::Error::Failed(problem));
        let (mut problems, stop_at_problem) = (self.problems.take(), self.stop_at_problem);
        let result = writer.ingest(
            self.threads,
            || source.next().map_err(failed),
            |chunk, add| parse(chunk, &self.options, add),
            |mut report| {
                if let Some(update) = &mut update {
                    update.add(std::mem::take(&mut report.recorded))?;
                }
                progress.advance(report.documents, report.bytes);
                if let Some(file) = &mut problems {
                    file.add(&report).map_err(|failure| tierdex::Error::Failed(failure.to_string()))?;
                }
                let stops = |problem: &&Problem| stop_at_problem && problem.kind.is_loss();
                if let Some(problem) = report.problems.iter().find(stops) {
                    return Err(tierdex::Error::Failed(format!("{problem}; nothing was committed")));
                }
                tally.add_report(report).iter().for_each(|line| progress.print_above(line));
                Ok(())
            },
        );
        // With --replace, a commit without a document would replace an index by an empty one. An append of an
        // empty input may add fields or change synonyms.
        let result = result.and_then(|()| {
            let changes_settings = writer.changes_schema() && tally.first.is_none();
            if let Some(update) = &mut update {
                update.finish(&mut writer, before)?;
            }
            let has_result = update.as_ref().is_some_and(FolderUpdate::has_result);
            if tally.is_empty() && !changes_settings && !has_result {
                return Err(tierdex::Error::Failed(tally.nothing_indexed()));
            }
            if let Some(file) = problems.take() {
                file.finish().map_err(|failure| tierdex::Error::Failed(failure.to_string()))?;
            }
            progress.set_phase("writing");
            writer.commit(self.merge)
        });
        progress.finish();
        if let Err(error) = result {
            return Err(if writer.in_doubt() { commit_in_doubt(&error) } else { error.into() });
        }
        tally.skipped_tokens = writer.skipped_tokens();
        let folders =
            update.map(|FolderUpdate { unchanged, deleted, .. }| FolderSummary { unchanged, deleted });
        Ok(self.summarize(&writer, tally, folders, before, start.elapsed()))
    }

    fn print_unused_threads(&self, writer: &IndexWriter, progress: &mut IndexProgress) {
        if writer.threads_max() < self.threads {
            let (memory, most) = (size::bytes_as_flag(self.memory as u64), writer.threads_max());
            progress.print_above(&format!(
                "tierdex: --memory of {memory} is enough for {most} of {} threads; give 128M per thread to use all",
                self.threads
            ));
        }
    }

    /// What the run has read and written. `before` is the number of documents of the last commit.
    fn summarize(
        &self,
        writer: &IndexWriter,
        tally: Tally,
        folders: Option<FolderSummary>,
        before: u64,
        elapsed: Duration,
    ) -> IndexSummary {
        // The commit is durable, so an error here only loses the size in the summary.
        let manifest = Manifest::read_newest(self.disk.as_ref()).unwrap_or_default();
        let total = manifest.as_ref().map_or_else(|| writer.documents(), Manifest::live_documents);
        let deleted = folders.as_ref().map_or(0, |folders| folders.deleted);
        let replaced = (before + tally.documents).saturating_sub(total + deleted);
        IndexSummary {
            total,
            replaced: writer.is_updatable().then_some(replaced),
            folders,
            tally,
            index_bytes: manifest.as_ref().map_or(0, total_bytes),
            empty_fields: manifest.as_ref().map_or(Vec::new(), empty_fields),
            elapsed,
        }
    }

    fn open_writer(&self, stop: StopSignal) -> Outcome<IndexWriter> {
        let (memory, threads, updatable) = (self.memory, self.threads, self.updatable);
        let options = WriterOptions { memory, threads, updatable, stop };
        open::open_writer(self.disk.clone(), &self.schema, self.mode, &options, self.wait)
    }

    /// The commit to which documents are added. The writer has locked the index.
    fn commit_before(&self) -> tierdex::Result<Option<Manifest>> {
        match self.mode {
            OpenMode::Append => Manifest::read_newest(self.disk.as_ref()),
            OpenMode::New | OpenMode::Replace => Ok(None),
        }
    }
}

impl IndexSummary {
    /// Prints the summary, one line.
    pub fn print_line(&self, out: &Path) -> std::io::Result<()> {
        let seconds = self.elapsed.as_secs_f64().max(1e-9);
        let documents = |number| size::show_count(number, "document", "documents");
        let mut line = format!(
            "{}, {} of text in {seconds:.1} s ({}); {} holds {} in {}",
            documents(self.tally.documents),
            size::show_bytes(self.tally.bytes),
            size::show_throughput(self.tally.bytes, seconds),
            make_printable(&out.display().to_string()),
            documents(self.total),
            size::show_bytes(self.index_bytes)
        );
        if let Some(replaced) = self.replaced {
            line += &format!("; {} replaced", documents(replaced));
        }
        if let Some(FolderSummary { unchanged, deleted }) = self.folders {
            if deleted > 0 {
                line += &format!("; {} deleted", documents(deleted));
            }
            if unchanged > 0 {
                line += &format!("; {} unchanged", size::show_count(unchanged, "file", "files"));
            }
        }
        for clause in self.tally.summary_clauses() {
            line += &format!("; {clause}");
        }
        for Field { name, members, .. } in &self.empty_fields {
            line += &format!("; no words in field {name} (of {})", members.join(" and "));
        }
        writeln!(stdout(), "{line}")
    }

    /// Prints the summary as one JSON object.
    pub fn print_json(&self, out: &Path) -> std::io::Result<()> {
        let mut summary = self.tally.as_json();
        summary["replaced"] = self.replaced.into();
        summary["deleted"] = self.folders.as_ref().map(|folders| folders.deleted).into();
        summary["unchanged_files"] = self.folders.as_ref().map(|folders| folders.unchanged).into();
        summary["index"] = json!({
            "path": out.display().to_string(),
            "documents": self.total,
            "bytes": self.index_bytes,
        });
        let empty = self.empty_fields.iter().map(|field| field.name.as_str());
        summary["empty_fields"] = json!(empty.collect::<Vec<_>>());
        summary["seconds"] = self.elapsed.as_secs_f64().into();
        writeln!(stdout(), "{summary}")
    }
}

/// The fields without a token, if there are several fields: a document needs a member of some field.
fn empty_fields(manifest: &Manifest) -> Vec<Field> {
    let fields = manifest.schema.fields.iter().enumerate().filter(|_| manifest.schema.fields.len() > 1);
    let empty = fields.filter(|(number, _)| field_stats(manifest, *number).tokens == 0);
    empty.map(|(_, field)| field.clone()).collect()
}

/// The error of a commit whose manifest was renamed and whose directory could not be synced.
pub fn commit_in_doubt(error: &tierdex::Error) -> Failure {
    Failure::Failed(format!("{error}; the commit may be durable all the same: check it with `tierdex info`"))
}
