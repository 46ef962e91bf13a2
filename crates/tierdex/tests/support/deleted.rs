//! Indexes that are updatable and have deleted documents, by the numbers of segments and documents.

use super::corpus::TestDocument;
use super::{add_documents, index_in_memory};
use std::{collections::BTreeSet, ops::Range, sync::Arc};
use tierdex::internal::segment::deletes::{DeletedStatistics, DeletedStatisticsBuilder, TermDeletes};
use tierdex::io::{Disk, MemDisk};
use tierdex::{IndexWriter, Merge, OpenMode, WriterOptions};
use tierdex::{input_files::InputFile, schema::Schema};

/// Statistics of some documents: those of an index of these documents.
pub fn statistics_of(schema: &Schema, docs: &[TestDocument]) -> DeletedStatistics {
    let index = index_in_memory(schema, docs, &[]);
    let mut builder = DeletedStatisticsBuilder::new(schema.fields.len());
    for field in index.segments().iter().flat_map(|segment| segment.fields()) {
        let stats = index.segments()[0].meta().stats(field.number());
        for document in 0..stats.documents {
            let tokens = if document == 0 { stats.tokens - u64::from(stats.documents - 1) } else { 1 };
            builder.add_document(field.number(), tokens);
        }
        let mut terms = field.terms().stream();
        while let Some((term, info)) = terms.next().unwrap() {
            let (documents, occurrences) = (info.document_frequency, info.occurrences);
            builder.add_term(field.number(), term, TermDeletes { documents, occurrences });
        }
    }
    builder.finish().unwrap()
}

/// Deletes some of these documents by their ids.
pub fn delete(writer: &mut IndexWriter, docs: &[TestDocument], numbers: impl Iterator<Item = usize>) {
    numbers.for_each(|number| writer.delete(&docs[number].id).unwrap());
}

/// A writer of an index that is updatable.
pub fn updatable_writer(
    disk: &Arc<dyn Disk>,
    schema: &Schema,
    mode: OpenMode,
) -> tierdex::Result<IndexWriter> {
    let options = WriterOptions { updatable: true, ..WriterOptions::default() };
    IndexWriter::open(disk.clone(), schema.clone(), mode, options)
}

/// Makes the next commit name a file for each of these lists of documents.
pub fn set_input_files(writer: &mut IndexWriter, files: &[&[TestDocument]]) -> tierdex::Result<()> {
    let mut input_files = writer.create_input_files("settings")?;
    for (number, docs) in files.iter().enumerate() {
        let path = format!("folder/{number}.txt").into_bytes();
        let modified = (number > 0).then_some(1_700_000_000_123_456_789);
        input_files.add_file(&InputFile { path, bytes: docs.len() as u64, modified })?;
        let ids: BTreeSet<&str> = docs.iter().map(|doc| doc.id.as_str()).collect();
        ids.into_iter().try_for_each(|id| input_files.add_id(id))?;
    }
    writer.set_input_files(input_files)
}

/// An updatable index with input files and two segments, of which the second begins with document `cut`. In
/// the first, every third document is deleted; in the second, the documents in `lasts`, a commit for each.
pub fn build_deleted(schema: &Schema, docs: &[TestDocument], cut: usize, lasts: &[Range<usize>]) -> MemDisk {
    let disk = MemDisk::new();
    let mut writer = updatable_writer(&(Arc::new(disk.clone()) as _), schema, OpenMode::New).unwrap();
    for part in [&docs[..cut], &docs[cut..]] {
        add_documents(&mut writer, part);
        writer.commit(Merge::None).unwrap();
    }
    set_input_files(&mut writer, &[&docs[..cut], &docs[cut..]]).unwrap();
    delete(&mut writer, &docs[..cut], (0..cut).step_by(3));
    for last in lasts {
        delete(&mut writer, &docs[cut..], last.clone());
        writer.commit(Merge::None).unwrap();
    }
    disk
}
