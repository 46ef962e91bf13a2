//! The source of a document: its stored members as JSON, and the parts of it that a client asks for.

use super::error::parsing_error;
use super::members::{Members, matches_pattern, names_of};
use crate::api_error::{ApiError, ApiErrorKind};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;
use tierdex::StoredDocument;

/// The parts of a source that are shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SourceFilter {
    /// Whether nothing is shown.
    pub(super) is_off: bool,
    /// Paths and patterns of members; all if there are none.
    includes: Vec<String>,
    excludes: Vec<String>,
}

impl SourceFilter {
    /// Takes the members that say what is shown; those of the query string take precedence.
    pub(super) fn take(body: Option<&Value>, parameters: &mut Members<'_>) -> Result<SourceFilter, ApiError> {
        let mut filter = body.map(SourceFilter::of_value).transpose()?.unwrap_or_default();
        if let Some(value) = parameters.take("_source") {
            filter = match value.as_str() {
                Some("true") => SourceFilter::default(),
                Some("false") => SourceFilter { is_off: true, ..SourceFilter::default() },
                _ => SourceFilter { includes: names_of(value, "_source")?, ..SourceFilter::default() },
            };
        }
        if let Some(names) = parameters.take("_source_includes") {
            filter.includes = names_of(names, "_source_includes")?;
        }
        if let Some(names) = parameters.take("_source_excludes") {
            filter.excludes = names_of(names, "_source_excludes")?;
        }
        Ok(filter)
    }

    /// The filter of a member `_source`.
    pub(super) fn of_value(value: &Value) -> Result<SourceFilter, ApiError> {
        let (mut includes, mut excludes) = (Vec::new(), Vec::new());
        match value {
            Value::Bool(shown) => return Ok(SourceFilter { is_off: !shown, includes, excludes }),
            Value::String(name) => includes.push(name.clone()),
            Value::Object(_) => {
                let mut members = Members::of(value, "_source")?;
                for (list, names) in
                    [(&mut includes, ["includes", "include"]), (&mut excludes, ["excludes", "exclude"])]
                {
                    for name in names {
                        let given = members.take(name).map(|given| names_of(given, name)).transpose()?;
                        given.into_iter().for_each(|given| *list = given);
                    }
                }
                members.finish()?;
            }
            Value::Array(_) => includes = names_of(value, "_source")?,
            _ => return Err(parsing_error("[_source] must be a boolean, a text, a list or an object")),
        }
        Ok(SourceFilter { is_off: false, includes, excludes })
    }

    fn shows_all(&self) -> bool {
        self.includes.is_empty() && self.excludes.is_empty()
    }

    /// The source of a document.
    pub(super) fn source_of(&self, stored: &StoredDocument) -> Result<Box<RawValue>, ApiError> {
        let mut out = "{".to_string();
        for (name, values) in stored.members().filter(|(_, values)| !values.is_empty()) {
            if self.shows(name) {
                push_name(&mut out, name);
                out += &match values {
                    [value] => serde_json::to_string(value),
                    values => serde_json::to_string(values),
                }
                .unwrap_or_default();
            }
        }
        let others = stored.others().trim();
        if let Some(inner) = others.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
            if self.shows_all() {
                if out.len() > 1 && !inner.trim().is_empty() {
                    out.push(',');
                }
                out += inner;
            } else {
                self.push_members(&mut out, others, "")?;
            }
        }
        out.push('}');
        RawValue::from_string(out).map_err(not_json)
    }

    /// Whether a member that has no others inside is shown.
    fn shows(&self, path: &str) -> bool {
        self.includes_whole(path) && !self.excludes(path)
    }

    fn includes_whole(&self, path: &str) -> bool {
        self.includes.is_empty() || self.includes.iter().any(|pattern| is_at_or_above(pattern, path))
    }

    fn excludes(&self, path: &str) -> bool {
        self.excludes.iter().any(|pattern| is_at_or_above(pattern, path))
    }

    /// Appends the members of an object that are shown; `prefix` is its path with a full stop.
    fn push_members(&self, out: &mut String, object: &str, prefix: &str) -> Result<(), ApiError> {
        let SourceMembers(members) = serde_json::from_str(object).map_err(not_json)?;
        for (name, value) in members {
            if let Some(shown) = self.shown_part(&format!("{prefix}{name}"), value.get())? {
                push_name(out, &name);
                out.push_str(&shown);
            }
        }
        Ok(())
    }

    /// The part of a value that is shown; `None` if that is nothing.
    fn shown_part<'t>(&self, path: &str, text: &'t str) -> Result<Option<Cow<'t, str>>, ApiError> {
        if self.excludes(path) {
            return Ok(None);
        }
        let is_whole = self.includes_whole(path);
        if is_whole && self.excludes.is_empty() {
            return Ok(Some(text.into()));
        }
        let mut shown = text[..1].to_string();
        match &*shown {
            "{" => self.push_members(&mut shown, text, &format!("{path}."))?,
            "[" => {
                let items: Vec<Box<RawValue>> = serde_json::from_str(text).map_err(not_json)?;
                for item in items {
                    if let Some(item) = self.shown_part(path, item.get())? {
                        shown.push_str(if shown.len() > 1 { "," } else { "" });
                        shown.push_str(&item);
                    }
                }
            }
            _ => return Ok(is_whole.then_some(text.into())),
        }
        let has_any = is_whole || shown.len() > 1;
        shown.push(if shown.starts_with('{') { '}' } else { ']' });
        Ok(has_any.then_some(shown.into()))
    }
}

/// Whether a pattern is that of a path, or of a member that contains it.
fn is_at_or_above(pattern: &str, path: &str) -> bool {
    matches_pattern(pattern, path)
        || path.match_indices('.').any(|(end, _)| matches_pattern(pattern, &path[..end]))
}

fn push_name(out: &mut String, name: &str) {
    if !out.ends_with('{') {
        out.push(',');
    }
    *out += &serde_json::to_string(name).unwrap_or_default();
    out.push(':');
}

fn not_json(error: serde_json::Error) -> ApiError {
    ApiError::new(ApiErrorKind::Storage, format!("the stored members of a document are not JSON: {error}"))
}

/// The members of an object in their order, with the texts of their values.
struct SourceMembers(Vec<(String, Box<RawValue>)>);

impl<'de> Deserialize<'de> for SourceMembers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<SourceMembers, D::Error> {
        struct MembersInOrder;
        impl<'de> Visitor<'de> for MembersInOrder {
            type Value = SourceMembers;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<SourceMembers, A::Error> {
                let mut all = Vec::new();
                while let Some(member) = members.next_entry()? {
                    all.push(member);
                }
                Ok(SourceMembers(all))
            }
        }
        deserializer.deserialize_map(MembersInOrder)
    }
}
