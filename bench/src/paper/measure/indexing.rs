//! Duration of the phases of indexing, on one thread: a row for each phase.
//!
//! 1. *ingest*: words of documents are looked up and their postings appended.
//! 2. *sort*: the postings of a batch of documents are sorted by term.
//! 3. *transform*: batches are merged and encoded.
//! 4. *flush*: files are written and made durable. It happens during the third phase and is subtracted from
//!    it.
//!
//! The documents are generated between the timed parts, so that no time is spent on reading them.

use crate::paper::measure::settings::{index_of, members_of, parse_settings};
use crate::paper::{cell::FigureCell, cell::Row, measure::context::Context, measure::timed_disk::TimedDisk};
use crate::{Error, Random, Result, paper::data::IndexSpec, paper::data::TemporaryDir};
use clap::Args;
use serde_json::json;
use std::{fmt::Write, sync::Arc, time::Duration, time::Instant};
use tierdex::internal::index::BatchBuilder;
use tierdex::{IndexWriter, Merge, OpenMode, WriterOptions, commit::Manifest, io::PosixDisk};

/// Words of a document of 1 KB.
const DOCUMENT_WORDS: usize = 110;
/// Number of documents that are generated between two timed parts.
const CHUNK_DOCUMENTS: usize = 1000;

/// The experiment has no flags.
#[derive(Args)]
struct NoFlags {}

/// Checks that a cell has no settings but those of its collection.
pub(super) fn check_settings(cell: &FigureCell) -> Result<IndexSpec> {
    parse_settings::<NoFlags>(cell, &[], &[])?;
    index_of(cell)
}

pub(super) fn measure(cell: &FigureCell, context: &Context<'_>) -> Result<Vec<Row>> {
    let spec = check_settings(cell)?;
    let dir = TemporaryDir::new(&context.data.dir, "indexing")?;
    let disk = Arc::new(TimedDisk::new(PosixDisk::create(dir.path())?));
    let options = WriterOptions { stop: context.stop.clone(), ..WriterOptions::default() };
    let mut writer = IndexWriter::open(disk.clone(), spec.collection()?.schema(), OpenMode::New, options)?;
    let mut batch = BatchBuilder::new(writer.schema().clone(), writer.document_bytes_max());
    let (mut ingest, mut sort, mut transform) = (Duration::ZERO, Duration::ZERO, Duration::ZERO);
    let mut words = ZipfWords { vocabulary: spec.vocabulary as f64, random: Random::new(1) };
    let mut number = 0;
    while number < spec.docs {
        context.stop.check().map_err(|_| Error::Interrupted)?;
        let count = CHUNK_DOCUMENTS.min((spec.docs - number) as usize);
        let texts: Vec<String> = (0..count).map(|_| words.next_document()).collect();
        let began = Instant::now();
        for text in &texts {
            batch.add(&number.to_string(), "", text)?;
            number += 1;
        }
        ingest += began.elapsed();
        if batch.is_full() || number == spec.docs {
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
    let transform = transform.saturating_sub(flush);
    let manifest = Manifest::read_newest(disk.as_ref())?;
    let postings: u64 = manifest.iter().flat_map(|one| &one.segments).map(|one| one.fields[0].postings).sum();
    let all = (ingest + sort + transform + flush).as_secs_f64();
    let row = |(phase, time): (&str, Duration)| {
        let seconds = time.as_secs_f64();
        members_of(
            json!({ "phase": phase, "seconds": seconds, "share": seconds / all, "indexed_postings": postings }),
        )
    };
    Ok([("ingest", ingest), ("sort", sort), ("transform", transform), ("flush", flush)].map(row).into())
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
