//! A generated collection: its sizes, terms and posting lists.

use crate::Random;
use crate::generate::{flags::Flags, list::GeneratedList, tables::Tables, zipf::Zipf};
use tierdex::schema::{Field, Schema, Stored};
use tierdex::{Result, codec::Codec};

/// The documents, posting lists and terms of a generated index.
pub struct Collection {
    pub(super) documents: u32,
    postings: u64,
    seed: u64,
    codec: Codec,
    freq_codec: Codec,
    zipf: Zipf,
    tables: Tables,
}

/// Progress callback. The argument is the number of postings generated so far, over both passes: the lengths
/// of documents, then the lists. At the end it is twice the number of postings of the index.
pub type Progress<'a> = &'a mut dyn FnMut(u64);

impl Collection {
    /// The collection that the flags describe.
    ///
    /// # Errors
    /// [`tierdex::Error::Usage`] if there is no such collection.
    pub fn new(flags: &Flags) -> Result<Collection> {
        let (documents, postings, vocabulary) = flags.sizes()?;
        let packed = flags.ids_only.then_some(Codec::Pfor256);
        let freq_codec = flags.freq_codec.or(packed).unwrap_or(flags.codec.plain());
        Ok(Collection {
            documents,
            postings,
            seed: flags.seed,
            codec: flags.codec,
            freq_codec,
            zipf: Zipf::new(documents, postings, vocabulary),
            tables: Tables::new(flags.ids_only),
        })
    }

    /// The schema of the index: one field, `text`, with the codecs of the flags; nothing is stored.
    pub fn schema(&self) -> Schema {
        let text = Field::new("text", &["text"]);
        let field = Field { doc_codec: self.codec, freq_codec: self.freq_codec, ..text };
        Schema { stored: Stored::Nothing, ..Schema::of(vec![field]) }
    }

    /// Number of postings of all lists.
    pub fn postings(&self) -> u64 {
        self.postings
    }

    /// Number of terms.
    pub fn vocabulary(&self) -> u32 {
        self.zipf.vocabulary()
    }

    /// Document frequency of the term of `rank`. The most frequent term has rank 1.
    pub fn documents(&self, rank: u32) -> u32 {
        self.zipf.documents(rank)
    }

    /// The term of `rank`: `t` and the rank, zero-padded to the same width for all terms, at least seven
    /// digits. So the order of the terms is that of their document frequencies.
    pub fn term(&self, rank: u32) -> String {
        let width = self.vocabulary().to_string().len().max(7);
        format!("t{rank:0width$}")
    }

    /// The posting list of the term of `rank`.
    pub(super) fn list(&self, rank: u32) -> GeneratedList<'_> {
        let seed = Random::new(self.seed ^ u64::from(rank).wrapping_mul(RANK_SEED_FACTOR)).bits();
        GeneratedList::new(&self.tables, self.documents, self.documents(rank), seed)
    }
}

/// Counts postings and reports them to a progress callback.
pub(super) struct ProgressSteps {
    done: u64,
    reported: u64,
}

impl ProgressSteps {
    /// Starts to count at `done` postings.
    pub(super) fn from(done: u64) -> ProgressSteps {
        ProgressSteps { done, reported: done }
    }

    /// Adds postings, and reports about every million.
    pub(super) fn add(&mut self, postings: u64, progress: Progress<'_>) {
        self.done += postings;
        if self.done - self.reported >= 1 << 20 {
            self.reported = self.done;
            progress(self.done);
        }
    }
}

/// Multiplier of the rank in the seed of a list, so that the random numbers of lists differ.
const RANK_SEED_FACTOR: u64 = 0xA24B_AED4_963E_E407;
