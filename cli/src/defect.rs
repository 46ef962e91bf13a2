//! Panics: one line, wherever they happen, and exit code 1.

use crate::interrupt;
use crate::messages;
use std::backtrace::Backtrace;
use std::panic::PanicHookInfo;
use std::sync::atomic::{AtomicBool, Ordering};

/// Ends the process at the first panic of any thread: what others wait for may never come.
pub fn exit_on_panic() {
    std::panic::set_hook(Box::new(exit));
}

fn exit(panic: &PanicHookInfo<'_>) {
    static EXITS: AtomicBool = AtomicBool::new(false);
    if EXITS.swap(true, Ordering::Relaxed) {
        // Another thread ends the process.
        loop {
            std::thread::park();
        }
    }
    let what = panic.payload_as_str().unwrap_or("it says no more");
    let place = panic.location().map(|place| format!(" ({place})")).unwrap_or_default();
    messages::say(format_args!(
        "this is a defect, unless memory ran out: {}{place}",
        what.replace('\n', " ")
    ));
    if std::env::var_os("RUST_BACKTRACE").is_some_and(|asked| asked != "0") {
        messages::report(&Backtrace::force_capture().to_string());
    }
    interrupt::clean();
    std::process::exit(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// Set where the test is to panic, which ends its process.
    const PANICS: &str = "TIERDEX_TEST_PANICS";

    #[test]
    fn a_panic_on_a_thread() {
        if std::env::var_os(PANICS).is_none() {
            return;
        }
        exit_on_panic();
        std::thread::scope(|scope| {
            scope.spawn(|| panic!("first\nline"));
            // It waits for ever, as for a thread that has gone.
            loop {
                std::thread::park();
            }
        });
    }

    #[test]
    fn a_panic_of_any_thread_is_one_line() {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "defect::tests::a_panic_on_a_thread", "--nocapture"]).env(PANICS, "1");
        let output = command.env_remove("RUST_BACKTRACE").output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), error.lines().count()), (Some(1), 1), "{error}");
        assert!(
            error.starts_with("tierdex: this is a defect, unless memory ran out: first line (cli/src/"),
            "{error}"
        );
    }
}
