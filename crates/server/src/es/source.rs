//! The source of a document: its stored members as JSON, and the parts of it that a client asks for.

use super::error::parsing_error;
use super::json::JSON_DEPTH_MAX;
use super::members::{Members, matches_pattern, names_of};
use crate::api_error::{ApiError, ApiErrorKind};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;
use std::fmt;
use std::time::{Duration, Instant};
use tierdex::StoredDocument;

/// Bytes of the path of a member that is compared with patterns, at most.
const PATH_BYTES_MAX: usize = 1024;

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

    /// The source of a document; an error if it is not ready by `until`.
    pub(super) fn source_of(
        &self,
        stored: &StoredDocument,
        until: Instant,
    ) -> Result<Box<RawValue>, ApiError> {
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
                ShownSource { filter: self, out: &mut out, until, depth: 0 }.push_members(others, "")?;
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
}

/// The source that is being written.
struct ShownSource<'s> {
    filter: &'s SourceFilter,
    out: &'s mut String,
    until: Instant,
    /// Values around the next one.
    depth: usize,
}

impl ShownSource<'_> {
    /// Appends the members of an object that are shown; `prefix` is its path with a full stop.
    fn push_members(&mut self, object: &str, prefix: &str) -> Result<(), ApiError> {
        let SourceMembers(members) = serde_json::from_str(object).map_err(not_json)?;
        for (name, value) in members {
            let path = format!("{prefix}{name}");
            if path.len() > PATH_BYTES_MAX {
                return Err(ApiError::new(
                    ApiErrorKind::Limit,
                    format!("the path of a stored member has more than {PATH_BYTES_MAX} bytes; {WHOLE_ONLY}"),
                ));
            }
            let before = self.out.len();
            push_name(self.out, &name);
            if !self.push_part(&path, value.get())? {
                self.out.truncate(before);
            }
        }
        Ok(())
    }

    /// Appends the part of a value that is shown. False if that is nothing; `out` may be longer then.
    fn push_part(&mut self, path: &str, text: &str) -> Result<bool, ApiError> {
        if Instant::now() >= self.until {
            let message = "the sources of documents could not be filtered in time";
            return Err(ApiError::overloaded(message, Duration::from_secs(1)));
        }
        if self.filter.excludes(path) {
            return Ok(false);
        }
        let is_whole = self.filter.includes_whole(path);
        let is_list = text.starts_with('[');
        if is_whole && self.filter.excludes.is_empty() || !is_list && !text.starts_with('{') {
            self.out.push_str(if is_whole { text } else { "" });
            return Ok(is_whole);
        }
        if self.depth == JSON_DEPTH_MAX {
            return Err(ApiError::new(
                ApiErrorKind::Limit,
                format!("a stored document has more than {JSON_DEPTH_MAX} levels; {WHOLE_ONLY}"),
            ));
        }
        self.depth += 1;
        self.out.push_str(&text[..1]);
        let start = self.out.len();
        if is_list {
            self.push_items(path, text)?;
        } else {
            self.push_members(text, &format!("{path}."))?;
        }
        self.depth -= 1;
        let has_any = is_whole || self.out.len() > start;
        self.out.push(if is_list { ']' } else { '}' });
        Ok(has_any)
    }

    /// Appends the parts of the items of a list that are shown.
    fn push_items(&mut self, path: &str, list: &str) -> Result<(), ApiError> {
        let items: Vec<&RawValue> = serde_json::from_str(list).map_err(not_json)?;
        let mut separator = "";
        for item in items {
            let before = self.out.len();
            self.out.push_str(separator);
            if self.push_part(path, item.get())? {
                separator = ",";
            } else {
                self.out.truncate(before);
            }
        }
        Ok(())
    }
}

/// What to do if a document cannot be filtered.
const WHOLE_ONLY: &str = "ask for all of [_source], or for none of it";

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
struct SourceMembers<'t>(Vec<(String, &'t RawValue)>);

impl<'de> Deserialize<'de> for SourceMembers<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<SourceMembers<'de>, D::Error> {
        struct MembersInOrder;
        impl<'de> Visitor<'de> for MembersInOrder {
            type Value = SourceMembers<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<SourceMembers<'de>, A::Error> {
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
