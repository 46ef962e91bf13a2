//! The flags of the generator, and what they can ask for.

use super::zipf::documents_max;
use clap::Args;
use std::path::PathBuf;
use tierdex::limits::DOCUMENTS_MAX;
use tierdex::{Error, Result};

/// Postings of a document on average, at most.
const POSTINGS_MAX: u64 = 1 << 20;

/// What to make, and where.
#[derive(Args, Clone, Debug)]
pub struct Flags {
    /// Documents
    #[arg(long, value_name = "N")]
    pub docs: u64,
    /// Postings: the documents of all terms, summed up
    #[arg(long, value_name = "N")]
    pub postings: u64,
    /// Terms; the more frequent a term, the smaller its number: t0000001, t0000002, ...
    #[arg(long, value_name = "N")]
    pub vocabulary: u64,
    /// Seed of the random numbers
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Directory of the index
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
}

impl Flags {
    /// Documents, postings and terms.
    ///
    /// # Errors
    /// [`Error::Usage`] if there is no such index.
    pub(super) fn sizes(&self) -> Result<(u32, u64, u32)> {
        let wrong = |what: String| Err(Error::Usage(what));
        let (docs, postings, vocabulary) = (self.docs, self.postings, self.vocabulary);
        if docs == 0 || docs > DOCUMENTS_MAX {
            return wrong(format!("--docs {docs}: an index has 1 to {DOCUMENTS_MAX} documents"));
        }
        if vocabulary == 0 || vocabulary > u64::from(u32::MAX) - 1 {
            return wrong(format!("--vocabulary {vocabulary}: there are 1 to {} terms", u32::MAX - 1));
        }
        if postings < vocabulary {
            return wrong(format!(
                "--postings {postings}: each of {vocabulary} terms stands in a document at least"
            ));
        }
        let most = u64::from(documents_max(docs as u32));
        let most = most.saturating_mul(vocabulary).min(docs.saturating_mul(POSTINGS_MAX));
        if postings > most {
            return wrong(format!(
                "--postings {postings}: {docs} documents and {vocabulary} terms have at most {most}, since a term \
                 stands in three quarters of the documents at most and a document holds {POSTINGS_MAX} terms on \
                 average at most"
            ));
        }
        Ok((docs as u32, postings, vocabulary as u32))
    }
}
