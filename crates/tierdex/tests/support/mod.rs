//! What several tests use: a seeded random generator, random documents and queries, a naive engine whose
//! results are the expected ones, and a script of commits with the expected results after each.
//!
//! The naive engine is written from the documentation and shares no code with the engine except the one-byte
//! norms.
#![allow(dead_code)]

pub mod clause;
pub mod corpus;
pub mod delete_script;
pub mod deleted;
pub mod forge;
pub mod grown;
pub mod lent;
pub mod lists;
pub mod model;
pub mod queries;
pub mod query_cases;
pub mod random;
pub mod requests;
pub mod script;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    sync::Arc,
};
use tierdex::explain::SearchResult;
use tierdex::internal::engine::{MetaTier, MetadataLocation, load_metadata};
use tierdex::internal::index::{BatchBuilder, Tuning, check_on};
use tierdex::internal::segment::read::FILES;
use tierdex::io::{CrashImage, Disk, MemDisk, PosixDisk, RegionKind};
use tierdex::schema::Schema;
use tierdex::{
    DocumentRef, Index, IndexWriter, Merge, OpenMode, Query, Result, Scorer, SearchOptions, WriterOptions,
};

use corpus::{SchemaOptions, TestDocument};

/// The result of a query as a user sees it. Scores are compared by their bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub total: u64,
    pub hits: Vec<AnswerHit>,
}

/// Sizes with which lists of small indexes are evaluated as long lists are with the sizes of releases.
pub const SMALL_TUNING: Tuning = Tuning {
    superblocks_ordered: 6,
    head_record_bytes_min: 1 << 7,
    head_superblocks_per_candidate: 0,
    impact_record_bytes_max: 1 << 9,
};

/// [`SMALL_TUNING`], and the sizes of releases.
pub fn all_tunings() -> [Tuning; 2] {
    [SMALL_TUNING, Tuning::default()]
}

/// Options of a search whose result is an [`Answer`].
#[derive(Clone, Copy, Debug)]
pub struct AnswerOptions {
    pub k: usize,
    pub scorer: Scorer,
    /// Whether every match is scored, without pruning.
    pub exhaustive: bool,
    /// Number of hits that are returned with their id and texts.
    pub shown: usize,
}

impl Default for AnswerOptions {
    fn default() -> AnswerOptions {
        AnswerOptions { k: usize::MAX, scorer: Scorer::default(), shown: 2, exhaustive: false }
    }
}

/// A hit of an [`Answer`].
#[derive(Clone, PartialEq, Eq)]
pub struct AnswerHit {
    pub document: u32,
    pub score_bits: u32,
    /// For the first hits.
    pub shown: Option<ShownHit>,
}

/// What a hit is shown with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownHit {
    pub id: String,
    /// Title and text, if they are stored.
    pub stored: Option<(String, String)>,
    /// The values of each column in ascending order.
    pub columns: Vec<Vec<String>>,
}

impl std::fmt::Debug for AnswerHit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {:?} {:?}", self.document, f32::from_bits(self.score_bits), self.shown)
    }
}

/// The result of the engine, which must be the same with [`all_tunings`].
pub fn answer_query(index: &Index, query: &Query, look: AnswerOptions) -> Result<Answer> {
    let searcher = index.searcher();
    let AnswerOptions { k, scorer, exhaustive, .. } = look;
    let search = |tuning| {
        let options =
            SearchOptions { k, scorer, exhaustive, count: true, tuning, ..SearchOptions::default() };
        searcher.search(query, &options)
    };
    let [small, found]: [Result<SearchResult>; 2] = all_tunings().map(search);
    let (small, found) = (small?, found?);
    assert_eq!(small, found, "{query:?} with {look:?} and small sizes");
    let show = |document| -> Result<_> {
        let stored = searcher
            .stored(document)?
            .map(|stored| (stored.values("title").join("|"), stored.values("text").join("|")));
        let columns = (0..index.schema().columns.len()).map(|column| {
            let values = searcher.values(document, column, &FILES)?;
            Ok(values.iter().map(ToString::to_string).collect())
        });
        Ok(ShownHit { id: searcher.id(document)?, stored, columns: columns.collect::<Result<_>>()? })
    };
    let rows = found.hits.iter().enumerate().map(|(place, hit)| {
        let shown = (place < look.shown).then(|| show(hit.document)).transpose()?;
        Ok(AnswerHit { document: hit.document, score_bits: hit.score.to_bits(), shown })
    });
    Ok(Answer { total: found.total, hits: rows.collect::<Result<Vec<_>>>()? })
}

/// The result of the engine for the text of a query.
pub fn answer_text(index: &Index, text: &str, look: AnswerOptions) -> Result<Answer> {
    answer_query(index, &Query::parse(text, index.schema())?, look)
}

/// Loads all that evaluation reads into a memory region.
pub fn load_into_region(index: &Index, region: RegionKind) -> Result<()> {
    load_metadata(index.segments(), &MetadataLocation::of(MetaTier::Index(region), None))
}

/// The documents that match the text of a query.
pub fn matching_documents(index: &Index, text: &str) -> BTreeSet<u32> {
    let found = answer_text(index, text, AnswerOptions { shown: 0, ..AnswerOptions::default() }).unwrap();
    assert_eq!(found.total, found.hits.len() as u64, "{text}");
    found.hits.iter().map(|row| row.document).collect()
}

/// Two fields, `text` and `title`, with positions and stored text.
pub fn schema() -> Schema {
    SchemaOptions::default().schema()
}

/// All files of a disk but the lock, with their bytes.
pub fn read_files(disk: &dyn Disk) -> BTreeMap<String, Vec<u8>> {
    let names = disk.list().unwrap().into_iter().filter(|name| name != "write.lock");
    let read = |name: String| {
        let file = disk.open(&name).unwrap();
        let mut bytes = vec![0; file.len() as usize];
        file.read_at(0, &mut bytes).unwrap();
        (name, bytes)
    };
    names.map(read).collect()
}

/// A batch for the documents of a writer.
pub fn new_batch(writer: &IndexWriter) -> BatchBuilder {
    BatchBuilder::new(writer.schema().clone(), writer.document_bytes_max())
}

/// Options that return the best `k` of all matches, which are all scored and counted.
pub fn exhaustive_search(k: usize, scorer: Scorer) -> SearchOptions {
    SearchOptions { k, scorer, exhaustive: true, count: true, ..SearchOptions::default() }
}

/// How documents are added to an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddMethod {
    /// One writer commits each part.
    Commits,
    /// A new writer commits each part.
    Writers,
    /// One writer commits each part, which is added in batches of this number of documents.
    Batches(usize),
}

/// Writes `docs` to an empty disk, divided into parts at `cuts`. No commit merges segments but the last, if
/// it should.
pub fn build(
    disk: &Arc<dyn Disk>,
    schema: &Schema,
    docs: &[TestDocument],
    cuts: &[usize],
    growth: AddMethod,
    last: Merge,
) {
    let ends: Vec<usize> = cuts.iter().copied().chain([docs.len()]).collect();
    let mut writer = open_writer(disk, schema, OpenMode::New);
    let mut start = 0;
    for (number, &end) in ends.iter().enumerate() {
        if growth == AddMethod::Writers && number > 0 {
            drop(writer);
            writer = open_writer(disk, schema, OpenMode::Append);
        }
        add_by(&mut writer, &docs[start..end], growth);
        let merge = if number + 1 == ends.len() { last } else { Merge::None };
        writer.commit(merge).unwrap();
        start = end;
    }
}

/// A new index in memory of which each part is a segment.
pub fn build_in_memory(schema: &Schema, docs: &[TestDocument], cuts: &[usize]) -> Arc<MemDisk> {
    let disk = Arc::new(MemDisk::new());
    build(&(disk.clone() as _), schema, docs, cuts, AddMethod::Commits, Merge::None);
    disk
}

/// As [`build_in_memory`], and opens the index.
pub fn index_in_memory(schema: &Schema, docs: &[TestDocument], cuts: &[usize]) -> Index {
    Index::open_on(build_in_memory(schema, docs, cuts)).unwrap()
}

/// As [`build`], on a new disk in memory; checks the index for damage and opens it.
pub fn checked_index(
    schema: &Schema,
    docs: &[TestDocument],
    cuts: &[usize],
    growth: AddMethod,
    last: Merge,
) -> Index {
    let disk: Arc<dyn Disk> = Arc::new(MemDisk::new());
    build(&disk, schema, docs, cuts, growth, last);
    assert_sound(disk.as_ref());
    Index::open_on(disk).unwrap()
}

/// The cuts that divide a number of documents into segments of equal size.
pub fn equal_cuts(documents: usize, segments: usize) -> Vec<usize> {
    (1..segments).map(|part| part * documents / segments).collect()
}

/// Checks that an index has no damage.
pub fn assert_sound(disk: &dyn Disk) {
    let report = check_on(disk).unwrap();
    assert!(report.problems.is_empty(), "{:?}", report.problems);
}

/// Adds documents to a disk that does not fail.
pub fn add_documents(writer: &mut IndexWriter, docs: &[TestDocument]) {
    docs.iter().for_each(|doc| add_document(writer, doc).unwrap());
}

/// Adds a document with the values of its columns.
pub fn add_document(writer: &mut IndexWriter, doc: &TestDocument) -> Result<()> {
    let schema = writer.schema().clone();
    let numbered = doc.values().map(|(member, value)| Ok((schema.member_named(member)?, value)));
    let (values, columns) = (numbered.collect::<Result<Vec<_>>>()?, doc.columns(&schema));
    let document = DocumentRef { id: &doc.id, values: &values, columns: &columns, ..DocumentRef::default() };
    writer.add_document(document)
}

fn add_by(writer: &mut IndexWriter, docs: &[TestDocument], growth: AddMethod) {
    let AddMethod::Batches(size) = growth else { return add_documents(writer, docs) };
    let (mut batch, schema) = (new_batch(writer), writer.schema().clone());
    for docs in docs.chunks(size) {
        docs.iter().for_each(|doc| {
            doc.with_numbers(&schema, |document| batch.add(document)).unwrap();
        });
        writer.push(batch.seal().unwrap()).unwrap();
    }
}

/// A writer on a disk that does not fail.
pub fn open_writer(disk: &Arc<dyn Disk>, schema: &Schema, mode: OpenMode) -> IndexWriter {
    IndexWriter::open(disk.clone(), schema.clone(), mode, WriterOptions::default()).unwrap()
}

/// A disk in a directory of the file system.
pub fn directory_disk(path: &Path) -> Arc<dyn Disk> {
    Arc::new(PosixDisk::create(path).unwrap())
}

/// States of a disk after a power loss: all unsynced writes are lost, all are kept, or random ones.
pub fn crash_images(seeds: std::ops::Range<u64>) -> impl Iterator<Item = CrashImage> {
    [CrashImage::Lost, CrashImage::Kept].into_iter().chain(seeds.map(CrashImage::Random))
}

/// The size of a test: that of every run, or that of a campaign, which is one if `TIERDEX_CAMPAIGN` is set.
pub fn test_size<T>(of_each_run: T, of_campaigns: T) -> T {
    if std::env::var_os("TIERDEX_CAMPAIGN").is_some() { of_campaigns } else { of_each_run }
}

/// Runs `body` for each number below `count` on two threads; returns the results in order.
pub fn on_two_threads<T: Send>(count: usize, body: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let half = |first: usize| (first..count).step_by(2).map(&body).collect::<Vec<T>>();
    let (even, odd) = std::thread::scope(|scope| {
        let odd = scope.spawn(|| half(1));
        let even = half(0);
        (even, odd.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    });
    let (mut even, mut odd) = (even.into_iter(), odd.into_iter());
    (0..count).filter_map(|number| if number % 2 == 0 { even.next() } else { odd.next() }).collect()
}
