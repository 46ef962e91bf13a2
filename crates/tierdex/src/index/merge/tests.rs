//! Merges with deleted documents, compared with segments that were written from the live documents.

use super::*;
use crate::index::{DocumentRef, IndexWriter, Merge, OpenMode, StopSignal, WriterOptions};
use crate::schema::Field;
use crate::segment::read::{Segment, StoredValues};
use crate::segment::{DeletedDocuments, FieldStats, ManifestSegment};
use proptest::prelude::*;
use std::{collections::BTreeMap, sync::Arc};
use tierdex_io::{MemDisk, SealedFile};

/// A document of a test: values of `title` and `text`.
type TestDocument = [String; 2];

/// Two fields: the first one with positions.
fn schema(norms: NormKind, stored: Stored) -> Schema {
    let title = Field { positions: true, norms, ..Field::new("title", &["title"]) };
    let text = Field { positions: false, norms, ..Field::new("text", &["text"]) };
    Schema { stored, ..Schema::of(vec![title, text]) }
}

/// Writes a segment for each part of the documents, and returns them.
fn write(disk: &MemDisk, schema: &Schema, parts: &[&[(u32, TestDocument)]]) -> Vec<Segment> {
    let options = WriterOptions { threads: 1, ..WriterOptions::default() };
    let mode = OpenMode::New;
    let mut writer = IndexWriter::open(Arc::new(disk.clone()), schema.clone(), mode, options).unwrap();
    for part in parts {
        for (number, document) in *part {
            let values = [(0, document[0].as_str()), (1, document[1].as_str())];
            let id = format!("document-{number}");
            writer
                .add_document(DocumentRef { id: &id, values: &values, columns: &[], others: "{\"a\":1}" })
                .unwrap();
        }
        writer.commit(Merge::None).unwrap();
    }
    drop(writer);
    let manifest = crate::index::Manifest::read_newest(disk).unwrap().unwrap();
    let open = |segment: ManifestSegment| Segment::open(disk, schema, segment.meta).unwrap();
    manifest.segments.into_iter().map(open).collect()
}

/// Payloads of all files but `stored`, by field and kind.
fn payloads(segment: &Segment) -> BTreeMap<String, Vec<u8>> {
    let payload = |file: &SealedFile| {
        let range = file.payload();
        let (_, name) = file.name().split_once('.').unwrap();
        (name.to_string(), file.read(range.start, (range.end - range.start) as usize).unwrap())
    };
    segment.files().map(payload).filter(|(name, _)| name != "stored").collect()
}

fn stored_documents(segment: &Segment) -> Vec<StoredValues> {
    let Some(stored) = segment.stored() else { return Vec::new() };
    let mut all = Vec::new();
    for block in 0..stored.blocks() {
        stored
            .for_each_of_block(block, |values| {
                all.push(values);
                Ok(())
            })
            .unwrap();
    }
    all
}

/// A case: documents, the ends of segments but the last, and whether each document is deleted.
#[derive(Debug)]
struct MergeCase {
    documents: Vec<TestDocument>,
    cuts: Vec<usize>,
    is_deleted: Vec<bool>,
    schema: Schema,
}

impl MergeCase {
    /// Merges the segments on a number of threads, and compares with a segment of the documents that are
    /// left. Returns the number of ranges into which the terms of the first field were divided.
    fn check(&self, threads: usize) -> usize {
        let numbered: Vec<(u32, TestDocument)> = (0..).zip(self.documents.iter().cloned()).collect();
        let bounds: Vec<usize> = [0].into_iter().chain(self.cuts.clone()).chain([numbered.len()]).collect();
        let parts: Vec<&[_]> = bounds.windows(2).map(|bounds| &numbered[bounds[0]..bounds[1]]).collect();
        let disk = MemDisk::new();
        let segments = write(&disk, &self.schema, &parts);
        assert_eq!(segments.len(), parts.len());
        let deleted: Vec<DeletedDocuments> = bounds
            .windows(2)
            .map(|bounds| {
                let deleted = (0u32..).zip(&self.is_deleted[bounds[0]..bounds[1]]);
                let deleted = deleted.filter(|(_, is_deleted)| **is_deleted).map(|(document, _)| document);
                DeletedDocuments::none((bounds[1] - bounds[0]) as u32).with(deleted)
            })
            .collect();
        let inputs = segments.iter().zip(&deleted);
        let inputs =
            inputs.map(|(segment, deleted)| MergeInput { segment, deleted: Some(deleted), live: None });
        let inputs: Vec<MergeInput<'_>> = inputs.collect();
        let stop = StopSignal::default();
        let threads = EncodingThreads { count: threads, stop: &stop };
        let merged = merge_segments(&disk, &self.schema, &inputs, 1 << 20, false, threads).unwrap();

        let left = numbered.iter().filter(|(number, _)| !self.is_deleted[*number as usize]);
        let left: Vec<(u32, TestDocument)> = left.cloned().collect();
        let Some(merged) = merged else {
            assert!(left.is_empty());
            return 0;
        };
        let fresh = write(&MemDisk::new(), &self.schema, &[&left]);
        let [fresh] = fresh.as_slice() else { panic!("one segment is wanted") };
        let merged = Segment::open(&disk, &self.schema, merged).unwrap();
        assert_eq!(merged.meta().fields, fresh.meta().fields);
        let (found, expected) = (payloads(&merged), payloads(fresh));
        assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
        for (name, bytes) in &expected {
            assert!(found[name] == *bytes, "{name} differs");
        }
        assert!(stored_documents(&merged) == stored_documents(fresh), "stored documents differ");
        TermSplits::of(&LiveDocuments::of_inputs(&inputs).unwrap(), 0, threads.count).unwrap().ranges().len()
    }
}

/// Texts of a few words: some are so long that a norm is not exact.
fn text() -> impl Strategy<Value = String> {
    let word =
        prop_oneof![(0u32..6).prop_map(|n| format!("w{n}")), (0u32..400).prop_map(|n| format!("r{n}"))];
    let words = prop_oneof![
        9 => prop::collection::vec(word.clone(), 0..12),
        1 => prop::collection::vec(word, 120..300),
    ];
    words.prop_map(|words| words.join(" "))
}

fn case() -> impl Strategy<Value = MergeCase> {
    let documents = prop::collection::vec([text(), text()], 1..700);
    let share = prop_oneof![Just(0.0), 0.0..1.0, Just(0.99), Just(1.0)];
    let norms = prop_oneof![Just(NormKind::Byte), Just(NormKind::Exact)];
    let stored = prop_oneof![Just(Stored::Nothing), Just(Stored::Members), Just(Stored::All)];
    let cuts = prop::collection::vec(any::<prop::sample::Index>(), 0..4);
    (documents, share, cuts, norms, stored, any::<u64>()).prop_map(
        |(documents, share, cuts, norms, stored, mut seed)| {
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(documents.len())).collect();
            cuts.sort_unstable();
            cuts.dedup();
            cuts.retain(|cut| *cut > 0);
            let is_deleted = documents.iter().map(|_| {
                seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                ((seed >> 11) as f64 / (1u64 << 53) as f64) < share
            });
            MergeCase { is_deleted: is_deleted.collect(), documents, cuts, schema: schema(norms, stored) }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_merge_equals_a_segment_of_the_documents_that_are_left(case in case()) {
        case.check(1);
    }
}

/// A dictionary of several ranges of terms, with a term in nearly all documents.
#[test]
fn a_merge_on_several_threads_gives_the_same_bytes() {
    let number = |document: usize, word: usize| (document * 7919 + word * 104_729) % 150_000;
    let words = |document| (0..40).map(move |word| format!("term{}", number(document, word)));
    let document = |document: usize| {
        let words = words(document).chain(["all".to_string()]).collect::<Vec<_>>().join(" ");
        [words.clone(), words]
    };
    for threads in [1, 2, 4] {
        let case = MergeCase {
            documents: (0..40_000).map(document).collect(),
            cuts: vec![10_000, 25_000],
            is_deleted: (0..40_000)
                .map(|document| document % 7 == 0 || (300..800).contains(&document))
                .collect(),
            schema: schema(NormKind::Byte, Stored::Members),
        };
        assert!(case.check(threads) > 2, "several ranges are wanted");
    }
}

#[test]
fn wrong_live_statistics_are_an_error() {
    let schema = schema(NormKind::Byte, Stored::Nothing);
    let document = |text: &str| [text.to_string(), text.to_string()];
    let disk = MemDisk::new();
    let segments = write(&disk, &schema, &[&[(0, document("a b")), (1, document("c"))]]);
    let deleted = DeletedDocuments::none(2).with([0]);
    let stop = StopSignal::default();
    let threads = EncodingThreads { count: 1, stop: &stop };
    for (id, tokens) in (100..).zip([1, 2]) {
        let live = [FieldStats { documents: 1, tokens, ..FieldStats::default() }; 2];
        let input = MergeInput { segment: &segments[0], deleted: Some(&deleted), live: Some(&live) };
        let merged = merge_segments(&disk, &schema, &[input], id, false, threads);
        match tokens {
            1 => assert_eq!(merged.unwrap().unwrap().documents, 1),
            _ => {
                let message = merged.unwrap_err().to_string();
                assert!(message.contains("2 tokens in a field were merged to 1"), "{message}");
            }
        }
    }
}
