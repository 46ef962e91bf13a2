//! The schema in the format of the manifest (docs/format/manifest.md).

use super::field::{Analysis, Field, Language, NormKind, Tokenizer};
use super::synonyms::Synonyms;
use super::{Column, ColumnType, Schema, Stored};
use crate::bytes::{ByteReader, push_bytes, push_varint};
use crate::{Result, limits};
use tierdex_codec::Codec;

/// The first version in which a schema names the members of documents.
const MEMBERS_VERSION: u16 = 7;

/// The first version in which a schema has columns.
const COLUMNS_VERSION: u16 = 9;

/// What is stored, members, and title.
type MembersOfSchema = (Stored, Vec<String>, Option<String>);

impl Schema {
    /// Appends the schema in the format of the manifest.
    #[doc(hidden)]
    pub fn write(&self, out: &mut Vec<u8>) {
        out.push(match self.stored {
            Stored::Nothing => 0,
            Stored::Members => 1,
            Stored::All => 2,
        });
        push_varint(out, self.members.len() as u64);
        for member in &self.members {
            push_bytes(out, member.as_bytes());
        }
        let title = self.title.as_ref().and_then(|title| self.member(title));
        push_varint(out, title.map_or(0, |number| number as u64 + 1));
        push_varint(out, self.fields.len() as u64);
        for field in &self.fields {
            push_bytes(out, field.name.as_bytes());
            let members = self.members_of(field);
            push_varint(out, members.len() as u64);
            members.iter().for_each(|member| push_varint(out, *member as u64));
            field.write_settings(out);
        }
        push_varint(out, self.columns.len() as u64);
        self.columns.iter().for_each(|column| column.write(out));
    }

    /// Checksum of the schema in the format of the manifest: equal for equal schemas.
    pub(crate) fn checksum(&self) -> u32 {
        let mut bytes = Vec::new();
        self.write(&mut bytes);
        crc32c::crc32c(&bytes)
    }

    /// Reads a schema in the format of the manifest of this version.
    #[doc(hidden)]
    pub fn read(view: &mut ByteReader<'_>, version: u16) -> Result<Schema> {
        let (stored, members, title) =
            if version < MEMBERS_VERSION { old_members(view)? } else { read_members(view)? };
        let count = view.varint()?;
        if count == 0 || count > limits::FIELDS_MAX as u64 {
            return Err(view.corrupt("impossible number of fields"));
        }
        let fields = (0..count)
            .map(|_| {
                let name = view.string(limits::FIELD_NAME_BYTES_MAX)?.to_string();
                let members = if version < MEMBERS_VERSION {
                    members_of_old_source(view)?
                } else {
                    read_members_of_field(view, &members)?
                };
                Field::read_settings(view, version, name, members)
            })
            .collect::<Result<Vec<_>>>()?;
        let columns = if version < COLUMNS_VERSION { Vec::new() } else { read_columns(view)? };
        let schema = Schema { members, title, fields, columns, stored };
        schema.validate().map_err(|error| view.corrupt(error.to_string()))?;
        Ok(schema)
    }
}

impl Field {
    /// Appends what follows name and members.
    fn write_settings(&self, out: &mut Vec<u8>) {
        out.push(u8::from(self.positions));
        out.push(match self.norms {
            NormKind::Byte => 1,
            NormKind::Exact => 4,
        });
        out.push(self.doc_codec.id());
        out.push(self.freq_codec.id());
        out.push(match self.analysis.tokenizer {
            Tokenizer::Alphanumeric => 0,
            Tokenizer::Whitespace => 1,
            Tokenizer::Unicode => 2,
        });
        out.push(u8::from(self.analysis.fold_accents));
        out.push(self.analysis.stemmer.map_or(0, Language::id));
        push_varint(out, self.analysis.stop_words.len() as u64);
        for word in &self.analysis.stop_words {
            push_bytes(out, word.as_bytes());
        }
        self.synonyms.write(out);
    }

    /// Reads what follows name and members.
    fn read_settings(
        view: &mut ByteReader<'_>,
        version: u16,
        name: String,
        members: Vec<String>,
    ) -> Result<Field> {
        let positions = read_flag(view)?;
        let norms = match view.u8()? {
            1 => NormKind::Byte,
            4 => NormKind::Exact,
            _ => return Err(view.corrupt("unknown kind of norms")),
        };
        let doc_codec = read_codec(view)?;
        let freq_codec = read_codec(view)?;
        let analysis = Analysis::read(view)?;
        let synonyms = if version < MEMBERS_VERSION { Synonyms::default() } else { Synonyms::read(view)? };
        Ok(Field { name, members, analysis, synonyms, positions, norms, doc_codec, freq_codec })
    }
}

impl Column {
    fn write(&self, out: &mut Vec<u8>) {
        push_bytes(out, self.name.as_bytes());
        push_bytes(out, self.member.as_bytes());
        out.push(self.values as u8);
        out.push(u8::from(self.multi));
    }

    fn read(view: &mut ByteReader<'_>) -> Result<Column> {
        let name = view.string(limits::FIELD_NAME_BYTES_MAX)?.to_string();
        let member = view.string(limits::MEMBER_NAME_BYTES_MAX)?.to_string();
        let values = ColumnType::from_id(u64::from(view.u8()?));
        let values = values.ok_or_else(|| view.corrupt("unknown type of a column"))?;
        Ok(Column { name, member, values, multi: read_flag(view)? })
    }
}

impl Analysis {
    fn read(view: &mut ByteReader<'_>) -> Result<Analysis> {
        let tokenizer = match view.u8()? {
            0 => Tokenizer::Alphanumeric,
            1 => Tokenizer::Whitespace,
            2 => Tokenizer::Unicode,
            _ => return Err(view.corrupt("unknown tokenizer")),
        };
        let fold_accents = read_flag(view)?;
        let stemmer = match view.u8()? {
            0 => None,
            id => Some(Language::from_id(id).ok_or_else(|| view.corrupt("unknown stemmer"))?),
        };
        let count = view.varint()?;
        if count > limits::STOP_WORDS_MAX as u64 {
            return Err(view.corrupt("too many stop words"));
        }
        let stop_words = (0..count)
            .map(|_| view.string(limits::TERM_BYTES_MAX).map(str::to_string))
            .collect::<Result<Vec<_>>>()?;
        Ok(Analysis { tokenizer, fold_accents, stop_words, stemmer })
    }
}

fn read_columns(view: &mut ByteReader<'_>) -> Result<Vec<Column>> {
    let count = view.varint()?;
    if count > limits::COLUMNS_MAX as u64 {
        return Err(view.corrupt("impossible number of columns"));
    }
    (0..count).map(|_| Column::read(view)).collect()
}

/// What documents consisted of before they had members: a title and a text.
fn old_members(view: &mut ByteReader<'_>) -> Result<MembersOfSchema> {
    let stored = if read_flag(view)? { Stored::Members } else { Stored::Nothing };
    Ok((stored, vec!["title".to_string(), "text".to_string()], Some("title".to_string())))
}

fn members_of_old_source(view: &mut ByteReader<'_>) -> Result<Vec<String>> {
    let members: &[&str] = match view.u8()? {
        0 => &["title"],
        1 => &["text"],
        2 => &["title", "text"],
        _ => return Err(view.corrupt("unknown field source")),
    };
    Ok(members.iter().map(|member| member.to_string()).collect())
}

fn read_members(view: &mut ByteReader<'_>) -> Result<MembersOfSchema> {
    let stored = match view.u8()? {
        0 => Stored::Nothing,
        1 => Stored::Members,
        2 => Stored::All,
        _ => return Err(view.corrupt("unknown kind of storing")),
    };
    let count = view.varint()?;
    if count > limits::MEMBERS_MAX as u64 {
        return Err(view.corrupt("impossible number of members"));
    }
    let members = (0..count)
        .map(|_| view.string(limits::MEMBER_NAME_BYTES_MAX).map(str::to_string))
        .collect::<Result<Vec<_>>>()?;
    let title = match view.varint()?.checked_sub(1) {
        None => None,
        Some(number) => Some(member_name(view, &members, number)?),
    };
    Ok((stored, members, title))
}

fn read_members_of_field(view: &mut ByteReader<'_>, members: &[String]) -> Result<Vec<String>> {
    let count = view.varint()?;
    if count > members.len() as u64 {
        return Err(view.corrupt("impossible number of members"));
    }
    let numbers = (0..count).map(|_| view.varint()).collect::<Result<Vec<_>>>()?;
    numbers.into_iter().map(|number| member_name(view, members, number)).collect()
}

fn member_name(view: &ByteReader<'_>, members: &[String], number: u64) -> Result<String> {
    let found = usize::try_from(number).ok().and_then(|number| members.get(number));
    found.cloned().ok_or_else(|| view.corrupt("a member that the schema does not have"))
}

fn read_flag(view: &mut ByteReader<'_>) -> Result<bool> {
    match view.u8()? {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(view.corrupt("a flag is neither 0 nor 1")),
    }
}

fn read_codec(view: &mut ByteReader<'_>) -> Result<Codec> {
    Codec::from_id(view.u8()?).ok_or_else(|| view.corrupt("unknown codec"))
}
