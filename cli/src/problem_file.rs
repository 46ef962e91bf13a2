//! The file of `tierdex index --report`: all problems of the input, as JSON lines.

use crate::failure::{Outcome, write_error};
use crate::input::{ChunkReport, ProblemKind};
use serde_json::json;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// The file in which all problems of the input are listed, while it is written.
pub struct ProblemFile {
    path: PathBuf,
    out: BufWriter<File>,
}

impl ProblemFile {
    /// Creates the file, or empties an existing one.
    pub fn create(path: &Path) -> Outcome<ProblemFile> {
        let out = File::create(path).map_err(|error| write_error(path, &error))?;
        Ok(ProblemFile { path: path.to_path_buf(), out: BufWriter::new(out) })
    }

    /// Writes a line for each problem of a chunk, and one for each kind with more problems than are listed.
    pub fn add(&mut self, report: &ChunkReport) -> Outcome {
        let problems = report.problems.iter().map(|problem| {
            let kind = problem.kind.name();
            json!({ "file": problem.file, "line": problem.line, "kind": kind, "message": problem.message })
        });
        let further = ProblemKind::ALL.iter().filter_map(|&kind| {
            let further = report.counts[kind].saturating_sub(ChunkReport::ALL_MAX);
            let message = format!("{further} further problems of this kind in the same part of the input");
            (further > 0)
                .then(|| json!({ "file": null, "line": null, "kind": kind.name(), "message": message }))
        });
        for line in problems.chain(further) {
            writeln!(self.out, "{line}").map_err(|error| write_error(&self.path, &error))?;
        }
        Ok(())
    }

    /// Writes the buffered lines to the file.
    pub fn finish(mut self) -> Outcome {
        self.out.flush().map_err(|error| write_error(&self.path, &error))
    }
}
