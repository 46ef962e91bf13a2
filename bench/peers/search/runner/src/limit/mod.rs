//! Measures engines under a memory limit: each engine reads its index from files, after the page cache was
//! dropped.
//!
//! 1. [`LimitContender`]s are the engines, the peers as they come and with advice to read nothing ahead;
//! 2. each is tried: it answers the first queries of each set, which are compared; a Lucene that does not
//!    live in the limit gets as much beyond its own memory, and is marked;
//! 3. rounds: for each set and command the contenders take turns, another one first each time. A batch has a
//!    process and a control group of its own, and is the first that it reads of the index, but for Lucene,
//!    whose virtual machine warms up by the same batch; then what it has mapped is taken from it again;
//! 4. [`LimitRow`]s are medians.
//!
//! Only one engine runs at a time. [`machine`] changes the state of the machine.

mod contender;
mod machine;
mod rows;

pub use contender::{LimitContender, cache_flags};
pub use machine::run_child;
pub use rows::{LimitCell, LimitRow};

use crate::check::{Check, Sample, compare_all};
use crate::engine::{Engine, Kind};
use crate::sets::{self, Set};
use crate::tools::{self, say};
use crate::{flags::Flags, server::Server};
use machine::{ReadAhead, drop_pages};
use rows::LimitedBatch;
use std::path::PathBuf;
use tierdex_bench::cgroup::{Cgroup, CgroupParent};
use tierdex_bench::{Error, Result};

/// Memory limit in bytes while the memory of the process itself is measured.
const AMPLE: u64 = 4 << 30;

/// The results under a memory limit.
pub struct Limited {
    /// Who took part, with its limit.
    pub contenders: Vec<LimitContender>,
    /// Kilobytes that the device read ahead; none if it does not say.
    pub read_ahead_kb: Option<u64>,
    /// How answers agree.
    pub checks: Vec<Check>,
    /// Speeds.
    pub rows: Vec<LimitRow>,
    /// Failures, one line each.
    pub notes: Vec<String>,
}

/// A set and a command, with their measurements.
struct LimitCase<'a> {
    set: &'a Set,
    command: String,
    file: PathBuf,
    /// Per contender, per round.
    measured: Vec<Vec<LimitedBatch>>,
}

/// Measures all commands on all sets with `limit` bytes.
///
/// # Errors
/// If the machine does not permit limits, tierdex does not live in them, or a batch cannot be written.
pub fn run(flags: &Flags, limit: u64, engines: &[Engine], sets: &[Set]) -> Result<Limited> {
    let parent = CgroupParent::memory().and_then(|parent| parent.create_limited(limit).map(|_| parent));
    let parent = parent.map_err(|error| Error::Failed(format!("--limit is not possible: {error}")))?;
    let read_ahead = ReadAhead::of(&flags.work, flags.read_ahead_kb)?;
    let mut runner = Runner { flags, limit, parent, notes: Vec::new() };
    let mut cases = Vec::new();
    for set in sets {
        for command in flags.commands_of(set.recipe) {
            cases.push(LimitCase::new(flags, set, command)?);
        }
    }
    let (mut contenders, mut samples) = (Vec::new(), Vec::new());
    for mut contender in LimitContender::all(engines) {
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

impl<'a> LimitCase<'a> {
    fn new(flags: &Flags, set: &'a Set, command: String) -> Result<LimitCase<'a>> {
        let file = sets::folder(flags).join(format!("{}-{command}.batch", set.name));
        let lines: String = set.queries.iter().map(|query| format!("{command}\t{query}\n")).collect();
        tools::write(&file, &lines)?;
        Ok(LimitCase { set, command, file, measured: Vec::new() })
    }

    fn row(&self, contenders: &[LimitContender]) -> LimitRow {
        let cells = contenders.iter().zip(&self.measured);
        LimitRow {
            set: self.set.name.clone(),
            command: self.command.clone(),
            cells: cells.filter_map(|(contender, measured)| LimitCell::of(contender, measured)).collect(),
        }
    }
}

/// Runs contenders in control groups.
struct Runner<'a> {
    flags: &'a Flags,
    limit: u64,
    parent: CgroupParent,
    notes: Vec<String>,
}

/// The process of an engine, and the control group that limits its memory. Fields are dropped in this order:
/// the process ends before its group is removed.
struct Running {
    server: Server,
    group: Cgroup,
}

impl Runner<'_> {
    /// Determines the limit of a contender and runs the first queries of each set; `None` if the contender
    /// fails.
    fn admit(
        &mut self,
        contender: &mut LimitContender,
        sets: &[Set],
        cases: &[LimitCase<'_>],
    ) -> Result<Option<Sample>> {
        say(&format!("trying {}", contender.name));
        contender.limit = self.limit;
        let beyond = self.flags.beyond_own;
        // A Java virtual machine without enough memory is not killed at once; it pages its code in and out
        // for minutes.
        let own = (beyond || contender.kind == Kind::Lucene).then(|| self.own(contender, sets, cases));
        if let Some(own) = own.transpose()?.filter(|own| beyond || *own >= self.limit) {
            contender.own = Some(own);
            contender.limit = own + if contender.kind == Kind::Tierdex { self.spare() } else { self.limit };
            if !beyond {
                let (name, limit) = (&contender.name, self.limit);
                self.note(format!(
                    "{name} does not run in {limit} bytes, because it needs {own} without its index; its limit is their sum"
                ));
            }
        }
        match self.sample(contender, sets) {
            Ok(sample) => Ok(Some(sample)),
            Err(error) if contender.kind == Kind::Tierdex => Err(error),
            Err(error) => {
                self.note(format!("{} does not run in {} bytes: {error}", contender.name, contender.limit));
                Ok(None)
            }
        }
    }

    /// Bytes of the limit for pages that tierdex reads through the page cache.
    fn spare(&self) -> u64 {
        contender::spare(self.flags, self.limit)
    }

    fn note(&mut self, line: String) {
        say(&line);
        self.notes.push(line);
    }

    fn sample(&self, contender: &LimitContender, sets: &[Set]) -> Result<Sample> {
        let mut running = self.start(contender, "COUNT")?;
        Sample::take(sets, &mut running.server).map_err(|error| running.died(&error))
    }

    /// Memory of the process without page cache after all queries; for tierdex with its postings cache.
    fn own(&self, contender: &LimitContender, sets: &[Set], cases: &[LimitCase<'_>]) -> Result<u64> {
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

    /// Starts a process with no page of its index in memory. What must be paged in of its program is in its
    /// group as well.
    fn start(&self, contender: &LimitContender, command: &str) -> Result<Running> {
        let dir = contender.dir(self.flags);
        drop_pages(&dir)?;
        if !self.flags.beyond_own {
            drop_pages(&contender.program)?;
        }
        let group = self.parent.create_limited(contender.limit)?;
        let words = machine::joining(&group, contender.words(self.flags, self.limit, command))?;
        match Server::spawn(self.flags, contender.kind, &contender.name, &words) {
            Ok(server) => Ok(Running { server, group }),
            Err(error) => Err(why(&group, &error)),
        }
    }

    /// Measures one batch; `None` and a note if the contender fails.
    fn measure(&mut self, contender: &LimitContender, case: &LimitCase<'_>) -> Result<Option<LimitedBatch>> {
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

    fn batch(
        &self,
        contender: &LimitContender,
        case: &LimitCase<'_>,
        running: &mut Running,
    ) -> Result<LimitedBatch> {
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
        Ok(LimitedBatch { batch, fetched, peak, own })
    }
}

impl Running {
    /// The error, or that the process was killed for lack of memory.
    fn died(&self, error: &Error) -> Error {
        why(&self.group, error)
    }
}

fn why(group: &Cgroup, error: &Error) -> Error {
    match group.oom_kills() {
        Some(1..) => Error::Failed("was killed: out of memory".to_string()),
        _ => Error::Failed(error.to_string()),
    }
}
