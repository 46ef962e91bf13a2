//! `tierdex index`: documents to an index.

use crate::failure::{Failure, Outcome, output};
use crate::input::{Column, Format, InputOptions, Source};
use crate::job::Job;
use crate::values::{codec, language};
use crate::{open, size};
use clap::{Args, ValueEnum};
use std::collections::BTreeSet;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tierdex::codec::Codec;
use tierdex::index::{Manifest, Merge, OpenMode};
use tierdex::io::{Disk, PosixDisk};
use tierdex::limits::{MEMORY_MIN, STOP_WORDS_MAX, TERM_BYTES_MAX};
use tierdex::schema::{Analysis, Language, NormKind, Schema, Tokenizer};
use tierdex::text::{Analyzer, ENGLISH_STOP_WORDS};

#[derive(Args)]
pub struct Arguments {
    /// Files, folders (recursive), or - for standard input; .gz and .zst are recognised by content
    #[arg(required = true)]
    inputs: Vec<PathBuf>,
    /// Directory of the index
    #[arg(long)]
    pub out: PathBuf,
    /// Add to the index that is there
    #[arg(long, conflicts_with = "replace")]
    append: bool,
    /// Replace the index that is there, in one step when all is done
    #[arg(long)]
    replace: bool,
    #[command(flatten)]
    input: InputArguments,
    #[command(flatten)]
    schema: SchemaArguments,
    /// Threads that analyse text; each needs 128M of --memory [default: one a core]
    #[arg(long)]
    threads: Option<usize>,
    /// Memory for postings that wait to be written, and for batches in work
    #[arg(long, default_value = "1G", value_parser = size::parse)]
    memory: usize,
    /// What to do with the segments that were flushed
    #[arg(long, value_enum, default_value_t = MergeChoice::One)]
    merge: MergeChoice,
    /// What to do about a malformed line, or a file in a folder that cannot be read
    #[arg(long, value_enum, default_value_t = OnError::Skip)]
    on_error: OnError,
}

#[derive(Args)]
struct InputArguments {
    /// Form of the input [default: by name, .jsonl .ndjson .json .tsv; else text, but jsonl for standard
    /// input and for a named file that begins with a line of JSON]
    #[arg(long, value_parser = |text: &str| text.parse::<Format>())]
    format: Option<Format>,
    /// JSON: member that holds the id
    #[arg(long, default_value = "id")]
    id_field: String,
    /// JSON: member that holds the title
    #[arg(long, default_value = "title")]
    title_field: String,
    /// JSON: member that holds the text
    #[arg(long, default_value = "text")]
    text_field: String,
    /// TSV: columns, such as id,-,title,text [default: as a header names them, else by their number]
    #[arg(long)]
    columns: Option<String>,
    /// Cut longer documents into pieces of at most this many bytes, at word boundaries
    #[arg(long, value_parser = size::parse)]
    split: Option<usize>,
}

/// How text is analysed and what is kept. With --append the index's own settings hold.
#[derive(Args)]
struct SchemaArguments {
    /// Keep positions, as phrases need
    #[arg(long)]
    positions: bool,
    /// Codec of document ids [default: auto]
    #[arg(long, value_parser = codec(false))]
    codec: Option<Codec>,
    /// Codec of frequencies and positions [default: the plain form of --codec]
    #[arg(long, value_parser = codec(true))]
    freq_codec: Option<Codec>,
    /// How a document's length is kept [default: byte]
    #[arg(long, value_enum)]
    norms: Option<Norms>,
    /// Where tokens begin and end [default: alphanumeric]
    #[arg(long, value_enum)]
    tokenizer: Option<TokenizerChoice>,
    /// Snowball stemming in a language
    #[arg(long, value_parser = language())]
    stem: Option<Language>,
    /// Words that are not indexed: english, or a file with one a line
    #[arg(long)]
    stop_words: Option<String>,
    /// Fold accents: é is e
    #[arg(long)]
    fold_accents: bool,
    /// What is kept of documents for display [default: text]
    #[arg(long, value_enum)]
    store: Option<Store>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum MergeChoice {
    /// Merge all segments to one.
    One,
    /// Leave them.
    None,
}

/// What to do about input that cannot be used.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OnError {
    /// Report it, leave it out, and go on.
    Skip,
    /// Stop, without a commit or a run.
    Fail,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Norms {
    /// One byte: exact below 128 tokens, within 1/64 below 512.
    Byte,
    /// Four bytes, exact.
    Exact,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum TokenizerChoice {
    /// Runs of letters and digits, lower-cased.
    Alphanumeric,
    /// Whatever stands between blanks, as it is: for text that is tokens already.
    Whitespace,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Store {
    /// Title and text, for titles and snippets.
    Text,
    /// Neither: hits have ids alone.
    None,
}

impl SchemaArguments {
    fn given(&self) -> bool {
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

    fn schema(&self) -> Outcome<Schema> {
        let mut schema = Schema { stored: self.store != Some(Store::None), ..Schema::default() };
        let field = &mut schema.fields[0];
        field.positions = self.positions;
        field.doc_codec = self.codec.unwrap_or(field.doc_codec);
        field.freq_codec = self.freq_codec.unwrap_or(field.doc_codec.plain());
        field.norms = if self.norms == Some(Norms::Exact) { NormKind::Exact } else { NormKind::Byte };
        field.analysis.tokenizer = match self.tokenizer {
            Some(TokenizerChoice::Whitespace) => Tokenizer::Whitespace,
            _ => Tokenizer::Alphanumeric,
        };
        field.analysis.fold_accents = self.fold_accents;
        field.analysis.stemmer = self.stem;
        if let Some(words) = &self.stop_words {
            field.analysis.stop_words = stop_words(words, &field.analysis)?;
        }
        schema.validate()?;
        Ok(schema)
    }
}

/// The words as they stand in the chain before stemming.
fn stop_words(name: &str, analysis: &Analysis) -> Outcome<Vec<String>> {
    let mut chain = Analyzer::new(&Analysis { stemmer: None, ..analysis.clone() });
    let words: BTreeSet<String> = if name == "english" {
        chain.terms(&ENGLISH_STOP_WORDS.join(" ")).into_iter().collect()
    } else {
        let text = read_stop_words(name).map_err(|error| {
            Failure::Usage(format!(
                "--stop-words {name}: {error}; give `english` or a file with one word a line"
            ))
        })?;
        chain.terms(&text).into_iter().collect()
    };
    Ok(words.into_iter().collect())
}

/// A file of words, which has no more bytes than all the words that a field may have.
fn read_stop_words(name: &str) -> std::io::Result<String> {
    const BYTES_MAX: u64 = (STOP_WORDS_MAX * TERM_BYTES_MAX) as u64;
    let mut text = String::new();
    let read = std::fs::File::open(name)?.take(BYTES_MAX + 1).read_to_string(&mut text)? as u64;
    if read > BYTES_MAX {
        return Err(std::io::Error::other(format!("longer than {BYTES_MAX} bytes")));
    }
    Ok(text)
}

impl InputArguments {
    fn options(&self, output: &Path) -> Outcome<InputOptions> {
        let columns = self.columns.as_deref().map(Column::parse_list).transpose();
        Ok(InputOptions {
            format: self.format,
            id_field: self.id_field.clone(),
            title_field: self.title_field.clone(),
            text_field: self.text_field.clone(),
            columns: columns.map_err(|problem| Failure::Usage(format!("--columns: {problem}")))?,
            split: self.split,
            output: Some(output.to_path_buf()),
        })
    }
}

pub fn run(arguments: &Arguments) -> Outcome {
    let options = arguments.input.options(&arguments.out)?;
    let schema = arguments.schema.schema()?;
    let mode = match (arguments.append, arguments.replace) {
        (true, _) => OpenMode::Append,
        (_, true) => OpenMode::Replace,
        _ => OpenMode::New,
    };
    if arguments.memory < MEMORY_MIN {
        return Err(Failure::Usage(format!(
            "--memory of {} is too little; 16M is the least",
            size::show(arguments.memory as u64)
        )));
    }
    let threads = threads(arguments.threads)?;
    let source = Source::open(&arguments.inputs, &options).map_err(Failure::Usage)?;
    let disk = if arguments.append { open::disk(&arguments.out)? } else { output_disk(&arguments.out)? };
    let there = newest(disk.as_ref(), mode).inspect_err(|_| disk.remove_created())?;
    let schema = match there {
        Some(manifest) if arguments.append && !arguments.schema.given() => manifest.schema,
        _ => schema,
    };
    let job = Job {
        disk: disk.clone(),
        schema,
        mode,
        options,
        threads,
        memory: arguments.memory,
        merge: if arguments.merge == MergeChoice::One { Merge::One } else { Merge::Keep },
        stop_at_problem: arguments.on_error == OnError::Fail,
    };
    let done = job.run(source).inspect_err(|_| disk.remove_created())?;
    done.summary(&arguments.out).map_err(output)
}

/// The newest commit, if the flags fit what is there. A damaged one does not matter if it is replaced.
fn newest(disk: &PosixDisk, mode: OpenMode) -> Outcome<Option<Manifest>> {
    let newest = match Manifest::read_newest(disk) {
        // A writer that replaces may be able to do without.
        Err(_) if mode == OpenMode::Replace => None,
        Err(error) if error.is_corrupt() => {
            return Err(Failure::Failed(format!("{error}; --replace puts a new index in its place")));
        }
        read => read?,
    };
    match (mode, &newest) {
        (OpenMode::New, Some(manifest)) => Err(Failure::Usage(format!(
            "{} holds an index already ({}); add to it with --append, or put a new one in its place with --replace",
            disk.describe(),
            size::count(manifest.documents(), "document", "documents")
        ))),
        _ => Ok(newest),
    }
}

pub fn threads(asked: Option<usize>) -> Outcome<usize> {
    match asked {
        Some(0) => Err(Failure::Usage("--threads must be at least 1".to_string())),
        Some(threads) => Ok(threads),
        None => Ok(std::thread::available_parallelism().map_or(1, usize::from)),
    }
}

/// The output directory, made if it is not there. A directory with other things in it is refused.
pub fn output_disk(out: &Path) -> Outcome<Arc<PosixDisk>> {
    let disk = PosixDisk::create(out)?;
    check_foreign(&disk, out).inspect_err(|_| disk.remove_created())?;
    Ok(Arc::new(disk))
}

fn check_foreign(disk: &PosixDisk, out: &Path) -> Outcome {
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
