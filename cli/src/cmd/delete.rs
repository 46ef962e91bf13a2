//! `tierdex delete`: deletes documents by their ids, or all that match a query.

use super::index::checked_memory;
use super::search::OutputFormat;
use crate::failure::{Failure, Outcome, output_error};
use crate::ids::IdArguments;
use crate::{index_job::commit_in_doubt, index_size::total_bytes, interrupt, open};
use crate::{messages::make_printable, size::show_count};
use clap::{ArgGroup, Args};
use serde_json::{Value, json};
use std::io::{BufWriter, Write, stdout};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tierdex::commit::Manifest;
use tierdex::explain::HitIds;
use tierdex::io::PosixDisk;
use tierdex::{Index, IndexWriter, Merge, Query, SearchHit, SearchOptions, StopSignal, WriterOptions};

#[derive(Args)]
#[command(group = ArgGroup::new("selection").args(["ids", "file", "query"]).required(true).multiple(true))]
#[command(override_usage = "tierdex delete [OPTIONS] <DIR> <ID...|--ids <FILE>|--query <QUERY>>")]
pub struct DeleteCommandArguments {
    /// Directory of the index
    pub dir: PathBuf,
    #[command(flatten)]
    ids: IdArguments,
    /// Delete all documents that match a query, as `tierdex search` finds them; the index need not be
    /// updatable
    #[arg(long, value_name = "QUERY", conflicts_with_all = ["ids", "file"])]
    query: Option<String>,
    /// Print the ids of the documents that would be deleted, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Wait up to this many seconds while another writer is at work [default: 0, exit code 75]
    #[arg(long, value_name = "SECONDS", default_value_t = 0, hide_default_value = true)]
    wait: u32,
    /// Format of the summary
    #[arg(long, value_enum, default_value_t = OutputFormat::Table)]
    summary: OutputFormat,
}

/// Which documents are deleted.
enum DeleteSelection<'a> {
    /// Those with these ids, which are sorted and differ.
    Ids(Vec<String>),
    /// All that match a query.
    Matches(&'a str),
}

/// What a run has deleted, or would delete.
struct DeleteSummary {
    deleted: u64,
    /// Ids that no document has; `None` of a query.
    unknown_ids: Option<u64>,
    dry_run: bool,
    /// Live documents of the index.
    live: u64,
    index_bytes: u64,
    elapsed: Duration,
}

pub fn run_delete(arguments: &DeleteCommandArguments) -> Outcome {
    let selection = match &arguments.query {
        Some(query) => DeleteSelection::Matches(query),
        None => {
            let mut ids = arguments.ids.read_ids()?;
            ids.sort_unstable();
            ids.dedup();
            DeleteSelection::Ids(ids)
        }
    };
    match arguments.dry_run {
        true => preview_deletes(arguments, &selection),
        false => delete_selected(arguments, &selection)?.write(&mut stdout(), arguments),
    }
}

/// Deletes the documents and commits.
fn delete_selected(
    arguments: &DeleteCommandArguments,
    selection: &DeleteSelection<'_>,
) -> Outcome<DeleteSummary> {
    let start = Instant::now();
    let disk = open::open_directory(&arguments.dir)?;
    let stop = StopSignal::default();
    let _watched = interrupt::raise_on_signal(stop.clone());
    let options = WriterOptions { memory: checked_memory(None)?, stop, ..WriterOptions::default() };
    let wait = Duration::from_secs(arguments.wait.into());
    let mut writer = open::wait_for_writer(&options.stop, Some(wait), || {
        IndexWriter::open_extended(disk.clone(), options.clone(), |newest| Ok(newest.clone()))
    })?;
    selection.check_updatable(writer.is_updatable(), &arguments.dir)?;
    let before = newest_commit(&disk)?.live_documents();
    match selection {
        DeleteSelection::Ids(ids) => ids.iter().try_for_each(|id| writer.delete(id))?,
        DeleteSelection::Matches(text) => {
            let index = Index::open_on(disk.clone())?;
            writer.delete_documents(&index, &find_matches(&index, text)?)?;
        }
    }
    if let Err(error) = writer.commit(Merge::Keep) {
        return Err(if writer.in_doubt() { commit_in_doubt(&error) } else { error.into() });
    }
    let after = newest_commit(&disk)?;
    let deleted = before.saturating_sub(after.live_documents());
    Ok(DeleteSummary {
        deleted,
        unknown_ids: selection.count_unknown(deleted),
        dry_run: false,
        live: after.live_documents(),
        index_bytes: total_bytes(&after),
        elapsed: start.elapsed(),
    })
}

/// Prints the documents that would be deleted, and the summary.
fn preview_deletes(arguments: &DeleteCommandArguments, selection: &DeleteSelection<'_>) -> Outcome {
    let start = Instant::now();
    let index = open::index(&arguments.dir)?;
    selection.check_updatable(index.is_updatable(), &arguments.dir)?;
    let mut documents = match selection {
        DeleteSelection::Ids(ids) => index.searcher().find_ids(ids)?.into_iter().flatten().collect(),
        DeleteSelection::Matches(text) => find_matches(&index, text)?,
    };
    documents.sort_unstable();
    let deleted = documents.len() as u64;
    let summary = DeleteSummary {
        deleted,
        unknown_ids: selection.count_unknown(deleted),
        dry_run: true,
        live: index.documents(),
        index_bytes: total_bytes(index.manifest()),
        elapsed: start.elapsed(),
    };
    let is_json = arguments.summary == OutputFormat::Json;
    let mut out = BufWriter::new(stdout().lock());
    let hit = |document| SearchHit { document, ..SearchHit::default() };
    let hits: Vec<SearchHit> = documents.into_iter().map(hit).collect();
    let mut before = "{\"ids\":[";
    index.searcher().for_each_id(&hits, &HitIds::default(), |_, id| {
        let written = match is_json {
            true => write!(out, "{before}{}", json!(id)),
            false => writeln!(out, "{}", make_printable(id)),
        };
        before = ",";
        written.map_err(output_error)
    })?;
    if is_json {
        // The members of the summary follow.
        let ids_end = if hits.is_empty() { "{\"ids\":[]," } else { "]," };
        write!(out, "{ids_end}{}", &summary.as_json(&arguments.dir).to_string()[1..])
            .map_err(output_error)?;
        return writeln!(out).and_then(|()| out.flush()).map_err(output_error);
    }
    summary.write(&mut out, arguments)
}

impl DeleteSelection<'_> {
    /// Documents are deleted by their ids in an updatable index only.
    fn check_updatable(&self, is_updatable: bool, dir: &Path) -> Outcome {
        match self {
            DeleteSelection::Ids(_) if !is_updatable => Err(open::not_updatable(&dir.display().to_string())),
            _ => Ok(()),
        }
    }

    /// Number of ids that no document had, if this number was deleted: an id has at most one document.
    fn count_unknown(&self, deleted: u64) -> Option<u64> {
        match self {
            DeleteSelection::Ids(ids) => Some((ids.len() as u64).saturating_sub(deleted)),
            DeleteSelection::Matches(_) => None,
        }
    }
}

impl DeleteSummary {
    fn write(&self, out: &mut dyn Write, arguments: &DeleteCommandArguments) -> Outcome {
        let line = match arguments.summary {
            OutputFormat::Table => self.as_line(&arguments.dir),
            OutputFormat::Json => self.as_json(&arguments.dir).to_string(),
        };
        writeln!(out, "{line}").and_then(|()| out.flush()).map_err(output_error)
    }

    fn as_line(&self, dir: &Path) -> String {
        let documents = |number| show_count(number, "document", "documents");
        let mut line = match (self.deleted, self.unknown_ids) {
            (0, None) => "nothing deleted; no document matches the query".to_string(),
            (0, Some(0)) => "nothing deleted; there are no ids".to_string(),
            (0, _) => "nothing deleted".to_string(),
            (deleted, _) if self.dry_run => format!("{} would be deleted", documents(deleted)),
            (deleted, _) => format!("{} deleted", documents(deleted)),
        };
        if let Some(unknown @ 1..) = self.unknown_ids {
            line += &format!("; {} of no document", show_count(unknown, "id", "ids"));
        }
        let dir = make_printable(&dir.display().to_string());
        line + &format!("; {dir} holds {}", documents(self.live))
    }

    fn as_json(&self, dir: &Path) -> Value {
        json!({
            "deleted": self.deleted,
            "unknown_ids": self.unknown_ids,
            "dry_run": self.dry_run,
            "index": {
                "path": dir.display().to_string(),
                "documents": self.live,
                "bytes": self.index_bytes,
            },
            "seconds": self.elapsed.as_secs_f64(),
        })
    }
}

/// All documents of an index that match a query.
fn find_matches(index: &Index, text: &str) -> Outcome<Vec<u32>> {
    if text.trim().is_empty() {
        return Err(Failure::Usage("the query is empty; *:* matches all documents".to_string()));
    }
    let (query, notes) = Query::parse_with_notes(text, index.schema())?;
    // A part that is read as text could match more than was meant.
    if let Some(note) = notes.first() {
        return Err(Failure::Usage(format!("{note}; nothing was deleted")));
    }
    let k = usize::try_from(index.documents()).unwrap_or(usize::MAX);
    let found = index.searcher().search(&query, &SearchOptions { k, ..SearchOptions::default() })?;
    Ok(found.hits.iter().map(|hit| hit.document).collect())
}

/// The newest commit of an index whose lock is held.
fn newest_commit(disk: &PosixDisk) -> Outcome<Manifest> {
    let newest = Manifest::read_newest(disk)?;
    newest.ok_or_else(|| Failure::Failed("the manifest of the index was removed".to_string()))
}
