//! Parses a JSON line: one object.
//!
//! The parser visits the members and keeps the id and those of the schema, also of nested objects; strings
//! without escapes are borrowed from the line, and other members are skipped. No tree is built.

use super::report::{LineProblem, ProblemKind};
use super::{options::InputOptions, sink::InputDocument, tsv, unindexed::Unindexed};
use serde::de::{
    DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Unexpected, Visitor,
};
use serde_json::value::RawValue;
use std::{borrow::Cow, collections::BTreeMap, fmt};

/// Maximum number of member names in a message.
const MEMBERS_SHOWN_MAX: usize = 8;

/// Bytes that are kept at the start and at the end of a long message of the parser, which quotes unexpected
/// values in full.
const MESSAGE_END_BYTES: usize = 80;

/// Parses the document of a line. A member that is null has no value; each string of an array is a value.
///
/// A document has at least one member of the schema, which may be null. With the default schema this is the
/// text, or a title, and then no members but id and title. Members that the schema does not have are counted
/// in `unindexed`.
pub(super) fn parse_json_line<'l>(
    line: &'l str,
    options: &InputOptions,
    unindexed: &mut Unindexed,
) -> Result<InputDocument<'l>, LineProblem> {
    let mut parser = serde_json::Deserializer::from_str(line);
    let mut members = ObjectMembers::default();
    let reader = ObjectReader { options, unindexed, members: &mut members, prefix: "" };
    reader.deserialize(&mut parser).map_err(|error| malformed_line(line, &error))?;
    parser.end().map_err(|error| malformed_line(line, &error))?;
    members.drop_repeated();
    let ObjectMembers { id, values, has_text, has_members, has_others, others, .. } = members;
    let known = &options.members;
    let has_title = values.iter().any(|(member, _)| Some(*member) == known.title);
    let is_document = match known.is_default {
        true => has_text || (has_title && !has_others),
        false => has_members,
    };
    if !is_document {
        return Err(missing_text(line, options));
    }
    Ok(InputDocument { id, values, others: object_of(others), first_part: None })
}

fn malformed_line(line: &str, error: &serde_json::Error) -> LineProblem {
    let object = line.trim_start().starts_with('{');
    let kind = if error.is_data() && object { ProblemKind::Member } else { ProblemKind::Json };
    LineProblem { kind, message: explain_error(error) }
}

/// The problem of an object without text. Lists the members, as the text often has another name.
fn missing_text(line: &str, options: &InputOptions) -> LineProblem {
    let mut parser = serde_json::Deserializer::from_str(line);
    let names = parser.deserialize_map(MemberNames).unwrap_or_default();
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    let has = if names.is_empty() { "no members".to_string() } else { quoted.join(", ") };
    if !options.members.is_default {
        let message =
            format!("the object has {has}, and none of the members {}", options.members.paths.join(", "));
        return LineProblem { kind: ProblemKind::NoText, message };
    }
    // A message shortens a long name, so the name is not one that the user can copy into a flag.
    let is_other = |name: &&String| {
        **name != options.id_field
            && options.members.of_path(name).is_none()
            && name.len() <= MESSAGE_END_BYTES
    };
    let text = names.iter().filter(is_other).find(|name| tsv::is_text_name(name));
    let advice = match text.or_else(|| names.iter().find(is_other)) {
        Some(name) => format!("name the text as in --text-field {name}, or "),
        None => String::new(),
    };
    let message = format!(
        "no text: the object has {has}, and no `{}`; {advice}give --format text if the file is not JSON",
        options.members.text.map_or("text", |text| &options.members.paths[text])
    );
    LineProblem { kind: ProblemKind::NoText, message }
}

/// Collects the names of the first members of an object.
struct MemberNames;

impl<'l> Visitor<'l> for MemberNames {
    type Value = Vec<String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'l>>(self, mut map: A) -> Result<Vec<String>, A::Error> {
        let mut names = Vec::new();
        while names.len() < MEMBERS_SHOWN_MAX {
            let Some((name, _)) = map.next_entry::<String, IgnoredAny>()? else { return Ok(names) };
            let mut name = name.escape_debug().to_string();
            shorten_message(&mut name);
            names.push(name);
        }
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(names)
    }
}

fn explain_error(error: &serde_json::Error) -> String {
    let mut message = error.to_string();
    let position = format!(" at line {} column {}", error.line(), error.column());
    let column = message.ends_with(&position).then(|| error.column().max(1));
    message.truncate(message.len() - column.map_or(0, |_| position.len()));
    shorten_message(&mut message);
    let prefix = if error.is_data() { "" } else { "not valid JSON: " };
    match column {
        Some(column) => format!("{prefix}{message} at byte {column}"),
        None => format!("{prefix}{message}"),
    }
}

/// Removes the middle of a long message.
fn shorten_message(message: &mut String) {
    if message.len() > 2 * MESSAGE_END_BYTES {
        let head = message.floor_char_boundary(MESSAGE_END_BYTES);
        let tail = message.ceil_char_boundary(message.len() - MESSAGE_END_BYTES);
        message.replace_range(head..tail, " ... ");
    }
}

/// The members of an object that make up a document. Of members that the document repeats, the last counts;
/// of those that a nested object repeats, each.
#[derive(Default)]
struct ObjectMembers<'l> {
    id: Option<Cow<'l, str>>,
    values: Vec<(usize, Cow<'l, str>)>,
    /// For each member of the schema the number of values before those that count.
    repeated: Vec<usize>,
    /// Whether there is a text, which may be null.
    has_text: bool,
    /// Whether there is a member of the schema, which may be null.
    has_members: bool,
    /// Whether there are members that are not indexed.
    has_others: bool,
    /// The other members by their paths, each with its values in JSON, if they are kept.
    others: BTreeMap<String, Vec<String>>,
}

/// Reads an object: the document, or one that is nested in it.
struct ObjectReader<'r, 'l> {
    options: &'r InputOptions,
    unindexed: &'r mut Unindexed,
    members: &'r mut ObjectMembers<'l>,
    /// The path of the object with a dot at the end; empty for the document.
    prefix: &'r str,
}

impl<'l> DeserializeSeed<'l> for ObjectReader<'_, 'l> {
    type Value = ();

    fn deserialize<D: Deserializer<'l>>(self, parser: D) -> Result<(), D::Error> {
        parser.deserialize_map(self)
    }
}

impl<'l> Visitor<'l> for ObjectReader<'_, 'l> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'l>>(self, mut map: A) -> Result<(), A::Error> {
        let ObjectReader { options, unindexed, members, prefix } = self;
        while let Some(member) = map.next_key_seed(MemberName { options, prefix })? {
            match member {
                Member::Id => members.id = parse_id(map.next_value()?, &options.id_field)?,
                Member::Value { member, path, has_nested } => {
                    if prefix.is_empty() {
                        members.begin_again(&options.members.paths, &path);
                    }
                    members.has_members |= member.is_some();
                    members.has_text |= member.is_some() && member == options.members.text;
                    map.next_value_seed(ValueReader {
                        options,
                        unindexed: &mut *unindexed,
                        members: &mut *members,
                        member,
                        path: &path,
                        has_nested,
                    })?;
                }
                Member::Other(path) => {
                    unindexed.add(&path, 1);
                    members.has_others = true;
                    if options.members.keeps_others {
                        members.add_other(&path, map.next_value::<&RawValue>()?.get());
                    } else {
                        map.next_value::<IgnoredAny>()?;
                    }
                }
            }
        }
        Ok(())
    }
}

impl ObjectMembers<'_> {
    /// Begins a member of the document: what it had at this path so far does not count. The values are
    /// dropped at the end, all at once, as a line may repeat a member as often as it has bytes.
    fn begin_again(&mut self, paths: &[String], path: &str) {
        self.repeated.resize(paths.len(), 0);
        for (repeated, _) in self.repeated.iter_mut().zip(paths).filter(|(_, known)| is_within(known, path)) {
            *repeated = self.values.len();
        }
    }

    fn drop_repeated(&mut self) {
        let (mut number, repeated) = (0, &self.repeated);
        self.values.retain(|(member, _)| {
            number += 1;
            number > repeated[*member]
        });
    }

    fn add_other(&mut self, path: &str, json: &str) {
        match self.others.get_mut(path) {
            Some(values) => values.push(json.to_string()),
            None => drop(self.others.insert(path.to_string(), vec![json.to_string()])),
        }
    }
}

/// A JSON object of members by their paths; several values of a path are an array. Empty without members.
fn object_of(members: BTreeMap<String, Vec<String>>) -> String {
    if members.is_empty() {
        return String::new();
    }
    let members = members.into_iter().map(|(path, mut values)| {
        let value = if values.len() == 1 { values.remove(0) } else { format!("[{}]", values.join(",")) };
        format!("{}:{value}", serde_json::Value::from(path))
    });
    format!("{{{}}}", members.collect::<Vec<_>>().join(","))
}

/// Whether a path is `outer`, or that of a member of it.
fn is_within(path: &str, outer: &str) -> bool {
    path.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

enum Member<'l> {
    Id,
    Value {
        /// The member of the schema; `None` if only members of its nested objects are.
        member: Option<usize>,
        path: Cow<'l, str>,
        /// Whether members of nested objects are in the schema.
        has_nested: bool,
    },
    Other(Cow<'l, str>),
}

/// Classifies a member by its path.
struct MemberName<'r> {
    options: &'r InputOptions,
    prefix: &'r str,
}

impl MemberName<'_> {
    fn classify<'l>(&self, name: Cow<'l, str>) -> Member<'l> {
        let path = if self.prefix.is_empty() { name } else { Cow::Owned(self.prefix.to_string() + &name) };
        let id = &self.options.id_field;
        if path == **id {
            return Member::Id;
        }
        let known = &self.options.members;
        let member = known.of_path(&path);
        let has_nested =
            known.paths.iter().chain([id]).any(|known| known.len() > path.len() && is_within(known, &path));
        match member.is_some() || has_nested {
            true => Member::Value { member, path, has_nested },
            false => Member::Other(path),
        }
    }
}

impl<'l> DeserializeSeed<'l> for MemberName<'_> {
    type Value = Member<'l>;

    fn deserialize<D: Deserializer<'l>>(self, parser: D) -> Result<Member<'l>, D::Error> {
        parser.deserialize_str(self)
    }
}

impl<'l> Visitor<'l> for MemberName<'_> {
    type Value = Member<'l>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a member name")
    }

    fn visit_borrowed_str<E: Error>(self, name: &'l str) -> Result<Member<'l>, E> {
        Ok(self.classify(Cow::Borrowed(name)))
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Member<'l>, E> {
        Ok(self.classify(Cow::Owned(name.to_string())))
    }
}

/// An id: a string, a number exactly as written, or null for none.
fn parse_id<'l, E: Error>(raw: &'l RawValue, field: &str) -> Result<Option<Cow<'l, str>>, E> {
    let raw = raw.get();
    match raw.as_bytes().first() {
        Some(b'"') => {
            let mut parser = serde_json::Deserializer::from_str(raw);
            let id = parser.deserialize_str(IdString);
            id.map(Some).map_err(|error| E::custom(explain_error(&error)))
        }
        Some(b'-' | b'0'..=b'9') => Ok(Some(Cow::Borrowed(raw))),
        Some(b'n') => Ok(None),
        _ => Err(E::custom(format_args!("`{field}` must be a string or a number"))),
    }
}

/// A string, borrowed if it has no escapes.
struct IdString;

impl<'l> Visitor<'l> for IdString {
    type Value = Cow<'l, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_borrowed_str<E: Error>(self, value: &'l str) -> Result<Cow<'l, str>, E> {
        Ok(Cow::Borrowed(value))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Cow<'l, str>, E> {
        Ok(Cow::Owned(value.to_string()))
    }
}

/// Reads the value of a member: a string, null for none, an array of values, or an object with members of the
/// schema.
struct ValueReader<'r, 'l> {
    options: &'r InputOptions,
    unindexed: &'r mut Unindexed,
    members: &'r mut ObjectMembers<'l>,
    member: Option<usize>,
    path: &'r str,
    has_nested: bool,
}

impl<'l> ValueReader<'_, 'l> {
    fn push(self, value: Cow<'l, str>) {
        match self.member {
            Some(member) => self.members.values.push((member, value)),
            None => self.push_other(&serde_json::Value::from(&*value)),
        }
    }

    /// A value in a place where the schema has only members of an object.
    fn push_other(self, value: &serde_json::Value) {
        self.unindexed.add(self.path, 1);
        self.members.has_others = true;
        if self.options.members.keeps_others {
            self.members.add_other(self.path, &value.to_string());
        }
    }

    /// A value that is neither text nor an object: an error if a member of the schema has it, unless it is
    /// the value of a column.
    fn push_scalar<E: Error>(self, value: serde_json::Value, found: Unexpected<'_>) -> Result<(), E> {
        match self.member {
            Some(member) if self.options.members.is_of_column(member) => {
                self.push(Cow::Owned(value.to_string()))
            }
            Some(_) => return Err(E::invalid_type(found, &self)),
            None => self.push_other(&value),
        }
        Ok(())
    }
}

impl<'l> DeserializeSeed<'l> for ValueReader<'_, 'l> {
    type Value = ();

    fn deserialize<D: Deserializer<'l>>(self, parser: D) -> Result<(), D::Error> {
        parser.deserialize_any(self)
    }
}

impl<'l> Visitor<'l> for ValueReader<'_, 'l> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a string or an array of strings in `{}`", self.path)
    }

    fn visit_borrowed_str<E: Error>(self, value: &'l str) -> Result<(), E> {
        self.push(Cow::Borrowed(value));
        Ok(())
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<(), E> {
        self.push(Cow::Owned(value.to_string()));
        Ok(())
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<(), E> {
        self.push_scalar(value.into(), Unexpected::Bool(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<(), E> {
        self.push_scalar(value.into(), Unexpected::Unsigned(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<(), E> {
        self.push_scalar(value.into(), Unexpected::Signed(value))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<(), E> {
        self.push_scalar(value.into(), Unexpected::Float(value))
    }

    fn visit_seq<A: SeqAccess<'l>>(self, mut list: A) -> Result<(), A::Error> {
        let ValueReader { options, unindexed, members, member, path, has_nested } = self;
        loop {
            let (unindexed, members) = (&mut *unindexed, &mut *members);
            let item = ValueReader { options, unindexed, members, member, path, has_nested };
            if list.next_element_seed(item)?.is_none() {
                return Ok(());
            }
        }
    }

    fn visit_map<A: MapAccess<'l>>(self, map: A) -> Result<(), A::Error> {
        if !self.has_nested {
            return Err(A::Error::invalid_type(Unexpected::Map, &self));
        }
        let ValueReader { options, unindexed, members, path, .. } = self;
        ObjectReader { options, unindexed, members, prefix: &format!("{path}.") }.visit_map(map)
    }
}

#[cfg(test)]
mod tests;
