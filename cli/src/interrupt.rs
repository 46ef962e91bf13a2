//! Handles SIGINT, SIGTERM and SIGHUP. By default a signal ends the command with one line and exit code 130.
//! A command can register another action: raise a stop flag, or remove an unfinished file before the exit.
//! SIGHUP may tell a server to read files again.

use crate::failure::{Failure, Outcome};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::{ffi::CString, os::unix::ffi::OsStrExt};
use tierdex::StopSignal;
use tierdex::io::{exit_with_line, keep_ignored_signals, remove_on_out_of_memory};

/// What the signal handler does.
enum SignalAction {
    /// Ends the process.
    Exit,
    /// Raises the stop flag; the operation cancels itself. If there is a second flag, SIGHUP sets it instead.
    Raise(StopSignal, Option<Arc<AtomicBool>>),
    /// Removes an unfinished file and ends the process.
    Remove(PathBuf),
}

static SIGNAL_ACTION: Mutex<SignalAction> = Mutex::new(SignalAction::Exit);

/// Restores the default action when dropped.
#[must_use]
pub struct SignalGuard(());

impl Drop for SignalGuard {
    fn drop(&mut self) {
        *lock_action() = SignalAction::Exit;
        remove_on_out_of_memory(None);
    }
}

/// Starts the thread that handles signals.
///
/// # Errors
/// If the thread cannot be started.
pub fn install_handler() -> Outcome {
    let installed = keep_ignored_signals(|| Signals::new([SIGHUP, SIGINT, SIGTERM]));
    let started = installed.and_then(|mut signals| {
        let thread = std::thread::Builder::new().name("signals".to_string());
        thread.spawn(move || signals.forever().for_each(handle_signal))
    });
    started
        .map(drop)
        .map_err(|error| Failure::Failed(format!("cannot start the thread that handles Ctrl-C: {error}")))
}

/// Makes signals raise `stop` instead of ending the process, until the guard is dropped.
pub fn raise_on_signal(stop: StopSignal) -> SignalGuard {
    raise_or_reload_on_signal(stop, None)
}

/// As [`raise_on_signal`]; SIGHUP sets `reload` instead, if there is one.
pub fn raise_or_reload_on_signal(stop: StopSignal, reload: Option<Arc<AtomicBool>>) -> SignalGuard {
    *lock_action() = SignalAction::Raise(stop, reload);
    SignalGuard(())
}

/// Creates a file that a signal removes, or the end of memory, until the guard is dropped. `create` calls
/// [`register_unfinished_file`] before it creates a file. No signal is handled between the creation and the
/// registration.
pub fn remove_on_signal<T, E>(
    create: impl FnOnce() -> Result<(PathBuf, T), E>,
) -> Result<(SignalGuard, PathBuf, T), E> {
    // Dropped after the lock, which it takes.
    let guard = SignalGuard(());
    let mut action = lock_action();
    let created = create();
    let Ok((path, file)) = created else {
        drop(action);
        return created.map(|(path, file)| (guard, path, file));
    };
    *action = SignalAction::Remove(path.clone());
    Ok((guard, path, file))
}

/// Names the file that is removed if memory is exhausted. It takes memory itself, so it is called before the
/// file is created.
pub fn register_unfinished_file(path: &Path) {
    remove_on_out_of_memory(CString::new(path.as_os_str().as_bytes()).ok());
}

/// Removes the file that a signal would remove, when the command fails before the file is complete.
pub fn remove_unfinished_file() {
    if let Ok(action) = SIGNAL_ACTION.try_lock()
        && let SignalAction::Remove(path) = &*action
    {
        // The error of the command has been reported already.
        let _ = std::fs::remove_file(path);
    }
}

fn lock_action() -> MutexGuard<'static, SignalAction> {
    SIGNAL_ACTION.lock().unwrap_or_else(PoisonError::into_inner)
}

fn handle_signal(signal: i32) {
    let message = match &*lock_action() {
        SignalAction::Raise(_, Some(reload)) if signal == SIGHUP => {
            return reload.store(true, Ordering::Relaxed);
        }
        // The second signal does not wait for the cancellation.
        SignalAction::Raise(stop, _) if stop.check().is_err() => "interrupted twice",
        SignalAction::Raise(stop, _) => return stop.raise(),
        SignalAction::Remove(path) if std::fs::remove_file(path).is_ok() => {
            "interrupted; the run was not written"
        }
        SignalAction::Remove(_) | SignalAction::Exit => "interrupted",
    };
    exit_with_line(&format!("tierdex: {message}\n"), Failure::INTERRUPTED_EXIT_CODE)
}
