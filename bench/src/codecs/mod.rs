//! Size and speed of the integer codecs, by kernel.
//!
//! 1. `data` generates lists or reads them from an index, one [`ListGroup`] at a time: the lists of one
//!    dataset and length class.
//! 2. Each [`Contender`] that encodes values of the group's kind encodes the group, and its round trip is
//!    checked.
//! 3. `measure` times the contenders in turn, round after round, and keeps the medians.
//! 4. `rows` are the measurements and their sums over the lists of a dataset, as JSON.
//!
//! The experiment does not depend on the formats of the codecs. A program with further contenders passes
//! them as [`Peer`]s.

mod buffers;
mod contender;
mod data;
mod encoded;
mod index_lists;
mod list_group;
mod masked_vbyte;
#[cfg(target_arch = "x86_64")]
mod masked_vbyte_sse;
mod measure;
mod own;
mod request;
mod rows;
mod synthetic;
mod vbyte_masks;

pub use buffers::{Buffers, EncodedWord};
pub use contender::{Contender, ContenderInfo, EncodedGroup, Peer};
pub use list_group::{ListGroup, ValueKind};
pub use request::CodecsRequest;

use crate::{Error, Result, request::ExperimentRequest};
use data::DataPlan;
use masked_vbyte::MaskedVbyte;
use own::{Memcpy, OwnCodec};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use tierdex::StopSignal;

impl ExperimentRequest for CodecsRequest {
    fn answer(&self, stop: &StopSignal) -> Result<Value> {
        run(self, Vec::new(), stop)
    }
}

/// Runs the experiment with this crate's contenders and `peers`: a row for each codec and kernel, and each
/// length class or dataset.
///
/// # Errors
/// If the request names an unknown codec or kernel, if a round trip differs, or if the index cannot be used;
/// [`Error::Interrupted`] if `stop` is raised.
pub fn run(request: &CodecsRequest, peers: Vec<Box<dyn Peer>>, stop: &StopSignal) -> Result<Value> {
    let contenders = select_contenders(request, peers)?;
    let plan = DataPlan::new(request, stop)?;
    let (mut buffers, mut rows) = (Buffers::default(), Vec::new());
    let selected = |kind| contenders.iter().any(|one| one.info().takes(kind));
    plan.for_each_group(selected, &mut |group| {
        rows.extend(measure::measure_group(group, &contenders, plan.scale.rounds, &mut buffers, stop)?);
        Ok(())
    })?;
    Ok(json!({ "rows": rows::rows_to_json(rows, request.sums) }))
}

/// The selected ones of `memcpy`, the codecs with the selected kernels, Masked VByte, and the peers.
fn select_contenders(request: &CodecsRequest, peers: Vec<Box<dyn Peer>>) -> Result<Vec<Box<dyn Peer>>> {
    let mut all: Vec<Box<dyn Peer>> = vec![Box::new(Memcpy)];
    for kernel in request.kernels()? {
        all.extend(OwnCodec::all(kernel).map(|codec| Box::new(codec) as Box<dyn Peer>));
    }
    all.extend(MaskedVbyte::all().into_iter().map(|codec| Box::new(codec) as Box<dyn Peer>));
    all.extend(peers);
    if let Some(wanted) = &request.codec {
        let names: BTreeSet<String> = all.iter().map(|contender| contender.info().codec).collect();
        all.retain(|contender| contender.info().codec == *wanted);
        if all.is_empty() {
            let names = names.into_iter().collect::<Vec<_>>().join(", ");
            return Err(Error::Usage(format!("unknown codec `{wanted}`; there are {names}")));
        }
    }
    Ok(all)
}
