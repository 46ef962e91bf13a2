//! What a snapshot tells beside hits: titles and snippets, terms, and how a query is evaluated.

use super::preview::{Preview, PreviewOptions};
use super::{request::SearchRequest, snapshot::Snapshot};
use crate::index::{Explanation, HitIds, PreviewBytes, SearchHit};
use crate::limits::QUERY_BYTES_MAX;
use crate::query::{Marks, Query, Suggestions, TermStats};
use crate::segment::read::{BlockSource, FILES};
use crate::text::{Analyzer, Snippet, snippet};
use crate::{Error, Result};
use std::borrow::Cow;

/// Makes previews of the hits of one query: the terms of the query are looked up once. A snippet is of one
/// field that the query searches, the one with the most matches, and the terms of the query in this field are
/// marked.
///
/// ```
/// use tierdex::{Engine, EngineOptions, Query, SearchRequest};
/// # use tierdex::{IndexWriter, Merge, Schema, WriterOptions};
/// # let dir = tempfile::tempdir().unwrap();
/// # let dir = dir.path().join("index");
/// # let mut writer = IndexWriter::create(&dir, Schema::default(), WriterOptions::default())?;
/// # writer.add("1", [("title", "Disks"), ("text", "A solid state disk is a disk without moving parts.")])?;
/// # writer.commit(Merge::Keep)?;
///
/// let engine = Engine::open(&dir, &EngineOptions::new())?;
/// let query = Query::parse("disk", engine.snapshot().schema())?;
/// let hits = engine.search(SearchRequest::new(query.clone()))?;
/// let mut highlighter = hits.snapshot.highlighter(&query)?;
/// for hit in &hits.hits {
///     let preview = highlighter.preview(hit.document, 200)?.expect("the schema keeps texts");
///     assert_eq!(&preview.snippet.text[preview.snippet.marks[0].clone()], "disk");
/// }
/// # Ok::<(), tierdex::Error>(())
/// ```
pub struct Highlighter<'s> {
    snapshot: &'s Snapshot,
    source: &'s dyn BlockSource,
    bytes: PreviewBytes,
    fields: Vec<HighlightedField>,
}

/// A field from which snippets are taken.
struct HighlightedField {
    number: usize,
    /// The names of its members, without the title unless all fields are of the title alone.
    members: Vec<String>,
    marks: Marks,
    analyzer: Analyzer,
}

impl Highlighter<'_> {
    /// The title of a document, and a snippet of about `width` bytes in which the terms of the query are
    /// marked; `None` if the schema does not keep texts. `document` is
    /// [`SearchHit::document`](crate::SearchHit::document).
    ///
    /// # Errors
    /// [`Error::Storage`] when the file of stored texts cannot be read or is damaged;
    /// [`Error::Usage`] when there is no such document.
    pub fn preview(&mut self, document: u32, width: usize) -> Result<Option<Preview>> {
        let numbers: Vec<usize> = self.fields.iter().map(|field| field.number).collect();
        let stored = self.snapshot.searcher().preview(document, &numbers, self.bytes, self.source)?;
        let Some(stored) = stored else { return Ok(None) };
        let mut best = Snippet::default();
        for HighlightedField { members, marks, analyzer, .. } in &mut self.fields {
            let values: Vec<&str> =
                members.iter().flat_map(|member| stored.values(member)).map(String::as_str).collect();
            let text = match &values[..] {
                [value] => Cow::Borrowed(*value),
                values => Cow::Owned(values.join("\n")),
            };
            let found = snippet(&text, analyzer, |term| marks.find(term), width);
            if best.text.is_empty() || found.marks.len() > best.marks.len() {
                best = found;
            }
        }
        Ok(Some(Preview { title: stored.title().to_string(), snippet: best }))
    }
}

impl Snapshot {
    /// Makes previews of the hits of a query. With a memory budget, hold
    /// [`Snapshot::reserve_all_output`] meanwhile: previews then count towards it.
    ///
    /// # Errors
    /// [`Error::Storage`] when the dictionary, in which fuzzy words are looked up, cannot be read or is
    /// damaged; [`Error::Usage`] as [`Engine::submit`](crate::Engine::submit) for the query.
    pub fn highlighter(&self, query: &Query) -> Result<Highlighter<'_>> {
        query.check(self.schema())?;
        self.highlighter_by(query, PreviewBytes::MAX, &FILES)
    }

    /// Previews of hits, as far as `source` is not stopped; none if the schema does not keep values.
    ///
    /// # Errors
    /// As [`Highlighter::preview`].
    pub(super) fn previews(
        &self,
        query: &Query,
        hits: &[SearchHit],
        options: PreviewOptions,
        source: &dyn BlockSource,
    ) -> Result<Vec<Preview>> {
        let mut previews = Vec::new();
        let mut add_all = || {
            let mut highlighter = self.highlighter_by(query, options.bytes_read(), source)?;
            previews.reserve_exact(hits.len());
            for hit in hits {
                let Some(mut preview) = highlighter.preview(hit.document, options.width())? else { break };
                // The memory of the result is counted.
                preview.snippet.text.shrink_to_fit();
                preview.snippet.marks.shrink_to_fit();
                previews.push(preview);
                source.checkpoint(0..0)?;
            }
            Ok(())
        };
        match add_all() {
            Ok(()) | Err(Error::Interrupted) => Ok(previews),
            Err(error) => Err(error),
        }
    }

    fn highlighter_by<'s>(
        &'s self,
        query: &Query,
        bytes: PreviewBytes,
        source: &'s dyn BlockSource,
    ) -> Result<Highlighter<'s>> {
        let schema = self.schema();
        let mut numbers = query.fields();
        let shows_text = |number: &usize| !self.texts_of(*number).is_empty();
        let first_text = (0..schema.fields.len()).find(shows_text);
        if first_text.is_some() {
            numbers.retain(shows_text);
        }
        // A query of the title alone shows the beginning of the first field.
        if numbers.is_empty() {
            numbers.push(first_text.unwrap_or(0));
        }
        let fields = numbers.into_iter().map(|number| {
            Ok(HighlightedField {
                number,
                members: match first_text {
                    Some(_) => self.texts_of(number),
                    None => schema.fields[number].members.clone(),
                },
                marks: self.searcher().marks(query, number, source)?,
                analyzer: Analyzer::new(&schema.fields[number].analysis),
            })
        });
        Ok(Highlighter { snapshot: self, source, bytes, fields: fields.collect::<Result<_>>()? })
    }

    /// The members of a field without the title.
    fn texts_of(&self, field: usize) -> Vec<String> {
        let schema = self.schema();
        let members =
            schema.fields[field].members.iter().filter(|member| Some(*member) != schema.title.as_ref());
        members.cloned().collect()
    }

    /// The part of a text of about `width` bytes that contains the most terms of a query; `None` if the
    /// schema does not keep texts. For several documents use [`Snapshot::highlighter`].
    ///
    /// # Errors
    /// As [`Snapshot::highlighter`] and [`Highlighter::preview`].
    pub fn snippet(&self, query: &Query, document: u32, width: usize) -> Result<Option<Snippet>> {
        Ok(self.highlighter(query)?.preview(document, width)?.map(|preview| preview.snippet))
    }

    /// The first `limit` terms of a field with `prefix` that are greater than `after`, in byte order, with
    /// their statistics over all segments. `field` is the number of the field in the schema; an empty prefix
    /// is that of all terms.
    ///
    /// ```
    /// # use tierdex::{Engine, EngineOptions, IndexWriter, Merge, Schema, WriterOptions};
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let dir = dir.path().join("index");
    /// # let mut writer = IndexWriter::create(&dir, Schema::default(), WriterOptions::default())?;
    /// # writer.add("1", [("text", "disk disks display")])?;
    /// # writer.commit(Merge::Keep)?;
    /// let engine = Engine::open(&dir, &EngineOptions::new())?;
    /// let terms = engine.snapshot().terms(0, "disk", None, 10)?;
    /// assert_eq!(terms.iter().map(|term| &*term.term).collect::<Vec<_>>(), ["disk", "disks"]);
    /// # Ok::<(), tierdex::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Storage`] when the dictionary cannot be read or is damaged.
    ///
    /// # Panics
    /// If the schema has no field of this number.
    pub fn terms(
        &self,
        field: usize,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<TermStats>> {
        self.searcher().terms(field, prefix, after, limit)
    }

    /// What a user may mean by a text that is being typed: at most `limit` completions of its last word, and
    /// other words in place of those that no document contains. `field` is the number of the field in the
    /// schema. Suggestions are terms of the index; none if they are stems.
    ///
    /// ```
    /// # use tierdex::{Engine, EngineOptions, IndexWriter, Merge, Schema, WriterOptions};
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let dir = dir.path().join("index");
    /// # let mut writer = IndexWriter::create(&dir, Schema::default(), WriterOptions::default())?;
    /// # writer.add("1", [("text", "solid state disk disks")])?;
    /// # writer.commit(Merge::Keep)?;
    /// let snapshot = Engine::open(&dir, &EngineOptions::new())?.snapshot();
    /// let suggestions = snapshot.suggest(0, "solit di", 5)?;
    /// assert_eq!(suggestions.completions[0].term, "disk");
    /// assert_eq!(suggestions.correction.as_deref(), Some("solid di"));
    /// # Ok::<(), tierdex::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Storage`] when the dictionary cannot be read or is damaged; [`Error::Query`] when the text is
    /// longer than a query may be.
    ///
    /// # Panics
    /// If the schema has no field of this number.
    pub fn suggest(&self, field: usize, text: &str, limit: usize) -> Result<Suggestions> {
        if text.len() > QUERY_BYTES_MAX {
            return Err(Error::query(format!("the text is longer than {QUERY_BYTES_MAX} bytes")));
        }
        self.searcher().suggest(field, text, limit)
    }

    /// Calls `body` with each hit and its external id, in the order of `hits`. Ids are read from disk, in
    /// order of documents; at most 64 KiB of them, or a single longer one, are in memory at a time.
    ///
    /// # Errors
    /// As [`Snapshot::ids`], and those of `body`, which end the calls.
    pub fn for_each_id<E: From<Error>>(
        &self,
        hits: &[SearchHit],
        body: impl FnMut(SearchHit, &str) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        self.searcher().for_each_id(hits, &HitIds::default(), body)
    }

    /// Calls `body` with each document whose external id `accepts`, in order of documents. Reads all ids of
    /// the index once.
    ///
    /// # Errors
    /// [`Error::Storage`] when ids cannot be read or are damaged, and the errors of
    /// `body`, which end the scan.
    pub fn scan_ids(
        &self,
        accepts: impl FnMut(&str) -> bool,
        body: impl FnMut(u32, &str) -> Result<()>,
    ) -> Result<()> {
        self.searcher().scan_ids(accepts, body)
    }

    /// Evaluates a request on the calling thread, and tells how: for each segment the strategy and the top-k
    /// threshold, for each posting list the blocks that were decoded and skipped. It takes longer than
    /// [`Engine::search`](crate::Engine::search), and reads outside the cache and the memory budget.
    /// [`SearchRequest::explain`] does it within both, and until the deadline.
    /// Priority, deadline and snapshot of the request are not used here, nor is
    /// [`EngineOptions::hits_max`](crate::EngineOptions::hits_max).
    ///
    /// ```
    /// # use tierdex::{Engine, EngineOptions, IndexWriter, Merge, Schema, WriterOptions};
    /// use tierdex::{Query, SearchRequest};
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let dir = dir.path().join("index");
    /// # let mut writer = IndexWriter::create(&dir, Schema::default(), WriterOptions::default())?;
    /// # writer.add("1", [("text", "a solid state disk")])?;
    /// # writer.commit(Merge::Keep)?;
    /// let snapshot = Engine::open(&dir, &EngineOptions::new())?.snapshot();
    /// let query = Query::parse("+solid +disk", snapshot.schema())?;
    /// let explanation = snapshot.explain(&SearchRequest::new(query))?;
    /// assert_eq!(explanation.segments[0].evaluation.strategy.name(), "conjunction");
    /// # Ok::<(), tierdex::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Engine::search`](crate::Engine::search).
    pub fn explain(&self, request: &SearchRequest) -> Result<Explanation> {
        request.query.check(self.schema())?;
        let statistics = request.statistics.as_deref();
        statistics.map_or(Ok(()), |given| self.searcher().check_statistics(given, true))?;
        self.searcher().explain(&request.query, &request.options, statistics)
    }
}
