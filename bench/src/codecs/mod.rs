//! Size and speed of the integer codecs, by kernel.
//!
//! 1. `data` generates lists or reads them from an index, one [`ListGroup`] at a time: the lists of one
//!    dataset and length class.
//! 2. Each [`Contender`] that encodes values of the group's kind encodes the group, and its round trip is
//!    checked.
//! 3. `measure` times the contenders in turn, round after round, and keeps the medians.
//! 4. [`CodecResults`] are the sums: a table, rows of JSON, a report and a plot.
//!
//! The experiment does not depend on the formats of the codecs. A program with further contenders passes
//! them as [`Peer`]s.

mod bit_packing;
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
mod plot;
mod report;
mod results;
mod rows;
mod synthetic;
mod turbopfor;
mod turbovbyte;
mod vbyte_masks;

pub use buffers::{Buffers, EncodedWord};
pub use contender::{Contender, EncodedGroup, Peer};
pub use flags::Flags;
pub use list_group::{ListGroup, ValueKind};
pub use own::OwnCodec;
pub use report::ReportSection;
pub use results::CodecResults;
pub use rows::{CodecRow, CodecRows};

use crate::{Error, Result, output_dir, status};
use data::DataPlan;
use masked_vbyte::MaskedVbyte;
use own::{MEMCPY, Memcpy};
use tierdex::StopSignal;
use turbopfor::TurboPfor;
use turbovbyte::TurboVbyte;

/// Runs the experiment with this crate's contenders and `peers`.
///
/// # Errors
/// If the flags name an unknown codec or kernel, if a round trip differs, or if the index or the output
/// directory cannot be used; [`Error::Interrupted`] if `stop` is raised.
pub fn run(flags: &Flags, peers: Vec<Box<dyn Peer>>, stop: &StopSignal) -> Result<CodecResults> {
    let contenders = select_contenders(flags, peers)?;
    let plan = DataPlan::new(flags, stop)?;
    if let Some(dir) = &flags.out {
        output_dir::create(dir)?;
    }
    let mut buffers = Buffers::new();
    let mut rows = CodecRows::default();
    let selected = |kind| contenders.iter().any(|one| one.takes(kind) && one.codec() != MEMCPY);
    plan.for_each_group(selected, &mut |group| {
        let class = group.k.map(|k| format!("K={k}")).unwrap_or_default();
        status::show_status(&format!("{} {class}", group.dataset));
        rows.add(measure::measure_group(group, &contenders, plan.scale.rounds, &mut buffers, stop)?);
        Ok(())
    })?;
    status::show_status("");
    Ok(CodecResults::new(flags, &plan, rows))
}

/// `memcpy`, then the selected codecs with the selected kernels, those of papers, and the selected peers.
fn select_contenders(flags: &Flags, peers: Vec<Box<dyn Peer>>) -> Result<Vec<Box<dyn Peer>>> {
    let mut all: Vec<Box<dyn Peer>> = Vec::new();
    for kernel in flags.kernels()? {
        all.extend(OwnCodec::all(kernel).map(|codec| Box::new(codec) as Box<dyn Peer>));
    }
    all.extend(codecs_of_papers());
    all.extend(peers);
    check_codec_names(flags, &all)?;
    all.retain(|contender| flags.selects(&contender.codec()));
    all.insert(0, Box::new(Memcpy));
    Ok(all)
}

/// Formats of the papers that are not part of the engine.
fn codecs_of_papers() -> Vec<Box<dyn Peer>> {
    let mut all: Vec<Box<dyn Peer>> = Vec::new();
    all.extend(MaskedVbyte::all().into_iter().map(|codec| Box::new(codec) as Box<dyn Peer>));
    all.extend([true, false].map(|delta| Box::new(TurboVbyte { delta }) as Box<dyn Peer>));
    all.extend([true, false].map(|delta| Box::new(TurboPfor { delta }) as Box<dyn Peer>));
    all
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
