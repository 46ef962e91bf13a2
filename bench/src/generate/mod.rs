//! Generates an index of any size without text: posting lists like those of English documents of 1 KB.
//!
//! 1. `Zipf` determines the document frequency of each term.
//! 2. Every list is generated a first time to compute the document lengths (`lengths`). A block stores its
//!    max score, which depends on the lengths, so they must be known before lists are written. Each thread
//!    generates the lists for its own range of documents.
//! 3. Every list is generated again and encoded, by threads (`pipeline`) that run ahead of the index writer.
//!
//! The same flags give the same bytes, on every machine and with any number of threads. Memory: five bytes
//! per document and some MB, independent of the number of postings.

mod collection;
mod flags;
mod lengths;
mod list;
mod pipeline;
mod tables;
mod zipf;

pub use collection::{Collection, Progress};
pub use flags::Flags;

use collection::ProgressSteps;
use std::{fmt::Write, sync::Arc};
use tierdex::{
    IndexWriter, Merge, OpenMode, Result, StopSignal, WriterOptions, io::Disk, limits::MEMORY_MIN,
};

impl Collection {
    /// Writes a new index of the collection: one commit with all documents.
    ///
    /// # Errors
    /// As [`Collection::write`], and if the directory has an index or the commit fails.
    pub fn create(&self, disk: Arc<dyn Disk>, threads: usize, stop: &StopSignal) -> Result<()> {
        let options = WriterOptions { memory: MEMORY_MIN, stop: stop.clone(), ..WriterOptions::default() };
        let mut writer = IndexWriter::open(disk, self.schema(), OpenMode::New, options)?;
        self.write(&mut writer, threads, &mut |_| ())?;
        writer.commit(Merge::Keep).map(drop)
    }

    /// Adds all documents to `writer`, whose schema must be [`Collection::schema`], on `threads` threads.
    /// The external id of a document is its number.
    ///
    /// # Errors
    /// Errors of the writer; [`tierdex::Error::Interrupted`] when its stop signal is raised.
    pub fn write(&self, writer: &mut IndexWriter, threads: usize, progress: Progress<'_>) -> Result<()> {
        let stop = writer.stop().clone();
        let lengths = lengths::compute_lengths(self, threads, &stop, progress)?;
        let number = |document: u32, id: &mut String| {
            // Writing to a string cannot fail.
            let _ = write!(id, "{document}");
        };
        writer.import(lengths, number, |lists| {
            std::thread::scope(|scope| {
                let mut pipeline = pipeline::start_pipeline(self, &lists.encoder(), threads, scope, &stop)?;
                let mut steps = ProgressSteps::from(self.postings());
                for rank in 1..=self.vocabulary() {
                    lists.term(&self.term(rank), |list| {
                        let mut missing = self.documents(rank);
                        while missing > 0 {
                            let piece = pipeline.take_piece()?;
                            list.append(&piece)?;
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
}
