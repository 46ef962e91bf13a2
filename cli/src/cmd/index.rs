//! `tierdex index`: indexes documents. Checks the flags and the output directory, then runs an [`IndexJob`].

use super::search::OutputFormat;
use crate::failure::{Failure, Outcome, output_error};
use crate::input::{Column, InputFormat, InputOptions, InputSource};
use crate::run_file::{are_same_file, is_in_directory};
use crate::values::{codec_parser, language_parser};
use crate::{index_job::IndexJob, open, problem_file::ProblemFile, size};
use clap::{Args, ValueEnum};
use std::path::{Path, PathBuf};
use std::{collections::BTreeSet, io::Read, sync::Arc, time::Duration};
use tierdex::analysis::{Analyzer, ENGLISH_STOP_WORDS};
use tierdex::io::{Disk, PosixDisk, available_memory};
use tierdex::limits::{MEMORY_MIN, STOP_WORDS_MAX, TERM_BYTES_MAX};
use tierdex::schema::{Analysis, Language, NormKind, Schema, Tokenizer};
use tierdex::{Merge, OpenMode, codec::Codec, commit::Manifest};

#[derive(Args)]
pub struct IndexCommandArguments {
    /// Files, folders (recursive), or - for standard input; gzip and zstd are detected by content
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
    /// Number of threads that analyse text; each needs 128M of --memory [default: number of processors]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Memory for buffered postings and for documents in analysis, in bytes, at least 16M [default: 1G, but
    /// at most a third of the memory that the system and the control group leave]
    #[arg(long, value_name = "BYTES", value_parser = size::parse_size)]
    memory: Option<usize>,
    /// Segments that the commit merges
    #[arg(long, value_enum, default_value_t = MergeChoice::One)]
    merge: MergeChoice,
    /// Action for a malformed line, or for a file in a folder that cannot be read
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
    pub append: bool,
    /// Replace an existing index atomically, by the commit at the end
    #[arg(long)]
    replace: bool,
    /// Wait up to this many seconds while another writer is at work [default: 0, exit code 75]
    #[arg(long, value_name = "SECONDS", default_value_t = 0, hide_default_value = true)]
    wait: u32,
}

impl CommitArguments {
    pub fn open_mode(&self) -> OpenMode {
        match (self.append, self.replace) {
            (true, _) => OpenMode::Append,
            (_, true) => OpenMode::Replace,
            _ => OpenMode::New,
        }
    }

    pub fn lock_timeout(&self) -> Option<Duration> {
        Some(Duration::from_secs(self.wait.into()))
    }

    /// Opens the directory of the index, and creates it unless documents are appended.
    pub fn open_directory(&self, out: &Path) -> Outcome<Arc<PosixDisk>> {
        if self.append { open::open_directory(out) } else { output_disk(out) }
    }
}

#[derive(Args)]
struct InputArguments {
    /// Format of the input: jsonl, tsv or text [default: by file extension (.jsonl, .ndjson, .json, .tsv),
    /// jsonl for standard input and for a file argument that begins with a line of JSON, otherwise text]
    #[arg(long, value_parser = |text: &str| text.parse::<InputFormat>())]
    format: Option<InputFormat>,
    /// JSON: name of the id member
    #[arg(long, default_value = "id")]
    id_field: String,
    /// JSON: name of the title member
    #[arg(long, default_value = "title")]
    title_field: String,
    /// JSON: name of the text member
    #[arg(long, default_value = "text")]
    text_field: String,
    /// TSV: columns in order, of id, title, text and - for an ignored one, such as id,-,title,text [default:
    /// by the header line; without one, by the number of columns: text; id,text; id,title,text]
    #[arg(long)]
    columns: Option<String>,
    /// Split texts at word boundaries into documents of at most this many bytes, at least 16 [default: no
    /// split]
    #[arg(long, value_name = "BYTES", value_parser = size::parse_size)]
    split: Option<usize>,
}

/// Analysis and index options. With --append the default is the settings of the index.
#[derive(Args)]
pub struct SchemaArguments {
    /// Store positions, for phrase queries
    #[arg(long)]
    positions: bool,
    /// Codec of document numbers [default: auto]
    #[arg(long, value_parser = codec_parser(false))]
    codec: Option<Codec>,
    /// Codec of frequencies and positions [default: --codec without delta coding]
    #[arg(long, value_parser = codec_parser(true))]
    freq_codec: Option<Codec>,
    /// Norms: encoding of the document length [default: byte]
    #[arg(long, value_enum)]
    norms: Option<NormsChoice>,
    /// Tokenizer [default: unicode]
    #[arg(long, value_enum)]
    tokenizer: Option<TokenizerChoice>,
    /// Snowball stemmer of a language [default: none]
    #[arg(long, value_parser = language_parser())]
    stem: Option<Language>,
    /// Stop words: english, or a file with one word per line [default: none]
    #[arg(long)]
    stop_words: Option<String>,
    /// Remove accents: é becomes e, and ligatures such as ﬁ become letters
    #[arg(long)]
    fold_accents: bool,
    /// Stored fields, for display [default: text]
    #[arg(long, value_enum)]
    store: Option<StoreChoice>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum MergeChoice {
    /// Merge all segments into one
    One,
    /// Merge none
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

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum NormsChoice {
    /// One byte: exact below 128 tokens, within 1/64 below 512
    Byte,
    /// Four bytes: exact
    Exact,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum TokenizerChoice {
    /// Words of all languages, in lower case; of text without blanks each two characters
    Unicode,
    /// Runs of letters and digits, in lower case
    Alphanumeric,
    /// Runs of other characters than white space, unchanged, for tokenized text
    Whitespace,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum StoreChoice {
    /// Title and text, for titles and snippets
    Text,
    /// Nothing: hits have ids only
    None,
}

impl SchemaArguments {
    fn has_any_flag(&self) -> bool {
        self.positions
            || self.fold_accents
            || self.codec.is_some()
            || self.freq_codec.is_some()
            || self.norms.is_some()
            || self.tokenizer.is_some()
            || self.stem.is_some()
            || self.stop_words.is_some()
            || self.store.is_some()
    }

    /// The schema that the flags describe, validated.
    pub fn schema(&self) -> Outcome<Schema> {
        let mut schema = Schema { stored: self.store != Some(StoreChoice::None), ..Schema::default() };
        let field = &mut schema.fields[0];
        field.positions = self.positions;
        field.doc_codec = self.codec.unwrap_or(field.doc_codec);
        field.freq_codec = self.freq_codec.unwrap_or(field.doc_codec.plain());
        field.norms = if self.norms == Some(NormsChoice::Exact) { NormKind::Exact } else { NormKind::Byte };
        field.analysis.tokenizer = match self.tokenizer {
            None | Some(TokenizerChoice::Unicode) => Tokenizer::Unicode,
            Some(TokenizerChoice::Alphanumeric) => Tokenizer::Alphanumeric,
            Some(TokenizerChoice::Whitespace) => Tokenizer::Whitespace,
        };
        field.analysis.fold_accents = self.fold_accents;
        field.analysis.stemmer = self.stem;
        if let Some(words) = &self.stop_words {
            field.analysis.stop_words = analyse_stop_words(words, &field.analysis)?;
        }
        schema.validate()?;
        Ok(schema)
    }
}

/// Analyses the stop words without stemming, as stop words are removed before stemming.
fn analyse_stop_words(name: &str, analysis: &Analysis) -> Outcome<Vec<String>> {
    let mut analyzer = Analyzer::new(&Analysis { stemmer: None, ..analysis.clone() });
    let words: BTreeSet<String> = if name == "english" {
        analyzer.terms(&ENGLISH_STOP_WORDS.join(" ")).into_iter().collect()
    } else {
        let text = read_stop_words(name).map_err(|error| {
            Failure::Usage(format!(
                "--stop-words {name}: {error}; give `english` or a file with one word per line"
            ))
        })?;
        analyzer.terms(&text).into_iter().collect()
    };
    Ok(words.into_iter().collect())
}

/// Reads a file of stop words, at most as many bytes as `STOP_WORDS_MAX` words of maximum length.
fn read_stop_words(name: &str) -> std::io::Result<String> {
    const STOP_WORDS_BYTES_MAX: u64 = (STOP_WORDS_MAX * TERM_BYTES_MAX) as u64;
    let mut text = String::new();
    let read = std::fs::File::open(name)?.take(STOP_WORDS_BYTES_MAX + 1).read_to_string(&mut text)? as u64;
    if read > STOP_WORDS_BYTES_MAX {
        return Err(std::io::Error::other(format!("the file is longer than {STOP_WORDS_BYTES_MAX} bytes")));
    }
    Ok(text)
}

impl InputArguments {
    fn input_options(&self, output: &Path, list_all: bool) -> Outcome<InputOptions> {
        let columns = self.columns.as_deref().map(Column::parse_list).transpose();
        Ok(InputOptions {
            format: self.format,
            id_field: self.id_field.clone(),
            title_field: self.title_field.clone(),
            text_field: self.text_field.clone(),
            columns: columns.map_err(|problem| Failure::Usage(format!("--columns: {problem}")))?,
            split: self.split,
            output: Some(output.to_path_buf()),
            list_all,
        })
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
    let options = arguments.input.input_options(&arguments.out, arguments.report.is_some())?;
    let schema = arguments.schema.schema()?;
    let (commit, mode) = (&arguments.commit, arguments.commit.open_mode());
    let memory = arguments.memory.unwrap_or_else(default_memory);
    if memory < MEMORY_MIN {
        return Err(Failure::Usage(format!(
            "--memory of {} is too small; give at least {}",
            size::bytes_as_flag(memory as u64),
            size::bytes_as_flag(MEMORY_MIN as u64)
        )));
    }
    let threads = thread_count(arguments.threads)?;
    let source = InputSource::open(&arguments.inputs, &options).map_err(Failure::Usage)?;
    let problems = arguments.report.as_deref().map(ProblemFile::create).transpose()?;
    let disk = commit.open_directory(&arguments.out)?;
    let existing = read_newest_commit(disk.as_ref(), mode).inspect_err(|_| disk.remove_created())?;
    let is_first = existing.is_none();
    let schema = match existing {
        Some(manifest) if commit.append && !arguments.schema.has_any_flag() => manifest.schema,
        _ => schema,
    };
    let job = IndexJob {
        disk: disk.clone(),
        schema,
        mode,
        options,
        threads,
        memory,
        wait: commit.lock_timeout(),
        merge: if arguments.merge == MergeChoice::One { Merge::One } else { Merge::Keep },
        stop_at_problem: arguments.on_error == OnError::Fail,
        problems,
    };
    let done = job.run_job(source).inspect_err(|_| disk.remove_created());
    let done = done.map_err(|failure| if is_first { open::nothing_committed(failure) } else { failure })?;
    match arguments.summary {
        OutputFormat::Table => done.print_line(&arguments.out).map_err(output_error),
        OutputFormat::Json => done.print_json(&arguments.out).map_err(output_error),
    }
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
            size::show_count(manifest.documents(), "document", "documents")
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
