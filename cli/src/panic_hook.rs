//! Panic hook: a panic of any thread prints one line and ends the process with exit code 1, but for those of
//! decoders of files, which are errors of the file.

use crate::{interrupt, messages};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::{any::Any, backtrace::Backtrace};
use tierdex::io::exit_out_of_memory;

/// Ends the process at the first panic of any thread. Other threads could wait forever for its results.
pub fn exit_on_panic() {
    std::panic::set_hook(Box::new(print_and_exit));
}

thread_local! {
    /// Whether this thread runs a decoder whose panics are errors.
    static IS_CAUGHT: Cell<bool> = const { Cell::new(false) };
}

/// Runs a decoder of a file. Its panic is an error, with the message on one line; what the decoder changed
/// must not be used after it.
pub fn catch_panic<T>(decode: impl FnOnce() -> T) -> Result<T, String> {
    IS_CAUGHT.set(true);
    let result = catch_unwind(AssertUnwindSafe(decode));
    IS_CAUGHT.set(false);
    result.map_err(|panic| panic_message(panic.as_ref()).replace('\n', " "))
}

fn panic_message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message")
}

/// The panic of the standard library if a new thread gets no memory for its stack of signal handlers.
const NO_SIGNAL_STACK: &str = "failed to allocate an alternative stack";

fn print_and_exit(panic: &PanicHookInfo<'_>) {
    if IS_CAUGHT.get() {
        return;
    }
    static IS_EXITING: AtomicBool = AtomicBool::new(false);
    if IS_EXITING.swap(true, Ordering::Relaxed) {
        // Another thread ends the process.
        loop {
            std::thread::park();
        }
    }
    let message = panic.payload_as_str().unwrap_or("no message");
    if message.starts_with(NO_SIGNAL_STACK) {
        // An allocation of another thread may fail at the same time: one of them reports it.
        exit_out_of_memory(format_args!("stack for another thread"));
    }
    let location = panic.location().map(|location| format!(" ({location})")).unwrap_or_default();
    messages::print_message(format_args!(
        "internal error: {}{location}; report it, unless memory ran out",
        message.replace('\n', " ")
    ));
    if std::env::var_os("RUST_BACKTRACE").is_some_and(|value| value != "0") {
        messages::print_lines(&Backtrace::force_capture().to_string());
    }
    interrupt::remove_unfinished_file();
    std::process::exit(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// Environment variable with the message of the child process that panics.
    const PANIC_VARIABLE: &str = "TIERDEX_TEST_PANICS";

    #[test]
    fn panics_of_decoders_are_errors() {
        assert_eq!(catch_panic(|| 7), Ok(7));
        let index = std::hint::black_box(3);
        let error = catch_panic(|| [1, 2][index]).unwrap_err();
        assert!(error.contains("index out of bounds"), "{error}");
        assert_eq!(catch_panic(|| panic!("a\nb")), Err::<(), _>("a b".to_string()));
        assert!(!IS_CAUGHT.get());
    }

    #[test]
    fn panics_on_a_second_thread() {
        let Ok(message) = std::env::var(PANIC_VARIABLE) else { return };
        exit_on_panic();
        assert!(catch_panic(|| panic!("of a decoder")).is_err());
        std::thread::scope(|scope| {
            scope.spawn(|| panic!("{message}"));
            // Waits forever, as for a result of the thread that panicked.
            loop {
                std::thread::park();
            }
        });
    }

    #[test]
    fn a_panic_of_any_thread_prints_one_line_and_exits_with_1() {
        for (message, backtrace, line) in [
            ("first\nline", "0", "tierdex: internal error: first line (cli/src/"),
            (
                "failed to allocate an alternative stack: error 12",
                "1",
                "tierdex: out of memory: the system has no stack for another thread",
            ),
        ] {
            let output = Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "panic_hook::tests::panics_on_a_second_thread", "--nocapture"])
                .env(PANIC_VARIABLE, message)
                .env("RUST_BACKTRACE", backtrace)
                .output()
                .unwrap();
            let error = String::from_utf8(output.stderr).unwrap();
            assert_eq!((output.status.code(), error.lines().count()), (Some(1), 1), "{error}");
            assert!(error.starts_with(line), "{error}");
        }
    }
}
