//! Threads that make and encode lists ahead of whoever writes them.
//!
//! The work is cut into jobs: lists, or pieces of a list. Each thread takes the next one and puts the end of a channel into a
//! queue, where its result will come; so results are taken in order, whoever is done first. The queue bounds how far the
//! threads run ahead.

use super::Collection;
use super::list::{List, Postings, Stretches};
use std::ops::Range;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, Scope};
use tierdex::index::{EncodedPostings, ListEncoder, PIECE_POSTINGS, Stop};
use tierdex::{Error, Result};

/// Postings of a job, about.
const JOB: u32 = 4 * PIECE_POSTINGS as u32;

/// Lists of a job, at most.
const LISTS: u32 = 1 << 10;

/// Jobs a thread that wait to be taken.
const WAITING: usize = 4;

/// The pieces of all lists, one list behind another.
pub(super) struct Ahead {
    jobs: Receiver<Receiver<Result<Batch>>>,
    /// Where emptied batches go, to be filled again.
    emptied: SyncSender<Batch>,
    batch: Batch,
    taken: usize,
}

/// What came of a job: the first pieces, as many as are used.
#[derive(Default)]
struct Batch {
    pieces: Vec<EncodedPostings>,
    used: usize,
}

/// Starts `threads` threads, or as many of them as the system gives. They end when all is made, when nobody takes what they
/// make, or when `stop` is raised.
///
/// # Errors
/// What the system says to the first one.
pub(super) fn start<'scope>(
    of: &'scope Collection,
    encoder: &ListEncoder<'scope>,
    threads: usize,
    scope: &'scope Scope<'scope, '_>,
    stop: &Stop,
) -> Result<Ahead> {
    let waiting = WAITING * threads.max(1);
    let (sender, jobs) = sync_channel(waiting);
    let (emptied, to_fill) = sync_channel(2 * waiting);
    // The threads alone hold it, so the queue ends with the last one.
    let desk =
        Arc::new(Mutex::new(Desk { cutter: Cutter { of, rank: 1, open: None }, jobs: sender, to_fill }));
    for number in 0..threads.max(1) {
        let (desk, stop) = (desk.clone(), stop.clone());
        let mut maker = Maker { of, encoder: encoder.clone(), postings: Postings::default() };
        let spawned = Builder::new().spawn_scoped(scope, move || maker.run(&desk, &stop));
        match spawned {
            Err(error) if number == 0 => {
                return Err(tierdex::io::Error::from_os("start", "a thread that makes lists", &error).into());
            }
            Err(_) => break,
            Ok(_) => (),
        }
    }
    Ok(Ahead { jobs, emptied, batch: Batch::default(), taken: 0 })
}

impl Ahead {
    /// The next piece.
    ///
    /// # Errors
    /// [`Error::Interrupted`] when the threads have stopped.
    pub(super) fn take(&mut self) -> Result<&EncodedPostings> {
        if self.taken == self.batch.used {
            let job = self.jobs.recv().map_err(|_| Error::Interrupted)?;
            let next = job.recv().map_err(|_| Error::Interrupted)??;
            // When there are enough of them, it goes.
            let _ = self.emptied.try_send(std::mem::replace(&mut self.batch, next));
            self.taken = 0;
        }
        self.taken += 1;
        Ok(&self.batch.pieces[self.taken - 1])
    }
}

impl Batch {
    /// A piece to be filled.
    fn piece(&mut self) -> &mut EncodedPostings {
        if self.used == self.pieces.len() {
            self.pieces.push(EncodedPostings::default());
        }
        self.used += 1;
        &mut self.pieces[self.used - 1]
    }
}

/// Where the threads get work.
struct Desk<'a> {
    cutter: Cutter<'a>,
    jobs: SyncSender<Receiver<Result<Batch>>>,
    to_fill: Receiver<Batch>,
}

/// Cuts the work into jobs.
struct Cutter<'a> {
    of: &'a Collection,
    rank: u32,
    /// A long list, and what is left of it.
    open: Option<Part<'a>>,
}

/// Something to make.
enum Job<'a> {
    /// The lists of these ranks.
    Lists(Range<u32>),
    Part(Part<'a>),
}

/// Neighbouring postings of a list.
#[derive(Clone)]
struct Part<'a> {
    list: List<'a>,
    /// Stretches from that on in which the posting before the part is.
    stretches: Stretches,
    /// Postings of these before the part.
    skipped: u32,
    postings: u32,
}

impl<'a> Part<'a> {
    /// A whole list.
    fn whole(list: List<'a>) -> Part<'a> {
        Part { stretches: list.stretches(), skipped: 0, postings: list.postings(), list }
    }

    /// Cuts the first postings off, if there are more. What is left begins in the stretch of the last one that was cut off.
    fn split(&mut self, postings: u32) -> Option<Part<'a>> {
        if self.postings <= postings {
            return None;
        }
        let first = Part { postings, ..self.clone() };
        self.postings -= postings;
        self.skipped += postings;
        let mut behind = self.stretches.clone();
        while let Some(stretch) = behind.next().filter(|stretch| stretch.postings < self.skipped) {
            self.skipped -= stretch.postings;
            self.stretches = behind.clone();
        }
        Some(first)
    }
}

impl<'a> Iterator for Cutter<'a> {
    type Item = Job<'a>;

    fn next(&mut self) -> Option<Job<'a>> {
        if let Some(mut rest) = self.open.take() {
            let Some(first) = rest.split(JOB) else { return Some(Job::Part(rest)) };
            self.open = Some(rest);
            return Some(Job::Part(first));
        }
        let from = self.rank;
        if from > self.of.vocabulary() {
            return None;
        }
        if self.of.documents(from) > JOB {
            self.rank += 1;
            self.open = Some(Part::whole(self.of.list(from)));
            return self.next();
        }
        let mut postings = 0;
        while postings < JOB && self.rank - from < LISTS && self.rank <= self.of.vocabulary() {
            postings += self.of.documents(self.rank);
            self.rank += 1;
        }
        Some(Job::Lists(from..self.rank))
    }
}

/// One of the threads.
struct Maker<'a> {
    of: &'a Collection,
    encoder: ListEncoder<'a>,
    postings: Postings,
}

impl<'a> Maker<'a> {
    fn run(&mut self, desk: &Mutex<Desk<'a>>, stop: &Stop) {
        while stop.check().is_ok() {
            let Some((job, result, batch)) = desk.lock().unwrap_or_else(PoisonError::into_inner).next()
            else {
                return;
            };
            // When nobody takes it, nobody misses it.
            let _ = result.send(self.make(job, batch));
        }
    }

    fn make(&mut self, job: Job<'a>, mut batch: Batch) -> Result<Batch> {
        batch.used = 0;
        match job {
            Job::Part(part) => self.encode(part, &mut batch)?,
            Job::Lists(ranks) => {
                for rank in ranks {
                    self.encode(Part::whole(self.of.list(rank)), &mut batch)?;
                }
            }
        }
        Ok(batch)
    }

    fn encode(&mut self, mut part: Part<'a>, batch: &mut Batch) -> Result<()> {
        self.postings.clear();
        let mut from = part.skipped as usize;
        while part.postings > 0 {
            let postings = (part.postings as usize).min(PIECE_POSTINGS);
            let to = from + postings;
            while self.postings.documents.len() < to {
                let stretch = part.stretches.next().expect("stretches have all postings");
                part.list.fill(&stretch, &mut self.postings);
            }
            let documents = &self.postings.documents;
            let before = from.checked_sub(1).map(|before| documents[before]);
            let frequencies = &self.postings.frequencies[from..to];
            self.encoder.encode(before, &documents[from..to], frequencies, batch.piece())?;
            // The last one stays: the next piece follows it.
            self.postings.remove(to - 1);
            from = 1;
            part.postings -= postings as u32;
        }
        Ok(())
    }
}

impl<'a> Desk<'a> {
    /// The next job, where its result goes, and a batch to fill.
    fn next(&mut self) -> Option<(Job<'a>, SyncSender<Result<Batch>>, Batch)> {
        let job = self.cutter.next()?;
        let (result, taken) = sync_channel(1);
        self.jobs.send(taken).ok()?;
        Some((job, result, self.to_fill.try_recv().unwrap_or_default()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tables::Tables;
    use super::*;

    /// The postings of a part, behind the one before it.
    fn made(part: &Part<'_>) -> Vec<(u32, u32)> {
        let mut postings = Postings::default();
        part.stretches.clone().for_each(|stretch| part.list.fill(&stretch, &mut postings));
        let (skipped, end) = (part.skipped as usize, (part.skipped + part.postings) as usize);
        let pairs = postings.documents.into_iter().zip(postings.frequencies);
        pairs.take(end).skip(skipped.saturating_sub(1)).collect()
    }

    #[test]
    fn parts_of_a_list_are_the_list() {
        let tables = Tables::new();
        for (documents, postings) in [(20_000, 15_000), (3_000_000, 10_000), (70, 50), (5, 1)] {
            let mut whole = Part::whole(List::new(&tables, documents, postings, 7));
            let all = made(&whole);
            for size in [1, 63, 64, 1000, 8192].into_iter().filter(|size| 200 * size > postings) {
                let mut rest = whole.clone();
                let mut joined = Vec::new();
                while let Some(first) = rest.split(size) {
                    let some = made(&first);
                    assert_eq!(joined.pop(), some.first().copied().filter(|_| first.skipped > 0));
                    joined.extend(some);
                }
                joined.pop();
                joined.extend(made(&rest));
                assert!(joined == all, "{postings} of {documents} by {size}");
            }
            assert!(whole.split(postings).is_none());
        }
    }
}
