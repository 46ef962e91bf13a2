//! Stored documents as users see them: the values of members by their names.

use super::searcher::Searcher;
use crate::Result;
use crate::limits::{DOCUMENT_BYTES_MAX, PREVIEW_TEXT_BYTES, PREVIEW_TITLE_BYTES};
use crate::schema::{Schema, Stored};
use crate::segment::read::{BlockSource, CHARACTER_BYTES_MAX, FILES, StoredValues};
use std::cell::Cell;

/// Bytes of a document that a preview reads, at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PreviewBytes {
    /// Of the title.
    pub title: usize,
    /// Of the other members, in which a snippet is searched.
    pub text: usize,
}

impl PreviewBytes {
    /// The most that a preview may read.
    pub const MAX: PreviewBytes = PreviewBytes { title: PREVIEW_TITLE_BYTES, text: PREVIEW_TEXT_BYTES };
}

/// The stored values of a document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredDocument {
    members: Vec<(String, Vec<String>)>,
    title: Option<usize>,
    others: String,
    is_cut: bool,
}

impl StoredDocument {
    fn new(schema: &Schema, mut values: StoredValues) -> StoredDocument {
        let others = match schema.stored {
            // They are stored as the last member, also in a segment that has fewer members than the schema.
            Stored::All => values.pop().and_then(|mut others| others.pop()).unwrap_or_default(),
            _ => String::new(),
        };
        let mut values = values.into_iter();
        let members = schema.members.iter().map(|name| {
            let mut values = values.next().unwrap_or_default();
            // A member without values is stored as an empty one.
            values.retain(|value| !value.is_empty());
            (name.clone(), values)
        });
        let members = members.collect();
        let title = schema.title.as_ref().and_then(|title| schema.member(title));
        StoredDocument { members, title, others, is_cut: false }
    }

    /// The names of the members in the order of the schema, each with the values that are not empty.
    pub fn members(&self) -> impl Iterator<Item = (&str, &[String])> {
        self.members.iter().map(|(name, values)| (name.as_str(), &values[..]))
    }

    /// The values of a member that are not empty, in their order; none if there is no such member.
    pub fn values(&self, member: &str) -> &[String] {
        self.members.iter().find(|(name, _)| name == member).map_or(&[], |(_, values)| values)
    }

    /// The first value of a member that is not empty; an empty text if there is none.
    pub fn value(&self, member: &str) -> &str {
        self.values(member).first().map_or("", String::as_str)
    }

    /// The first value of the title ([`Schema::title`]).
    pub fn title(&self) -> &str {
        let values = self.title.map(|title| &self.members[title].1);
        values.and_then(|values| values.first()).map_or("", String::as_str)
    }

    /// Whether the end of the document was not read.
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// What the document has beside the members of the schema, if the schema keeps it ([`Stored::All`]).
    pub fn others(&self) -> &str {
        &self.others
    }
}

impl Searcher {
    /// The stored values of a document; `None` when the index does not store them.
    pub fn stored(&self, document: u32) -> Result<Option<StoredDocument>> {
        self.stored_within(document, DOCUMENT_BYTES_MAX)
    }

    /// As [`Searcher::stored`], but reads about this number of bytes of the document.
    pub fn stored_within(&self, document: u32, bytes: usize) -> Result<Option<StoredDocument>> {
        // A value is cut before a character that does not fit.
        let left = Cell::new(bytes.saturating_add(CHARACTER_BYTES_MAX));
        let stored = self.read_stored(document, &FILES, |_| Some(&left))?;
        Ok(stored.map(|stored| StoredDocument { is_cut: left.get() < CHARACTER_BYTES_MAX, ..stored }))
    }

    /// The beginnings of the title and of the members of some fields, read from `source` for display: of each
    /// member but the title an equal share of the bytes of the text. `None` when the index does not store
    /// them. Takes at most these bytes and [`UNPACK_BYTES`](crate::segment::read::UNPACK_BYTES) of memory,
    /// however long the document is.
    pub fn preview(
        &self,
        document: u32,
        fields: &[usize],
        bytes: PreviewBytes,
        source: &dyn BlockSource,
    ) -> Result<Option<StoredDocument>> {
        let schema = self.index().schema();
        let title = schema.title.as_ref().and_then(|title| schema.member(title));
        let shown = fields.iter().flat_map(|field| schema.members_of(&schema.fields[*field]));
        let mut shown: Vec<usize> = shown.filter(|member| Some(*member) != title).collect();
        shown.sort_unstable();
        shown.dedup();
        let share = Cell::new(bytes.text / shown.len().max(1));
        let (of_title, of_shown) = (Cell::new(bytes.title), vec![share; shown.len()]);
        self.read_stored(document, source, |member| match shown.binary_search(&member) {
            _ if Some(member) == title => Some(&of_title),
            found => Some(&of_shown[found.ok()?]),
        })
    }

    fn read_stored<'b>(
        &self,
        document: u32,
        source: &dyn BlockSource,
        left: impl Fn(usize) -> Option<&'b Cell<usize>>,
    ) -> Result<Option<StoredDocument>> {
        let (segment, local) = self.locate(document)?;
        let values = segment.stored().map(|stored| stored.get(local, source, left)).transpose()?;
        Ok(values.map(|values| StoredDocument::new(self.index().schema(), values)))
    }
}
