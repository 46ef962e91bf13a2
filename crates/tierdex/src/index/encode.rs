//! Encodes the terms of a field on several threads, with the same bytes as on one.
//!
//! 1. The terms are divided into ranges. The bytes of a list depend neither on its range nor on its offset.
//! 2. A thread takes the next range, and queues the channel by which it sends the encoded lists.
//! 3. The calling thread writes the lists of each range, in the order of the ranges.
//!
//! The queue and the channels are bounded, so that threads which are ahead of the writer wait.

use super::stop::StopSignal;
use crate::segment::write::{EncodedLists, FieldWriter, LISTS_SENT_BYTES, ListsSender, TermsEncoder};
use crate::{Error, Result};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread::Builder;

/// Adjacent terms of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TermRange<'t> {
    /// Lower bound, inclusive; `None` if there is none.
    pub(super) first: Option<&'t [u8]>,
    /// Upper bound, exclusive; `None` if there is none.
    pub(super) end: Option<&'t [u8]>,
}

impl<'t> TermRange<'t> {
    /// The ranges between these terms, which are in order and may repeat, before them and after them.
    pub(super) fn split(terms: impl Iterator<Item = &'t [u8]>) -> Vec<TermRange<'t>> {
        let mut bounds = vec![None];
        bounds.extend(terms.map(Some));
        bounds.dedup();
        let ends = bounds.iter().skip(1).copied().chain([None]);
        bounds.iter().zip(ends).map(|(&first, end)| TermRange { first, end }).collect()
    }

    /// Whether the range ends before a term.
    pub(super) fn is_before(&self, term: &[u8]) -> bool {
        self.end.is_some_and(|end| end <= term)
    }
}

/// The threads that encode, and the signal that stops them.
#[derive(Clone, Copy)]
pub(super) struct EncodingThreads<'a> {
    pub(super) count: usize,
    pub(super) stop: &'a StopSignal,
}

/// Pieces of encoded lists of a range that wait for the writer.
const PIECES_WAITING: usize = 8;

/// Largest number of bytes of encoded lists in memory, for each thread: of the range that it encodes, and of
/// a range that waits in the queue.
pub(super) const ENCODING_BYTES: usize = 2 * (PIECES_WAITING + 2) * LISTS_SENT_BYTES;

/// Encodes the terms of all ranges by `encode`, on several threads, and writes them in order.
pub(super) fn encode_ranges(
    writer: &mut FieldWriter<'_>,
    threads: EncodingThreads<'_>,
    ranges: Vec<TermRange<'_>>,
    encode: impl Fn(TermRange<'_>, &mut TermsEncoder<'_, '_>) -> Result<()> + Sync,
) -> Result<()> {
    let count = threads.count.min(ranges.len());
    if count <= 1 {
        return ranges.into_iter().try_for_each(|range| encode(range, &mut writer.terms()));
    }
    let work = EncodingWork { ranges: Mutex::new(ranges.into_iter()), written: Mutex::new(Vec::new()) };
    std::thread::scope(|scope| {
        let (queue, ranges) = sync_channel(count);
        for number in 0..count {
            let (queue, work, encode) = (queue.clone(), &work, &encode);
            let mut encoder = writer.postings_encoder();
            let started = Builder::new().spawn_scoped(scope, move || {
                work.encode_ranges(&queue, |range, sender| {
                    encode(range, &mut encoder.terms(sender))?;
                    sender.flush()
                });
            });
            match started {
                Err(error) if number == 0 => {
                    let error = tierdex_io::Error::from_os("start", "a thread that encodes postings", &error);
                    return Err(error.into());
                }
                // The operating system starts no more threads: those that were started encode all ranges.
                Err(_) => break,
                Ok(_) => (),
            }
        }
        drop(queue);
        // After an error the channels are closed, and all threads end.
        ranges.into_iter().try_for_each(|range: Receiver<Result<EncodedLists>>| {
            range.into_iter().try_for_each(|lists| {
                let mut lists = lists?;
                writer.append(&lists)?;
                lists.clear();
                lock(&work.written).push(lists);
                Ok(())
            })
        })
    })
}

/// What the threads share.
struct EncodingWork<I> {
    /// The ranges that no thread has taken.
    ranges: Mutex<I>,
    /// Lists that were written, whose memory is used again.
    written: Mutex<Vec<EncodedLists>>,
}

impl<'t, I: Iterator<Item = TermRange<'t>>> EncodingWork<I> {
    /// Takes ranges and sends their lists, on one thread, until all are taken, one fails or the writer stops.
    fn encode_ranges(
        &self,
        queue: &SyncSender<Receiver<Result<EncodedLists>>>,
        mut encode: impl FnMut(TermRange<'t>, &mut ListsSender<'_>) -> Result<()>,
    ) {
        loop {
            let (range, pieces) = {
                // Locked until the channel is queued, so that channels have the order of their ranges.
                let mut ranges = lock(&self.ranges);
                let Some(range) = ranges.next() else { return };
                let (pieces, receiver) = sync_channel(PIECES_WAITING);
                if queue.send(receiver).is_err() {
                    return;
                }
                (range, pieces)
            };
            let mut send = |lists| {
                pieces.send(Ok(lists)).map_err(|_| Error::Interrupted)?;
                Ok(lock(&self.written).pop().unwrap_or_default())
            };
            if let Err(error) = encode(range, &mut ListsSender::new(&mut send)) {
                // If the writer has stopped, it has an error of its own.
                let _ = pieces.send(Err(error));
                return;
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
