//! Starts the process of a cell, and reads its measurement.

use crate::{Error, Result, cell::Cell, cell::measure, cell::measurement::CellMeasurement, cgroup::Cgroup};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::{io::Read, io::Write, os::unix::process::ExitStatusExt, path::PathBuf, thread, time::Duration};
use tierdex::StopSignal;

/// Where a cell runs.
#[derive(Clone, Debug)]
pub enum Launch {
    /// In a process of its own: the path and the arguments of a program that reads a cell from its standard
    /// input and prints its measurement, as `tierdex-bench cell` does.
    Process(PathBuf, Vec<String>),
    /// In this process, for tests: no control group, and memory of earlier cells is not returned.
    InProcess,
}

impl Launch {
    /// Measures a cell; `group` is its control group, if it has one. The inner result is the measurement, or
    /// why the process failed.
    ///
    /// # Errors
    /// If the process cannot be started.
    pub(crate) fn measure(
        &self,
        cell: &Cell,
        group: Option<&Cgroup>,
        stop: &StopSignal,
    ) -> Result<std::result::Result<CellMeasurement, String>> {
        match self {
            Launch::Process(program, arguments) => {
                let text = serde_json::to_string(cell).map_err(|error| Error::Failed(error.to_string()))?;
                run_process(program, arguments, &text, group, stop)
            }
            Launch::InProcess => {
                Ok(measure::measure_cell(cell).map_err(|error| one_line(&error.to_string())))
            }
        }
    }
}

/// Runs a cell in a process of its own. The inner result is the measurement, or why the process failed.
fn run_process(
    program: &PathBuf,
    arguments: &[String],
    cell: &str,
    group: Option<&Cgroup>,
    stop: &StopSignal,
) -> Result<std::result::Result<CellMeasurement, String>> {
    let failed = |what: &str| Error::failed::<std::io::Error>(format!("cannot {what} a cell"));
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(failed("start"))?;
    let (input, output, errors) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (status, output, errors) = thread::scope(|scope| {
        let output = thread::Builder::new().spawn_scoped(scope, || read_stream(output))?;
        let errors = thread::Builder::new().spawn_scoped(scope, || read_stream(errors))?;
        if let Some(mut input) = input {
            // If the process has died, its exit status is reported below.
            let _ = input.write_all(cell.as_bytes());
        }
        let status = wait_or_kill(&mut child, stop);
        let text = |thread: thread::ScopedJoinHandle<'_, String>| thread.join().unwrap_or_default();
        Ok((status, text(output), text(errors)))
    })
    .map_err(failed("start the threads of"))?;
    let status = status.map_err(failed("await"))?;
    if status.success() {
        return Ok(serde_json::from_str(&output).map_err(|error| one_line(&error.to_string())));
    }
    Ok(Err(failure_text(status, group.and_then(Cgroup::oom_kills), &errors)))
}

/// Pause between two checks whether the process has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Waits for a process; kills it when `stop` is raised.
fn wait_or_kill(child: &mut Child, stop: &StopSignal) -> std::io::Result<ExitStatus> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if stop.check().is_err() {
            child.kill()?;
            return child.wait();
        }
        thread::sleep(POLL_INTERVAL);
    }
}

fn read_stream(stream: Option<impl Read>) -> String {
    let mut text = Vec::new();
    // After a read error, the text so far is used.
    let _ = stream.map(|mut stream| stream.read_to_end(&mut text));
    String::from_utf8_lossy(&text).into_owned()
}

/// Why a process failed, in one line.
fn failure_text(status: ExitStatus, oom_kills: Option<u64>, errors: &str) -> String {
    let how = match (status.signal(), status.code()) {
        (Some(_), _) if oom_kills.is_some_and(|kills| kills > 0) => "killed: out of memory".to_string(),
        (Some(signal), _) => format!("killed by signal {signal}"),
        (None, code) => format!("exit code {}", code.unwrap_or(-1)),
    };
    let said = one_line(errors.trim());
    if said.is_empty() { how } else { format!("{how}: {said}") }
}

/// A text with a space in place of each line break and each sequence of spaces.
pub(crate) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_one_line() {
        let status = ExitStatus::from_raw;
        assert_eq!(failure_text(status(9), Some(1), ""), "killed: out of memory");
        assert_eq!(failure_text(status(9), Some(0), ""), "killed by signal 9");
        assert_eq!(
            failure_text(status(1 << 8), None, "tierdex: no\n  such thing\n"),
            "exit code 1: tierdex: no such thing"
        );
    }
}
