//! Finished cells, in a file with one JSON object per line. A run that was interrupted continues from it.
//!
//! The first line describes the program and the machine. Measurements of another program or machine are not
//! mixed in: opening such a file is an error, and so is a file that another process writes. A last line that
//! is not whole is dropped.

use crate::{Error, Result, output_dir, paper::cell::FigureCell, paper::cell::Row};
use serde_json::{Value, json};
use std::{collections::BTreeMap, fs, fs::File, fs::OpenOptions, io::Write, path::Path, path::PathBuf};

/// Result of a cell in one round.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Outcome {
    /// Rows without the settings of the cell.
    Rows(Vec<Row>),
    /// Why the cell could not be measured: one line. The next run tries again.
    Failed(String),
}

/// A cell that was measured once.
#[derive(Clone, Debug)]
pub(super) struct FinishedCell {
    /// Duration of the measurement.
    pub(super) seconds: f64,
    pub(super) outcome: Outcome,
}

/// All finished cells by cell and round, in memory and in the file.
pub(super) struct ResultStore {
    path: PathBuf,
    file: File,
    finished: BTreeMap<(String, usize), FinishedCell>,
}

impl ResultStore {
    /// Opens the file, or creates it. `header` describes the program and the machine.
    ///
    /// # Errors
    /// If the file cannot be read or written, is malformed, has another header, or is used by another
    /// process.
    pub(super) fn open(path: &Path, header: &Value) -> Result<ResultStore> {
        let failed = |what: &str| Error::failed(format!("cannot {what} {}", path.display()));
        let file = OpenOptions::new().create(true).append(true).open(path).map_err(failed("create"))?;
        output_dir::lock_file(&file, path, "--out")?;
        let text = fs::read_to_string(path).map_err(failed("read"))?;
        // A line without its end was being written when the program was stopped.
        let whole = &text[..text.rfind('\n').map_or(0, |end| end + 1)];
        let mut lines = whole.lines().enumerate();
        if let Some((_, first)) = lines.next()
            && serde_json::from_str::<Value>(first).ok().as_ref() != Some(header)
        {
            return Err(Error::Usage(format!(
                "{} has measurements of another version of the program, another machine or other flags; name another \
                 --out, or remove the file",
                path.display()
            )));
        }
        let mut finished = BTreeMap::new();
        for (number, line) in lines {
            let malformed =
                || format!("{}: line {} is malformed; remove the file", path.display(), number + 1);
            let (key, cell) = read_line(line).ok_or_else(|| Error::Failed(malformed()))?;
            finished.insert(key, cell);
        }
        file.set_len(whole.len() as u64).map_err(failed("write"))?;
        let mut store = ResultStore { path: path.to_path_buf(), file, finished };
        if whole.is_empty() {
            store.write(header)?;
        }
        Ok(store)
    }

    /// Whether a cell has rows in a round, from 1 on.
    pub(super) fn has_rows(&self, cell: &FigureCell, round: usize) -> bool {
        let found = self.finished.get(&(cell.to_string(), round));
        found.is_some_and(|finished| matches!(finished.outcome, Outcome::Rows(_)))
    }

    /// Adds a result.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(super) fn add(&mut self, cell: &FigureCell, round: usize, finished: FinishedCell) -> Result<()> {
        let mut line = json!({ "cell": cell.to_string(), "round": round, "seconds": finished.seconds });
        match &finished.outcome {
            Outcome::Rows(rows) => line["rows"] = json!(rows),
            Outcome::Failed(why) => line["failed"] = json!(why),
        }
        self.write(&line)?;
        self.finished.insert((cell.to_string(), round), finished);
        Ok(())
    }

    fn write(&mut self, line: &Value) -> Result<()> {
        let written = self.file.write_all(format!("{line}\n").as_bytes());
        written.map_err(Error::failed(format!("cannot write {}", self.path.display())))
    }

    /// The rows of a cell in all rounds, each with the settings of the cell.
    pub(super) fn rows(&self, cell: &FigureCell) -> Vec<Row> {
        let name = cell.to_string();
        let rounds = self.finished.range((name.clone(), 0)..=(name, usize::MAX));
        let mut all = Vec::new();
        for ((_, round), finished) in rounds {
            let Outcome::Rows(rows) = &finished.outcome else { continue };
            for measured in rows {
                let settings = cell.settings.iter().map(|(name, value)| (name.clone(), json!(value)));
                let mut row: Row = settings.collect();
                row.extend(measured.clone());
                row.insert("round".to_string(), json!(round));
                all.push(row);
            }
        }
        all
    }

    /// Why a cell could not be measured, if it failed in a round.
    pub(super) fn failure(&self, cell: &FigureCell) -> Option<&str> {
        let name = cell.to_string();
        let mut rounds = self.finished.range((name.clone(), 0)..=(name, usize::MAX));
        rounds.find_map(|(_, finished)| match &finished.outcome {
            Outcome::Failed(why) => Some(why.as_str()),
            Outcome::Rows(_) => None,
        })
    }
}

fn read_line(line: &str) -> Option<((String, usize), FinishedCell)> {
    let value: Value = serde_json::from_str(line).ok()?;
    let rows =
        || value["rows"].as_array()?.iter().map(|row| row.as_object().cloned()).collect::<Option<Vec<Row>>>();
    let outcome = match value["failed"].as_str() {
        Some(why) => Outcome::Failed(why.to_string()),
        None => Outcome::Rows(rows()?),
    };
    let key = (value["cell"].as_str()?.to_string(), value["round"].as_u64()? as usize);
    Some((key, FinishedCell { seconds: value["seconds"].as_f64()?, outcome }))
}

#[cfg(test)]
mod tests {
    use super::{super::cell::Experiment, *};

    fn cell(size: &str) -> FigureCell {
        FigureCell::new(Experiment::Sizes, &[("size", size)])
    }

    fn finished(qps: u32) -> FinishedCell {
        let row = json!({ "qps": qps }).as_object().unwrap().clone();
        FinishedCell { seconds: 0.5, outcome: Outcome::Rows(vec![row]) }
    }

    #[test]
    fn finished_cells_are_read_back_and_a_torn_line_is_dropped() {
        let dir = tempfile::tempdir().unwrap();
        let (path, header) = (dir.path().join("cells.jsonl"), json!({ "machine": "this" }));
        let mut store = ResultStore::open(&path, &header).unwrap();
        store.add(&cell("5"), 1, finished(10)).unwrap();
        store.add(&cell("5"), 2, finished(12)).unwrap();
        let failed = FinishedCell { seconds: 0.1, outcome: Outcome::Failed("killed".to_string()) };
        store.add(&cell("50"), 1, failed).unwrap();
        drop(store);
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, format!("{text}{{\"cell\": \"sizes si")).unwrap();

        let mut store = ResultStore::open(&path, &header).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
        let rows = store.rows(&cell("5"));
        assert_eq!((rows.len(), &rows[1]["qps"], &rows[1]["size"]), (2, &json!(12), &json!("5")));
        assert_eq!((store.failure(&cell("50")), store.failure(&cell("5"))), (Some("killed"), None));
        assert!(store.has_rows(&cell("5"), 2) && !store.has_rows(&cell("5"), 3));
        assert!(store.failure(&cell("50")).is_some() && !store.has_rows(&cell("50"), 1));
        store.add(&cell("7"), 1, finished(1)).unwrap();
        drop(store);
        assert_eq!(ResultStore::open(&path, &header).unwrap().rows(&cell("7")).len(), 1);
    }

    #[test]
    fn a_file_that_another_run_writes_is_rejected() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("cells.jsonl");
        let store = ResultStore::open(&path, &json!({})).unwrap();
        let error = ResultStore::open(&path, &json!({})).err().unwrap().to_string();
        assert!(error.contains("another run") && error.contains("--out"), "{error}");
        drop(store);
        ResultStore::open(&path, &json!({})).unwrap();
    }

    #[test]
    fn measurements_of_another_machine_are_rejected() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("cells.jsonl");
        drop(ResultStore::open(&path, &json!({ "machine": "this" })).unwrap());
        let error = ResultStore::open(&path, &json!({ "machine": "other" })).err().unwrap();
        assert!(matches!(&error, Error::Usage(message) if message.contains("--out")), "{error}");
        fs::write(&path, "{\"machine\":\"this\"}\nnonsense\n").unwrap();
        let error = ResultStore::open(&path, &json!({ "machine": "this" })).err().unwrap().to_string();
        assert!(error.contains("line 2 is malformed"), "{error}");
    }
}
