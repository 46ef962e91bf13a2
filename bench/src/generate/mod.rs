//! An index of any size without any text: posting lists as those of English documents of 1 KB, made on the fly.
//!
//! 1. [`Zipf`] says how many documents each term stands in;
//! 2. every [`List`] is made a first time, each thread for documents of its own, and the documents' lengths are summed
//!    up (`lengths`): blocks say what they can score at most, so lengths are known before lists are written;
//! 3. every list is made again and encoded, by threads that run ahead (`ahead`) of the index writer.
//!
//! The same flags give the same bytes, on every machine and by any number of threads. Memory: five bytes a document
//! and some MB, whatever the postings.

mod ahead;
mod flags;
mod lengths;
mod list;
mod tables;
mod zipf;

pub use flags::Flags;

use crate::Random;
use list::List;
use std::fmt::Write;
use tables::Tables;
use tierdex::Result;
use tierdex::index::IndexWriter;
use tierdex::schema::{Field, Schema, Source};
use zipf::Zipf;

/// What an index is made of.
pub struct Collection {
    documents: u32,
    postings: u64,
    seed: u64,
    zipf: Zipf,
    tables: Tables,
}

/// How far the work is: postings made, twice each.
pub type Progress<'a> = &'a mut dyn FnMut(u64);

impl Collection {
    /// The collection that the flags ask for.
    ///
    /// # Errors
    /// [`tierdex::Error::Usage`] if there is none such.
    pub fn new(flags: &Flags) -> Result<Collection> {
        let (documents, postings, vocabulary) = flags.sizes()?;
        Ok(Collection {
            documents,
            postings,
            seed: flags.seed,
            zipf: Zipf::new(documents, postings, vocabulary),
            tables: Tables::new(),
        })
    }

    /// The schema of its index: one field, `text`, with the default codecs; nothing is stored.
    pub fn schema() -> Schema {
        Schema { fields: vec![Field::new("text", Source::Text)], stored: false }
    }

    /// Postings of all lists.
    pub fn postings(&self) -> u64 {
        self.postings
    }

    /// Terms.
    pub fn vocabulary(&self) -> u32 {
        self.zipf.vocabulary()
    }

    /// Documents that the term of `rank` stands in. The most frequent one has rank 1.
    pub fn documents(&self, rank: u32) -> u32 {
        self.zipf.documents(rank)
    }

    /// The term of `rank`: `t` and the rank, with as many zeros in front as make all terms of one width, seven
    /// digits at least. So the order of terms is that of their frequencies.
    pub fn term(&self, rank: u32) -> String {
        let width = self.vocabulary().to_string().len().max(7);
        format!("t{rank:0width$}")
    }

    /// Adds all documents to `writer`, whose schema is [`Collection::schema`]; the ids are the documents' numbers.
    /// `threads` may work at once.
    ///
    /// # Errors
    /// What the writer gives; [`tierdex::Error::Interrupted`] when its stop signal is raised.
    pub fn write(&self, writer: &mut IndexWriter, threads: usize, progress: Progress<'_>) -> Result<()> {
        let stop = writer.stop().clone();
        let lengths = lengths::count(self, threads, &stop, progress)?;
        let number = |document: u32, id: &mut String| {
            // A string takes all that is written to it.
            let _ = write!(id, "{document}");
        };
        writer.import(lengths, number, |lists| {
            std::thread::scope(|scope| {
                let mut ahead = ahead::start(self, &lists.encoder(), threads, scope, &stop)?;
                let mut steps = Steps::from(self.postings);
                for rank in 1..=self.vocabulary() {
                    lists.term(&self.term(rank), |list| {
                        let mut missing = self.documents(rank);
                        while missing > 0 {
                            let piece = ahead.take()?;
                            list.append(piece)?;
                            missing -= piece.postings();
                            steps.add(u64::from(piece.postings()), progress);
                        }
                        Ok(())
                    })?;
                }
                Ok(())
            })
        })
    }

    fn list(&self, rank: u32) -> List<'_> {
        let seed = Random::new(self.seed ^ u64::from(rank).wrapping_mul(RANK_STEP)).bits();
        List::new(&self.tables, self.documents, self.documents(rank), seed)
    }
}

/// Postings made, and how many of them were told.
struct Steps {
    done: u64,
    told: u64,
}

impl Steps {
    fn from(done: u64) -> Steps {
        Steps { done, told: done }
    }

    /// Tells every million or so.
    fn add(&mut self, postings: u64, progress: Progress<'_>) {
        self.done += postings;
        if self.done - self.told >= 1 << 20 {
            self.told = self.done;
            progress(self.done);
        }
    }
}

/// Keeps the random numbers of lists apart.
const RANK_STEP: u64 = 0xA24B_AED4_963E_E407;
