//! The log: one JSON object a line on standard error, written by a thread of its own, so that a reader who
//! does not read delays no request.

use serde::Serialize;
use std::io::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

/// Lines that wait to be written, at most; others are dropped and counted.
const QUEUED_LINES: usize = 512;

/// Time for the last lines, if nobody reads them.
const END_WAIT: Duration = Duration::from_secs(1);

/// Bytes of a line, at most.
const LINE_BYTES_MAX: usize = 2048;

/// Writes lines to standard error. When it is dropped, queued lines are written first.
pub(crate) struct Log {
    sender: Option<SyncSender<String>>,
    dropped: AtomicU64,
    writer: Mutex<Option<JoinHandle<()>>>,
}

impl Log {
    /// # Errors
    /// If the thread cannot be started.
    pub(crate) fn start() -> std::io::Result<Log> {
        let (sender, lines) = sync_channel(QUEUED_LINES);
        let writer = std::thread::Builder::new().name("log".to_string()).spawn(move || write_lines(lines))?;
        Ok(Log { sender: Some(sender), dropped: AtomicU64::new(0), writer: Mutex::new(Some(writer)) })
    }

    /// Adds a line: the members of a JSON object, without the time, which is the first member.
    pub(crate) fn write(&self, members: &impl Serialize) {
        let time = humantime::format_rfc3339_millis(SystemTime::now());
        let dropped = self.dropped.swap(0, Ordering::Relaxed);
        let dropped_lines = if dropped > 0 { format!(",\"dropped_lines\":{dropped}") } else { String::new() };
        let members = serde_json::to_string(members).unwrap_or_default();
        let members = members.strip_prefix('{').unwrap_or("}");
        let mut line = format!("{{\"time\":\"{time}\"{dropped_lines},{members}\n");
        if line.len() > LINE_BYTES_MAX {
            let bytes = line.len();
            line =
                format!("{{\"time\":\"{time}\",\"event\":\"a log line was too long\",\"bytes\":{bytes}}}\n");
        }
        let Some(sender) = &self.sender else { return };
        if sender.try_send(line).is_err() {
            self.dropped.fetch_add(dropped + 1, Ordering::Relaxed);
        }
    }

    /// Adds a line about the server itself.
    pub(crate) fn event(&self, event: &str) {
        self.write(&Event { event });
    }
}

#[derive(Serialize)]
struct Event<'e> {
    event: &'e str,
}

fn write_lines(lines: Receiver<String>) {
    let mut text = String::new();
    for first in &lines {
        text.push_str(&first);
        // Lines that have come meanwhile are written with it.
        text.extend(lines.try_iter().take(QUEUED_LINES));
        // Nobody is left to tell.
        let _ = std::io::stderr().write_all(text.as_bytes());
        text.clear();
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.sender = None;
        let Some(writer) = self.writer.get_mut().ok().and_then(Option::take) else { return };
        let began = Instant::now();
        while !writer.is_finished() && began.elapsed() < END_WAIT {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}
