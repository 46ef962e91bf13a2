//! The runner: one process a cell, in a group of its own, one behind another.
//!
//! 1. Queries are drawn and every cell's memory is added up, before anything of the machine is changed;
//! 2. huge pages are set apart for the largest cell, and groups made for devices that are emulated;
//! 3. each round runs each cell: the page cache is dropped, a group made, a process started, told, awaited;
//! 4. what was changed goes back, however it ended.

use super::cell::{Cell, Contender};
use super::flags::Flags;
use super::machine::{HUGE_PAGE, HugePages, Slow, drop_page_cache};
use super::measured::Measured;
use super::process;
use super::queries::{Queries, Terms, Workload};
use super::rows::Row;
use super::task::Task;
use crate::group::{Group, Parent};
use crate::{Error, Result};
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use tierdex::engine::{Executor, Mode};
use tierdex::index::{Index, Stop};
use tierdex::io::{PosixDisk, RegionKind};

/// Where a cell runs.
#[derive(Clone, Debug)]
pub enum Start {
    /// In a process of this program with these arguments, which gives its input and output to [`super::run_cell`].
    Program(PathBuf, Vec<String>),
    /// In this process: without groups, and the worse for its memory.
    Here,
}

/// All that is known before anything is measured.
pub(super) struct Plan {
    pub(super) index: Facts,
    pub(super) workloads: Vec<(Workload, Queries)>,
    field: usize,
    cells: Vec<(Cell, Needs)>,
}

/// What the report says of the index.
pub(super) struct Facts {
    pub(super) documents: u64,
    pub(super) postings_bytes: u64,
    pub(super) field: String,
}

/// Memory of a cell.
#[derive(Clone, Copy, Debug, Default)]
struct Needs {
    /// Its group's limit; none for no limit.
    limit: Option<u64>,
    huge_pages: u64,
}

impl Plan {
    /// Draws queries, and adds memory up.
    ///
    /// # Errors
    /// If the index cannot be read, or has no such terms.
    pub(super) fn new(flags: &Flags) -> Result<Plan> {
        let index = Index::open_on(Arc::new(PosixDisk::open(&flags.index)?))?;
        let terms = Terms::read(&index, &flags.classes)?;
        let draw = |workload| Ok((workload, terms.draw(workload, flags.count, flags.seed)?));
        let workloads: Vec<_> = Workload::all(flags).into_iter().map(draw).collect::<Result<_>>()?;
        let cells = Cell::all(flags).into_iter().map(|cell| {
            let queries = &queries_of(&workloads, cell.workload);
            let needs = needs(flags, &index, &Task::new(flags, &cell, terms.field, queries));
            (cell, needs)
        });
        let facts = Facts {
            documents: index.documents(),
            postings_bytes: index.postings_bytes(),
            field: index.schema().fields[terms.field].name.clone(),
        };
        Ok(Plan { cells: cells.collect(), index: facts, field: terms.field, workloads })
    }

    fn task(&self, flags: &Flags, cell: &Cell) -> Task {
        Task::new(flags, cell, self.field, queries_of(&self.workloads, cell.workload))
    }

    fn huge_pages(&self) -> u64 {
        self.cells.iter().map(|(_, needs)| needs.huge_pages).max().unwrap_or(0)
    }
}

fn queries_of(workloads: &[(Workload, Queries)], workload: Workload) -> &Queries {
    let found = workloads.iter().find(|(there, _)| *there == workload);
    &found.expect("every cell has a workload of the flags").1
}

/// What a cell may and must have.
fn needs(flags: &Flags, index: &Index, task: &Task) -> Needs {
    let (Some(options), Contender::Near(mode)) = (task.executor(), task.contender) else {
        return Needs::default();
    };
    let report = Executor::memory_report(index, &options).rows;
    let huge = RegionKind::Hugetlb.to_string();
    let regions = || report.iter().filter_map(|row| Some((row.region.as_deref()?, row.bytes)));
    let huge_pages =
        regions().filter(|(region, _)| *region == huge).map(|(_, bytes)| bytes.div_ceil(HUGE_PAGE));
    // Huge pages and persistent memory are not charged to a group.
    let charged = |region: &str| region != huge && !region.starts_with("dax:");
    let beside: u64 = regions().filter(|(region, _)| charged(region)).map(|(_, bytes)| bytes).sum();
    let pages = match mode {
        Mode::Base | Mode::BasePrefetch => task.size.of(index.postings_bytes()),
        Mode::Hybrid | Mode::HybridPrefetch | Mode::Direct => 0,
    };
    let slack = (u128::from(flags.dram) * u128::from(flags.slack) / 100) as u64;
    Needs { limit: Some(flags.dram + slack + beside + pages), huge_pages: huge_pages.sum() }
}

/// Measures all cells, and calls `tell` with each row. Returns false if `stop` was raised meanwhile.
///
/// # Errors
/// If the machine does not permit what is needed, or `tell` fails. A process that dies is a row.
pub(super) fn run(
    (flags, plan): (&Flags, &Plan),
    start: &Start,
    stop: &Stop,
    tell: &mut dyn FnMut(Row) -> Result<()>,
) -> Result<bool> {
    let parent = match (flags.no_group, start) {
        (true, _) => None,
        (false, Start::Program(..)) => Some(Parent::memory().map_err(without_limit)?),
        (false, Start::Here) => {
            return Err(Error::Usage(
                "a cell in this process has no group of its own; take --no-group".to_string(),
            ));
        }
    };
    // What is not permitted shows before the first cell.
    parent.as_ref().map(|parent| parent.limited(flags.dram)).transpose().map_err(without_limit)?;
    if !flags.keep_caches {
        drop_page_cache()?;
    }
    let slow = Slow::new(&flags.devices, &flags.index)?;
    let _pages = HugePages::reserve(plan.huge_pages())?;
    for round in 1..=flags.rounds {
        for (cell, needs) in &plan.cells {
            if stop.check().is_err() {
                return Ok(false);
            }
            if !flags.keep_caches {
                drop_page_cache()?;
            }
            let limit = needs.limit.filter(|_| parent.is_some());
            let group =
                parent.as_ref().zip(limit).map(|(parent, limit)| parent.limited(limit)).transpose()?;
            let mut task = plan.task(flags, cell);
            task.join.extend(group.as_ref().map(Group::procs));
            task.join.extend(slow.procs(cell.device));
            task.stat = group.as_ref().map(Group::stat);
            let end = match start {
                Start::Program(program, arguments) => {
                    child((program, arguments), &task, group.as_ref(), stop)?
                }
                Start::Here => process::run(&task).map_err(|error| line(&error.to_string())),
            };
            if stop.check().is_err() {
                return Ok(false);
            }
            let (peak, limit_met) =
                group.as_ref().map_or((None, None), |group| (group.peak(), group.limit_met()));
            tell(Row { cell: *cell, round, limit, peak, limit_met, end })?;
        }
    }
    Ok(true)
}

/// Says what can be done where there can be no group.
fn without_limit(error: Error) -> Error {
    Error::Failed(format!("{error}; take --no-group to do without a limit"))
}

/// Runs a cell in a process of its own; the inner result is what it found, or how it died.
fn child(
    (program, arguments): (&PathBuf, &[String]),
    task: &Task,
    group: Option<&Group>,
    stop: &Stop,
) -> Result<std::result::Result<Measured, String>> {
    let failed = |what: &str, error: std::io::Error| Error::Failed(format!("cannot {what} a cell: {error}"));
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| failed("start", error))?;
    let (input, output, errors) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (status, output, errors) = thread::scope(|scope| {
        let output = thread::Builder::new().spawn_scoped(scope, || read(output))?;
        let errors = thread::Builder::new().spawn_scoped(scope, || read(errors))?;
        if let Some(mut input) = input {
            // A process that has died says so below.
            let _ = input.write_all(task.to_json().to_string().as_bytes());
        }
        let status = wait(&mut child, stop);
        let text = |thread: thread::ScopedJoinHandle<'_, String>| thread.join().unwrap_or_default();
        Ok((status, text(output), text(errors)))
    })
    .map_err(|error| failed("start the threads of", error))?;
    let status = status.map_err(|error| failed("await", error))?;
    if status.success() {
        let value = serde_json::from_str(&output).map_err(|error| Error::Failed(error.to_string()));
        return Ok(value
            .and_then(|value| Measured::from_json(&value))
            .map_err(|error| line(&error.to_string())));
    }
    Ok(Err(death(status, group.and_then(Group::killed), &errors)))
}

/// How often a process is asked whether it has ended.
const ASK_EVERY: Duration = Duration::from_millis(5);

/// Waits for a process; kills it when `stop` is raised.
fn wait(child: &mut Child, stop: &Stop) -> std::io::Result<ExitStatus> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if stop.check().is_err() {
            child.kill()?;
            return child.wait();
        }
        thread::sleep(ASK_EVERY);
    }
}

fn read(stream: Option<impl Read>) -> String {
    let mut text = Vec::new();
    // What could be read of it is all that there is to say.
    let _ = stream.map(|mut stream| stream.read_to_end(&mut text));
    String::from_utf8_lossy(&text).into_owned()
}

/// How a process died.
fn death(status: ExitStatus, killed: Option<u64>, errors: &str) -> String {
    let how = match (status.signal(), status.code()) {
        (Some(_), _) if killed.is_some_and(|killed| killed > 0) => "killed for want of memory".to_string(),
        (Some(signal), _) => format!("killed by signal {signal}"),
        (None, code) => format!("exit code {}", code.unwrap_or(-1)),
    };
    let said = line(errors.trim());
    if said.is_empty() { how } else { format!("{how}: {said}") }
}

/// One line.
fn line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_death_is_one_line() {
        let status = ExitStatus::from_raw;
        assert_eq!(death(status(9), Some(1), ""), "killed for want of memory");
        assert_eq!(death(status(9), Some(0), ""), "killed by signal 9");
        assert_eq!(
            death(status(1 << 8), None, "tierdex: no\n  such thing\n"),
            "exit code 1: tierdex: no such thing"
        );
    }
}
