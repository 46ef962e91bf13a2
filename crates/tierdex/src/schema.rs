//! The schema of an index: its text fields, each with its own analysis, dictionary, postings and norms.

use crate::bytes::{ByteReader, push_bytes, push_varint};
use crate::{Error, Result, limits};
use rust_stemmers::Algorithm;
pub use tierdex_codec::Codec;

/// Maximum number of characters of a setting in an error message: a list of stop words can be long.
const SETTING_CHARS_MAX: usize = 40;

/// The fields of an index, and whether documents are stored.
///
/// ```
/// use tierdex::schema::{Field, Language, Schema, Source};
///
/// let mut text = Field::new("text", Source::TitleAndText);
/// text.positions = true;
/// text.analysis.stemmer = Some(Language::English);
/// let schema = Schema { fields: vec![text, Field::new("title", Source::Title)], stored: true };
/// schema.validate()?;
/// # Ok::<(), tierdex::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schema {
    /// Fields in the order of their numbers; queries search the first one by default.
    pub fields: Vec<Field>,
    /// Whether titles and texts are stored, so that they can be shown
    /// ([`Snapshot::stored`](crate::Snapshot::stored)).
    pub stored: bool,
}

/// One text field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Name, as in queries (`name:term`): 1 to 64 of the characters a-z, A-Z, 0-9, _ and -.
    pub name: String,
    /// The parts of a document that are indexed in this field.
    pub source: Source,
    /// How the text of documents and of queries becomes terms.
    pub analysis: Analysis,
    /// Whether positions are indexed: phrase queries need them.
    pub positions: bool,
    /// The precision of document lengths.
    pub norms: NormKind,
    /// Codec of the documents in posting lists.
    pub doc_codec: Codec,
    /// Codec of frequencies and positions; never a delta codec.
    pub freq_codec: Codec,
}

/// The parts of a document that a field indexes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Source {
    /// Only the title.
    Title,
    /// Only the text.
    Text,
    /// The title, then the text.
    TitleAndText,
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

impl Source {
    /// Name, such as `title and text`.
    pub fn name(self) -> &'static str {
        match self {
            Source::Title => "title",
            Source::Text => "text",
            Source::TitleAndText => "title and text",
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
    /// One field, `text`, of title, a space and text; documents are stored.
    fn default() -> Schema {
        Schema { fields: vec![Field::new("text", Source::TitleAndText)], stored: true }
    }
}

impl Field {
    /// A field with the default analysis, without positions, with one-byte norms and the default codecs.
    pub fn new(name: &str, source: Source) -> Field {
        Field {
            name: name.to_string(),
            source,
            analysis: Analysis::default(),
            positions: false,
            norms: NormKind::Byte,
            doc_codec: Codec::Auto,
            freq_codec: Codec::Pfor256,
        }
    }
}

impl Schema {
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
        }
        Ok(())
    }

    /// The number of the field with this name.
    pub fn field(&self, name: &str) -> Option<usize> {
        self.fields.iter().position(|field| field.name == name)
    }

    /// The settings in which `other` differs, for a message such as "positions: no, here yes; stemmer: none,
    /// here english".
    #[doc(hidden)]
    pub fn differences(&self, other: &Schema) -> String {
        let (own, others) = (self.settings(), other.settings());
        let differ = own.iter().zip(&others).filter(|(own, other)| own != other);
        let show = |value: &str| value.chars().take(SETTING_CHARS_MAX).collect::<String>();
        let differ =
            differ.map(|((name, own), (_, other))| format!("{name}: {}, here {}", show(own), show(other)));
        differ.collect::<Vec<_>>().join("; ")
    }

    /// Names and values of all settings: first those of the index, with the names of its fields, then those
    /// of each field.
    fn settings(&self) -> Vec<(&'static str, String)> {
        let fields = self.fields.iter().map(|field| format!("{} ({})", field.name, field.source.name()));
        let fields = fields.collect::<Vec<_>>().join(", ");
        let mut settings = vec![("stored text", yes_no(self.stored)), ("fields", fields)];
        settings.extend(self.fields.iter().flat_map(Field::settings));
        settings
    }

    /// Appends the schema in the format of the manifest.
    #[doc(hidden)]
    pub fn write(&self, out: &mut Vec<u8>) {
        out.push(u8::from(self.stored));
        push_varint(out, self.fields.len() as u64);
        for field in &self.fields {
            field.write(out);
        }
    }

    /// Checksum of the schema in the format of the manifest: equal for equal schemas.
    pub(crate) fn checksum(&self) -> u32 {
        let mut bytes = Vec::new();
        self.write(&mut bytes);
        crc32c::crc32c(&bytes)
    }

    /// Reads a schema in the format of the manifest.
    #[doc(hidden)]
    pub fn read(view: &mut ByteReader<'_>) -> Result<Schema> {
        let stored = read_flag(view)?;
        let count = view.varint()?;
        if count == 0 || count > limits::FIELDS_MAX as u64 {
            return Err(view.corrupt("impossible number of fields"));
        }
        let fields = (0..count).map(|_| Field::read(view)).collect::<Result<Vec<_>>>()?;
        let schema = Schema { fields, stored };
        schema.validate().map_err(|error| view.corrupt(error.to_string()))?;
        Ok(schema)
    }
}

impl Field {
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

    fn settings(&self) -> [(&'static str, String); 8] {
        let words = &self.analysis.stop_words;
        [
            ("positions", yes_no(self.positions)),
            ("norms", self.norms.name().to_string()),
            ("codec", self.doc_codec.name().to_string()),
            ("codec of frequencies", self.freq_codec.name().to_string()),
            ("tokenizer", self.analysis.tokenizer.name().to_string()),
            ("accents folded", yes_no(self.analysis.fold_accents)),
            ("stemmer", self.analysis.stemmer.map_or("none", Language::name).to_string()),
            ("stop words", format!("{} {}", words.len(), words.join(" ")).trim_end().to_string()),
        ]
    }

    fn write(&self, out: &mut Vec<u8>) {
        push_bytes(out, self.name.as_bytes());
        out.push(match self.source {
            Source::Title => 0,
            Source::Text => 1,
            Source::TitleAndText => 2,
        });
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
    }

    fn read(view: &mut ByteReader<'_>) -> Result<Field> {
        let name = view.string(limits::FIELD_NAME_BYTES_MAX)?.to_string();
        let source = match view.u8()? {
            0 => Source::Title,
            1 => Source::Text,
            2 => Source::TitleAndText,
            _ => return Err(view.corrupt("unknown field source")),
        };
        let positions = read_flag(view)?;
        let norms = match view.u8()? {
            1 => NormKind::Byte,
            4 => NormKind::Exact,
            _ => return Err(view.corrupt("unknown kind of norms")),
        };
        let doc_codec = read_codec(view)?;
        let freq_codec = read_codec(view)?;
        let analysis = Analysis::read(view)?;
        Ok(Field { name, source, analysis, positions, norms, doc_codec, freq_codec })
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

fn yes_no(value: bool) -> String {
    if value { "yes" } else { "no" }.to_string()
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
        let mut title = Field::new("title", Source::Title);
        title.analysis = Analysis {
            tokenizer: Tokenizer::Whitespace,
            fold_accents: true,
            stop_words: vec!["a".into(), "the".into()],
            stemmer: Some(Language::Finnish),
        };
        title.norms = NormKind::Exact;
        title.positions = true;
        let schema = Schema { fields: vec![Field::new("text", Source::Text), title], stored: false };
        let mut out = Vec::new();
        schema.write(&mut out);
        let mut view = ByteReader::new("m", 0, &out);
        assert_eq!(Schema::read(&mut view).unwrap(), schema);
        view.finish().unwrap();
        for cut in 0..out.len() {
            assert!(Schema::read(&mut ByteReader::new("m", 0, &out[..cut])).is_err());
        }
    }

    #[test]
    fn differences_list_the_settings() {
        let (ours, mut theirs) = (Schema::default(), Schema::default());
        assert_eq!(ours.differences(&theirs), "");
        theirs.fields[0].positions = true;
        theirs.fields[0].analysis.stemmer = Some(Language::English);
        assert_eq!(ours.differences(&theirs), "positions: no, here yes; stemmer: none, here english");
        theirs = Schema::default();
        theirs.fields[0].analysis.stop_words = (100..200).map(|word| format!("word{word}")).collect();
        assert!(ours.differences(&theirs).starts_with("stop words: 0, here 100 word100 word101"));
        assert!(ours.differences(&theirs).len() < 80);
        theirs.fields[0] = Field::new("title", Source::Title);
        assert_eq!(ours.differences(&theirs), "fields: text (title and text), here title (title)");
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
    }
}
