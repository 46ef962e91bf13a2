//! A stream that may be idle for ever, read so that a stop is noticed.
//!
//! A thread of its own blocks in `read`; whoever reads here waits for it in short steps and looks at the stop
//! signal between them. The thread is left behind when the stream never ends; it dies with the process.

use std::io::{self, Cursor, Read};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;
use tierdex::index::Stop;

/// Bytes read at once.
const CHUNK_BYTES: usize = 256 << 10;

/// How often the stop signal is looked at.
const STEP: Duration = Duration::from_millis(100);

/// A stream that ends with an error when the stop signal is raised.
pub(super) struct Stream {
    chunks: Receiver<io::Result<Vec<u8>>>,
    chunk: Cursor<Vec<u8>>,
    stop: Stop,
}

impl Stream {
    /// Opens by `open`, which may block as reading may.
    pub fn new<R: Read>(open: impl FnOnce() -> io::Result<R> + Send + 'static, stop: Stop) -> Stream {
        let (sender, chunks) = sync_channel(2);
        let of_reader = sender.clone();
        let started = std::thread::Builder::new().spawn(move || {
            let sender = of_reader;
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
            // The channel is empty, so this does not wait.
            let _ = sender.send(Err(io::Error::other(format!("no thread can be started: {error}"))));
        }
        Stream { chunks, chunk: Cursor::default(), stop }
    }
}

impl Read for Stream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            let count = self.chunk.read(into)?;
            if count > 0 || into.is_empty() {
                return Ok(count);
            }
            match self.chunks.recv_timeout(STEP) {
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
    fn streams_are_read_whole_and_stop_when_told() {
        let bytes: Vec<u8> = (0..1_000_000u32).map(|i| i as u8).collect();
        let expected = bytes.clone();
        let mut out = Vec::new();
        Stream::new(move || Ok(Cursor::new(bytes)), Stop::default()).read_to_end(&mut out).unwrap();
        assert!(out == expected);

        let (reader, writer) = io::pipe().unwrap();
        let stop = Stop::default();
        stop.raise();
        assert!(Stream::new(move || Ok(reader), stop).read_to_end(&mut out).is_err());
        drop(writer);

        let failing = || Err::<io::Empty, _>(io::Error::other("no"));
        assert!(Stream::new(failing, Stop::default()).read_to_end(&mut out).is_err());
    }
}
