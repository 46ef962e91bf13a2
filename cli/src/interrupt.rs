//! What Ctrl-C, a request to terminate and a hang-up do. They are watched for from the first moment to the
//! last: the command ends with one line and exit code 130, unless another action was registered before.

use crate::failure::{Failure, Outcome};
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tierdex::index::Stop;
use tierdex::io::{exit_with_line, keep_ignored_signals, remove_on_out_of_memory};

/// What a signal does.
enum Action {
    /// The command ends.
    Exit,
    /// Raises the stop flag; the operation cancels itself.
    Raise(Stop),
    /// A file that is not whole yet is removed, and the command ends.
    Remove(PathBuf),
}

static ACTION: Mutex<Action> = Mutex::new(Action::Exit);

/// Restores the default action when dropped.
#[must_use]
pub struct Watched(());

impl Drop for Watched {
    fn drop(&mut self) {
        *action() = Action::Exit;
        remove_on_out_of_memory(None);
    }
}

/// Begins to watch, by a thread of its own.
///
/// # Errors
/// If there is no thread for it: then signals would be lost.
pub fn watch() -> Outcome {
    keep_ignored_signals(|| ctrlc::set_handler(stopped)).map_err(|error| {
        let why = match error {
            ctrlc::Error::System(error) => error.to_string(),
            error => error.to_string(),
        };
        Failure::Failed(format!("cannot start the thread that watches for Ctrl-C: {why}"))
    })
}

/// A signal raises `stop`, and does nothing else.
pub fn raises(stop: Stop) -> Watched {
    *action() = Action::Raise(stop);
    Watched(())
}

/// A signal removes the file that `create` makes. None comes between, so that none is left behind.
pub fn removes<T, E>(create: impl FnOnce() -> Result<(PathBuf, T), E>) -> Result<(Watched, PathBuf, T), E> {
    let mut action = action();
    let (path, file) = create()?;
    *action = Action::Remove(path.clone());
    remove_on_out_of_memory(CString::new(path.as_os_str().as_bytes()).ok());
    Ok((Watched(()), path, file))
}

/// Removes the file that a signal would remove, when the command ends by itself before it is whole.
pub fn clean() {
    if let Ok(action) = ACTION.try_lock()
        && let Action::Remove(path) = &*action
    {
        // The error has been reported already.
        let _ = std::fs::remove_file(path);
    }
}

fn action() -> MutexGuard<'static, Action> {
    ACTION.lock().unwrap_or_else(PoisonError::into_inner)
}

fn stopped() {
    let message = match &*action() {
        // Asked a second time, it does not wait for the work to end.
        Action::Raise(stop) if stop.check().is_err() => "interrupted twice",
        Action::Raise(stop) => return stop.raise(),
        Action::Remove(path) if std::fs::remove_file(path).is_ok() => "interrupted; no whole run was written",
        Action::Remove(_) | Action::Exit => "interrupted",
    };
    exit_with_line(&format!("tierdex: {message}\n"), Failure::INTERRUPTED)
}
