//! Simulation of a process by valgrind's tool callgrind: instructions, and misses of the first and of the
//! last cache. For machines without performance counters.
//!
//! *Input*: a [`Launch`], whose program then runs in valgrind. *Output*: the [`Simulation`], from the file
//! that callgrind writes.
//!
//! Callgrind counts the events of one function, [`COLLECTED_FUNCTION`], and of all functions that it calls,
//! in the thread that calls it; the caches are simulated from the start of the process. The function is the
//! first repetition of the queries, because in the second one the few lists of a simulated cell would be in
//! the last cache.

use crate::{Error, Result, cell::Launch};
use std::{fs, io::ErrorKind, path::Path, process::Command};
use tierdex::codec::Kernel;

/// Counts of simulated events while [`COLLECTED_FUNCTION`] ran.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Simulation {
    /// Instructions.
    pub(crate) instructions: u64,
    /// Misses of the first data cache, by reads and writes.
    pub(crate) l1_misses: u64,
    /// Misses of the last cache, by instructions and data.
    pub(crate) ll_misses: u64,
    /// Sizes of the simulated caches, as callgrind describes them.
    pub(crate) caches: String,
    /// Name and version of the simulator.
    pub(crate) simulator: String,
}

/// Name of the function that answers the queries, as a pattern of callgrind.
const COLLECTED_FUNCTION: &str = "*first_repetition*";

/// The simulated caches, the same on all machines: bytes, ways, and bytes of a line. The last one is about as
/// large as that of the processor of the theses (Xeon Gold 6252N, 35.75 MB): callgrind needs a number of sets
/// that is a power of two.
const SIMULATED_FIRST_CACHE: &str = "32768,8,64";
const SIMULATED_LAST_CACHE: &str = "33554432,16,64";

/// Checks that valgrind runs.
///
/// # Errors
/// [`Error::Usage`], with the package to install.
pub(crate) fn check_installed() -> Result<()> {
    let wrong = |why: &str| Err(Error::Usage(format!("--callgrind: {why}")));
    match Command::new("valgrind").arg("--version").output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => wrong(&format!("valgrind --version ends with {}", output.status)),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            wrong("valgrind is not installed; install the package valgrind (apt-get install valgrind)")
        }
        Err(error) => wrong(&format!("cannot start valgrind: {error}")),
    }
}

/// The fastest kernel that valgrind runs: it does not know AVX-512.
pub(crate) fn fastest_simulated_kernel() -> Kernel {
    let mut kernels = Kernel::available().into_iter().rev();
    kernels.find(|kernel| !kernel.name().starts_with("avx512")).unwrap_or(Kernel::SCALAR)
}

/// Runs the program of a launch in callgrind, which writes its counts into `out`.
///
/// # Errors
/// If the launch has no program of its own.
pub(crate) fn launch_simulated(launch: &Launch, out: &Path) -> Result<Launch> {
    let words = [
        "valgrind".to_string(),
        "--quiet".to_string(),
        "--tool=callgrind".to_string(),
        "--cache-sim=yes".to_string(),
        format!("--toggle-collect={COLLECTED_FUNCTION}"),
        format!("--I1={SIMULATED_FIRST_CACHE}"),
        format!("--D1={SIMULATED_FIRST_CACHE}"),
        format!("--LL={SIMULATED_LAST_CACHE}"),
        format!("--callgrind-out-file={}", out.display()),
    ];
    launch.with_kernel(fastest_simulated_kernel(), &words)
}

/// Reads the file of a finished process.
///
/// # Errors
/// If the file cannot be read, is malformed, or counts no instructions.
pub(crate) fn read_simulation(path: &Path) -> Result<Simulation> {
    let text = fs::read_to_string(path).map_err(Error::failed("cannot read the output of callgrind"))?;
    let wrong =
        || Error::Failed("the output of callgrind has no sums of instructions and cache misses".to_string());
    let simulation = parse_counts(&text).ok_or_else(wrong)?;
    if simulation.instructions == 0 {
        return Err(Error::Failed(
            "callgrind has collected no instructions; the program needs its symbols (build it without strip)"
                .to_string(),
        ));
    }
    Ok(simulation)
}

/// Parses callgrind's file: the numbers of its last line `totals:` are those of the names in its line
/// `events:`.
fn parse_counts(text: &str) -> Option<Simulation> {
    let value = |name: &str| text.lines().rev().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let events: Vec<&str> = value("events:")?.split_whitespace().collect();
    let totals: Vec<u64> =
        value("totals:")?.split_whitespace().map(|word| word.parse().ok()).collect::<Option<_>>()?;
    // Callgrind leaves out zeros at the end.
    let count = |name: &str| {
        let at = events.iter().position(|event| *event == name)?;
        Some(totals.get(at).copied().unwrap_or(0))
    };
    let sum = |names: &[&str]| names.iter().map(|name| count(name)).sum::<Option<u64>>();
    let caches = ["I1", "D1", "LL"]
        .iter()
        .filter_map(|cache| Some(format!("{cache} {}", value(&format!("desc: {cache} cache:"))?)));
    Some(Simulation {
        instructions: count("Ir")?,
        l1_misses: sum(&["D1mr", "D1mw"])?,
        ll_misses: sum(&["ILmr", "DLmr", "DLmw"])?,
        caches: caches.collect::<Vec<_>>().join("; "),
        simulator: value("creator:").unwrap_or("callgrind").to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Recorded with valgrind 3.19; the function lines are left out.
    const RECORDED_OUTPUT: &str = "# callgrind format
version: 1
creator: callgrind-3.19.0
pid: 21069
cmd:  program cache-cell
part: 1


desc: I1 cache: 32768 B, 64 B, 8-way associative
desc: D1 cache: 32768 B, 64 B, 8-way associative
desc: LL cache: 33554432 B, 64 B, 16-way associative

desc: Timerange: Basic block 0 - 29762
desc: Trigger: Program termination

positions: line
events: Ir Dr Dw I1mr D1mr D1mw ILmr DLmr DLmw
summary: 130681 28145 12392 1068 873 560 1054 742 537


fn=(536) main
0 6004 1001 1001 1 0 0 1

totals: 130679 28145 12392 1067 873 560 1053 742 537
";

    #[test]
    fn sums_of_a_recorded_run_are_read() {
        let found = parse_counts(RECORDED_OUTPUT).unwrap();
        assert_eq!(
            (found.instructions, found.l1_misses, found.ll_misses),
            (130_679, 873 + 560, 1053 + 742 + 537)
        );
        assert_eq!(found.simulator, "callgrind-3.19.0");
        assert!(found.caches.starts_with("I1 32768 B") && found.caches.contains("; LL 33554432 B"));
    }

    #[test]
    fn zeros_at_the_end_are_left_out_by_callgrind() {
        let text = RECORDED_OUTPUT
            .replace("totals: 130679 28145 12392 1067 873 560 1053 742 537", "totals: 7 1 0 0 2");
        let found = parse_counts(&text).unwrap();
        assert_eq!((found.instructions, found.l1_misses, found.ll_misses), (7, 2, 0));
    }

    #[test]
    fn an_output_without_sums_or_instructions_is_an_error() {
        assert_eq!(parse_counts(""), None);
        assert_eq!(parse_counts(&RECORDED_OUTPUT.replace("totals: 1", "totals: x")), None);
        assert_eq!(parse_counts(&RECORDED_OUTPUT.replace("Ir Dr", "Dr Ir2")), None);
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("callgrind.out");
        assert!(read_simulation(&path).is_err());
        fs::write(&path, RECORDED_OUTPUT.replace("totals: 130679", "totals: 0")).unwrap();
        assert!(read_simulation(&path).unwrap_err().to_string().contains("symbols"));
    }

    #[test]
    fn a_launch_runs_the_same_program_in_callgrind() {
        let program = Launch::Process("tierdex-bench".into(), vec!["cache-cell".to_string()]);
        let Launch::Process(program, words) = launch_simulated(&program, Path::new("out")).unwrap() else {
            panic!()
        };
        assert_eq!(program.display().to_string(), "env");
        assert!(words[0].starts_with("TIERDEX_KERNEL=") && !words[0].contains("avx512"));
        assert_eq!(words[words.len() - 2..], ["tierdex-bench", "cache-cell"]);
        assert!(launch_simulated(&Launch::InProcess, Path::new("out")).is_err());
    }
}
