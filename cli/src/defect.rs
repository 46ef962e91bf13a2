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
