//! A thread that makes lists ahead of whoever writes them.

use super::Collection;
use super::list::Postings;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Builder, Scope};
use tierdex::index::Stop;
use tierdex::{Error, Result};

/// Postings that are handed over at once.
const PIECE: usize = 1 << 14;

/// Pieces that wait.
const WAITING: usize = 8;

/// The postings of all lists, one list behind another.
pub(super) struct Ahead {
    made: Receiver<Postings>,
    /// Where emptied pieces go, to be filled again.
    emptied: SyncSender<Postings>,
    piece: Postings,
    taken: usize,
}

/// Starts the thread. It ends when all is made, when nobody takes what it makes, or when `stop` is raised.
///
/// # Errors
/// What the system says to a new thread.
pub(super) fn start<'scope>(
    of: &'scope Collection,
    scope: &'scope Scope<'scope, '_>,
    stop: &Stop,
) -> Result<Ahead> {
    let (sender, made) = sync_channel(WAITING);
    let (emptied, to_fill) = sync_channel(2 * WAITING);
    let stop = stop.clone();
    let spawned = Builder::new().spawn_scoped(scope, move || make(of, &sender, &to_fill, &stop));
    spawned.map_err(|error| tierdex::io::Error::from_os("start", "the thread that makes lists", &error))?;
    Ok(Ahead { made, emptied, piece: Postings::default(), taken: 0 })
}

fn make(of: &Collection, made: &SyncSender<Postings>, to_fill: &Receiver<Postings>, stop: &Stop) {
    let mut piece = Postings::default();
    for rank in 1..=of.vocabulary() {
        let list = of.list(rank);
        for stretch in list.stretches() {
            list.fill(&stretch, &mut piece);
            if piece.documents.len() >= PIECE {
                let next = to_fill.try_recv().unwrap_or_default();
                if stop.check().is_err() || made.send(std::mem::replace(&mut piece, next)).is_err() {
                    return;
                }
            }
        }
    }
    // When nobody takes it, nobody misses it.
    let _ = made.send(piece);
}

impl Ahead {
    /// The next 1 to `most` postings: documents and frequencies.
    ///
    /// # Errors
    /// [`Error::Interrupted`] when the thread has stopped.
    pub(super) fn take(&mut self, most: usize) -> Result<(&[u32], &[u32])> {
        if self.taken == self.piece.documents.len() {
            let next = self.made.recv().map_err(|_| Error::Interrupted)?;
            let mut emptied = std::mem::replace(&mut self.piece, next);
            emptied.clear();
            // When there are enough of them, it goes.
            let _ = self.emptied.try_send(emptied);
            self.taken = 0;
        }
        let from = self.taken;
        self.taken = self.piece.documents.len().min(from + most);
        Ok((&self.piece.documents[from..self.taken], &self.piece.frequencies[from..self.taken]))
    }
}
