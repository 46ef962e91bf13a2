//! Highlighted parts of hits, which are the snippets of the engine.

use super::error::parsing_error;
use super::members::{Members, add_warning, matches_pattern, names_of};
use crate::api_error::{ApiError, ApiErrorKind};
use crate::search::SNIPPET_BYTES_MAX;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::BTreeMap;
use tierdex::analysis::Snippet;
use tierdex::{PreviewOptions, Query, Schema};

/// Bytes of a fragment, by default.
const FRAGMENT_BYTES: usize = 100;

/// Bytes of a tag, at most: an answer has two for each word.
const TAG_BYTES_MAX: usize = 64;

/// Highlighted texts by their field.
pub(super) type HighlightedTexts = BTreeMap<String, [String; 1]>;

/// What is highlighted, and how.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct HighlightOptions {
    /// The field; `None` if the query searches none of those that were asked for.
    field: Option<String>,
    tags: HighlightTags,
}

/// The texts around a word, and of a fragment.
#[derive(Clone, Debug, PartialEq)]
struct HighlightTags {
    before: String,
    after: String,
    escapes: bool,
    /// Bytes of a fragment; 0 is the whole text.
    fragment: usize,
}

impl HighlightTags {
    /// Takes the members that may be set for all fields and for each.
    fn take(&self, members: &mut Members<'_>, ignored: &mut Vec<String>) -> Result<HighlightTags, ApiError> {
        let mut tags = self.clone();
        for (name, tag) in [("pre_tags", &mut tags.before), ("post_tags", &mut tags.after)] {
            if let Some(names) = members.take(name) {
                let list =
                    if let Value::String(one) = names { vec![one.clone()] } else { names_of(names, name)? };
                *tag = list.into_iter().next().ok_or_else(|| parsing_error(format!("[{name}] is empty")))?;
                if tag.len() > TAG_BYTES_MAX {
                    let message =
                        format!("[{name}] has {} bytes; at most {TAG_BYTES_MAX} are allowed", tag.len());
                    return Err(ApiError::new(ApiErrorKind::Limit, message));
                }
            }
        }
        let fragment = members.count("fragment_size")?;
        let fragments = members.count("number_of_fragments")?;
        if fragments.is_some_and(|count| count > 1) {
            add_warning(ignored, "[number_of_fragments] above 1 has no effect".to_string());
        }
        tags.fragment = match (fragments, fragment) {
            (Some(0), _) => 0,
            (_, Some(bytes)) => bytes,
            (Some(_), None) if self.fragment == 0 => FRAGMENT_BYTES,
            (_, None) => self.fragment,
        };
        if tags.fragment > SNIPPET_BYTES_MAX {
            let message =
                format!("[fragment_size] is {}; at most {SNIPPET_BYTES_MAX} is allowed", tags.fragment);
            return Err(ApiError::new(ApiErrorKind::Limit, message));
        }
        members.only("require_field_match", &json!(true))?;
        members.only("no_match_size", &json!(0))?;
        members.ignore(&["type", "order", "fragmenter", "boundary_scanner"], ignored);
        Ok(tags)
    }
}

impl HighlightOptions {
    /// The member `highlight` of a search of `query`.
    pub(super) fn parse(
        value: &Value,
        query: &Query,
        schema: &Schema,
        ignored: &mut Vec<String>,
    ) -> Result<HighlightOptions, ApiError> {
        let mut members = Members::of(value, "highlight")?;
        let (before, after) = ("<em>".to_string(), "</em>".to_string());
        let tags = HighlightTags { before, after, escapes: false, fragment: FRAGMENT_BYTES };
        let mut tags = tags.take(&mut members, ignored)?;
        tags.escapes = match members.text("encoder")?.as_deref() {
            None | Some("default") => false,
            Some("html") => true,
            Some(_) => return Err(parsing_error("[encoder] must be default or html")),
        };
        members.only("tags_schema", &json!("default"))?;
        let fields = members.take("fields").ok_or_else(|| parsing_error("[highlight] needs [fields]"))?;
        members.finish()?;
        let fields: Vec<&Value> = fields.as_array().map_or(vec![fields], |list| list.iter().collect());
        let searched = query.fields();
        let mut options = HighlightOptions { field: None, tags: tags.clone() };
        for fields in fields {
            let Some(fields) = fields.as_object() else {
                return Err(parsing_error("[fields] of [highlight] must be an object"));
            };
            for (pattern, body) in fields {
                let mut members = Members::of(body, "highlight")?;
                let tags = tags.take(&mut members, ignored)?;
                members.finish()?;
                for number in &searched {
                    let name = &schema.fields[*number].name;
                    if !matches_pattern(pattern, name) {
                        continue;
                    }
                    if searched.len() > 1 {
                        return Err(parsing_error(format!(
                            "[highlight] supports queries of one field; this one searches {}",
                            searched.len()
                        )));
                    }
                    options = HighlightOptions { field: Some(name.clone()), tags: tags.clone() };
                }
            }
        }
        Ok(options)
    }

    /// What the engine reads of each hit; `None` if nothing is highlighted.
    pub(super) fn previews(&self) -> Option<PreviewOptions> {
        self.field.as_ref()?;
        let mut options = PreviewOptions::default();
        options.title = 0;
        options.snippet = if self.tags.fragment == 0 { options.text } else { self.tags.fragment };
        Some(options)
    }

    /// The highlighted text of a hit, if it has a word of the query.
    pub(super) fn texts_of(&self, snippet: &Snippet) -> Option<HighlightedTexts> {
        let field = self.field.clone().filter(|_| !snippet.marks.is_empty())?;
        let escape: fn(&str) -> Cow<'_, str> =
            if self.tags.escapes { escape_html } else { |text| text.into() };
        Some(BTreeMap::from([(field, [snippet.highlight(&self.tags.before, &self.tags.after, escape)])]))
    }

    /// Bytes that the tags and escapes add to a snippet, at most.
    pub(super) fn added_bytes(&self) -> usize {
        let Some(options) = self.previews() else { return 0 };
        let tags = self.tags.before.len() + self.tags.after.len();
        (options.snippet / 8 + 16) * tags + if self.tags.escapes { 6 * options.snippet } else { 0 }
    }
}

/// The text with the special characters of HTML escaped, as Elasticsearch does.
fn escape_html(text: &str) -> Cow<'_, str> {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#x27;"),
            '/' => out.push_str("&#x2F;"),
            c => out.push(c),
        }
    }
    out.into()
}
