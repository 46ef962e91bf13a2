//! One experiment as JSON: what `tierdex-bench cell` reads and prints. A driver repeats experiments, changes
//! the state of the machine for them, and makes tables and figures of their results.
//!
//! *Input*: a JSON object. Its member `experiment` names one of `EXPERIMENTS`, by default `queries`; the
//! other members are the parameters of the experiment. *Output*: one line with a JSON object, the results.
//! docs/experiments/cell.md has an example of each.

mod draw;
mod experiment;
mod explored;
mod indexing;
mod machine;
mod members;
mod plan;
mod query_file;
mod sizes;
mod timed_disk;

pub(crate) use draw::DrawRequest;
pub use experiment::ExperimentRequest;
pub(crate) use explored::ExploredRequest;
pub(crate) use indexing::IndexingRequest;
pub(crate) use query_file::QueryFileRequest;
pub(crate) use sizes::SizesRequest;

use crate::{Error, Result, cell::Cell, codecs, codecs::CodecsRequest, codecs::Peer};
use crate::{intersect::IntersectRequest, policies::PoliciesRequest};
use machine::MachineRequest;
pub use members::Members;
use members::{parse_members, usage};
use plan::PlanRequest;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::{io::Read, io::Write};
use tierdex::StopSignal;

/// Parses the parameters of an experiment.
type ParseRequest = fn(Members) -> Result<Box<dyn ExperimentRequest>>;

/// The experiments by name.
const EXPERIMENTS: &[(&str, ParseRequest)] = &[
    ("queries", parse::<Cell>),
    ("plan", parse::<PlanRequest>),
    ("draw", parse::<DrawRequest>),
    ("explored", parse::<ExploredRequest>),
    ("sizes", parse::<SizesRequest>),
    ("indexing", parse::<IndexingRequest>),
    ("codecs", parse::<CodecsRequest>),
    ("intersect", parse::<IntersectRequest>),
    ("policies", parse::<PoliciesRequest>),
    ("query-file", parse::<QueryFileRequest>),
    ("machine", parse::<MachineRequest>),
];

fn parse<T: ExperimentRequest + DeserializeOwned + 'static>(
    members: Members,
) -> Result<Box<dyn ExperimentRequest>> {
    Ok(Box::new(parse_members::<T>(members)?))
}

/// Reads an experiment and its parameters.
///
/// # Errors
/// [`Error::Usage`] if the input is no JSON object, or a member is unknown, missing or wrong.
pub fn read_request(input: &mut dyn Read) -> Result<Box<dyn ExperimentRequest>> {
    let mut text = String::new();
    input.read_to_string(&mut text).map_err(Error::failed("cannot read the cell"))?;
    let wrong = |error| usage(&format_args!("the cell is no valid JSON: {error}"));
    let mut members: Members = serde_json::from_str(&text).map_err(wrong)?;
    let name = members.shift_remove("experiment").unwrap_or_else(|| "queries".into());
    let found = EXPERIMENTS.iter().find(|(known, _)| name == *known);
    let Some((name, parse)) = found else {
        let names: Vec<_> = EXPERIMENTS.iter().map(|(name, _)| *name).collect();
        return Err(usage(&format_args!("there is no `experiment` {name}; there are {}", names.join(", "))));
    };
    parse(members).map_err(|error| usage(&format_args!("the experiment `{name}`: {error}")))
}

/// Runs the experiment `codecs` with other contenders beside those of this crate.
///
/// # Errors
/// [`Error::Usage`] if a member is unknown or wrong; as [`codecs::run`].
pub fn answer_codecs(members: Members, peers: Vec<Box<dyn Peer>>, stop: &StopSignal) -> Result<Value> {
    codecs::run(&parse_members(members)?, peers, stop)
}

/// Runs an experiment and writes its results as one line of JSON.
///
/// # Errors
/// As [`ExperimentRequest::answer`], and if the output cannot be written.
pub fn answer_request(
    request: &dyn ExperimentRequest,
    stop: &StopSignal,
    output: &mut dyn Write,
) -> Result<()> {
    let answer: Value = request.answer(stop)?;
    writeln!(output, "{answer}").and_then(|()| output.flush()).map_err(Error::Output)
}
