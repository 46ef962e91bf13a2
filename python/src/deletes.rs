//! Deletes of a writer, in their order relative to documents.
//!
//! Documents are analysed on several threads, and the engine's writer takes them without pause. So deletes by
//! id are applied later, each with the number of documents before it. What a query matches are documents of
//! the last commit, and no document was added before: they can be deleted at any time before the next commit.

use tierdex::{Index, IndexWriter};

/// Bytes of deletes that are collected before they are applied.
const DELETES_BYTES: usize = 4 << 20;

/// Deletes by ids and by queries.
#[derive(Default)]
pub struct Deletes {
    /// The ids, one after the other.
    text: String,
    ids: Vec<DeletedId>,
    matches: Vec<Matches>,
}

struct DeletedId {
    /// Number of documents that were added before.
    documents: u64,
    /// End of the id in the text.
    end: usize,
}

/// What a query matches in a commit.
pub struct Matches {
    /// The commit.
    pub index: Index,
    /// The numbers of the documents.
    pub documents: Vec<u32>,
}

impl Deletes {
    /// Appends an id, after this number of documents, by a function that appends it to a string.
    pub fn append_id<E>(
        &mut self,
        documents: u64,
        append: impl FnOnce(&mut String) -> Result<(), E>,
    ) -> Result<(), E> {
        append(&mut self.text)?;
        self.ids.push(DeletedId { documents, end: self.text.len() });
        Ok(())
    }

    /// Appends what a query matches.
    pub fn append_matches(&mut self, matches: Matches) {
        self.matches.push(matches);
    }

    /// Appends deletes that follow this number of documents.
    pub fn append(&mut self, other: Deletes, documents: u64) {
        let start = self.text.len();
        self.text.push_str(&other.text);
        self.ids.extend(
            other
                .ids
                .into_iter()
                .map(|id| DeletedId { documents: documents + id.documents, end: start + id.end }),
        );
        self.matches.extend(other.matches);
    }

    /// Number of ids, and of documents that queries match.
    pub fn count(&self) -> u64 {
        let matches = self.matches.iter().map(|matches| matches.documents.len() as u64);
        self.ids.len() as u64 + matches.sum::<u64>()
    }

    /// Bytes of the ids, as they are in memory.
    pub fn ids_bytes(&self) -> usize {
        self.text.len() + self.ids.len() * size_of::<DeletedId>()
    }

    /// Whether these, after other deletes by ids of this size, should be applied before others are taken.
    pub fn are_due(&self, ids_bytes: usize) -> bool {
        ids_bytes + self.ids_bytes() >= DELETES_BYTES || !self.matches.is_empty()
    }

    /// Applies them to a writer that had this number of documents before.
    pub fn apply(self, writer: &mut IndexWriter, documents: u64) -> tierdex::Result<()> {
        for Matches { index, documents } in self.matches {
            writer.delete_documents(&index, &documents)?;
        }
        let mut start = 0;
        for id in self.ids {
            writer.delete_before(&self.text[start..id.end], documents + id.documents)?;
            start = id.end;
        }
        Ok(())
    }
}
