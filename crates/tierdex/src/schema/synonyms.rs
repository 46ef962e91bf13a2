//! The synonyms of a field: rules as they are written, and what they mean, which the analysis of the field
//! decides (`text/synonyms.rs`).

use crate::bytes::{ByteReader, push_bytes, push_varint};
use crate::limits::{SYNONYM_BYTES_MAX, SYNONYMS_MAX};
use crate::{Error, Result};
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

/// The synonyms of a field, by which words of queries find documents with other words. They apply to queries
/// alone, so they can be changed without indexing again.
///
/// Rules are in the format of Solr: `tv, television` (each of them finds all of them), or `telly => tv` (the
/// left side is replaced by the right side). A side may have several words.
///
/// ```
/// use tierdex::schema::{Field, Synonyms};
///
/// let mut field = Field::new("text", &["title", "text"]);
/// field.synonyms = Synonyms::parse("# appliances\ntv, television, tele vision\ntelly => tv\n")?;
/// # Ok::<(), tierdex::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct Synonyms(Arc<Rules>);

#[derive(Default)]
struct Rules {
    texts: Vec<String>,
    /// What the rules mean, after their first use.
    alternatives: OnceLock<AlternativesByWords>,
}

/// For the terms of words, joined by blanks, what else is searched.
#[derive(Default)]
pub(crate) struct AlternativesByWords {
    pub(crate) by_terms: HashMap<String, Alternatives>,
    /// The largest number of terms of a key.
    pub(crate) terms_max: usize,
    /// Number of all alternatives.
    pub(crate) count: usize,
}

/// What is searched in place of words, or beside them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Alternatives {
    /// Whether the words themselves are searched too.
    pub(crate) keeps_words: bool,
    /// Words that are not analysed yet. Alternatives of the same rule share them.
    pub(crate) texts: Vec<Arc<str>>,
}

impl Synonyms {
    /// The rules of a text: one a line; empty lines and those that begin with `#` are none. What the rules
    /// mean is checked when a writer opens the index.
    ///
    /// # Errors
    /// [`Error::TooLarge`] if there are too many.
    pub fn parse(text: &str) -> Result<Synonyms> {
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        Synonyms::from_rules(lines.map(str::to_string).collect())
    }

    /// Synonyms of these rules.
    ///
    /// # Errors
    /// [`Error::TooLarge`] if there are too many.
    pub fn from_rules(texts: Vec<String>) -> Result<Synonyms> {
        let bytes: usize = texts.iter().map(String::len).sum();
        if texts.len() > SYNONYMS_MAX || bytes > SYNONYM_BYTES_MAX {
            return Err(Error::TooLarge(format!(
                "{} rules for synonyms of {bytes} bytes; a field has at most {SYNONYMS_MAX}, of \
                 {SYNONYM_BYTES_MAX} bytes",
                texts.len()
            )));
        }
        Ok(Synonyms(Arc::new(Rules { texts, alternatives: OnceLock::new() })))
    }

    /// The rules, as they were written.
    pub fn rules(&self) -> &[String] {
        &self.0.texts
    }

    /// What the rules mean; `compile` finds it out at the first call.
    pub(crate) fn alternatives(
        &self,
        compile: impl FnOnce(&[String]) -> AlternativesByWords,
    ) -> &AlternativesByWords {
        self.0.alternatives.get_or_init(|| compile(&self.0.texts))
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        push_varint(out, self.rules().len() as u64);
        self.rules().iter().for_each(|rule| push_bytes(out, rule.as_bytes()));
    }

    pub(super) fn read(view: &mut ByteReader<'_>) -> Result<Synonyms> {
        let count = view.varint()?;
        if count > SYNONYMS_MAX as u64 {
            return Err(view.corrupt("too many synonyms"));
        }
        let rules = (0..count).map(|_| view.string(SYNONYM_BYTES_MAX).map(str::to_string));
        let rules = rules.collect::<Result<Vec<_>>>()?;
        Synonyms::from_rules(rules).map_err(|error| view.corrupt(error.to_string()))
    }
}

impl PartialEq for Synonyms {
    fn eq(&self, other: &Synonyms) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.rules() == other.rules()
    }
}

impl Eq for Synonyms {}

impl std::fmt::Debug for Synonyms {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.rules().fmt(f)
    }
}
