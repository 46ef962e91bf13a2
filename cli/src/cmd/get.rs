//! `tierdex get`: prints stored documents by their ids.

use super::hits::values_as_json;
use crate::failure::{Failure, Outcome, output_error};
use crate::ids::IdArguments;
use crate::{messages, open};
use clap::{ArgGroup, Args};
use serde_json::{Map, Value};
use std::io::{BufWriter, Write, stdout};
use std::path::PathBuf;
use tierdex::StoredDocument;

#[derive(Args)]
#[command(group = ArgGroup::new("selection").args(["ids", "file"]).required(true).multiple(true))]
#[command(override_usage = "tierdex get <DIR> <ID...|--ids <FILE>>")]
#[command(after_help = "\
Documents are printed in the order of the ids, one JSON object a line, with the
member id and the stored members by their names: a string, or an array if there
are several values. If the index stores the other members of JSON objects, they
follow, and then the values of columns. Of several documents with an id the last one is printed. An id that no
document has is reported on standard error, and the exit code is then 1.
")]
pub struct GetCommandArguments {
    /// Directory of the index
    pub dir: PathBuf,
    #[command(flatten)]
    ids: IdArguments,
}

pub fn run_get(arguments: &GetCommandArguments) -> Outcome {
    let ids = arguments.ids.read_ids()?;
    let index = open::index(&arguments.dir)?;
    let searcher = index.searcher();
    let mut missing = Vec::new();
    let mut out = BufWriter::new(stdout().lock());
    for (id, document) in ids.iter().zip(searcher.find_ids(&ids)?) {
        match document {
            Some(document) => {
                let stored = searcher.stored(document)?.unwrap_or_default();
                let mut object = as_json(id, &stored);
                for column in &index.schema().columns {
                    let values = searcher.values_named(document, &column.name)?;
                    if !values.is_empty() {
                        object.entry(&column.name).or_insert(values_as_json(&values));
                    }
                }
                writeln!(out, "{}", Value::Object(object)).map_err(output_error)?;
            }
            None => missing.push(format!("no document has the id `{}`", id.escape_debug())),
        }
    }
    out.flush().map_err(output_error)?;
    // The last one is the error of the command.
    let Some(last) = missing.pop() else { return Ok(()) };
    missing.iter().for_each(messages::print_message);
    Err(Failure::Failed(last))
}

fn as_json(id: &str, stored: &StoredDocument) -> Map<String, Value> {
    let mut object = Map::from_iter([("id".to_string(), id.into())]);
    for (name, values) in stored.members() {
        let value: Value = match values {
            [] => continue,
            [value] => value.as_str().into(),
            values => values.into(),
        };
        // A member with the name `id` is not the id if --id-field names another one.
        object.entry(name).or_insert(value);
    }
    if !stored.others().is_empty() {
        match serde_json::from_str(stored.others()) {
            Ok(Value::Object(others)) => {
                for (name, value) in others {
                    object.entry(name).or_insert(value);
                }
            }
            // The library stores any text.
            _ => drop(object.entry("others").or_insert_with(|| stored.others().into())),
        }
    }
    object
}
