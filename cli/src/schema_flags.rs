//! The flags that describe the schema of an index: its fields, and how their text becomes terms.

use crate::failure::{Failure, Outcome};
use crate::values::{codec_parser, language_parser};
use clap::{Args, ValueEnum};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::{collections::BTreeSet, io::Read};
use tierdex::analysis::{Analyzer, ENGLISH_STOP_WORDS};
use tierdex::codec::Codec;
use tierdex::limits::{STOP_WORDS_MAX, SYNONYM_BYTES_MAX, TERM_BYTES_MAX};
use tierdex::schema::{
    Analysis, Column, ColumnType, Field, Language, NormKind, Schema, Stored, Synonyms, Tokenizer,
};

/// Fields, analysis and index options. With --append the default is the settings of the index.
#[derive(Args, Default)]
pub struct SchemaArguments {
    /// Store positions, for phrase queries
    #[arg(long)]
    positions: bool,
    /// Codec of document numbers [default: auto]
    #[arg(long, value_parser = codec_parser(false))]
    codec: Option<Codec>,
    /// Codec of frequencies and positions [default: --codec without delta coding]
    #[arg(long, value_parser = codec_parser(true))]
    freq_codec: Option<Codec>,
    /// Norms: encoding of the document length [default: byte]
    #[arg(long, value_enum)]
    norms: Option<NormsChoice>,
    /// Tokenizer [default: unicode]
    #[arg(long, value_enum)]
    tokenizer: Option<TokenizerChoice>,
    /// Snowball stemmer of a language [default: none]
    #[arg(long, value_parser = language_parser())]
    stem: Option<Language>,
    /// Stop words: english, or a file with one word per line [default: none]
    #[arg(long)]
    stop_words: Option<String>,
    /// A file of synonyms for queries, in the format of Solr, a rule on each line: `tv, television` or
    /// `telly => tv`. With --append they replace those of all fields [default: none]
    #[arg(long, value_name = "FILE")]
    synonyms: Option<String>,
    /// Remove accents: é becomes e, and ligatures such as ﬁ become letters
    #[arg(long)]
    fold_accents: bool,
    /// What is stored of a document, for display [default: members]
    #[arg(long, value_enum)]
    store: Option<StoreChoice>,
    /// A field, which queries can search by its name: subject:budget. NAME:text is a text field of the member
    /// NAME of documents; from= names another member, or several: people:text:from=from+headers.to indexes
    /// `from`, and `to` in the object `headers`. Repeat the flag for each field: words without a field name
    /// are searched in the first one. NAME:i64, u64, f64, bool or date is a column of typed values, by which
    /// queries filter: year:[1990 TO 2000]; with year:i64:multi documents may have several, and from= names
    /// the member. Further settings of text: positions, fold-accents, stem=, stop-words=,
    /// synonyms=, tokenizer=, norms=, codec= and freq-codec=, as in subject:text:stem=english:positions
    /// [default: as the flags of these names]. With --append the fields are added to the index: documents
    /// that it has already are not found in them [default: one field, text, of the members title and text]
    #[arg(long = "field", value_name = "FIELD", conflicts_with = "schema_file")]
    fields: Vec<String>,
    /// The fields from a JSON file: {"fields": [{"name": "subject", "from": ["headers.subject"], "stem":
    /// "english"}], "title": "subject", "store": "all"}; settings as those of --field
    #[arg(long = "schema", value_name = "FILE")]
    schema_file: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum NormsChoice {
    /// One byte: exact below 128 tokens, within 1/64 below 512
    Byte,
    /// Four bytes: exact
    Exact,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum TokenizerChoice {
    /// Words of all languages, in lower case; of text without blanks each two characters
    Unicode,
    /// Runs of letters and digits, in lower case
    Alphanumeric,
    /// Runs of other characters than white space, unchanged, for tokenized text
    Whitespace,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum StoreChoice {
    /// The title and the members that fields index, for titles and snippets
    Members,
    /// Also all other members of JSON objects
    All,
    /// Nothing: hits have ids only
    None,
}

impl SchemaArguments {
    /// Whether the flags name text fields: then the members of documents are those of the fields.
    pub fn has_fields(&self) -> bool {
        let is_text = |field: &String| field.split(':').nth(1) == Some("text");
        self.fields.iter().any(is_text) || self.schema_file.is_some()
    }

    /// The schema that the flags describe, validated. `title` is the member that is shown as the title.
    ///
    /// Of an index that has the schema `existing` the flags add fields, and change the settings that they
    /// name, so that a difference is reported.
    pub fn schema(&self, title: Option<&str>, existing: Option<&Schema>) -> Outcome<Schema> {
        let file = self.schema_file.as_deref().map(read_schema_file).transpose()?;
        let declared = match &file {
            Some(file) => file.fields.clone(),
            None => self.fields.iter().map(|field| DeclaredField::parse(field)).collect::<Outcome<_>>()?,
        };
        let (mut settings, mut columns) = (Vec::new(), Vec::new());
        for field in declared {
            match field {
                DeclaredField::Text(field) => settings.push(field),
                DeclaredField::Column(column) => columns.push(column),
            }
        }
        let title = title.or_else(|| file.as_ref()?.title.as_deref());
        let fields = settings.iter().map(|field| field.build(self)).collect::<Outcome<Vec<_>>>()?;
        let schema = match existing {
            Some(existing) => {
                check_title(title, existing)?;
                let changed = if fields.is_empty() { self.changed_fields(existing)? } else { fields };
                existing.with_fields(changed)
            }
            None if fields.is_empty() => Schema::of(vec![FieldSettings::default().build(self)?]),
            None => Schema::new(&[], title.or(Some("title")), fields),
        };
        let store = self.store.or(file.and_then(|file| file.store));
        let stored = store.map_or(schema.stored, StoreChoice::stored);
        let schema = Schema { stored, ..schema }.with_columns(columns);
        schema.validate()?;
        Ok(schema)
    }

    /// The fields of an index with the settings that the flags name.
    fn changed_fields(&self, existing: &Schema) -> Outcome<Vec<Field>> {
        let none = FieldSettings::default();
        existing.fields.iter().map(|field| none.apply(field.clone(), self)).collect()
    }
}

/// Rejects another title than that of an index to which documents are added.
pub fn check_title(title: Option<&str>, existing: &Schema) -> Outcome {
    let shown = existing.title.as_deref();
    if title.is_none() || title == shown {
        return Ok(());
    }
    let shown = shown.map_or("no title".to_string(), |shown| format!("the title `{shown}`"));
    Err(Failure::Usage(format!(
        "title `{}`: the index has {shown}, which does not change; leave it out",
        title.unwrap_or_default()
    )))
}

/// The content of a file of `--schema`.
struct SchemaFile {
    fields: Vec<DeclaredField>,
    title: Option<String>,
    store: Option<StoreChoice>,
}

fn read_schema_file(path: &Path) -> Outcome<SchemaFile> {
    let failed = |reason: String| Failure::Usage(format!("--schema {}: {reason}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
    let value: Value =
        serde_json::from_str(&text).map_err(|error| failed(format!("not valid JSON: {error}")))?;
    parse_schema_file(&value).map_err(failed)
}

fn parse_schema_file(value: &Value) -> Result<SchemaFile, String> {
    let members = value.as_object().ok_or("the file is not a JSON object")?;
    let mut file = SchemaFile { fields: Vec::new(), title: None, store: None };
    for (name, value) in members {
        match name.as_str() {
            "fields" => {
                let fields = value.as_array().ok_or("`fields` is not an array")?;
                file.fields = fields.iter().map(DeclaredField::from_json).collect::<Result<_, _>>()?;
            }
            "title" => file.title = Some(value.as_str().ok_or("`title` is not a string")?.to_string()),
            "store" => {
                file.store = Some(choice("store", value.as_str().ok_or("`store` is not a string")?)?);
            }
            other => return Err(format!("unknown member `{other}`; a schema has fields, title and store")),
        }
    }
    if file.fields.is_empty() {
        return Err("the schema has no fields, as in {\"fields\": [{\"name\": \"subject\"}]}".to_string());
    }
    Ok(file)
}

/// What `--field` or a schema file declares.
#[derive(Clone, Debug, PartialEq)]
enum DeclaredField {
    Text(FieldSettings),
    Column(Column),
}

impl DeclaredField {
    /// Parses a value of `--field`.
    fn parse(text: &str) -> Outcome<DeclaredField> {
        let failed = |reason: String| Err(Failure::Usage(format!("--field {text}: {reason}")));
        let mut parts = text.split(':');
        let name = parts.next().unwrap_or_default();
        let values = match parts.next() {
            Some("text") => return FieldSettings::parse(text).map(DeclaredField::Text),
            Some(kind) => match ColumnType::from_name(kind) {
                Some(values) => values,
                None => return failed(format!("the field is of type `{kind}`; types are {}", types())),
            },
            None => return failed(format!("the field has no type; write {name}:text")),
        };
        let mut column = Column::new(name, values);
        for part in parts {
            match part.split_once('=') {
                Some(("from", member)) => column.member = member.to_string(),
                None if part == "multi" => column.multi = true,
                _ => {
                    return failed(format!(
                        "setting `{part}` of column `{name}`: unknown; {COLUMN_SETTINGS}"
                    ));
                }
            }
        }
        Ok(DeclaredField::Column(column))
    }

    /// Parses a field of a file of `--schema`.
    fn from_json(value: &Value) -> Result<DeclaredField, String> {
        let kind = value.get("type").and_then(Value::as_str);
        let Some(values) = kind.and_then(ColumnType::from_name) else {
            return FieldSettings::from_json(value).map(DeclaredField::Text);
        };
        let object = value.as_object().ok_or("a field is not an object")?;
        let name = object.get("name").and_then(Value::as_str).ok_or("a field has no string `name`")?;
        let mut column = Column::new(name, values);
        for (setting, value) in object {
            match (setting.as_str(), value) {
                ("name" | "type", _) => (),
                ("from", Value::String(member)) => column.member = member.clone(),
                ("multi", Value::Bool(multi)) => column.multi = *multi,
                _ => return Err(format!("`{setting}` of column `{name}`: {COLUMN_SETTINGS}")),
            }
        }
        Ok(DeclaredField::Column(column))
    }
}

const COLUMN_SETTINGS: &str = "settings are from, a member, and multi";

/// The types of fields.
fn types() -> String {
    let names = ColumnType::ALL.map(ColumnType::name).join(", ");
    format!("text, {names}")
}

/// The name of a field, its members, and its settings as they are written, by their names.
#[derive(Clone, Debug, PartialEq)]
struct FieldSettings {
    name: String,
    members: Vec<String>,
    /// A setting without a value is a flag.
    settings: Vec<(String, Option<String>)>,
}

impl Default for FieldSettings {
    /// Those of the only field of the default schema.
    fn default() -> FieldSettings {
        let members = vec!["title".to_string(), "text".to_string()];
        FieldSettings { name: "text".to_string(), members, settings: Vec::new() }
    }
}

impl FieldSettings {
    /// Parses a value of `--field`.
    fn parse(text: &str) -> Outcome<FieldSettings> {
        let failed = |reason: String| Err(Failure::Usage(format!("--field {text}: {reason}")));
        let mut parts = text.split(':');
        let name = parts.next().unwrap_or_default().to_string();
        if parts.next() != Some("text") {
            return failed(format!("the field has no type; write {name}:text"));
        }
        let (mut members, mut settings) = (vec![name.clone()], Vec::new());
        for part in parts {
            match part.split_once('=') {
                Some(("from", names)) => members = names.split('+').map(str::to_string).collect(),
                Some((setting, value)) => settings.push((setting.to_string(), Some(value.to_string()))),
                None => settings.push((part.to_string(), None)),
            }
        }
        Ok(FieldSettings { name, members, settings })
    }

    /// Parses a field of a file of `--schema`.
    fn from_json(value: &Value) -> Result<FieldSettings, String> {
        let object = value.as_object().ok_or("a field is not an object")?;
        let name = object.get("name").and_then(Value::as_str).ok_or("a field has no string `name`")?;
        let (mut members, mut settings) = (vec![name.to_string()], Vec::new());
        for (setting, value) in object {
            match (setting.as_str(), value) {
                ("name", _) => (),
                ("type", Value::String(kind)) if kind == "text" => (),
                ("type", kind) => {
                    return Err(format!("field `{name}` is of type {kind}; types are {}", types()));
                }
                ("from", Value::String(member)) => members = vec![member.clone()],
                ("from", Value::Array(names)) => {
                    let names: Option<Vec<&str>> = names.iter().map(Value::as_str).collect();
                    let names = names.ok_or(format!("`from` of field `{name}` is no array of strings"))?;
                    members = names.into_iter().map(str::to_string).collect();
                }
                (_, Value::String(value)) => settings.push((setting.clone(), Some(value.clone()))),
                (_, Value::Bool(flag)) => settings.push((setting.clone(), Some(flag.to_string()))),
                _ => return Err(format!("`{setting}` of field `{name}` is no string, true or false")),
            }
        }
        Ok(FieldSettings { name: name.to_string(), members, settings })
    }

    /// The field: what the settings do not say is as the flags say.
    fn build(&self, flags: &SchemaArguments) -> Outcome<Field> {
        let members: Vec<&str> = self.members.iter().map(String::as_str).collect();
        self.apply(Field::new(&self.name, &members), flags)
    }

    /// Changes what the flags and the settings say of a field.
    fn apply(&self, mut field: Field, flags: &SchemaArguments) -> Outcome<Field> {
        let (mut doc_codec, mut freq_codec) = (flags.codec, flags.freq_codec);
        let (mut stop_words, mut synonyms) = (flags.stop_words.clone(), flags.synonyms.clone());
        field.positions |= flags.positions;
        field.norms = flags.norms.map_or(field.norms, NormsChoice::kind);
        let analysis = &mut field.analysis;
        analysis.tokenizer = flags.tokenizer.map_or(analysis.tokenizer, TokenizerChoice::tokenizer);
        analysis.fold_accents |= flags.fold_accents;
        analysis.stemmer = flags.stem.or(analysis.stemmer);
        for (setting, value) in &self.settings {
            let applied = match (setting.as_str(), value.as_deref()) {
                ("positions", value) => flag(value).map(|flag| field.positions = flag),
                ("fold-accents", value) => flag(value).map(|flag| field.analysis.fold_accents = flag),
                ("stem", Some(name)) => stemmer(name).map(|stemmer| field.analysis.stemmer = stemmer),
                ("stop-words", Some(words)) => {
                    stop_words = Some(words.to_string());
                    Ok(())
                }
                ("synonyms", Some(name)) => {
                    synonyms = Some(name.to_string());
                    Ok(())
                }
                ("tokenizer", Some(name)) => choice::<TokenizerChoice>(setting, name)
                    .map(|choice| field.analysis.tokenizer = choice.tokenizer()),
                ("norms", Some(name)) => {
                    choice::<NormsChoice>(setting, name).map(|choice| field.norms = choice.kind())
                }
                ("codec", Some(name)) => codec(name).map(|codec| doc_codec = Some(codec)),
                ("freq-codec", Some(name)) => codec(name).map(|codec| freq_codec = Some(codec)),
                (
                    "from" | "stem" | "stop-words" | "synonyms" | "tokenizer" | "norms" | "codec"
                    | "freq-codec",
                    None,
                ) => Err(format!("it has no value; write {setting}=VALUE")),
                _ => Err("unknown; settings are from, positions, fold-accents, stem, stop-words, synonyms, \
                          tokenizer, norms, codec and freq-codec"
                    .to_string()),
            };
            applied.map_err(|reason| {
                Failure::Usage(format!("setting `{setting}` of field `{}`: {reason}", self.name))
            })?;
        }
        field.freq_codec = freq_codec.or(doc_codec.map(Codec::plain)).unwrap_or(field.freq_codec);
        field.doc_codec = doc_codec.unwrap_or(field.doc_codec);
        match stop_words.as_deref() {
            Some("none") => field.analysis.stop_words.clear(),
            Some(words) => field.analysis.stop_words = analyse_stop_words(words, &field.analysis)?,
            None => (),
        }
        match synonyms.as_deref() {
            Some("none") => field.synonyms = Synonyms::default(),
            Some(file) => field.synonyms = read_synonyms(Path::new(file))?,
            None => (),
        }
        Ok(field)
    }
}

fn flag(value: Option<&str>) -> Result<bool, String> {
    let value = value.unwrap_or("true");
    value.parse().map_err(|_| format!("`{value}` is neither true nor false"))
}

fn stemmer(name: &str) -> Result<Option<Language>, String> {
    match Language::from_name(name) {
        None if name != "none" => Err(format!("no stemmer of language `{name}`")),
        language => Ok(language),
    }
}

fn codec(name: &str) -> Result<Codec, String> {
    Codec::from_name(name).ok_or_else(|| {
        let names: Vec<&str> = Codec::ALL.iter().map(|codec| codec.name()).collect();
        format!("unknown codec `{name}`; codecs are {}", names.join(", "))
    })
}

fn choice<T: ValueEnum>(setting: &str, value: &str) -> Result<T, String> {
    T::from_str(value, false).map_err(|_| {
        let names = T::value_variants().iter().filter_map(ValueEnum::to_possible_value);
        let names: Vec<String> = names.map(|name| name.get_name().to_string()).collect();
        format!("`{value}` is no value of {setting}; it is one of {}", names.join(", "))
    })
}

impl NormsChoice {
    fn kind(self) -> NormKind {
        match self {
            NormsChoice::Byte => NormKind::Byte,
            NormsChoice::Exact => NormKind::Exact,
        }
    }
}

impl TokenizerChoice {
    fn tokenizer(self) -> Tokenizer {
        match self {
            TokenizerChoice::Unicode => Tokenizer::Unicode,
            TokenizerChoice::Alphanumeric => Tokenizer::Alphanumeric,
            TokenizerChoice::Whitespace => Tokenizer::Whitespace,
        }
    }
}

impl StoreChoice {
    fn stored(self) -> Stored {
        match self {
            StoreChoice::Members => Stored::Members,
            StoreChoice::All => Stored::All,
            StoreChoice::None => Stored::Nothing,
        }
    }
}

/// Analyses the stop words without stemming, as stop words are removed before stemming.
fn analyse_stop_words(name: &str, analysis: &Analysis) -> Outcome<Vec<String>> {
    let mut analyzer = Analyzer::new(&Analysis { stemmer: None, ..analysis.clone() });
    let words: BTreeSet<String> = if name == "english" {
        analyzer.terms(&ENGLISH_STOP_WORDS.join(" ")).into_iter().collect()
    } else {
        let text = read_stop_words(name).map_err(|error| {
            Failure::Usage(format!(
                "stop words {name}: {error}; give `english` or a file with one word per line"
            ))
        })?;
        analyzer.terms(&text).into_iter().collect()
    };
    Ok(words.into_iter().collect())
}

/// Reads a file of stop words, at most as many bytes as `STOP_WORDS_MAX` words of maximum length.
fn read_stop_words(name: &str) -> std::io::Result<String> {
    read_text_file(name.as_ref(), STOP_WORDS_MAX * TERM_BYTES_MAX)
}

fn read_synonyms(path: &Path) -> Outcome<Synonyms> {
    let failed = |reason: String| Failure::Usage(format!("synonyms {}: {reason}", path.display()));
    // Comments and blank lines are not rules, but take space.
    let text = read_text_file(path, 2 * SYNONYM_BYTES_MAX).map_err(|error| failed(error.to_string()))?;
    Synonyms::parse(&text).map_err(|error| failed(error.to_string()))
}

fn read_text_file(path: &Path, bytes_max: usize) -> std::io::Result<String> {
    let mut text = String::new();
    let read = std::fs::File::open(path)?.take(bytes_max as u64 + 1).read_to_string(&mut text)?;
    if read > bytes_max {
        return Err(std::io::Error::other(format!("the file is longer than {bytes_max} bytes")));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_have_their_own_settings() {
        let flags = SchemaArguments { positions: true, ..SchemaArguments::default() };
        let build = |text: &str| match DeclaredField::parse(text)? {
            DeclaredField::Text(field) => field.build(&flags),
            DeclaredField::Column(column) => panic!("{column:?}"),
        };
        let field = build("to:text:from=to.name+cc.name:stem=english:positions=false:norms=exact").unwrap();
        assert_eq!((field.name.as_str(), &*field.members), ("to", &["to.name".into(), "cc.name".into()][..]));
        assert_eq!(field.analysis.stemmer, Some(Language::English));
        assert!(!field.positions && field.norms == NormKind::Exact);
        let field = build("body:text").unwrap();
        assert!(field.positions && field.members == ["body"]);
        for (text, expected) in [
            ("body", "--field body: the field has no type; write body:text"),
            (
                "year:int",
                "--field year:int: the field is of type `int`; types are text, i64, u64, f64, bool, date",
            ),
            ("year:u64:several", "setting `several` of column `year`: unknown; settings are from"),
            ("a:text:stem=klingon", "setting `stem` of field `a`: no stemmer of language `klingon`"),
            ("a:text:from", "setting `from` of field `a`: it has no value; write from=VALUE"),
            ("a:text:size=1", "setting `size` of field `a`: unknown; settings are from, positions"),
            ("a:text:positions=1", "`1` is neither true nor false"),
            ("a:text:norms=half", "`half` is no value of norms; it is one of byte, exact"),
        ] {
            let message = build(text).unwrap_err().to_string();
            assert!(message.contains(expected), "{message}");
        }
    }

    #[test]
    fn schema_files_say_the_same_as_flags() {
        let parse = |text: &str| parse_schema_file(&serde_json::from_str(text).unwrap());
        let file = parse(
            r#"{"fields":[{"name":"to","type":"text","from":["to.name","c+c"],"positions":true}],
                "title":"to.name","store":"all"}"#,
        );
        let file = file.map_err(|message| panic!("{message}")).unwrap();
        let DeclaredField::Text(field) = &file.fields[0] else { panic!("{:?}", file.fields[0]) };
        let field = field.build(&SchemaArguments::default()).unwrap();
        assert_eq!(field.members, ["to.name", "c+c"]);
        assert!(field.positions && file.store == Some(StoreChoice::All));
        for (text, expected) in [
            ("[]", "not a JSON object"),
            ("{}", "has no fields"),
            (r#"{"fields":[{}]}"#, "no string `name`"),
            (
                r#"{"fields":[{"name":"a","type":"int"}]}"#,
                "field `a` is of type \"int\"; types are text, i64",
            ),
            (
                r#"{"fields":[{"name":"a","type":"u64","stem":"x"}]}"#,
                "`stem` of column `a`: settings are from",
            ),
            (r#"{"fields":[{"name":"a","stem":5}]}"#, "`stem` of field `a` is no string"),
            (r#"{"field":[]}"#, "unknown member `field`"),
            (r#"{"store":"some"}"#, "`some` is no value of store; it is one of members, all, none"),
        ] {
            assert!(parse(text).is_err_and(|message| message.contains(expected)), "{text}");
        }
    }

    #[test]
    fn columns_are_declared_by_flags_and_files() {
        let member = "dates.sent".to_string();
        let expected = Column { member, multi: true, ..Column::new("sent", ColumnType::Date) };
        let declared = DeclaredField::parse("sent:date:multi:from=dates.sent").unwrap();
        assert_eq!(declared, DeclaredField::Column(expected));
        let json = r#"{"name": "sent", "type": "date", "multi": true, "from": "dates.sent"}"#;
        assert_eq!(DeclaredField::from_json(&serde_json::from_str(json).unwrap()).unwrap(), declared);
        // Columns alone are beside the default field.
        let flags = SchemaArguments { fields: vec!["year:i64".to_string()], ..SchemaArguments::default() };
        let schema = flags.schema(None, None).unwrap();
        assert_eq!((schema.fields.len(), schema.columns.len(), flags.has_fields()), (1, 1, false));
        assert_eq!(flags.schema(None, Some(&Schema::default())).unwrap(), schema);
    }
}
