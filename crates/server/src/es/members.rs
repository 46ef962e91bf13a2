//! The members of an object: each is taken by its name, and those that are left are an error. Parameters of
//! the query string are an object too, whose values are texts.

use super::error::{argument_error, parsing_error};
use super::request::COMMON_PARAMETERS;
use crate::api_error::{ApiError, ApiErrorKind};
use serde_json::{Map, Value};

/// Names of a list, and bytes of each, at most: each may be compared with all members of all documents.
pub(super) const NAMES_MAX: usize = 128;
const NAME_BYTES_MAX: usize = 1024;

/// Parts of a request that an answer names as having no effect, at most.
const WARNINGS_MAX: usize = 16;

/// The members of an object that were not taken yet.
#[derive(Debug)]
pub(super) struct Members<'v> {
    /// What the object is, for messages.
    what: &'v str,
    left: Vec<(&'v str, &'v Value)>,
    is_of_url: bool,
}

impl<'v> Members<'v> {
    /// The members of an object of a body.
    pub(super) fn of(value: &'v Value, what: &'v str) -> Result<Members<'v>, ApiError> {
        match value {
            Value::Object(members) => Ok(Members { is_of_url: false, ..Members::of_url(members, what) }),
            other => Err(parsing_error(format!("[{what}] must be an object, not {}", kind_of(other)))),
        }
    }

    /// The parameters of the query string.
    pub(super) fn of_url(members: &'v Map<String, Value>, what: &'v str) -> Members<'v> {
        let left = members.iter().map(|(name, value)| (name.as_str(), value)).collect();
        Members { what, left, is_of_url: true }
    }

    /// Takes a member.
    pub(super) fn take(&mut self, name: &str) -> Option<&'v Value> {
        let at = self.left.iter().position(|(other, _)| *other == name)?;
        Some(self.left.remove(at).1)
    }

    /// Takes a text, or a number or boolean as text.
    pub(super) fn text(&mut self, name: &str) -> Result<Option<String>, ApiError> {
        let Some(value) = self.take(name) else { return Ok(None) };
        text_of(value).map(Some).ok_or_else(|| self.wrong(name, "a text", value))
    }

    /// Takes a number, also as text.
    pub(super) fn number(&mut self, name: &str) -> Result<Option<f64>, ApiError> {
        let Some(value) = self.take(name) else { return Ok(None) };
        let number =
            value.as_f64().or_else(|| value.as_str()?.parse().ok()).filter(|found| found.is_finite());
        number.map(Some).ok_or_else(|| self.wrong(name, "a number", value))
    }

    /// Takes a number that is not negative and has no fraction, also as text.
    pub(super) fn count(&mut self, name: &str) -> Result<Option<usize>, ApiError> {
        let Some(value) = self.take(name) else { return Ok(None) };
        let count = value.as_u64().or_else(|| value.as_str()?.parse().ok());
        let count = count.and_then(|count| usize::try_from(count).ok());
        count.map(Some).ok_or_else(|| self.wrong(name, "a whole number of at least 0", value))
    }

    /// Takes a boolean, also as text; of the query string a name without a value is true.
    pub(super) fn flag(&mut self, name: &str) -> Result<Option<bool>, ApiError> {
        let Some(value) = self.take(name) else { return Ok(None) };
        match (value, value.as_str()) {
            (Value::Bool(flag), _) => Ok(Some(*flag)),
            (_, Some("true")) => Ok(Some(true)),
            (_, Some("false")) => Ok(Some(false)),
            (_, Some("")) if self.is_of_url => Ok(Some(true)),
            _ => Err(self.wrong(name, "true or false", value)),
        }
    }

    /// Takes a boost, 1 by default.
    pub(super) fn boost(&mut self) -> Result<f64, ApiError> {
        let boost = self.number("boost")?.unwrap_or(1.0);
        if boost < 0.0 {
            return Err(parsing_error(format!("[{}] has a negative boost", self.what)));
        }
        Ok(boost)
    }

    /// Takes a member that may only have one value, the one that has no effect.
    pub(super) fn only(&mut self, name: &str, allowed: &Value) -> Result<(), ApiError> {
        match self.take(name) {
            Some(value) if value != allowed && text_of(value) != text_of(allowed) => {
                Err(self.error(format!("[{}] supports [{name}] with the value {allowed} only", self.what)))
            }
            _ => Ok(()),
        }
    }

    /// Takes members that have no effect; adds them to `ignored`.
    pub(super) fn ignore(&mut self, names: &[&'static str], ignored: &mut Vec<String>) {
        for name in names {
            // Without effect, as asked for.
            let asked = self.take(name).filter(|value| value.as_bool() != Some(false));
            if asked.is_some_and(|value| value.as_str() != Some("false")) {
                add_warning(ignored, format!("[{name}] has no effect"));
            }
        }
    }

    /// The only member of an object, such as a field and its query.
    pub(super) fn one(mut self) -> Result<(&'v str, &'v Value), ApiError> {
        match self.left[..] {
            [_] => Ok(self.left.remove(0)),
            [] => Err(parsing_error(format!("[{}] has no member", self.what))),
            [(first, _), (second, _), ..] => Err(parsing_error(format!(
                "[{}] must have one member, and has [{}] and [{}]",
                self.what,
                first.escape_debug(),
                second.escape_debug()
            ))),
        }
    }

    /// Takes members and parameters of all requests that have no effect; the rest is an error.
    pub(super) fn finish_ignoring(
        mut self,
        names: &[&'static str],
        ignored: &mut Vec<String>,
    ) -> Result<(), ApiError> {
        self.ignore(names, ignored);
        self.ignore(&COMMON_PARAMETERS, ignored);
        self.finish()
    }

    /// Names the first member that was not taken.
    pub(super) fn finish(self) -> Result<(), ApiError> {
        let Some((name, _)) = self.left.first() else { return Ok(()) };
        let name = name.escape_debug();
        Err(match self.is_of_url {
            true => self.error(format!("the parameter [{name}] of [{}] is not supported", self.what)),
            false => self.error(format!("[{name}] of [{}] is not supported", self.what)),
        })
    }

    fn wrong(&self, name: &str, expected: &str, value: &Value) -> ApiError {
        let found = kind_of(value);
        self.error(format!("[{name}] of [{}] must be {expected}, and is {found}", self.what))
    }

    pub(super) fn error(&self, message: String) -> ApiError {
        if self.is_of_url { argument_error(message) } else { parsing_error(message) }
    }
}

/// A text, or a number or boolean as text.
pub(super) fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        _ => None,
    }
}

/// Names of a member: a text with commas, or a list of texts.
pub(super) fn names_of(value: &Value, what: &str) -> Result<Vec<String>, ApiError> {
    let wrong = || parsing_error(format!("[{what}] must be a text or a list of texts"));
    let names: Option<Vec<&str>> = match value {
        Value::String(text) => Some(text.split(',').take(NAMES_MAX + 1).map(str::trim).collect()),
        Value::Array(names) => names.iter().take(NAMES_MAX + 1).map(Value::as_str).collect(),
        _ => None,
    };
    let names = names.ok_or_else(wrong)?;
    check_names(&names, what)?;
    Ok(names.into_iter().map(str::to_string).collect())
}

/// Rejects a list of too many or too long names.
pub(super) fn check_names(names: &[&str], what: &str) -> Result<(), ApiError> {
    let message = if names.len() > NAMES_MAX {
        format!("[{what}] has more than {NAMES_MAX} names")
    } else if names.iter().any(|name| name.len() > NAME_BYTES_MAX) {
        format!("[{what}] has a name of more than {NAME_BYTES_MAX} bytes")
    } else {
        return Ok(());
    };
    Err(ApiError::new(ApiErrorKind::Limit, message))
}

/// Adds a warning, unless it is one of them already, or there are many.
pub(super) fn add_warning(warnings: &mut Vec<String>, warning: String) {
    if warnings.len() < WARNINGS_MAX && !warnings.contains(&warning) {
        warnings.push(warning);
    }
}

/// Whether a name matches a pattern, in which `*` is any text.
pub(super) fn matches_pattern(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| name.strip_prefix(first)) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

fn kind_of(value: &Value) -> String {
    match value {
        Value::Object(_) => "an object".to_string(),
        Value::Array(_) => "a list".to_string(),
        value => format!("`{value}`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_names_are_bounded() {
        let list = |count: usize| Value::from(vec!["a"; count]);
        let text = |count: usize| Value::from(vec!["a"; count].join(","));
        for (names, is_valid) in
            [(list(128), true), (list(129), false), (text(128), true), (text(1_000_000), false)]
        {
            assert_eq!(names_of(&names, "fields").is_ok(), is_valid);
        }
        let error = names_of(&Value::from("a".repeat(1025)), "fields").unwrap_err();
        assert!(error.message.contains("[fields]") && error.message.contains("1024"), "{}", error.message);
    }

    #[test]
    fn a_warning_is_given_once() {
        let mut warnings = Vec::new();
        (0..100).for_each(|number| add_warning(&mut warnings, format!("{}", number % 20)));
        assert_eq!(warnings.len(), WARNINGS_MAX);
        assert_eq!(warnings[15], "15");
    }

    #[test]
    fn patterns_have_any_text_in_place_of_stars() {
        for (pattern, name, is_match) in [
            ("a", "a", true),
            ("a", "ab", false),
            ("a*", "ab", true),
            ("*", "", true),
            ("*b", "aab", true),
            ("a*b*c", "abc", true),
            ("a*b*c", "acb", false),
            ("a*a", "a", false),
            ("", "", true),
        ] {
            assert_eq!(matches_pattern(pattern, name), is_match, "{pattern} {name}");
        }
    }
}
