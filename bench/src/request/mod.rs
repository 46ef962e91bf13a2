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
mod queries;
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

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(text: &str) -> Result<Value> {
        let mut output = Vec::new();
        let request = read_request(&mut text.as_bytes())?;
        answer_request(request.as_ref(), &StopSignal::default(), &mut output)?;
        assert_eq!(output.iter().filter(|byte| **byte == b'\n').count(), 1);
        Ok(serde_json::from_slice(&output).unwrap())
    }

    #[test]
    fn the_machine_has_a_kernel_and_a_version() {
        let machine = answer(r#"{"experiment": "machine"}"#).unwrap();
        assert_eq!(machine["kernels"][0], "scalar");
        assert_eq!(machine["version"], env!("CARGO_PKG_VERSION"));
        assert!(machine["threads"].as_u64().unwrap() > 0 && machine["memory_bytes"].as_u64().unwrap() > 0);
    }

    #[test]
    fn wrong_requests_are_usage_errors_of_one_line() {
        for (text, words) in [
            ("", "the cell is no valid JSON"),
            ("[]", "the cell is no valid JSON"),
            (r#"{"experiment": "frob"}"#, "there is no `experiment` \"frob\"; there are queries, "),
            (r#"{"experiment": 3}"#, "there is no `experiment` 3"),
            (r#"{"experiment": "machine", "x": 1}"#, "the experiment `machine`: unknown field `x`"),
            (r#"{"index": "i"}"#, "the experiment `queries`: missing field `queries`"),
        ] {
            let error = answer(text).unwrap_err();
            assert!(matches!(&error, Error::Usage(why) if why.contains(words)), "{text}: {error}");
            assert!(!error.to_string().contains('\n'), "{error}");
        }
    }
}
