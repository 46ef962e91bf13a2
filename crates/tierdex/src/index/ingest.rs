//! Analyses documents on several threads, with the same result as on one.
//!
//! 1. A thread takes the next raw piece of input; pieces are numbered as they are taken.
//! 2. It parses and analyses the piece into a batch, without any lock.
//! 3. It waits until the batches of all earlier pieces have been sent, and sends its batch.
//! 4. The calling thread adds the batches to the writer in that order.
//!
//! So the index depends on the pieces of the input, but not on the number of threads.

use super::batch::{BatchBuilder, DocumentRef, SealedBatch};
use super::writer::IndexWriter;
use crate::{error::Result, schema::ColumnValue};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;

/// The batches of a piece of input, and what its parser reports.
type ParsedPiece<P> = Result<(Vec<SealedBatch>, P)>;

/// See [`IndexWriter::ingest`].
fn ingest_all<R, P>(
    writer: &mut IndexWriter,
    threads: usize,
    mut next: impl FnMut() -> Result<Option<R>> + Send,
    parse: impl Fn(R, &mut dyn FnMut(DocumentRef<'_>) -> Result<()>) -> Result<P> + Sync,
    mut report: impl FnMut(P) -> Result<()>,
) -> Result<()>
where
    R: Send,
    P: Send,
{
    let (schema, document_max) = (writer.schema().clone(), writer.document_bytes_max());
    let parse_piece = |batch: &mut BatchBuilder, piece: R| -> ParsedPiece<P> {
        let mut sealed = Vec::new();
        let reported = parse(piece, &mut |document| {
            batch.add(document)?;
            if batch.is_full() {
                sealed.push(batch.seal()?);
            }
            Ok(())
        })?;
        sealed.push(batch.seal()?);
        Ok((sealed, reported))
    };
    let mut accept = |writer: &mut IndexWriter, (batches, reported): (Vec<SealedBatch>, P)| {
        report(reported)?;
        batches.into_iter().try_for_each(|batch| writer.push(batch))
    };
    let threads = threads.min(writer.threads_max());
    if threads <= 1 {
        let mut batch = BatchBuilder::new(schema, document_max);
        while let Some(piece) = next()? {
            accept(writer, parse_piece(&mut batch, piece)?)?;
        }
        return Ok(());
    }
    let queue =
        InputQueue { source: Mutex::new((0, next)), turn: Mutex::new(Some(0)), turn_changed: Condvar::new() };
    std::thread::scope(|scope| {
        let (sender, receiver) = sync_channel(1);
        for number in 0..threads {
            let (sender, schema, queue, parse_piece) = (sender.clone(), schema.clone(), &queue, &parse_piece);
            let started = Builder::new().spawn_scoped(scope, move || {
                let mut batch = BatchBuilder::new(schema, document_max);
                queue.parse_pieces(&sender, |piece| parse_piece(&mut batch, piece));
            });
            match started {
                Err(error) if number == 0 => {
                    return Err(
                        tierdex_io::Error::from_os("start", "a thread that analyses text", &error).into()
                    );
                }
                // The operating system starts no more threads: those that were started analyse all input.
                Err(_) => break,
                Ok(_) => (),
            }
        }
        drop(sender);
        let stop = writer.stop().clone();
        let mut parsed = receiver.iter();
        let result = parsed.try_for_each(|parsed| accept(writer, parsed?)).inspect_err(|_| stop.raise());
        queue.stop();
        drop(receiver);
        result
    })
}

/// A document to add to an index: an id, and values of members by their names.
///
/// ```
/// use tierdex::Document;
///
/// let document = Document::new(17).with("title", "Disks").with("text", "A solid state disk.");
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Document {
    /// External id, up to 4,096 bytes. Ids may repeat, unless the index is updatable: then the last document
    /// with an id replaces the others.
    pub id: String,
    /// Names of members with a value each; a member may have several values.
    pub values: Vec<(String, String)>,
    /// Names of columns with a value each; a multi-valued column may have several values.
    pub columns: Vec<(String, ColumnValue)>,
    /// What the document has beside its members ([`DocumentRef::others`]).
    pub others: String,
}

impl Document {
    /// A document without values.
    pub fn new(id: impl ToString) -> Document {
        Document { id: id.to_string(), ..Document::default() }
    }

    /// Adds a value of a member.
    #[must_use]
    pub fn with(mut self, member: impl Into<String>, value: impl Into<String>) -> Document {
        self.values.push((member.into(), value.into()));
        self
    }

    /// Adds a value of a column.
    #[must_use]
    pub fn with_column(mut self, column: impl Into<String>, value: ColumnValue) -> Document {
        self.columns.push((column.into(), value));
        self
    }

    fn bytes(&self) -> usize {
        let columns = size_of::<ColumnValue>() * self.columns.len();
        let values = self.values.iter().map(|(_, value)| value.len()).sum::<usize>();
        values + columns + self.id.len() + self.others.len()
    }
}

/// Bytes of documents that [`IndexWriter::add_all`] collects for a thread.
const PIECE_BYTES: usize = 256 << 10;

impl IndexWriter {
    /// Adds all documents of an input that is parsed and analysed by up to `threads` threads, no more than
    /// fit into the writer's memory or than the system starts. The index does not depend on their number.
    ///
    /// - `next` returns raw pieces of the input in order, such as some hundred kilobytes of whole lines, and
    ///   `None` after the last.
    /// - `parse` adds the documents of a piece by the given function, `add(document)`, and returns a
    ///   report. It runs on several threads. A document that `add` rejects with [`Error::TooLarge`] is left
    ///   out, and `parse` may go on; any other error must be returned.
    /// - `report` receives the reports in the order of the pieces, on the calling thread, and may stop with
    ///   an error.
    ///
    /// ```
    /// use tierdex::DocumentRef;
    /// # use tierdex::{IndexWriter, Merge, Schema, WriterOptions};
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let dir = dir.path().join("index");
    /// let mut writer = IndexWriter::create(&dir, Schema::default(), WriterOptions::default())?;
    /// let mut pieces = ["1\tone\n2\ttwo\n", "no tab\n3\tthree\n"].into_iter();
    /// let mut malformed = 0;
    /// writer.ingest(
    ///     2,
    ///     || Ok(pieces.next()),
    ///     |piece, add| {
    ///         let mut malformed = 0;
    ///         for line in piece.lines() {
    ///             match line.split_once('\t') {
    ///                 Some((id, text)) => {
    ///                     add(DocumentRef { id, values: &[(1, text)], ..DocumentRef::default() })?
    ///                 }
    ///                 None => malformed += 1,
    ///             }
    ///         }
    ///         Ok(malformed)
    ///     },
    ///     |in_piece: usize| {
    ///         malformed += in_piece;
    ///         Ok(())
    ///     },
    /// )?;
    /// writer.commit(Merge::Keep)?;
    /// assert_eq!((writer.documents(), malformed), (3, 1));
    /// # Ok::<(), tierdex::Error>(())
    /// ```
    ///
    /// # Errors
    /// The first error of the three functions or of the writer. It raises the writer's stop signal: nothing
    /// can be committed after it, and a `next` that waits for more input can check the signal and return.
    ///
    /// [`Error::TooLarge`]: crate::Error::TooLarge
    pub fn ingest<R, P>(
        &mut self,
        threads: usize,
        next: impl FnMut() -> Result<Option<R>> + Send,
        parse: impl Fn(R, &mut dyn FnMut(DocumentRef<'_>) -> Result<()>) -> Result<P> + Sync,
        report: impl FnMut(P) -> Result<()>,
    ) -> Result<()>
    where
        R: Send,
        P: Send,
    {
        let result = ingest_all(self, threads, next, parse, report);
        if let Err(error) = &result {
            self.stop().raise();
            self.poison(error);
        }
        result
    }

    /// Adds all documents of an iterator, in its order, with up to `threads` threads for analysis, and no
    /// more than the memory of the writer allows. The index does not depend on the number of threads.
    ///
    /// # Errors
    /// As [`IndexWriter::add`]; any error stops the writer, and nothing can be committed after it.
    pub fn add_all<D>(&mut self, documents: D, threads: usize) -> Result<()>
    where
        D: IntoIterator<Item = Document>,
        D::IntoIter: Send,
    {
        let (mut documents, schema) = (documents.into_iter(), self.schema().clone());
        let piece = || {
            let (mut piece, mut bytes) = (Vec::new(), 0);
            while bytes < PIECE_BYTES
                && let Some(document) = documents.next()
            {
                bytes += document.bytes();
                piece.push(document);
            }
            Ok(Some(piece).filter(|piece| !piece.is_empty()))
        };
        let add = |piece: Vec<Document>, add: &mut dyn FnMut(DocumentRef<'_>) -> Result<()>| {
            piece.iter().try_for_each(|Document { id, values, columns, others }| {
                let values =
                    values.iter().map(|(name, value)| Ok((schema.member_named(name)?, value.as_str())));
                let values = values.collect::<Result<Vec<_>>>()?;
                let columns = columns.iter().map(|(name, value)| Ok((schema.column_named(name)?, *value)));
                let columns = columns.collect::<Result<Vec<_>>>()?;
                add(DocumentRef { id, values: &values, columns: &columns, others })
            })
        };
        self.ingest(threads, piece, add, |()| Ok(()))
    }
}

/// The input in numbered pieces, and the order in which their batches are sent to the writer.
struct InputQueue<N> {
    /// The number of the next piece, and the source of pieces.
    source: Mutex<(u64, N)>,
    /// The number of the piece whose batches are sent next; `None` to stop all threads.
    turn: Mutex<Option<u64>>,
    /// Notified when `turn` has changed.
    turn_changed: Condvar,
}

impl<N> InputQueue<N> {
    /// Takes pieces, parses them and sends their batches, on one thread, until the input ends or is stopped.
    fn parse_pieces<R, P>(
        &self,
        sender: &SyncSender<ParsedPiece<P>>,
        mut parse: impl FnMut(R) -> ParsedPiece<P>,
    ) where
        N: FnMut() -> Result<Option<R>>,
    {
        // After a panic of the parser the other threads would wait for this turn for ever.
        let guard = StopOnPanic(self);
        loop {
            let (number, piece) = {
                let mut source = lock(&self.source);
                if lock(&self.turn).is_none() {
                    break;
                }
                let piece = (source.1)();
                let number = source.0;
                source.0 += 1;
                (number, piece)
            };
            let parsed = match piece {
                Ok(Some(piece)) => parse(piece),
                Ok(None) => break,
                Err(error) => Err(error),
            };
            if !self.send_in_turn(number, parsed, sender) {
                break;
            }
        }
        std::mem::forget(guard);
    }

    /// Sends the batches of a piece, or its error, when all earlier pieces have been sent; false if all
    /// threads should stop.
    fn send_in_turn<P>(
        &self,
        number: u64,
        parsed: ParsedPiece<P>,
        sender: &SyncSender<ParsedPiece<P>>,
    ) -> bool {
        let mut turn = lock(&self.turn);
        while turn.is_some_and(|turn| turn != number) {
            turn = self.turn_changed.wait(turn).unwrap_or_else(PoisonError::into_inner);
        }
        if turn.is_none() {
            return false;
        }
        // Only this thread advances the turn, so the lock is not held while it sends.
        drop(turn);
        let sent = parsed.is_ok();
        let sent = sender.send(parsed).is_ok() && sent;
        let mut turn = lock(&self.turn);
        *turn = turn.filter(|_| sent).map(|turn| turn + 1);
        self.turn_changed.notify_all();
        turn.is_some()
    }

    fn stop(&self) {
        *lock(&self.turn) = None;
        self.turn_changed.notify_all();
    }
}

/// Stops all threads when it is dropped, which happens only if a thread panics.
struct StopOnPanic<'a, N>(&'a InputQueue<N>);

impl<N> Drop for StopOnPanic<'_, N> {
    fn drop(&mut self) {
        self.0.stop();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
