//! Resources of a program: CPU time and peak memory.
//!
//! The kernel reports the summed times and the largest peak memory of all children of a process. To measure
//! one child, this program starts itself again with [`MEASURE`] and the program to run, so that this process
//! has a single child.

use crate::tools;
use nix::sys::resource::{UsageWho, getrusage};
use std::{ffi::OsString, time::Instant};
use std::process::{Command, ExitCode};
use tierdex_bench::{Error, Result};

/// The argument that makes this program run another and print its resources.
const MEASURE: &str = "measure-child";

/// Resources that a program used.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usage {
    /// CPU seconds of all threads, user and system.
    pub cpu_s: f64,
    /// Wall-clock seconds.
    pub wall_s: f64,
    /// Peak resident memory in bytes.
    pub peak_bytes: u64,
}

impl Usage {
    /// Runs a program to its end.
    ///
    /// # Errors
    /// If it cannot be started or fails.
    pub fn of(words: &[OsString]) -> Result<Usage> {
        let here = std::env::current_exe()
            .map_err(|error| Error::Failed(format!("cannot find this program: {error}")))?;
        let said = tools::output(Command::new(here).arg(MEASURE).args(words)).map_err(Error::Failed)?;
        let line = said.lines().last().unwrap_or_default();
        parse(line).ok_or_else(|| Error::Failed(format!("cannot parse the resource usage `{line}`")))
    }
}

impl std::ops::Add for Usage {
    type Output = Usage;

    /// Resources of two programs run one after the other.
    fn add(self, other: Usage) -> Usage {
        Usage {
            cpu_s: self.cpu_s + other.cpu_s,
            wall_s: self.wall_s + other.wall_s,
            peak_bytes: self.peak_bytes.max(other.peak_bytes),
        }
    }
}

/// If this process is started to measure a child, does so and returns the exit code.
pub fn run_child() -> Option<ExitCode> {
    let mut words = std::env::args_os().skip(1);
    if words.next()? != MEASURE {
        return None;
    }
    let words: Vec<OsString> = words.collect();
    let start = Instant::now();
    match tools::command(&words).status() {
        Ok(status) if status.success() => {}
        Ok(status) => {
            eprintln!("{}: {status}", words[0].to_string_lossy());
            return Some(ExitCode::FAILURE);
        }
        Err(error) => {
            eprintln!("cannot run {}: {error}", words[0].to_string_lossy());
            return Some(ExitCode::FAILURE);
        }
    }
    let wall_s = start.elapsed().as_secs_f64();
    let Ok(usage) = getrusage(UsageWho::RUSAGE_CHILDREN) else { return Some(ExitCode::FAILURE) };
    let (user, system) = (usage.user_time(), usage.system_time());
    let cpu_us = (user.tv_sec() + system.tv_sec()) * 1_000_000 + user.tv_usec() + system.tv_usec();
    println!("\n{} {wall_s} {}", cpu_us as f64 / 1e6, usage.max_rss() << 10);
    Some(ExitCode::SUCCESS)
}

/// Parses a line of three numbers: CPU seconds, wall-clock seconds, peak bytes.
pub fn parse(line: &str) -> Option<Usage> {
    let mut words = line.split(' ');
    let mut next = || words.next();
    Some(Usage {
        cpu_s: next()?.parse().ok()?,
        wall_s: next()?.parse().ok()?,
        peak_bytes: next()?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_numbers_make_a_usage() {
        assert_eq!(parse("1.5 2 4096"), Some(Usage { cpu_s: 1.5, wall_s: 2.0, peak_bytes: 4096 }));
        assert_eq!(parse("1.5 2"), None);
    }
}
