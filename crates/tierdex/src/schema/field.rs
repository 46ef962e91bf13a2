//! A text field: what it indexes, its analysis, and how its postings are stored.

use super::messages::{Setting, yes_no};
use super::synonyms::Synonyms;
use crate::{Error, Result, limits};
use rust_stemmers::Algorithm;
use tierdex_codec::Codec;

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
            pub(super) fn id(self) -> u8 {
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

    pub(super) fn from_id(id: u8) -> Option<Language> {
        Language::ALL.iter().copied().find(|language| language.id() == id)
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

    /// Whether this field indexes documents as another one does: they are equal but for their synonyms.
    pub(super) fn indexes_as(&self, other: &Field) -> bool {
        Field { synonyms: other.synonyms.clone(), ..self.clone() } == *other
    }

    pub(super) fn validate(&self) -> Result<()> {
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

    pub(super) fn settings(&self) -> [Setting; 9] {
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
}
