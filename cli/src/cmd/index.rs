//! `tierdex index`: indexes documents. Checks the flags and the output directory, then runs an [`IndexJob`].

use super::search::OutputFormat;
use crate::failure::{Failure, Outcome, output_error};
use crate::folder_update::{FolderOptions, Prune};
use crate::input::{InputFormat, InputMembers, InputOptions, InputSource, TsvColumn};
use crate::run_file::{are_same_file, is_in_directory};
use crate::schema_flags::SchemaArguments;
use crate::{index_job::IndexJob, open, problem_file::ProblemFile, size};
use clap::{Args, ValueEnum};
use std::path::{Path, PathBuf};
use std::{sync::Arc, time::Duration};
use tierdex::io::{Disk, PosixDisk, available_memory};
use tierdex::limits::MEMORY_MIN;
use tierdex::{Merge, OpenMode, Schema, commit::Manifest};

#[derive(Args)]
pub struct IndexCommandArguments {
    /// Files, folders (recursive), or - for standard input; gzip, zstd, Parquet and Arrow IPC are detected by
    /// content. In folders KEY=VALUE, all rows of Parquet and Arrow files have a column KEY
    #[arg(required = true)]
    inputs: Vec<PathBuf>,
    /// Directory of the index
    #[arg(long)]
    pub out: PathBuf,
    #[command(flatten)]
    commit: CommitArguments,
    #[command(flatten)]
    input: InputArguments,
    #[command(flatten)]
    schema: SchemaArguments,
    /// Number of threads that analyse text, and that encode posting lists; each needs 128M of --memory
    /// [default: number of processors]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Memory for buffered postings and for documents in analysis, in bytes, at least 16M [default: 1G, but
    /// at most a third of the memory that the system and the control group leave]
    #[arg(long, value_name = "BYTES", value_parser = size::parse_size)]
    memory: Option<usize>,
    /// Segments that the commit merges [default: one for a new index and with --replace, similar for
    /// documents that are added to an index]
    #[arg(long, value_enum)]
    merge: Option<MergeChoice>,
    /// Delete the documents of files that are no longer in the folders, and those that changed files no
    /// longer hold, except of files with problems; more than half of all documents only with --prune=all
    #[arg(long, value_enum, requires = "upsert", num_args = 0..=1, require_equals = true,
          default_missing_value = "half")]
    prune: Option<Prune>,
    /// Action for a malformed line, for rows that cannot be decoded, or for a file in a folder that cannot be
    /// read
    #[arg(long, value_enum, default_value_t = OnError::Skip)]
    on_error: OnError,
    /// Write all problems of the input to a file, as JSON lines with the members file, line, kind and
    /// message; the first of each kind are also printed
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Format of the summary
    #[arg(long, value_enum, default_value_t = OutputFormat::Table)]
    summary: OutputFormat,
}

/// How a commit treats an existing index, and another writer. Shared by `index` and `ciff import`.
#[derive(Args)]
pub struct CommitArguments {
    /// Add the documents to an existing index
    #[arg(long, conflicts_with = "replace")]
    append: bool,
    /// Replace an existing index atomically, by the commit at the end
    #[arg(long)]
    replace: bool,
    /// Make the new index updatable: documents are found by their ids, and a document replaces the one that
    /// has its id. With --append the index must be updatable
    #[arg(long)]
    updatable: bool,
    /// Add the documents to an updatable index, where each replaces the one that has its id; make the index
    /// if there is none. Files of folders whose size and time have not changed since the last run are not
    /// read
    #[arg(long, conflicts_with_all = ["append", "replace"])]
    upsert: bool,
    /// Wait up to this many seconds while another writer is at work [default: 0, exit code 75]
    #[arg(long, value_name = "SECONDS", default_value_t = 0, hide_default_value = true)]
    wait: u32,
}

impl CommitArguments {
    /// How the writer treats the directory; `has_index`: there is an index in it.
    pub fn open_mode(&self, has_index: bool) -> OpenMode {
        match () {
            () if self.append || self.upsert && has_index => OpenMode::Append,
            () if self.replace => OpenMode::Replace,
            () => OpenMode::New,
        }
    }

    /// Whether the index must be updatable, or is made so.
    pub fn is_updatable(&self) -> bool {
        self.updatable || self.upsert
    }

    pub fn lock_timeout(&self) -> Option<Duration> {
        Some(Duration::from_secs(self.wait.into()))
    }

    /// The schema of the index to which documents are added; `None` if there is none.
    pub fn existing_schema(&self, out: &Path) -> Outcome<Option<Schema>> {
        let is_new = if self.upsert { !out.exists() } else { !self.append };
        if is_new {
            return Ok(None);
        }
        let newest = read_newest_commit(open::open_directory(out)?.as_ref(), OpenMode::Append)?;
        Ok(newest.map(|manifest| manifest.schema))
    }

    /// Opens the directory of the index, and creates it unless documents are appended.
    pub fn open_directory(&self, out: &Path) -> Outcome<Arc<PosixDisk>> {
        if self.append { open::open_directory(out) } else { output_disk(out) }
    }
}

#[derive(Args)]
struct InputArguments {
    /// Format of the input: jsonl, tsv, text, parquet or arrow [default: parquet and arrow by content, others
    /// by file extension (.jsonl, .ndjson, .json, .tsv), jsonl for standard input and for a file argument
    /// that begins with a line of JSON, otherwise text]
    #[arg(long, value_parser = |text: &str| text.parse::<InputFormat>())]
    format: Option<InputFormat>,
    /// JSON, Parquet, Arrow: name of the id member or column; dots for members of nested objects and structs,
    /// here and below
    #[arg(long, default_value = "id")]
    id_field: String,
    /// JSON, Parquet, Arrow: name of the member that is shown as the title of a document [default: title]
    #[arg(long)]
    title_field: Option<String>,
    /// JSON, Parquet, Arrow: name of the text member, without --field [default: text]
    #[arg(long)]
    text_field: Option<String>,
    /// TSV: columns in order, of id, members of the schema (title, text) and - for an ignored one, such as
    /// id,-,title,text [default: by the header, a first line that names the id and a member, or two members;
    /// without one and without --field, by the number of columns: text; id,text; id,title,text]
    #[arg(long)]
    columns: Option<String>,
    /// Split texts at word boundaries into documents of at most this many bytes, at least 16, with the ids
    /// ID#0, ID#1 and so on. A text that replaces a longer one in an updatable index leaves its last parts,
    /// unless --prune deletes them [default: no split]
    #[arg(long, value_name = "BYTES", value_parser = size::parse_size)]
    split: Option<usize>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum MergeChoice {
    /// Merge all segments into one
    One,
    /// Merge adjacent segments of similar size, so that a commit costs what it adds
    Similar,
    /// Merge none: queries search as many segments as there were commits
    None,
}

/// Action for input that cannot be used.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OnError {
    /// Print a warning and skip it
    Skip,
    /// Stop without a commit or a run
    Fail,
}

impl InputArguments {
    fn input_options(&self, schema: &Schema, output: &Path, list_all: bool) -> Outcome<InputOptions> {
        let mut members = InputMembers::of(schema);
        if InputMembers::can_be_renamed(schema) {
            members
                .rename(self.title_field.as_deref(), self.text_field.as_deref())
                .map_err(Failure::Usage)?;
        } else if self.text_field.is_some() {
            let message = "--text-field names the text of an index without --field; name the member in a field, \
                           as in --field body:text:from=MEMBER";
            return Err(Failure::Usage(message.to_string()));
        }
        let columns = self.columns.as_deref().map(|list| TsvColumn::parse_list(list, &members)).transpose();
        Ok(InputOptions {
            format: self.format,
            id_field: self.id_field.clone(),
            members,
            columns: columns.map_err(|problem| Failure::Usage(format!("--columns: {problem}")))?,
            split: self.split,
            output: Some(output.to_path_buf()),
            list_all,
        })
    }
}

impl IndexCommandArguments {
    /// The schema of the index: that of the commit to which documents are appended, with the fields that
    /// flags add, or else that of the flags.
    fn schema(&self) -> Outcome<open::WriterSchema> {
        let existing = self.commit.existing_schema(&self.out)?;
        let title_is_renamed = match &existing {
            Some(existing) => InputMembers::can_be_renamed(existing),
            None => !self.schema.has_fields(),
        };
        let title = self.input.title_field.as_deref().filter(|_| !title_is_renamed);
        Ok(open::WriterSchema { schema: self.schema.schema(title, existing.as_ref())?, existing })
    }
}

/// Rejects a report that would be written over an input, or into the index.
fn check_report_path(arguments: &IndexCommandArguments) -> Outcome {
    let Some(report) = &arguments.report else { return Ok(()) };
    let error = match () {
        () if arguments.inputs.iter().any(|input| are_same_file(input, report)) => "--report names an input",
        () if is_in_directory(report, &arguments.out) => {
            "--report names a file in the directory of the index"
        }
        () => return Ok(()),
    };
    Err(Failure::Usage(error.to_string()))
}

pub fn run_index(arguments: &IndexCommandArguments) -> Outcome {
    check_report_path(arguments)?;
    let schema = arguments.schema()?;
    let options =
        arguments.input.input_options(&schema.schema, &arguments.out, arguments.report.is_some())?;
    let commit = &arguments.commit;
    let mode = commit.open_mode(schema.existing.is_some());
    let memory = checked_memory(arguments.memory)?;
    let threads = thread_count(arguments.threads)?;
    let source = InputSource::open(&arguments.inputs, &options).map_err(Failure::Usage)?;
    if arguments.prune.is_some() && source.folders().is_empty() {
        return Err(Failure::Usage("--prune needs a folder among the inputs".to_string()));
    }
    let folders = FolderOptions {
        skips_unchanged: commit.upsert,
        prune: arguments.prune,
        settings: options.settings(&schema.schema),
    };
    let problems = arguments.report.as_deref().map(ProblemFile::create).transpose()?;
    let disk = commit.open_directory(&arguments.out)?;
    let existing = read_newest_commit(disk.as_ref(), mode).inspect_err(|_| disk.remove_created())?;
    let is_first = existing.is_none();
    let job = IndexJob {
        disk: disk.clone(),
        schema,
        mode,
        updatable: commit.is_updatable(),
        options,
        threads,
        memory,
        wait: commit.lock_timeout(),
        merge: match arguments.merge {
            Some(MergeChoice::None) => Merge::None,
            Some(MergeChoice::Similar) => Merge::Keep,
            None if mode == OpenMode::Append => Merge::Keep,
            Some(MergeChoice::One) | None => Merge::One,
        },
        stop_at_problem: arguments.on_error == OnError::Fail,
        folders,
        problems,
    };
    let done = job.run_job(source).inspect_err(|_| disk.remove_created());
    let done = done.map_err(|failure| if is_first { open::nothing_committed(failure) } else { failure })?;
    match arguments.summary {
        OutputFormat::Table => done.print_line(&arguments.out).map_err(output_error),
        OutputFormat::Json => done.print_json(&arguments.out).map_err(output_error),
    }
}

/// Memory of the writer: as given, or the default.
pub fn checked_memory(given: Option<usize>) -> Outcome<usize> {
    let memory = given.unwrap_or_else(default_memory);
    if memory < MEMORY_MIN {
        return Err(Failure::Usage(format!(
            "--memory of {} is too small; give at least {}",
            size::bytes_as_flag(memory as u64),
            size::bytes_as_flag(MEMORY_MIN as u64)
        )));
    }
    Ok(memory)
}

/// Value of `--memory` if the flag is not given, in bytes. The writer uses less than twice this memory, with
/// the lengths of documents and the batches in analysis.
fn default_memory() -> usize {
    const DEFAULT_MEMORY_BYTES: u64 = 1 << 30;
    const AVAILABLE_DIVISOR: u64 = 3;
    let available = available_memory().unwrap_or(u64::MAX) / AVAILABLE_DIVISOR;
    // In whole MiB, as it is printed.
    (available.min(DEFAULT_MEMORY_BYTES) as usize >> 20 << 20).max(MEMORY_MIN)
}

/// Reads the newest commit and checks that `mode` permits it. With --replace a damaged commit counts as
/// none.
fn read_newest_commit(disk: &PosixDisk, mode: OpenMode) -> Outcome<Option<Manifest>> {
    let newest = match Manifest::read_newest(disk) {
        // The writer decides whether it can replace the files.
        Err(_) if mode == OpenMode::Replace => None,
        Err(error) if error.is_corrupt() => {
            return Err(Failure::Failed(format!("{error}; replace the index with --replace")));
        }
        read => read?,
    };
    match (mode, &newest) {
        (OpenMode::New, Some(manifest)) => Err(Failure::Usage(format!(
            "{} holds an index already ({}); add to it with --append, or replace it with --replace",
            disk.describe(),
            size::show_count(manifest.live_documents(), "document", "documents")
        ))),
        _ => Ok(newest),
    }
}

/// Number of threads: as given, or the number of processors.
pub fn thread_count(given: Option<usize>) -> Outcome<usize> {
    match given {
        Some(0) => Err(Failure::Usage("--threads must be at least 1".to_string())),
        Some(threads) => Ok(threads),
        None => Ok(std::thread::available_parallelism().map_or(1, usize::from)),
    }
}

/// Opens the output directory, and creates it if it does not exist. A directory that holds other files is
/// rejected.
pub fn output_disk(out: &Path) -> Outcome<Arc<PosixDisk>> {
    let disk = PosixDisk::create(out)?;
    reject_foreign_files(&disk, out).inspect_err(|_| disk.remove_created())?;
    Ok(Arc::new(disk))
}

fn reject_foreign_files(disk: &PosixDisk, out: &Path) -> Outcome {
    if Manifest::newest(disk)?.is_some() {
        return Ok(());
    }
    let foreign = std::fs::read_dir(out)
        .map_err(|error| Failure::Failed(format!("{}: {error}", out.display())))?
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .find(|name| !Manifest::is_index_file(name));
    match foreign {
        Some(name) => Err(Failure::Usage(format!(
            "{} is not empty (it holds `{name}`) and holds no index; name another directory",
            out.display()
        ))),
        None => Ok(()),
    }
}
