//! Queries under a limit of memory: each engine reads its index from files, with the page cache dropped.
//!
//! 1. [`Contender`]s are the engines, the peers as they come and with advice to read nothing ahead;
//! 2. each is tried: it answers the first queries of each set, which are compared; a Lucene that does not live in the limit
//!    gets as much beyond its own memory, and is marked;
//! 3. rounds: for each set and command the contenders take turns, another one first each time. A batch has a process and a
//!    control group of its own, and is the first that it reads of the index, but for Lucene, whose virtual machine
//!    warms up by the same batch; then what it has mapped is taken from it again;
//! 4. [`Row`]s are medians.
//!
//! There is one engine in memory at a time. [`machine`] is what is changed of the machine.

mod contender;
mod machine;
mod rows;

pub use contender::{Contender, near};
pub use machine::run_child;
pub use rows::{Cell, Row};

use crate::check::{Check, Sample, compare_all};
use crate::engine::{Engine, Kind};
use crate::flags::Flags;
use crate::server::Server;
use crate::sets::{self, Set};
use crate::tools::{self, say};
use machine::{ReadAhead, drop_pages};
use rows::Measured;
use std::path::PathBuf;
use tierdex_bench::group::{Group, Parent};
use tierdex_bench::{Error, Result};

/// A limit for those whose own memory is to be found out.
const AMPLE: u64 = 4 << 30;

/// What was found under a limit.
pub struct Limited {
    /// Who took part, with its limit.
    pub contenders: Vec<Contender>,
    /// Kilobytes that the device read ahead; none if it does not say.
    pub read_ahead_kb: Option<u64>,
    /// How answers agree.
    pub checks: Vec<Check>,
    /// Speeds.
    pub rows: Vec<Row>,
    /// What did not go as it should, one line each.
    pub notes: Vec<String>,
}

/// A set and a command, with what was measured.
struct Case<'a> {
    set: &'a Set,
    command: String,
    file: PathBuf,
    /// A contender each, a round each.
    measured: Vec<Vec<Measured>>,
}

/// Measures all commands on all sets with `limit` bytes.
///
/// # Errors
/// If the machine does not permit limits, tierdex does not live in them, or a batch cannot be written.
pub fn run(flags: &Flags, limit: u64, engines: &[Engine], sets: &[Set]) -> Result<Limited> {
    let parent = Parent::memory().and_then(|parent| parent.limited(limit).map(|_| parent));
    let parent = parent.map_err(|error| Error::Failed(format!("--limit is not to be had: {error}")))?;
    let read_ahead = ReadAhead::of(&flags.work, flags.read_ahead_kb)?;
    let mut runner = Runner { flags, limit, parent, notes: Vec::new() };
    let mut cases = Vec::new();
    for set in sets {
        for command in flags.commands() {
            cases.push(Case::new(flags, set, command)?);
        }
    }
    let (mut contenders, mut samples) = (Vec::new(), Vec::new());
    for mut contender in Contender::all(engines) {
        if let Some(sample) = runner.admit(&mut contender, sets, &cases)? {
            samples.push(sample);
            contenders.push(contender);
        }
    }
    let checks = compare_all(sets, &samples);
    for round in 0..flags.rounds() {
        say(&format!("measuring, round {} of {}", round + 1, flags.rounds()));
        for case in &mut cases {
            case.measured.resize_with(contenders.len(), Vec::new);
            for step in 0..contenders.len() {
                let place = (round + step) % contenders.len();
                let measured = runner.measure(&contenders[place], case)?;
                case.measured[place].extend(measured);
            }
        }
    }
    let rows = cases.iter().map(|case| case.row(&contenders)).collect();
    Ok(Limited { contenders, read_ahead_kb: read_ahead.now(), checks, rows, notes: runner.notes })
}

impl<'a> Case<'a> {
    fn new(flags: &Flags, set: &'a Set, command: String) -> Result<Case<'a>> {
        let file = sets::folder(flags).join(format!("{}-{command}.batch", set.name));
        let lines: String = set.queries.iter().map(|query| format!("{command}\t{query}\n")).collect();
        tools::write(&file, &lines)?;
        Ok(Case { set, command, file, measured: Vec::new() })
    }

    fn row(&self, contenders: &[Contender]) -> Row {
        let cells = contenders.iter().zip(&self.measured);
        Row {
            set: self.set.name.clone(),
            command: self.command.clone(),
            cells: cells.filter_map(|(contender, measured)| Cell::of(contender, measured)).collect(),
        }
    }
}

/// What runs contenders.
struct Runner<'a> {
    flags: &'a Flags,
    limit: u64,
    parent: Parent,
    notes: Vec<String>,
}

/// A contender's process in its group. The process ends first.
struct Running {
    server: Server,
    group: Group,
}

impl Runner<'_> {
    /// Finds the contender's limit, and lets it answer the first queries; none if it does not live.
    fn admit(
        &mut self,
        contender: &mut Contender,
        sets: &[Set],
        cases: &[Case<'_>],
    ) -> Result<Option<Sample>> {
        say(&format!("trying {}", contender.name));
        contender.limit = self.limit;
        let beyond = self.flags.beyond_own;
        // A virtual machine short of memory is not killed at once: it pages its program in and out for minutes.
        let own = (beyond || contender.kind == Kind::Lucene).then(|| self.own(contender, sets, cases));
        if let Some(own) = own.transpose()?.filter(|own| beyond || *own >= self.limit) {
            contender.own = Some(own);
            contender.limit = own + if contender.kind == Kind::Tierdex { self.spare() } else { self.limit };
            if !beyond {
                let (name, limit) = (&contender.name, self.limit);
                self.note(format!(
                    "{name} does not live in {limit} bytes, for it takes {own} of its own; it has as much beyond them"
                ));
            }
        }
        match self.sample(contender, sets) {
            Ok(sample) => Ok(Some(sample)),
            Err(error) if contender.kind == Kind::Tierdex => Err(error),
            Err(error) => {
                self.note(format!("{} does not live in {} bytes: {error}", contender.name, contender.limit));
                Ok(None)
            }
        }
    }

    /// Bytes of the limit that are for pages which tierdex reads through the page cache.
    fn spare(&self) -> u64 {
        contender::spare(self.flags, self.limit)
    }

    fn note(&mut self, line: String) {
        say(&line);
        self.notes.push(line);
    }

    fn sample(&self, contender: &Contender, sets: &[Set]) -> Result<Sample> {
        let mut running = self.start(contender, "COUNT")?;
        Sample::take(sets, &mut running.server).map_err(|error| running.died(&error))
    }

    /// Memory that is no page cache, when it has answered everything; of tierdex with its cache of postings.
    fn own(&self, contender: &Contender, sets: &[Set], cases: &[Case<'_>]) -> Result<u64> {
        let mut ample = contender.clone();
        ample.limit = AMPLE;
        let mut running = self.start(&ample, "TOP_COUNT")?;
        Sample::take(sets, &mut running.server)?;
        for case in cases {
            for _ in 0..self.flags.warm() {
                running.server.batch(&case.file, 1)?;
            }
        }
        let own = running.group.own();
        own.ok_or_else(|| Error::Failed("the control group does not say how much memory it has".to_string()))
    }

    /// Starts a process with no page of its index in memory. What must be paged in of its program is in its group as well.
    fn start(&self, contender: &Contender, command: &str) -> Result<Running> {
        let dir = contender.dir(self.flags);
        drop_pages(&dir)?;
        if !self.flags.beyond_own {
            drop_pages(&contender.program)?;
        }
        let group = self.parent.limited(contender.limit)?;
        let words = machine::joining(&group, contender.words(self.flags, self.limit, command))?;
        match Server::spawn(self.flags, contender.kind, &contender.name, &words) {
            Ok(server) => Ok(Running { server, group }),
            Err(error) => Err(why(&group, &error)),
        }
    }

    /// One batch; none, and a note, if the contender ends on the way.
    fn measure(&mut self, contender: &Contender, case: &Case<'_>) -> Result<Option<Measured>> {
        let measured = self.start(contender, &case.command).and_then(|mut running| {
            let done = self.batch(contender, case, &mut running);
            done.map_err(|error| running.died(&error))
        });
        match measured {
            Ok(measured) => Ok(Some(measured)),
            Err(error) if contender.kind == Kind::Tierdex => Err(error),
            Err(error) => {
                self.note(format!("{} {}: {} {error}", case.set.name, case.command, contender.name));
                Ok(None)
            }
        }
    }

    fn batch(&self, contender: &Contender, case: &Case<'_>, running: &mut Running) -> Result<Measured> {
        if contender.kind == Kind::Lucene {
            for _ in 0..self.flags.warm() {
                running.server.batch(&case.file, 1)?;
            }
        }
        running.group.reclaim();
        drop_pages(&contender.dir(self.flags))?;
        let before = running.server.fetched();
        let batch = running.server.batch(&case.file, 1)?;
        let fetched = running.server.fetched().zip(before).map(|(now, before)| now - before);
        let (peak, own) = (running.group.peak(), running.group.own());
        Ok(Measured { batch, fetched, peak, own })
    }
}

impl Running {
    /// What a failure was if the system killed the process.
    fn died(&self, error: &Error) -> Error {
        why(&self.group, error)
    }
}

fn why(group: &Group, error: &Error) -> Error {
    match group.killed() {
        Some(1..) => Error::Failed("was killed for want of memory".to_string()),
        _ => Error::Failed(error.to_string()),
    }
}
