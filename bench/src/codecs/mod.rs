//! How small and how fast the integer codecs are, beside one another and by kernel.
//!
//! 1. `data` makes lists or reads them from an index, a [`Group`] at a time: all of one dataset and length class;
//! 2. each [`Contender`] that takes such values encodes the group, and its round trip is checked;
//! 3. `measure` times all of them in turn, round after round, and keeps the medians;
//! 4. [`Results`] are the sums: a table, rows of JSON, a report and a plot.
//!
//! The experiment must not know what a codec does with its bytes. Programs that know more contenders than this
//! crate hand them in as [`Peer`]s.

mod buffers;
mod contender;
mod data;
mod flags;
mod measure;
mod ours;
mod plot;
mod real;
mod report;
mod results;
mod rows;
mod synthetic;

pub use buffers::{Buffers, Word};
pub use contender::{Contender, Peer};
pub use data::{Group, Kind};
pub use flags::Flags;
pub use measure::Cell;
pub use ours::Ours;
pub use results::{Results, Section};
pub use rows::{Row, Rows};

use crate::{Error, Result, folder};
use data::Plan;
use ours::{COPY, Copy};
use std::io::{IsTerminal, Write, stderr};

/// Runs the experiment with this crate's contenders and `peers`.
///
/// # Errors
/// If the flags name what is not there, if a round trip differs, or if the index or the place of the output
/// cannot be used.
pub fn run(flags: &Flags, peers: Vec<Box<dyn Peer>>) -> Result<Results> {
    let contenders = contenders(flags, peers)?;
    let plan = Plan::new(flags)?;
    if let Some(dir) = &flags.out {
        folder::make(dir)?;
    }
    let mut buffers = Buffers::new();
    let mut rows = Rows::default();
    let wanted = |kind| contenders.iter().any(|one| one.takes(kind) && one.codec() != COPY);
    plan.groups(wanted, &mut |group| {
        say(&format!("{} {}", group.dataset, group.k.map(|k| format!("K={k}")).unwrap_or_default()));
        rows.add(measure::group(group, &contenders, plan.rounds(), &mut buffers)?);
        Ok(())
    })?;
    say("");
    Ok(Results::new(flags, &plan, rows))
}

/// Copying, then every codec that was asked for by every kernel that was asked for, then peers.
fn contenders(flags: &Flags, peers: Vec<Box<dyn Peer>>) -> Result<Vec<Box<dyn Peer>>> {
    let mut all: Vec<Box<dyn Peer>> = Vec::new();
    for kernel in flags.kernels()? {
        all.extend(Ours::all(kernel).map(|ours| Box::new(ours) as Box<dyn Peer>));
    }
    all.extend(peers);
    known(flags, &all)?;
    all.retain(|contender| flags.wants(&contender.codec()));
    all.insert(0, Box::new(Copy));
    Ok(all)
}

/// Whether all codecs that the flags name are there.
fn known(flags: &Flags, all: &[Box<dyn Peer>]) -> Result<()> {
    let mut names: Vec<String> = Vec::new();
    for name in all.iter().map(|contender| contender.codec()) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    match flags.codec.iter().find(|name| !names.contains(name)) {
        Some(wrong) => {
            Err(Error::Usage(format!("no codec is called `{wrong}`; there are {}", names.join(", "))))
        }
        None => Ok(()),
    }
}

/// Shows on a terminal what is being measured.
fn say(what: &str) {
    let mut terminal = stderr();
    if terminal.is_terminal() {
        // A terminal that has gone is no reason to stop.
        let _ = write!(terminal, "\r{what:<40}\r").and_then(|()| terminal.flush());
    }
}
