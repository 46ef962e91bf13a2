//! Progress of indexing: a progress bar if standard error is a terminal, otherwise nothing.

use crate::{input::InputSource, messages, size};
use indicatif::{ProgressBar, ProgressStyle};
use std::io::{IsTerminal, stderr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::{sync::Arc, time::Instant};

/// Templates for work of known size and of unknown size.
const BAR_TEMPLATE: &str = "{bar:30} {percent:>3}%  {msg}  {eta} left";
const SPINNER_TEMPLATE: &str = "{spinner}  {msg}";

/// Shows documents, throughput and remaining time.
pub struct IndexProgress {
    bar: ProgressBar,
    consumed: Arc<AtomicU64>,
    start: Instant,
    documents: u64,
    bytes: u64,
}

impl IndexProgress {
    /// Progress at the start of `source`.
    pub fn new(source: &InputSource) -> IndexProgress {
        let bar = match source.total_bytes() {
            Some(total) => new_progress_bar(total),
            _ if !stderr().is_terminal() => ProgressBar::hidden(),
            None => ProgressBar::new_spinner().with_style(style_from_template(SPINNER_TEMPLATE)),
        };
        IndexProgress { bar, consumed: source.progress(), start: Instant::now(), documents: 0, bytes: 0 }
    }

    /// Adds documents and bytes of their text.
    pub fn advance(&mut self, documents: u64, bytes: u64) {
        self.documents += documents;
        self.bytes += bytes;
        let speed = size::show_throughput(self.bytes, self.start.elapsed().as_secs_f64());
        let documents = size::show_count(self.documents, "document", "documents");
        self.bar.set_message(format!("{documents}, {speed}"));
        self.bar.set_position(self.consumed.load(Ordering::Relaxed));
    }

    /// Shows the name of a phase of unknown duration, after all input has been read.
    pub fn set_phase(&self, phase: &str) {
        let documents = size::show_count(self.documents, "document", "documents");
        self.bar.set_style(style_from_template(SPINNER_TEMPLATE));
        self.bar.set_message(format!("{documents}, {phase}"));
        // indicatif limits the redraw rate.
        self.bar.force_draw();
    }

    /// Prints a line on standard error, above the bar.
    pub fn print_above(&self, line: &str) {
        self.bar.suspend(|| messages::print_line(line));
    }

    /// Removes the bar.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// A progress bar for `total` units of work.
pub fn new_progress_bar(total: u64) -> ProgressBar {
    if !stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    ProgressBar::new(total).with_style(style_from_template(BAR_TEMPLATE))
}

fn style_from_template(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

#[cfg(test)]
mod tests {
    use super::*;
    use indicatif::{ProgressDrawTarget, TermLike};
    use std::{io, sync::Mutex};

    /// Stores what has been drawn since the last clear.
    #[derive(Clone, Debug, Default)]
    struct Screen(Arc<Mutex<String>>);

    impl TermLike for Screen {
        fn width(&self) -> u16 {
            120
        }

        fn move_cursor_up(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_down(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_right(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_left(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn write_line(&self, line: &str) -> io::Result<()> {
            self.write_str(line)
        }

        fn write_str(&self, text: &str) -> io::Result<()> {
            self.0.lock().unwrap().push_str(text);
            Ok(())
        }

        fn clear_line(&self) -> io::Result<()> {
            self.0.lock().unwrap().clear();
            Ok(())
        }

        fn flush(&self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn the_writing_phase_shows_no_percentage_and_no_remaining_time() {
        let screen = Screen::default();
        let target = ProgressDrawTarget::term_like(Box::new(screen.clone()));
        let bar =
            ProgressBar::with_draw_target(Some(10), target).with_style(style_from_template(BAR_TEMPLATE));
        let consumed = Arc::new(AtomicU64::new(10));
        let mut progress = IndexProgress { bar, consumed, start: Instant::now(), documents: 0, bytes: 0 };
        progress.advance(1, 10);
        assert!(screen.0.lock().unwrap().contains("100%  1 document, "), "{screen:?}");
        progress.set_phase("writing");
        let drawn = screen.0.lock().unwrap().clone();
        assert!(drawn.contains("1 document, writing"), "{drawn}");
        assert!(!drawn.contains('%') && !drawn.contains("left"), "{drawn}");
    }
}
