//! Indexes that grow in steps: documents, then a field of a new member is added, then further documents.

use super::corpus::{SchemaOptions, TestDocument};
use super::open_writer;
use std::sync::Arc;
use tierdex::io::{Disk, MemDisk};
use tierdex::schema::Schema;
use tierdex::{DocumentRef, IndexWriter, Merge, OpenMode};

/// The schemas and documents of an index that grows.
pub struct GrownCase {
    /// A field `text`; and with columns and a further field `title`, of the member `subject`.
    pub schemas: [Schema; 2],
    pub docs: Vec<TestDocument>,
    /// Number of documents that are added before the field. They have no title.
    pub older: usize,
}

impl GrownCase {
    pub fn new(options: SchemaOptions, mut docs: Vec<TestDocument>, older: usize) -> GrownCase {
        let mut newer = SchemaOptions { title: true, ..options }.schema();
        newer.members.push("subject".to_string());
        newer.fields[1].members = vec!["subject".to_string()];
        let mut first = newer.clone();
        first.members.pop();
        first.columns.clear();
        first.fields.pop();
        docs[..older].iter_mut().for_each(|doc| doc.title.clear());
        GrownCase { schemas: [first, newer], docs, older }
    }

    /// The index that is made in steps, two commits with each schema.
    pub fn build_in_steps(&self, last: Merge) -> MemDisk {
        let disk = self.build(&self.schemas[0]);
        let shared: Arc<dyn Disk> = Arc::new(disk.clone());
        self.commit_newer(&mut open_writer(&shared, &self.schemas[1], OpenMode::Append), last);
        disk
    }

    /// The older documents, in an index of the older schema.
    pub fn build_older(&self) -> MemDisk {
        self.build(&self.schemas[0])
    }

    /// A new index of all documents, with the newer schema and the same commits.
    pub fn build_fresh(&self, last: Merge) -> MemDisk {
        let disk = self.build(&self.schemas[1]);
        let shared: Arc<dyn Disk> = Arc::new(disk.clone());
        self.commit_newer(&mut open_writer(&shared, &self.schemas[1], OpenMode::Append), last);
        disk
    }

    fn build(&self, schema: &Schema) -> MemDisk {
        let disk = MemDisk::new();
        let mut writer = open_writer(&(Arc::new(disk.clone()) as _), schema, OpenMode::New);
        let (first, second) = self.docs[..self.older].split_at(self.older / 2);
        for docs in [first, second] {
            add_values(&mut writer, docs);
            writer.commit(Merge::None).unwrap();
        }
        disk
    }

    fn commit_newer(&self, writer: &mut IndexWriter, last: Merge) {
        let newer = &self.docs[self.older..];
        let (first, second) = newer.split_at(newer.len() / 3);
        for (docs, merge) in [(first, Merge::None), (second, last)] {
            add_values(writer, docs);
            writer.commit(merge).unwrap();
        }
    }
}

/// Adds documents with up to two values of each member.
fn add_values(writer: &mut IndexWriter, docs: &[TestDocument]) {
    for doc in docs {
        let texts = doc.text.splitn(2, ' ').map(|value| ("text", value));
        let titles = doc.title.splitn(2, ' ').filter(|value| !value.is_empty());
        let (schema, columns) = (writer.schema().clone(), doc.columns(writer.schema()));
        let values = texts.chain(titles.map(|value| ("subject", value)));
        let values: Vec<_> = values.map(|(name, value)| (schema.member(name).unwrap(), value)).collect();
        let document = DocumentRef { id: &doc.id, values: &values, columns: &columns, others: "" };
        writer.add_document(document).unwrap();
    }
}
