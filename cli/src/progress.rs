//! Progress of indexing: a bar on a terminal, nothing elsewhere.

use crate::input::Source;
use crate::messages;
use crate::size;
use indicatif::{ProgressBar, ProgressStyle};
use std::io::{IsTerminal, stderr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Documents, speed and time left.
pub struct Progress {
    bar: ProgressBar,
    consumed: Arc<AtomicU64>,
    start: Instant,
    documents: u64,
    bytes: u64,
}

impl Progress {
    /// Nothing read yet.
    pub fn new(source: &Source) -> Progress {
        let bar = match source.total_bytes() {
            Some(total) => bar(total),
            _ if !stderr().is_terminal() => ProgressBar::hidden(),
            None => ProgressBar::new_spinner().with_style(style("{spinner}  {msg}")),
        };
        Progress { bar, consumed: source.progress(), start: Instant::now(), documents: 0, bytes: 0 }
    }

    /// More was read: documents, and bytes of their text.
    pub fn advance(&mut self, documents: u64, bytes: u64) {
        self.documents += documents;
        self.bytes += bytes;
        let speed = self.bytes as f64 / 1e6 / self.start.elapsed().as_secs_f64().max(1e-9);
        self.bar.set_message(format!(
            "{}, {speed:.1} MB/s",
            size::count(self.documents, "document", "documents")
        ));
        self.bar.set_position(self.consumed.load(Ordering::Relaxed));
    }

    /// Names what is being done now.
    pub fn say(&self, what: &'static str) {
        self.bar.set_message(what);
        // The last drawing may have been too short ago for another.
        self.bar.force_draw();
    }

    /// Prints a line on standard error, above the bar.
    pub fn print(&self, line: &str) {
        self.bar.suspend(|| messages::line(line));
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// A bar for work whose size is known.
pub fn bar(total: u64) -> ProgressBar {
    if !stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    ProgressBar::new(total).with_style(style("{bar:30} {percent:>3}%  {msg}  {eta} left"))
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
