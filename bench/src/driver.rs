//! Starts the driver of experiments, a Python package in `bench/driver`, in place of this process.

use crate::{Error, Result};
use clap::Args;
use std::process::{Command, Stdio};
use std::{convert::Infallible, env, ffi::OsString, os::unix::process::CommandExt};

/// Arguments that are passed on.
#[derive(Args, Clone, Debug)]
#[command(disable_help_flag = true)]
pub struct DriverArguments {
    /// Arguments of the command; --help shows them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENTS")]
    words: Vec<OsString>,
}

/// Runs a command of the driver, which starts this program for each measurement. The interpreter is
/// `python3`, or what the environment variable `TIERDEX_PYTHON` names.
///
/// # Errors
/// If the interpreter cannot be started, or does not have the driver. Otherwise the function does not return.
pub fn run(command: &str, arguments: &DriverArguments) -> Result<Infallible> {
    let python = env::var_os("TIERDEX_PYTHON").unwrap_or_else(|| "python3".into());
    let missing = |why: String| {
        Error::Failed(format!(
            "{why}; the driver of experiments needs Python 3.11 or later and its package, from a clone of this \
             repository: pip install -r bench/driver/requirements.lock && pip install --no-deps ./bench/driver"
        ))
    };
    let name = python.display();
    let found = Command::new(&python)
        .args(["-c", "import tierdex_driver.cli"])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .map_err(|error| missing(format!("cannot start {name}: {error}")))?;
    if !found.success() {
        return Err(missing(format!("{name} has no package tierdex_driver")));
    }
    let program = env::current_exe().map_err(Error::failed("cannot find this program"))?;
    let mut started = Command::new(&python);
    started.args(["-m", "tierdex_driver", command]).args(&arguments.words).env("TIERDEX_BENCH", program);
    Err(Error::Failed(format!("cannot start {name}: {}", started.exec())))
}
