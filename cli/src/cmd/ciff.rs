//! `tierdex ciff`: imports and exports files in the Common Index File Format.

use super::index::CommitArguments;
use crate::failure::{Failure, Outcome, output_error};
use crate::input::{Compression, OpenInput};
use crate::run_file::{RunFile, create_unique, is_in_directory};
use crate::schema_flags::SchemaArguments;
use crate::{interrupt, messages, open, size};
use clap::{Args, Subcommand};
use flate2::write::GzEncoder;
use std::io::{Write, copy, stdout};
use std::path::{Path, PathBuf};
use std::{fs::File, os::unix::fs::OpenOptionsExt};
use tierdex::ciff::{CiffReport, export, import};
use tierdex::{Merge, StopSignal, WriterOptions, commit::Manifest, limits::TERM_BYTES_MAX, schema::Stored};

#[derive(Args)]
pub struct CiffCommandArguments {
    #[command(subcommand)]
    command: CiffCommand,
}

#[derive(Subcommand)]
enum CiffCommand {
    /// Make an index from a CIFF file; gzip and zstd are detected by content
    Import(ImportArguments),
    /// Write a field of an index as a CIFF file, compressed if its name ends with .gz
    Export(ExportArguments),
}

#[derive(Args)]
struct ImportArguments {
    /// CIFF file; a compressed one is decompressed to a temporary file first
    file: PathBuf,
    /// Directory of the index
    #[arg(long)]
    out: PathBuf,
    #[command(flatten)]
    commit: CommitArguments,
    #[command(flatten)]
    schema: SchemaArguments,
}

#[derive(Args)]
struct ExportArguments {
    /// Directory of the index
    dir: PathBuf,
    /// CIFF file to write
    file: PathBuf,
    /// Field to export [default: the first one]
    #[arg(long)]
    field: Option<String>,
    /// Description in the header of the file
    #[arg(long, default_value = "exported by tierdex")]
    description: String,
}

impl CiffCommandArguments {
    /// Directory of the index.
    pub fn index_directory(&self) -> &PathBuf {
        match &self.command {
            CiffCommand::Import(arguments) => &arguments.out,
            CiffCommand::Export(arguments) => &arguments.dir,
        }
    }
}

pub fn run_ciff(arguments: &CiffCommandArguments) -> Outcome {
    match &arguments.command {
        CiffCommand::Import(arguments) => run_import(arguments),
        CiffCommand::Export(arguments) => run_export(arguments),
    }
}

fn run_import(arguments: &ImportArguments) -> Outcome {
    let existing = arguments.commit.existing_schema(&arguments.out)?;
    let mut schema = arguments.schema.schema(None, existing.as_ref())?;
    schema.stored = Stored::Nothing;
    if let Some(field) = schema.fields.iter().find(|field| field.positions) {
        let message = format!("field `{}` has positions, and CIFF files have no positions", field.name);
        return Err(Failure::Usage(message));
    }
    let schema = open::WriterSchema { schema, existing };
    let commit = &arguments.commit;
    let mode = commit.open_mode(schema.existing.is_some());
    let name = arguments.file.display().to_string();
    let mut file =
        open_uncompressed(&arguments.file).map_err(|reason| Failure::Failed(format!("{name}: {reason}")))?;
    let disk = commit.open_directory(&arguments.out)?;
    let is_first = Manifest::newest(disk.as_ref())?.is_none();
    let mut imported = || -> Outcome<CiffReport> {
        let stop = StopSignal::default();
        let _watched = interrupt::raise_on_signal(stop.clone());
        let options = WriterOptions { updatable: commit.is_updatable(), stop, ..WriterOptions::default() };
        let mut writer = open::open_writer(disk.clone(), &schema, mode, &options, commit.lock_timeout())?;
        let report = import(&mut writer, &mut file, &name)?;
        writer.commit(Merge::Keep)?;
        Ok(report)
    };
    let report = imported().inspect_err(|_| disk.remove_created());
    let report =
        report.map_err(|failure| if is_first { open::nothing_committed(failure) } else { failure })?;
    print_warnings(&name, &report);
    print_report(&report, &arguments.out.display().to_string())
}

fn run_export(arguments: &ExportArguments) -> Outcome {
    let ExportArguments { dir, file: path, field, description } = arguments;
    if is_in_directory(path, dir) {
        let message = format!("{} is in the directory of the index; name another file", path.display());
        return Err(Failure::Usage(message));
    }
    let index = open::index(dir)?;
    let field = field.as_deref().unwrap_or(&index.schema().fields[0].name);
    let failed = |error: std::io::Error| Failure::Failed(format!("cannot write {}: {error}", path.display()));
    let mut out = RunFile::create(path).map_err(failed)?;
    let report = if path.extension().is_some_and(|extension| extension == "gz") {
        let mut packed = GzEncoder::new(&mut out, flate2::Compression::default());
        let report = export(&index, field, description, &mut packed)?;
        packed.finish().map_err(failed)?;
        report
    } else {
        export(&index, field, description, &mut out)?
    };
    out.finish().map_err(failed)?;
    print_report(&report, &format!("{}: field {field}", path.display()))
}

/// Opens a file that can be read by offset. A compressed file is decompressed to a temporary file without a
/// name.
fn open_uncompressed(path: &Path) -> Result<File, String> {
    let cannot_read = |error: std::io::Error| format!("cannot read: {error}");
    let file = File::open(path).map_err(cannot_read)?;
    let again = file.try_clone().map_err(cannot_read)?;
    let OpenInput { compression, mut reader } =
        OpenInput::decompress(again, &Default::default()).map_err(cannot_read)?;
    if compression == Compression::Plain {
        return Ok(file);
    }
    let folder = std::env::temp_dir();
    let failed = |error: std::io::Error| {
        format!(
            "cannot decompress it to a temporary file in {}: {error}; TMPDIR names another directory",
            folder.display()
        )
    };
    let mut temporary = create_temporary_file(&folder).map_err(failed)?;
    let bytes = copy(&mut reader, &mut temporary).map_err(|error| match error.raw_os_error() {
        Some(_) => failed(error),
        None => compression.explain_error(&error),
    })?;
    let shown = size::show_bytes(bytes);
    messages::print_message(format_args!(
        "{}: decompressed to {shown} in {}",
        path.display(),
        folder.display()
    ));
    Ok(temporary)
}

/// Creates a file for this user without a name, which ends with the process.
fn create_temporary_file(folder: &Path) -> std::io::Result<File> {
    let mut options = File::options();
    options.read(true).write(true).create_new(true).mode(0o600);
    let (path, file) = create_unique(folder, ".tierdex-ciff", |path| options.open(path))?;
    std::fs::remove_file(path)?;
    Ok(file)
}

/// Prints a warning for each rule of the format that the file breaks.
fn print_warnings(name: &str, report: &CiffReport) {
    if report.other_frequencies > 0 {
        let lists = size::show_count(report.other_frequencies, "list has", "lists have");
        messages::print_message(format_args!(
            "{name}: {lists} another number of postings than document frequency"
        ));
    }
    if report.long_terms > 0 {
        let terms = size::show_count(report.long_terms, "term", "terms");
        messages::print_message(format_args!("{name}: {terms} longer than {TERM_BYTES_MAX} bytes skipped"));
    }
    if let Some(first) = &report.first_changed_term {
        let all = size::show_count(report.lists, "term", "terms");
        messages::print_message(format_args!(
            "{name}: {} of {all} cannot be found by queries, as the analysis of the index changes them; first: \
             `{}`; give the analysis of the file, such as --tokenizer whitespace",
            size::show_number(report.changed_terms),
            first.escape_debug()
        ));
    }
    if report.raised_lengths > 0 {
        let documents = size::show_count(report.raised_lengths, "document is", "documents are");
        messages::print_message(format_args!(
            "{name}: {documents} shorter than the sum of the frequencies, which is used; if the frequencies are quantised \
             impacts, BM25 does not apply to them"
        ));
    }
    if report.missing_tokens > 0 {
        let tokens = size::show_count(report.missing_tokens, "token", "tokens");
        messages::print_message(format_args!(
            "{name}: {tokens} of the document lengths are in no list; the lengths are kept"
        ));
    }
    if report.collection.0 > report.documents {
        let all = size::show_number(report.collection.0);
        messages::print_message(format_args!(
            "{name}: a part of {all} documents; scores use the statistics of the part"
        ));
    }
}

fn print_report(report: &CiffReport, to: &str) -> Outcome {
    writeln!(
        stdout(),
        "{to}: {}, {}, {}",
        size::show_count(report.documents, "document", "documents"),
        size::show_count(report.lists, "list", "lists"),
        size::show_count(report.postings, "posting", "postings")
    )
    .map_err(output_error)
}
