//! The schema of an index: its text fields, each with its own analysis, dictionary, postings and norms.

mod synonyms;

use crate::bytes::{ByteReader, push_bytes, push_varint};
use crate::{Error, Result, limits};
use rust_stemmers::Algorithm;
pub use synonyms::Synonyms;
pub(crate) use synonyms::{Alternatives, AlternativesByWords};
pub use tierdex_codec::Codec;

/// Maximum number of characters of a setting or of a name in an error message: a list of stop words can be
/// long.
const SETTING_CHARS_MAX: usize = 40;

/// Maximum number of names of members or fields in an error message.
const NAMES_SHOWN_MAX: usize = 10;

/// The named parts of documents, the text fields that index them, and what is stored for display.
///
/// A document has an id and *members*, each with no value, one or several: the title, the text, the lines of
/// an address. A field indexes the values of one member or of several; a member may be in several fields.
///
/// ```
/// use tierdex::schema::{Field, Language, Schema};
///
/// let mut body = Field::new("body", &["body"]);
/// body.positions = true;
/// body.analysis.stemmer = Some(Language::English);
/// let mut schema = Schema::of(vec![body, Field::new("subject", &["subject"])]);
/// schema.title = Some("subject".to_string());
/// schema.validate()?;
/// # Ok::<(), tierdex::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schema {
    /// The names of the members of documents, in the order of their numbers: those that fields index, and
    /// others that are only stored.
    pub members: Vec<String>,
    /// The member that is shown as the title of a hit.
    pub title: Option<String>,
    /// Fields in the order of their numbers; queries search the first one by default.
    pub fields: Vec<Field>,
    /// What is stored of a document, so that it can be shown ([`Snapshot::stored`](crate::Snapshot::stored)).
    pub stored: Stored,
}

/// What is stored of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stored {
    /// Nothing: hits have ids only.
    Nothing,
    /// The members of the schema.
    Members,
    /// The members of the schema, and a text of the other members: [`DocumentRef::others`].
    ///
    /// [`DocumentRef::others`]: crate::DocumentRef::others
    All,
}

/// One text field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Name, as in queries (`name:term`): 1 to 64 of the characters a-z, A-Z, 0-9, _ and -.
    pub name: String,
    /// The members of a document that are indexed in this field, in this order.
    pub members: Vec<String>,
    /// How the text of documents and of queries becomes terms.
    pub analysis: Analysis,
    /// Words that find other words.
    pub synonyms: Synonyms,
    /// Whether positions are indexed: phrase queries need them.
    pub positions: bool,
    /// The precision of document lengths.
    pub norms: NormKind,
    /// Codec of the documents in posting lists.
    pub doc_codec: Codec,
    /// Codec of frequencies and positions; never a delta codec.
    pub freq_codec: Codec,
}

/// The precision of the stored document lengths, which scores depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NormKind {
    /// One byte a document: exact below 128, within 1/64 below 512.
    Byte,
    /// Four bytes a document, exact.
    Exact,
}

/// How text becomes terms: tokenizer, accent folding, stop words and stemmer, in this order.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Analysis {
    /// The tokenizer.
    pub tokenizer: Tokenizer,
    /// Whether accents are folded (`é` to `e`).
    pub fold_accents: bool,
    /// Words that are not indexed, in lower case and with accents folded if they are; sorted, without
    /// duplicates.
    pub stop_words: Vec<String>,
    /// The language of the Snowball stemmer; `None` if words are not stemmed.
    pub stemmer: Option<Language>,
}

/// Splits text into tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Tokenizer {
    /// Words of any script with their marks, in lower case and normalization form C; of text without blanks
    /// (Chinese, Japanese, Thai, Lao, Khmer, Burmese) each two neighbouring characters
    /// (`crates/tierdex/src/text/words.rs`).
    #[default]
    Unicode,
    /// The longest runs of alphanumeric characters, in lower case; a combining mark ends a word.
    Alphanumeric,
    /// The longest runs of characters other than white space, unchanged, for text that is already tokenized.
    Whitespace,
}

impl Stored {
    /// Name: `nothing`, `members` or `all`.
    pub fn name(self) -> &'static str {
        match self {
            Stored::Nothing => "nothing",
            Stored::Members => "members",
            Stored::All => "all",
        }
    }
}

impl NormKind {
    /// Name: `byte` or `exact`.
    pub fn name(self) -> &'static str {
        match self {
            NormKind::Byte => "byte",
            NormKind::Exact => "exact",
        }
    }
}

impl Tokenizer {
    /// All tokenizers.
    pub const ALL: [Tokenizer; 3] = [Tokenizer::Unicode, Tokenizer::Alphanumeric, Tokenizer::Whitespace];

    /// Name: `unicode`, `alphanumeric` or `whitespace`.
    pub fn name(self) -> &'static str {
        match self {
            Tokenizer::Unicode => "unicode",
            Tokenizer::Alphanumeric => "alphanumeric",
            Tokenizer::Whitespace => "whitespace",
        }
    }
}

macro_rules! languages {
    ($($variant:ident $id:literal $name:literal),* $(,)?) => {
        /// Languages with a Snowball stemmer.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        #[allow(missing_docs)]
        pub enum Language { $($variant),* }

        impl Language {
            /// All languages.
            pub const ALL: &'static [Language] = &[$(Language::$variant),*];

            /// Name in lower case, such as `english`.
            pub fn name(self) -> &'static str {
                match self { $(Language::$variant => $name),* }
            }

            /// The number of the language in manifests.
            fn id(self) -> u8 {
                match self { $(Language::$variant => $id),* }
            }

            /// The Snowball stemmer of the language.
            pub(crate) fn algorithm(self) -> Algorithm {
                match self { $(Language::$variant => Algorithm::$variant),* }
            }
        }
    };
}

languages! {
    Arabic 1 "arabic", Danish 2 "danish", Dutch 3 "dutch", English 4 "english", Finnish 5 "finnish",
    French 6 "french", German 7 "german", Greek 8 "greek", Hungarian 9 "hungarian", Italian 10 "italian",
    Norwegian 11 "norwegian", Portuguese 12 "portuguese", Romanian 13 "romanian", Russian 14 "russian",
    Spanish 15 "spanish", Swedish 16 "swedish", Tamil 17 "tamil", Turkish 18 "turkish",
}

impl Language {
    /// The language with this [`Language::name`].
    pub fn from_name(name: &str) -> Option<Language> {
        Language::ALL.iter().copied().find(|language| language.name() == name)
    }

    fn from_id(id: u8) -> Option<Language> {
        Language::ALL.iter().copied().find(|language| language.id() == id)
    }
}

impl Default for Schema {
    /// One field, `text`, of the members `title` and `text`, which are stored.
    fn default() -> Schema {
        Schema::of(vec![Field::new("text", &["title", "text"])])
    }
}

impl Field {
    /// A field of these members with the default analysis, without positions, with one-byte norms and the
    /// default codecs.
    pub fn new(name: &str, members: &[&str]) -> Field {
        Field {
            name: name.to_string(),
            members: members.iter().map(|member| member.to_string()).collect(),
            analysis: Analysis::default(),
            synonyms: Synonyms::default(),
            positions: false,
            norms: NormKind::Byte,
            doc_codec: Codec::Auto,
            freq_codec: Codec::Pfor256,
        }
    }
}

impl Schema {
    /// A schema with these fields. Its members are `title`, which is shown as the title of hits, and those of
    /// the fields; all are stored.
    pub fn of(fields: Vec<Field>) -> Schema {
        Schema::new(&[], Some("title"), fields)
    }

    /// A schema with these fields, in which the member `title` is shown as the title of hits. Its members are
    /// in this order: `members`, the title, those of the fields; all are stored.
    ///
    /// `members` are needed if some are stored that are neither indexed nor the title, and if others have
    /// been numbered already ([`Schema::first_members`]).
    pub fn new(members: &[String], title: Option<&str>, fields: Vec<Field>) -> Schema {
        let title = title.map(str::to_string);
        let members = number_members(members, title.as_ref(), &fields);
        Schema { members, title, fields, stored: Stored::Members }
    }

    /// The first members of this schema, without those that [`Schema::new`] adds behind them: none, unless
    /// fields were added to the schema, or it has members that are only stored.
    pub fn first_members(&self) -> &[String] {
        let follow =
            |first: &&[String]| number_members(first, self.title.as_ref(), &self.fields) == self.members;
        let firsts = (0..self.members.len()).map(|count| &self.members[..count]);
        firsts.into_iter().find(follow).unwrap_or(&self.members)
    }

    /// This schema with more fields, whose members are numbered behind those that it has. A field takes the
    /// place of one that has its name: the schema is then none to which an index can be extended, and the
    /// error names the settings that differ.
    pub fn with_fields(&self, fields: Vec<Field>) -> Schema {
        let mut all = self.fields.clone();
        for field in fields {
            match self.field(&field.name) {
                Some(number) => all[number] = field,
                None => all.push(field),
            }
        }
        Schema { stored: self.stored, ..Schema::new(&self.members, self.title.as_deref(), all) }
    }

    /// The number of the member with this name.
    pub fn member(&self, name: &str) -> Option<usize> {
        self.members.iter().position(|member| member == name)
    }

    /// The number of the member with this name.
    ///
    /// # Errors
    /// [`Error::Usage`] if there is none; the message lists the members.
    pub fn member_named(&self, name: &str) -> Result<usize> {
        self.member(name).ok_or_else(|| {
            let members = list_names(&self.members, ", ");
            Error::Usage(format!("the schema has no member `{name}`; it has {members}"))
        })
    }

    /// The numbers of the members of a field, in the order in which it indexes them.
    pub(crate) fn members_of(&self, field: &Field) -> Vec<usize> {
        field.members.iter().filter_map(|name| self.member(name)).collect()
    }

    /// Number of members that are stored, with one for what documents have beside the members of the schema.
    pub(crate) fn stored_members(&self) -> usize {
        self.members.len() + usize::from(self.stored == Stored::All)
    }

    /// Whether documents of this schema can be added to an index of the schema `older`: it begins with the
    /// fields and members of that one, and stores the same. Synonyms may differ.
    pub(crate) fn extends(&self, older: &Schema) -> bool {
        older.fields.len() <= self.fields.len()
            && self.fields.iter().zip(&older.fields).all(|(field, older)| field.indexes_as(older))
            && self.members.starts_with(&older.members)
            && (&self.title, self.stored) == (&older.title, older.stored)
    }

    /// Checks the schema.
    ///
    /// # Errors
    /// [`Error::Usage`] or [`Error::TooLarge`] with the reason why it is invalid.
    pub fn validate(&self) -> Result<()> {
        if self.fields.is_empty() || self.fields.len() > limits::FIELDS_MAX {
            return Err(Error::Usage(format!("a schema has 1 to {} fields", limits::FIELDS_MAX)));
        }
        for (i, field) in self.fields.iter().enumerate() {
            field.validate()?;
            if self.fields[..i].iter().any(|other| other.name == field.name) {
                return Err(Error::Usage(format!("field `{}` is named twice", field.name)));
            }
            if field.members.is_empty() {
                return Err(Error::Usage(format!("field `{}` has no members", field.name)));
            }
            for (at, member) in field.members.iter().enumerate() {
                if self.member(member).is_none() || field.members[..at].contains(member) {
                    let what = if self.member(member).is_none() { "unknown" } else { "named twice" };
                    return Err(Error::Usage(format!(
                        "member `{member}` of field `{}` is {what}",
                        field.name
                    )));
                }
            }
        }
        self.validate_members()
    }

    fn validate_members(&self) -> Result<()> {
        if self.members.len() > limits::MEMBERS_MAX {
            return Err(Error::Usage(format!("a schema has at most {} members", limits::MEMBERS_MAX)));
        }
        for (i, member) in self.members.iter().enumerate() {
            let is_valid_name = (1..=limits::MEMBER_NAME_BYTES_MAX).contains(&member.len())
                && !member.chars().any(char::is_control);
            if !is_valid_name {
                return Err(Error::Usage(format!(
                    "member name {member:?} is not 1 to {} bytes without control characters",
                    limits::MEMBER_NAME_BYTES_MAX
                )));
            }
            if self.members[..i].contains(member) {
                return Err(Error::Usage(format!("member `{member}` is named twice")));
            }
        }
        match &self.title {
            Some(title) if self.member(title).is_none() => {
                Err(Error::Usage(format!("the title, `{title}`, is no member of the schema")))
            }
            _ => Ok(()),
        }
    }

    /// The number of the field with this name.
    pub fn field(&self, name: &str) -> Option<usize> {
        self.fields.iter().position(|field| field.name == name)
    }

    /// The settings in which `other` differs, first those of the index, then those of each field that both
    /// have, for a message such as "field text: positions: no, here yes; stemmer: none, here english".
    #[doc(hidden)]
    pub fn differences(&self, other: &Schema) -> String {
        let mut differ = differences_of(self.settings(), other.settings());
        for (field, number) in self.fields.iter().filter_map(|field| Some((field, other.field(&field.name)?)))
        {
            let of_field = differences_of(field.settings(), other.fields[number].settings());
            if !of_field.is_empty() {
                differ.push(format!("field {}: {}", field.name, of_field.join("; ")));
            }
        }
        differ.join("; ")
    }

    /// The settings of the index, with the names of its fields.
    fn settings(&self) -> [Setting; 4] {
        let fields: Vec<_> = self.fields.iter().map(|field| field.name.clone()).collect();
        [
            Setting::new("stored", self.stored.name()),
            Setting::new("title", self.title.as_deref().unwrap_or("none")),
            Setting::of_names("members", &self.members),
            Setting::of_names("fields", &fields),
        ]
    }

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
        let schema = Schema { members, title, fields, stored };
        schema.validate().map_err(|error| view.corrupt(error.to_string()))?;
        Ok(schema)
    }
}

/// The members of a schema in the order of their numbers: `first`, the title, those of the fields.
fn number_members(first: &[String], title: Option<&String>, fields: &[Field]) -> Vec<String> {
    let mut members = first.to_vec();
    for member in title.into_iter().chain(fields.iter().flat_map(|field| &field.members)) {
        if !members.contains(member) {
            members.push(member.clone());
        }
    }
    members
}

/// The first version in which a schema names the members of documents.
const MEMBERS_VERSION: u16 = 7;

/// What is stored, members, and title.
type MembersOfSchema = (Stored, Vec<String>, Option<String>);

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

impl Field {
    /// Whether this field indexes documents as another one does: they are equal but for their synonyms.
    fn indexes_as(&self, other: &Field) -> bool {
        Field { synonyms: other.synonyms.clone(), ..self.clone() } == *other
    }

    fn validate(&self) -> Result<()> {
        let is_valid_name = !self.name.is_empty()
            && self.name.len() <= limits::FIELD_NAME_BYTES_MAX
            && self.name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
        if !is_valid_name {
            return Err(Error::Usage(format!(
                "field name `{}` is not 1 to {} of the characters a-z, A-Z, 0-9, _ and -",
                self.name,
                limits::FIELD_NAME_BYTES_MAX
            )));
        }
        if self.freq_codec.is_delta() {
            return Err(Error::Usage(format!(
                "codec {} cannot hold frequencies: they are not sorted; use {}",
                self.freq_codec.name(),
                self.freq_codec.plain().name()
            )));
        }
        let words = &self.analysis.stop_words;
        if words.len() > limits::STOP_WORDS_MAX || words.iter().any(|w| w.len() > limits::TERM_BYTES_MAX) {
            return Err(Error::TooLarge(format!(
                "more than {} stop words, or one of over {} bytes",
                limits::STOP_WORDS_MAX,
                limits::TERM_BYTES_MAX
            )));
        }
        if !words.is_sorted_by(|a, b| a < b) {
            return Err(Error::Usage("stop words are not sorted and unique".to_string()));
        }
        Ok(())
    }

    fn settings(&self) -> [Setting; 9] {
        let words = &self.analysis.stop_words;
        [
            Setting::of_names("members", &self.members),
            Setting::new("positions", yes_no(self.positions)),
            Setting::new("norms", self.norms.name()),
            Setting::new("codec", self.doc_codec.name()),
            Setting::new("codec of frequencies", self.freq_codec.name()),
            Setting::new("tokenizer", self.analysis.tokenizer.name()),
            Setting::new("accents folded", yes_no(self.analysis.fold_accents)),
            Setting::new("stemmer", self.analysis.stemmer.map_or("none", Language::name)),
            Setting::new("stop words", format!("{} {}", words.len(), words.join(" ")).trim_end()),
        ]
    }

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

/// A setting of a schema, for messages.
struct Setting {
    name: &'static str,
    /// What is compared.
    value: String,
    /// What is shown of it.
    shown: String,
}

impl Setting {
    fn new(name: &'static str, value: &str) -> Setting {
        Setting { name, value: value.to_string(), shown: shorten(value) }
    }

    fn of_names(name: &'static str, names: &[String]) -> Setting {
        Setting { name, value: names.join("\n"), shown: list_names(names, ", ") }
    }
}

/// The settings whose values differ.
fn differences_of<const N: usize>(own: [Setting; N], others: [Setting; N]) -> Vec<String> {
    let differ = own.into_iter().zip(others).filter(|(own, other)| own.value != other.value);
    differ.map(|(own, other)| format!("{}: {}, here {}", own.name, own.shown, other.shown)).collect()
}

/// The first names of a list, and the number of the others.
pub(crate) fn list_names(names: &[String], separator: &str) -> String {
    let shown: Vec<_> = names.iter().take(NAMES_SHOWN_MAX).map(|name| shorten(name)).collect();
    let shown = shown.join(separator);
    match names.len().saturating_sub(NAMES_SHOWN_MAX) {
        0 => shown,
        others => format!("{shown} and {others} more"),
    }
}

fn shorten(text: &str) -> String {
    text.chars().take(SETTING_CHARS_MAX).collect()
}

fn yes_no(value: bool) -> &'static str {
    if value { "yes" } else { "no" }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas_round_trip() {
        let mut title = Field::new("title", &["title"]);
        title.analysis = Analysis {
            tokenizer: Tokenizer::Whitespace,
            fold_accents: true,
            stop_words: vec!["a".into(), "the".into()],
            stemmer: Some(Language::Finnish),
        };
        title.norms = NormKind::Exact;
        title.synonyms = Synonyms::parse("a, b\n# none\n\nc => d").unwrap();
        assert_eq!(title.synonyms.rules(), ["a, b", "c => d"]);
        title.positions = true;
        let mut schema = Schema::of(vec![Field::new("text", &["text"]), title]);
        schema.stored = Stored::All;
        let mut out = Vec::new();
        schema.write(&mut out);
        let mut view = ByteReader::new("m", 0, &out);
        assert_eq!(Schema::read(&mut view, 7).unwrap(), schema);
        view.finish().unwrap();
        for cut in 0..out.len() {
            assert!(Schema::read(&mut ByteReader::new("m", 0, &out[..cut]), 7).is_err());
        }
    }

    #[test]
    fn schemas_of_version_6_have_titles_and_texts() {
        let field = |name: &str, source: u8| {
            let mut out = vec![name.len() as u8];
            out.extend(name.as_bytes());
            // Source, positions, norms, codecs, tokenizer, accents, stemmer, stop words.
            out.extend([source, 0, 1, Codec::Auto.id(), Codec::Pfor256.id(), 2, 0, 0, 0]);
            out
        };
        let bytes = [vec![1, 3], field("all", 2), field("text", 1), field("title", 0)].concat();
        let fields = [("all", &["title", "text"][..]), ("text", &["text"]), ("title", &["title"])];
        let expected = Schema::of(fields.map(|(name, members)| Field::new(name, members)).into());
        assert_eq!(Schema::read(&mut ByteReader::new("m", 0, &bytes), 6).unwrap(), expected);
    }

    #[test]
    fn differences_list_the_settings() {
        let (ours, mut theirs) = (Schema::default(), Schema::default());
        assert_eq!(ours.differences(&theirs), "");
        theirs.fields[0].positions = true;
        theirs.fields[0].analysis.stemmer = Some(Language::English);
        let expected = "field text: positions: no, here yes; stemmer: none, here english";
        assert_eq!(ours.differences(&theirs), expected);
        theirs = Schema::default();
        theirs.fields[0].analysis.stop_words = (100..200).map(|word| format!("word{word}")).collect();
        assert!(ours.differences(&theirs).starts_with("field text: stop words: 0, here 100 word100 word101"));
        assert!(ours.differences(&theirs).len() < 90);
        theirs.fields[0] = Field::new("title", &["title"]);
        assert_eq!(ours.differences(&theirs), "fields: text, here title");
        theirs = Schema::of(vec![Field::new("text", &["title", "text"]), Field::new("from", &["sender"])]);
        assert!(theirs.extends(&ours) && !ours.extends(&theirs));
        assert!(
            ours.differences(&theirs).starts_with("members: title, text, here title, text, sender; fields: ")
        );
        // The settings of the field that both have are compared, wherever it is.
        theirs.fields.rotate_left(1);
        theirs.fields[1].norms = NormKind::Exact;
        assert!(ours.differences(&theirs).ends_with("; field text: norms: byte, here exact"));
    }

    #[test]
    fn long_lists_of_names_are_cut_in_messages() {
        let names: Vec<String> = (0..200).map(|number| format!("member{number}")).collect();
        let schema = |count: usize| {
            let members: Vec<&str> = names[..count].iter().map(String::as_str).collect();
            Schema::of(vec![Field::new("text", &members)])
        };
        let message = schema(200).member_named("absent").unwrap_err().to_string();
        assert!(message.contains("it has title, member0, ") && message.contains("member8 and 191 more"));
        let message = schema(200).differences(&schema(199));
        assert!(message.contains("member8 and 191 more, here title") && message.contains("and 190 more"));
        assert!(message.len() < 1000, "{message}");
    }

    #[test]
    fn members_follow_from_the_title_and_the_fields() {
        let names = |names: &[&str]| names.iter().map(|name| name.to_string()).collect::<Vec<_>>();
        let people = || Field::new("people", &["from", "to"]);
        let schema = Schema::new(&[], Some("subject"), vec![people(), Field::new("to", &["to"])]);
        assert_eq!(schema.members, names(&["subject", "from", "to"]));
        assert!(schema.first_members().is_empty() && Schema::default().first_members().is_empty());
        assert_eq!(Schema::new(&[], None, vec![people()]).members, names(&["from", "to"]));

        let kept = Schema::new(&names(&["date"]), Some("subject"), vec![people()]);
        assert_eq!(kept.members, names(&["date", "subject", "from", "to"]));
        assert_eq!(kept.first_members(), names(&["date"]));
        let added = schema.with_fields(vec![Field::new("body", &["text", "from"])]);
        assert_eq!(added.members, names(&["subject", "from", "to", "text"]));
        assert!(added.extends(&schema) && added.first_members().is_empty());
        let added = Schema { stored: Stored::All, ..kept }.with_fields(vec![Field::new("body", &["text"])]);
        assert_eq!((added.members.len(), added.stored), (5, Stored::All));
        assert_eq!(
            Schema::new(added.first_members(), Some("subject"), added.fields.clone()).members,
            added.members
        );

        let mut changed = people();
        changed.positions = true;
        let changed = schema.with_fields(vec![changed]);
        assert_eq!(schema.differences(&changed), "positions: no, here yes");
        let twice = schema.with_fields(vec![Field::new("a", &["a"]), Field::new("a", &["a"])]);
        assert!(twice.validate().is_err_and(|error| error.to_string().contains("field `a` is named twice")));
    }

    #[test]
    fn invalid_schemas_are_rejected() {
        let mut schema = Schema::default();
        schema.fields[0].freq_codec = Codec::VByteDelta;
        assert!(schema.validate().unwrap_err().to_string().contains("vbyte"));
        schema = Schema::default();
        schema.fields.push(schema.fields[0].clone());
        assert!(schema.validate().unwrap_err().to_string().contains("twice"));
        schema.fields[1].name = "no blanks".into();
        assert!(schema.validate().is_err());
        type Change = fn(&mut Schema);
        let changes: [(Change, &str); 6] = [
            (|schema| schema.fields[0].members.clear(), "field `text` has no members"),
            (|schema| schema.title = Some("subject".into()), "`subject`, is no member"),
            (|schema| schema.members.push("text".into()), "member `text` is named twice"),
            (
                |schema| schema.fields[0].members.push("body".into()),
                "member `body` of field `text` is unknown",
            ),
            (|schema| schema.fields[0].members.push("text".into()), "of field `text` is named twice"),
            (|schema| schema.members.push("a\nb".into()), "without control characters"),
        ];
        for (change, expected) in changes {
            let mut schema = Schema::default();
            change(&mut schema);
            let message = schema.validate().unwrap_err().to_string();
            assert!(message.contains(expected), "{message}");
        }
    }
}
