//! Threads that generate and encode lists ahead of the index writer.
//!
//! The work is split into jobs: lists, or ranges of a list. Each thread takes the next job and puts the
//! receiver of its result into a bounded queue. So results are consumed in order, whichever thread finishes
//! first, and the queue limits how far the threads run ahead.

use crate::generate::{collection::Collection, list::Buckets, list::GeneratedList};
use crate::postings::ListPostings;
use std::sync::{Arc, Mutex, PoisonError, mpsc::Receiver, mpsc::SyncSender, mpsc::sync_channel};
use std::{ops::Range, thread::Builder, thread::Scope, vec::IntoIter};
use tierdex::internal::index::{EncodedPostings, ListEncoder, PIECE_POSTINGS};
use tierdex::{Error, Result, StopSignal};

/// Approximate number of postings of a job.
const JOB_POSTINGS: u32 = 4 * PIECE_POSTINGS as u32;

/// Largest number of lists of a job.
const JOB_LISTS_MAX: u32 = 1 << 10;

/// Results that may wait for the index writer, for each thread.
const QUEUED_JOBS_PER_THREAD: usize = 4;

/// The result of a job.
type EncodedPieces = Result<Vec<EncodedPostings>>;

/// The encoded pieces of all lists, in order.
pub(super) struct ListPipeline {
    jobs: Receiver<Receiver<EncodedPieces>>,
    /// The rest of the pieces of a job.
    pieces: IntoIter<EncodedPostings>,
}

/// Starts `threads` threads, or fewer if the system refuses more. They end when all lists are encoded, when
/// the pipeline is dropped, or when `stop` is raised.
///
/// # Errors
/// If not even one thread can be started.
pub(super) fn start_pipeline<'scope>(
    of: &'scope Collection,
    encoder: &ListEncoder<'scope>,
    threads: usize,
    scope: &'scope Scope<'scope, '_>,
    stop: &StopSignal,
) -> Result<ListPipeline> {
    let queued = QUEUED_JOBS_PER_THREAD * threads.max(1);
    let (sender, jobs) = sync_channel(queued);
    let splitter = JobSplitter { of, rank: 1, open: None };
    // Only the threads hold the sender, so the channel closes with the last of them.
    let queue = Arc::new(Mutex::new(WorkQueue { splitter, jobs: sender }));
    for number in 0..threads.max(1) {
        let (queue, stop) = (queue.clone(), stop.clone());
        let mut worker = EncodeWorker { of, encoder: encoder.clone() };
        let spawned = Builder::new().spawn_scoped(scope, move || worker.run_worker(&queue, &stop));
        match spawned {
            Err(error) if number == 0 => {
                return Err(
                    tierdex::io::Error::from_os("start", "a thread that generates lists", &error).into()
                );
            }
            Err(_) => break,
            Ok(_) => (),
        }
    }
    Ok(ListPipeline { jobs, pieces: IntoIter::default() })
}

impl ListPipeline {
    /// The next piece.
    ///
    /// # Errors
    /// [`Error::Interrupted`] when the threads have stopped.
    pub(super) fn take_piece(&mut self) -> Result<EncodedPostings> {
        loop {
            if let Some(piece) = self.pieces.next() {
                return Ok(piece);
            }
            let job = self.jobs.recv().map_err(|_| Error::Interrupted)?;
            self.pieces = job.recv().map_err(|_| Error::Interrupted)??.into_iter();
        }
    }
}

/// The shared queue that threads take jobs from.
struct WorkQueue<'a> {
    splitter: JobSplitter<'a>,
    jobs: SyncSender<Receiver<EncodedPieces>>,
}

/// Splits the work into jobs.
struct JobSplitter<'a> {
    of: &'a Collection,
    rank: u32,
    /// The rest of a long list.
    open: Option<ListRange<'a>>,
}

/// A job: what to generate and encode.
enum ListJob<'a> {
    /// The whole lists of a range of ranks.
    Lists(Range<u32>),
    Range(ListRange<'a>),
}

/// A range of the postings of a list.
#[derive(Clone)]
struct ListRange<'a> {
    list: GeneratedList<'a>,
    /// The buckets of the list, from the one that contains the first posting of the range on.
    buckets: Buckets,
    /// Number of postings at the start of `buckets` that are before the range.
    skipped: u32,
    postings: u32,
}

impl<'a> ListRange<'a> {
    /// A whole list.
    fn whole(list: GeneratedList<'a>) -> ListRange<'a> {
        ListRange { buckets: list.buckets(), skipped: 0, postings: list.postings(), list }
    }

    /// Splits off the first `postings` postings, if there are more. The rest begins in the bucket of the
    /// last posting that was split off.
    fn split_off_first(&mut self, postings: u32) -> Option<ListRange<'a>> {
        if self.postings <= postings {
            return None;
        }
        let first = ListRange { postings, ..self.clone() };
        self.postings -= postings;
        self.skipped += postings;
        let mut next = self.buckets.clone();
        while let Some(bucket) = next.next().filter(|bucket| bucket.postings < self.skipped) {
            self.skipped -= bucket.postings;
            self.buckets = next.clone();
        }
        Some(first)
    }
}

impl<'a> Iterator for JobSplitter<'a> {
    type Item = ListJob<'a>;

    fn next(&mut self) -> Option<ListJob<'a>> {
        if let Some(mut rest) = self.open.take() {
            let Some(first) = rest.split_off_first(JOB_POSTINGS) else { return Some(ListJob::Range(rest)) };
            self.open = Some(rest);
            return Some(ListJob::Range(first));
        }
        let from = self.rank;
        if from > self.of.vocabulary() {
            return None;
        }
        if self.of.documents(from) > JOB_POSTINGS {
            self.rank += 1;
            self.open = Some(ListRange::whole(self.of.list(from)));
            return self.next();
        }
        let mut postings = 0;
        while postings < JOB_POSTINGS && self.rank - from < JOB_LISTS_MAX && self.rank <= self.of.vocabulary()
        {
            postings += self.of.documents(self.rank);
            self.rank += 1;
        }
        Some(ListJob::Lists(from..self.rank))
    }
}

/// A thread that generates and encodes lists.
struct EncodeWorker<'a> {
    of: &'a Collection,
    encoder: ListEncoder<'a>,
}

impl<'a> EncodeWorker<'a> {
    fn run_worker(&mut self, queue: &Mutex<WorkQueue<'a>>, stop: &StopSignal) {
        while stop.check().is_ok() {
            let next = queue.lock().unwrap_or_else(PoisonError::into_inner).next_job();
            let Some((job, result)) = next else { return };
            // The receiver is gone when the pipeline was dropped.
            let _ = result.send(self.run_job(job));
        }
    }

    fn run_job(&mut self, job: ListJob<'a>) -> EncodedPieces {
        let mut pieces = Vec::new();
        match job {
            ListJob::Range(part) => self.encode_range(part, &mut pieces)?,
            ListJob::Lists(ranks) => {
                for rank in ranks {
                    self.encode_range(ListRange::whole(self.of.list(rank)), &mut pieces)?;
                }
            }
        }
        Ok(pieces)
    }

    fn encode_range(&mut self, mut part: ListRange<'a>, pieces: &mut Vec<EncodedPostings>) -> Result<()> {
        let mut list = ListPostings::default();
        let mut from = part.skipped as usize;
        while part.postings > 0 {
            let postings = (part.postings as usize).min(PIECE_POSTINGS);
            let to = from + postings;
            while list.documents.len() < to {
                let bucket = part.buckets.next().expect("buckets have all postings");
                part.list.fill(&bucket, &mut list);
            }
            let before = from.checked_sub(1).map(|before| list.documents[before]);
            let (documents, frequencies) = (&list.documents[from..to], &list.frequencies[from..to]);
            let mut piece = EncodedPostings::default();
            self.encoder.encode(before, documents, frequencies, &mut piece)?;
            pieces.push(piece);
            // The last posting is kept, because the next piece is encoded relative to it.
            list.documents.drain(..to - 1);
            list.frequencies.drain(..to - 1);
            from = 1;
            part.postings -= postings as u32;
        }
        Ok(())
    }
}

impl<'a> WorkQueue<'a> {
    /// The next job, and the sender of its result.
    fn next_job(&mut self) -> Option<(ListJob<'a>, SyncSender<EncodedPieces>)> {
        let job = self.splitter.next()?;
        let (result, taken) = sync_channel(1);
        self.jobs.send(taken).ok()?;
        Some((job, result))
    }
}

#[cfg(test)]
mod tests {
    use super::{super::tables::Tables, *};

    /// The postings of a range, after the posting before it.
    fn postings_of(part: &ListRange<'_>) -> Vec<(u32, u32)> {
        let mut postings = ListPostings::default();
        part.buckets.clone().for_each(|bucket| part.list.fill(&bucket, &mut postings));
        let (skipped, end) = (part.skipped as usize, (part.skipped + part.postings) as usize);
        let pairs = postings.documents.into_iter().zip(postings.frequencies);
        pairs.take(end).skip(skipped.saturating_sub(1)).collect()
    }

    #[test]
    fn ranges_of_a_list_join_to_the_list() {
        let tables = Tables::new(false);
        for (documents, postings) in [(20_000, 15_000), (3_000_000, 10_000), (70, 50), (5, 1)] {
            let mut whole = ListRange::whole(GeneratedList::new(&tables, documents, postings, 7));
            let all = postings_of(&whole);
            for size in [1, 63, 64, 1000, 8192].into_iter().filter(|size| 200 * size > postings) {
                let mut rest = whole.clone();
                let mut joined = Vec::new();
                while let Some(first) = rest.split_off_first(size) {
                    let postings = postings_of(&first);
                    assert_eq!(joined.pop(), postings.first().copied().filter(|_| first.skipped > 0));
                    joined.extend(postings);
                }
                joined.pop();
                joined.extend(postings_of(&rest));
                assert!(joined == all, "{postings} of {documents} by {size}");
            }
            assert!(whole.split_off_first(postings).is_none());
        }
    }
}
