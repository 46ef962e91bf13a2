//! Previews of hits: titles and snippets, and how much of documents they read.

use crate::index::PreviewBytes;
use crate::limits::{PREVIEW_TEXT_BYTES, PREVIEW_TITLE_BYTES};
use crate::text::{Snippet, marks_max};
use std::ops::Range;

/// The title of a document, and the part of its values that contains the most terms of a query.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Preview {
    /// The first 16 KiB of the title; empty if the document has none.
    pub title: String,
    /// The best part of the values of the fields that the query searches, in the first 256 KiB, of which each
    /// member has an equal share. The title is left out, unless the index has fields of it alone. Empty if
    /// the document has no values.
    pub snippet: Snippet,
}

/// What a request shows of each hit ([`SearchRequest::previews`](super::SearchRequest::previews)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PreviewOptions {
    /// Bytes of a snippet, approximately; 200 by default.
    pub snippet: usize,
    /// Bytes of the title, at most; 1 KiB by default. It may be cut after fewer bytes, between characters.
    pub title: usize,
    /// Bytes of the values in which a snippet is searched, at most; 16 KiB by default. The analysis of a KiB
    /// takes about 20 us.
    pub text: usize,
}

impl Default for PreviewOptions {
    fn default() -> PreviewOptions {
        PreviewOptions { snippet: 200, title: 1 << 10, text: 16 << 10 }
    }
}

impl PreviewOptions {
    /// The bytes that are read, within the limits of a preview.
    pub(super) fn bytes_read(self) -> PreviewBytes {
        PreviewBytes { title: self.title.min(PREVIEW_TITLE_BYTES), text: self.text.min(PREVIEW_TEXT_BYTES) }
    }

    /// The width of a snippet, which is a part of the text.
    pub(super) fn width(self) -> usize {
        self.snippet.min(self.bytes_read().text)
    }

    /// Bytes of a preview in a result, at most.
    pub(super) fn result_bytes(self) -> u64 {
        let snippet = self.width() + SNIPPET_MARGIN_BYTES;
        let marks = marks_max(self.width()) * size_of::<Range<usize>>();
        (size_of::<Preview>() + self.bytes_read().title + snippet + marks) as u64
    }
}

/// A snippet may be longer than its width by a word, a grapheme cluster and two ellipses.
const SNIPPET_MARGIN_BYTES: usize = 512;
