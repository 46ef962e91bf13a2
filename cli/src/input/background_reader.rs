//! Reads a stream that may be idle forever, so that a stop flag still ends the read.
//!
//! A background thread blocks in `read` and sends chunks through a channel. The consumer waits on the
//! channel with a timeout and checks the stop flag after each. The thread is not joined: if the stream never
//! ends, it lives until the process exits.

use std::io::{self, Cursor, Read};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;
use tierdex::StopSignal;

/// Size of a read, in bytes.
const CHUNK_BYTES: usize = 256 << 10;

/// Interval between checks of the stop flag.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// A reader that fails when the stop flag is raised.
pub(super) struct BackgroundReader {
    chunks: Receiver<io::Result<Vec<u8>>>,
    chunk: Cursor<Vec<u8>>,
    stop: StopSignal,
}

impl BackgroundReader {
    /// Opens the stream with `open` on the background thread, as opening may block too.
    pub fn new<R: Read>(
        open: impl FnOnce() -> io::Result<R> + Send + 'static,
        stop: StopSignal,
    ) -> BackgroundReader {
        let (sender, chunks) = sync_channel(2);
        let thread_sender = sender.clone();
        let started = std::thread::Builder::new().spawn(move || {
            let sender = thread_sender;
            let mut raw = match open() {
                Ok(raw) => raw,
                Err(error) => return drop(sender.send(Err(error))),
            };
            loop {
                let mut chunk = vec![0; CHUNK_BYTES];
                let sent = match raw.read(&mut chunk) {
                    Ok(0) => return,
                    Ok(count) => {
                        chunk.truncate(count);
                        sender.send(Ok(chunk))
                    }
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(error) => return drop(sender.send(Err(error))),
                };
                if sent.is_err() {
                    return;
                }
            }
        });
        if let Err(error) = started {
            // The channel is empty, so this does not block.
            let _ = sender.send(Err(io::Error::other(format!("cannot start a thread: {error}"))));
        }
        BackgroundReader { chunks, chunk: Cursor::default(), stop }
    }
}

impl Read for BackgroundReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            let count = self.chunk.read(into)?;
            if count > 0 || into.is_empty() {
                return Ok(count);
            }
            match self.chunks.recv_timeout(CHECK_INTERVAL) {
                Ok(chunk) => self.chunk = Cursor::new(chunk?),
                Err(RecvTimeoutError::Disconnected) => return Ok(0),
                Err(RecvTimeoutError::Timeout) if self.stop.check().is_err() => {
                    return Err(io::Error::other("stopped"));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_read_completely_and_fail_when_stopped() {
        let bytes: Vec<u8> = (0..1_000_000u32).map(|i| i as u8).collect();
        let expected = bytes.clone();
        let mut out = Vec::new();
        BackgroundReader::new(move || Ok(Cursor::new(bytes)), StopSignal::default())
            .read_to_end(&mut out)
            .unwrap();
        assert!(out == expected);

        let (reader, writer) = io::pipe().unwrap();
        let stop = StopSignal::default();
        stop.raise();
        assert!(BackgroundReader::new(move || Ok(reader), stop).read_to_end(&mut out).is_err());
        drop(writer);

        let failing = || Err::<io::Empty, _>(io::Error::other("no"));
        assert!(BackgroundReader::new(failing, StopSignal::default()).read_to_end(&mut out).is_err());
    }
}
