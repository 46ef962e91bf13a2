//! Ids of documents in a TREC run, where white space separates columns.
//!
//! 1. An id with white space or control characters is written percent-encoded ([`run_id`]).
//! 2. Two encoded ids differ. A document whose id is the encoding of another id is looked for in one pass
//!    over all ids of the index, and is an error. Passes are made when the encoded ids reach a limit of
//!    memory, and before the run is complete.

use crate::failure::{Failure, Outcome};
use crate::{messages, size};
use std::{borrow::Cow, collections::HashMap};
use tierdex::{Snapshot, run_id};

/// Maximum bytes of encoded ids and their originals in memory; at this size all ids of the index are scanned.
const UNCHECKED_BYTES_MAX: usize = 1 << 20;

/// The document ids of a run that were written percent-encoded.
#[derive(Default)]
pub struct RunIds {
    /// Original ids by their encodings, since the last scan of all ids.
    originals: HashMap<String, String>,
    bytes: usize,
    /// Number of lines of the run with an encoded id.
    lines: u64,
    first: Option<(String, String)>,
}

impl RunIds {
    /// The id as it is written to the run, percent-encoded if necessary.
    pub fn encode_id<'i>(&mut self, id: &'i str) -> Cow<'i, str> {
        let Cow::Owned(encoded) = run_id(id) else { return Cow::Borrowed(id) };
        self.lines += 1;
        self.first.get_or_insert_with(|| (id.to_string(), encoded.clone()));
        if !self.originals.contains_key(&encoded) {
            self.bytes += id.len() + encoded.len();
            self.originals.insert(encoded.clone(), id.to_string());
        }
        Cow::Owned(encoded)
    }

    /// Checks the ids as [`RunIds::check_clashes`] does, if their memory has reached the limit.
    pub fn check_clashes_if_full(&mut self, snapshot: &Snapshot) -> Outcome {
        if self.bytes < UNCHECKED_BYTES_MAX { Ok(()) } else { self.check_clashes(snapshot) }
    }

    /// Scans all ids of the index. Fails if one of them equals the encoding of another document of the run.
    pub fn check_clashes(&mut self, snapshot: &Snapshot) -> Outcome {
        if self.originals.is_empty() {
            return Ok(());
        }
        let mut same = None;
        snapshot.scan_ids(
            |id| self.originals.contains_key(id),
            |_, id| {
                same.get_or_insert_with(|| id.to_string());
                Ok(())
            },
        )?;
        if let Some(id) = same {
            return Err(Failure::Failed(format!(
                "the documents `{}` and `{id}` would both be `{id}` in the run, where white space is \
                 percent-encoded; give one of them another id",
                self.originals[&id].escape_debug()
            )));
        }
        self.originals.clear();
        self.bytes = 0;
        Ok(())
    }

    /// Prints how many lines have an encoded id.
    pub fn print_warning(&self) {
        if let Some((id, encoded)) = &self.first {
            messages::print_message(format_args!(
                "{} of the run with an id that has white space or control characters, which are percent-encoded; \
                 first: `{}` as `{encoded}`",
                size::show_count(self.lines, "line", "lines"),
                id.escape_debug()
            ));
        }
    }
}
