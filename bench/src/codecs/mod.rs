//! Size and speed of the integer codecs, by kernel.
//!
//! 1. `data` generates lists or reads them from an index, one [`ListGroup`] at a time: the lists of one
//!    dataset and length class.
//! 2. Each [`Contender`] that encodes values of the group's kind encodes the group, and its round trip is
//!    checked.
//! 3. `measure` times the contenders in turn, round after round, and keeps the medians.
//! 4. [`CodecRows`] are the measurements and their sums over the lists of a dataset, as JSON.
//!
//! The experiment does not depend on the formats of the codecs. A program with further contenders passes
//! them as [`Peer`]s.

mod buffers;
mod contender;
mod data;
mod encoded;
mod flags;
mod index_lists;
mod list_group;
mod masked_vbyte;
#[cfg(target_arch = "x86_64")]
mod masked_vbyte_sse;
mod measure;
mod own;
mod rows;
mod synthetic;
mod vbyte_masks;

pub use buffers::{Buffers, EncodedWord};
pub use contender::{Contender, EncodedGroup, Peer};
pub use flags::Flags;
pub use list_group::{ListGroup, ValueKind};
pub use own::OwnCodec;
pub use rows::{CodecRow, CodecRows};

use crate::{Error, Result};
use data::DataPlan;
use masked_vbyte::MaskedVbyte;
use own::Memcpy;
use tierdex::StopSignal;

/// Runs the experiment with this crate's contenders and `peers`.
///
/// # Errors
/// If the flags name an unknown codec or kernel, if a round trip differs, or if the index cannot be used;
/// [`Error::Interrupted`] if `stop` is raised.
pub fn run(flags: &Flags, peers: Vec<Box<dyn Peer>>, stop: &StopSignal) -> Result<CodecRows> {
    let contenders = select_contenders(flags, peers)?;
    let plan = DataPlan::new(flags, stop)?;
    let mut buffers = Buffers::new();
    let mut rows = CodecRows::default();
    let selected = |kind| contenders.iter().any(|one| one.takes(kind));
    plan.for_each_group(selected, &mut |group| {
        rows.add(measure::measure_group(group, &contenders, plan.scale.rounds, &mut buffers, stop)?);
        Ok(())
    })?;
    Ok(rows)
}

/// The selected ones of `memcpy`, the codecs with the selected kernels, Masked VByte, and the peers.
fn select_contenders(flags: &Flags, peers: Vec<Box<dyn Peer>>) -> Result<Vec<Box<dyn Peer>>> {
    let mut all: Vec<Box<dyn Peer>> = vec![Box::new(Memcpy)];
    for kernel in flags.kernels()? {
        all.extend(OwnCodec::all(kernel).map(|codec| Box::new(codec) as Box<dyn Peer>));
    }
    all.extend(MaskedVbyte::all().into_iter().map(|codec| Box::new(codec) as Box<dyn Peer>));
    all.extend(peers);
    check_codec_names(flags, &all)?;
    all.retain(|contender| flags.selects(&contender.codec()));
    Ok(all)
}

/// Checks that all codecs that the flags name exist.
fn check_codec_names(flags: &Flags, all: &[Box<dyn Peer>]) -> Result<()> {
    let mut names: Vec<String> = Vec::new();
    for name in all.iter().map(|contender| contender.codec()) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    match flags.codec.iter().find(|name| !names.contains(name)) {
        Some(wrong) => Err(Error::Usage(format!("unknown codec `{wrong}`; there are {}", names.join(", ")))),
        None => Ok(()),
    }
}
