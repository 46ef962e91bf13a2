//! Sizes and speeds of codecs. The parameters are the flags of the experiment [`crate::codecs`].

use crate::request::{experiment::ExperimentRequest, members::Members, members::parse_flag_members};
use crate::{Result, codecs, codecs::Flags, codecs::Peer};
use serde_json::{Value, json};
use tierdex::StopSignal;

impl ExperimentRequest for Flags {
    fn answer(&self, stop: &StopSignal) -> Result<Value> {
        measure_codecs(self, Vec::new(), stop)
    }
}

/// Measures the codecs of this crate and `peers` by the members of a request.
///
/// # Errors
/// [`Error::Usage`](crate::Error::Usage) if a member is unknown or wrong; as [`codecs::run`].
pub fn answer_codecs(members: Members, peers: Vec<Box<dyn Peer>>, stop: &StopSignal) -> Result<Value> {
    measure_codecs(&parse_flag_members(members)?, peers, stop)
}

/// A row for each codec and kernel, and each length class or dataset.
fn measure_codecs(flags: &Flags, peers: Vec<Box<dyn Peer>>, stop: &StopSignal) -> Result<Value> {
    Ok(json!({ "rows": codecs::run(flags, peers, stop)?.to_json(flags.sums) }))
}
