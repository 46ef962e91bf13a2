//! The flags of the generator, and their valid ranges.

use crate::generate::zipf::documents_max;
use clap::Args;
use std::path::PathBuf;
use tierdex::{Error, Result, codec::Codec, limits::DOCUMENTS_MAX};

/// Largest average number of postings per document.
const POSTINGS_MAX: u64 = 1 << 20;

/// Flags of the generator.
#[derive(Args, Clone, Debug)]
pub struct Flags {
    /// Number of documents
    #[arg(long, value_name = "N")]
    pub docs: u64,
    /// Number of postings: the sum of the document frequencies of all terms
    #[arg(long, value_name = "N")]
    pub postings: u64,
    /// Number of terms: t0000001, t0000002, ..., most frequent first
    #[arg(long, value_name = "N")]
    pub vocabulary: u64,
    /// Seed of the random numbers
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Codec of document numbers, by its name in docs/format/codecs.md
    #[arg(long, value_name = "NAME", default_value = "auto", value_parser = codec)]
    pub codec: Codec,
    /// Codec of frequencies, without differences [default: that form of --codec]
    #[arg(long, value_name = "NAME", value_parser = freq_codec)]
    pub freq_codec: Option<Codec>,
    /// Make all frequencies 1 and pack them into no bits: an index of document numbers only
    #[arg(long, conflicts_with = "freq_codec")]
    pub ids_only: bool,
    /// Directory of the index
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
}

fn codec(name: &str) -> std::result::Result<Codec, String> {
    Codec::from_name(name).ok_or_else(|| {
        let names: Vec<&str> = Codec::ALL.iter().map(|codec| codec.name()).collect();
        format!("there are {}", names.join(", "))
    })
}

fn freq_codec(name: &str) -> std::result::Result<Codec, String> {
    let codec = codec(name)?;
    match codec.plain() {
        plain if plain == codec => Ok(codec),
        plain => Err(format!("frequencies do not increase; give {}", plain.name())),
    }
}

impl Flags {
    /// An index of these sizes with the default codecs, in the current directory.
    pub fn with_sizes(docs: u64, postings: u64, vocabulary: u64, seed: u64) -> Flags {
        let (codec, freq_codec, ids_only, out) = (Codec::Auto, None, false, PathBuf::new());
        Flags { docs, postings, vocabulary, seed, codec, freq_codec, ids_only, out }
    }

    /// Numbers of documents, postings and terms.
    ///
    /// # Errors
    /// [`Error::Usage`] if there is no index of these sizes.
    pub(super) fn sizes(&self) -> Result<(u32, u64, u32)> {
        let wrong = |message: String| Err(Error::Usage(message));
        let (docs, postings, vocabulary) = (self.docs, self.postings, self.vocabulary);
        if docs == 0 || docs > DOCUMENTS_MAX {
            return wrong(format!("--docs {docs}: an index has 1 to {DOCUMENTS_MAX} documents"));
        }
        if vocabulary == 0 || vocabulary > u64::from(u32::MAX) - 1 {
            return wrong(format!("--vocabulary {vocabulary}: there are 1 to {} terms", u32::MAX - 1));
        }
        if postings < vocabulary {
            return wrong(format!(
                "--postings {postings}: each of {vocabulary} terms needs at least one document"
            ));
        }
        let most = u64::from(documents_max(docs as u32));
        let most = most.saturating_mul(vocabulary).min(docs.saturating_mul(POSTINGS_MAX));
        if postings > most {
            return wrong(format!(
                "--postings {postings}: {docs} documents and {vocabulary} terms have at most {most}; a term is in at \
                 most three quarters of the documents, and a document has at most {POSTINGS_MAX} terms on average"
            ));
        }
        Ok((docs as u32, postings, vocabulary as u32))
    }
}
