//! Duration of the phases of indexing, on one thread: a row for each phase.
//!
//! 1. *ingest*: words of documents are looked up and their postings appended.
//! 2. *sort*: the postings of a batch of documents are sorted by term.
//! 3. *transform*: batches are merged and encoded.
//! 4. *flush*: files are written and made durable. It happens during the third phase and is subtracted from
//!    it.
//!
//! The documents are generated between the timed parts, so that no time is spent on reading them.

use crate::request::{experiment::ExperimentRequest, timed_disk::TimedDisk};
use crate::{Error, Random, Result, generate::Collection, generate::Flags};
use serde::Deserialize;
use serde_json::{Value, json};
use std::{fmt::Write, path::PathBuf, sync::Arc, time::Duration, time::Instant};
use tierdex::internal::index::BatchBuilder;
use tierdex::{
    DocumentRef, IndexWriter, Merge, OpenMode, StopSignal, WriterOptions, codec::Codec, commit::Manifest,
    io::PosixDisk, schema::Schema,
};

/// Words of a document of 1 KB.
const DOCUMENT_WORDS: usize = 110;
/// Number of documents that are generated between two timed parts.
const CHUNK_DOCUMENTS: usize = 1000;

/// A collection that is indexed.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct IndexingRequest {
    /// Directory in which the index is written, into a directory that is removed at the end.
    pub(crate) dir: PathBuf,
    /// Number of documents.
    pub(crate) docs: u64,
    /// Number of postings of a generated collection of this size, which must exist.
    pub(crate) postings: u64,
    /// Number of terms.
    pub(crate) vocabulary: u64,
    /// Name of the codec of document numbers.
    pub(crate) codec: String,
}

/// The phases, in the order of their times.
const PHASES: [&str; 4] = ["ingest", "sort", "transform", "flush"];

impl IndexingRequest {
    /// The schema of a generated collection of these sizes.
    fn schema(&self) -> Result<Schema> {
        let codec = Codec::from_name(&self.codec);
        let codec =
            codec.ok_or_else(|| Error::Usage(format!("`codec`: no codec is called {}", self.codec)))?;
        let sizes = Flags::with_sizes(self.docs, self.postings, self.vocabulary, 1);
        Ok(Collection::new(&Flags { codec, ..sizes })?.schema())
    }

    /// Indexes the documents. Returns the time of each phase.
    fn index(&self, disk: &Arc<TimedDisk>, schema: Schema, stop: &StopSignal) -> Result<[Duration; 4]> {
        let options = WriterOptions { stop: stop.clone(), ..WriterOptions::default() };
        let mut writer = IndexWriter::open(disk.clone(), schema, OpenMode::New, options)?;
        let mut batch = BatchBuilder::new(writer.schema().clone(), writer.document_bytes_max());
        let [mut ingest, mut sort, mut transform] = [Duration::ZERO; 3];
        let mut words = ZipfWords { vocabulary: self.vocabulary as f64, random: Random::new(1) };
        let mut number = 0;
        while number < self.docs {
            stop.check()?;
            let count = CHUNK_DOCUMENTS.min((self.docs - number) as usize);
            let texts: Vec<String> = (0..count).map(|_| words.next_document()).collect();
            let began = Instant::now();
            for text in &texts {
                batch.add(DocumentRef {
                    id: &number.to_string(),
                    values: &[(1, text)],
                    ..DocumentRef::default()
                })?;
                number += 1;
            }
            ingest += began.elapsed();
            if batch.is_full() || number == self.docs {
                let began = Instant::now();
                let sealed = batch.seal()?;
                sort += began.elapsed();
                let began = Instant::now();
                writer.push(sealed)?;
                transform += began.elapsed();
            }
        }
        let began = Instant::now();
        writer.commit(Merge::Keep)?;
        transform += began.elapsed();
        let flush = disk.elapsed();
        Ok([ingest, sort, transform.saturating_sub(flush), flush])
    }
}

impl ExperimentRequest for IndexingRequest {
    /// A row for each phase: its `seconds`, its `share` of all phases, and the postings of the index.
    fn answer(&self, stop: &StopSignal) -> Result<Value> {
        let schema = self.schema()?;
        let dir = tempfile::Builder::new().prefix("indexing-").tempdir_in(&self.dir);
        let parent = self.dir.display();
        let dir = dir.map_err(Error::failed(format!("cannot make a directory in {parent}")))?;
        let disk = Arc::new(TimedDisk::new(PosixDisk::create(dir.path())?));
        let times = self.index(&disk, schema, stop)?;
        let manifest = Manifest::read_newest(disk.as_ref())?;
        let segments = manifest.iter().flat_map(|one| &one.segments);
        let postings: u64 = segments.map(|one| one.fields[0].postings).sum();
        let all = times.iter().sum::<Duration>().as_secs_f64();
        let row = |(phase, time): (&str, Duration)| {
            let seconds = time.as_secs_f64();
            json!({ "phase": phase, "seconds": seconds, "share": seconds / all, "indexed_postings": postings })
        };
        let rows: Vec<Value> = PHASES.into_iter().zip(times).map(row).collect();
        Ok(json!({ "rows": rows }))
    }

    fn has_temporary_files(&self) -> bool {
        true
    }
}

/// Words whose logarithm of the rank is uniform, so that their frequency is about inverse to the rank.
struct ZipfWords {
    vocabulary: f64,
    random: Random,
}

impl ZipfWords {
    fn next_document(&mut self) -> String {
        let mut text = String::with_capacity(DOCUMENT_WORDS * 10);
        for _ in 0..DOCUMENT_WORDS {
            let rank = self.vocabulary.powf(self.random.unit()) as u64;
            // Writing to a string cannot fail.
            let _ = write!(text, "t{rank:07} ");
        }
        text
    }
}
