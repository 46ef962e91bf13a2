//! Arguments that several methods share: sizes, ranking, schemas.

use crate::errors::{Failure, usage_error};
use pyo3::{prelude::*, types::PyString};
use tierdex::schema::{Analysis, Codec, Field, Language, NormKind, Schema, Stored, Synonyms, Tokenizer};
use tierdex::{Bm25, Scorer, analysis::Analyzer, io::Size};

/// A size in bytes: an `int`, or a `str` such as `"256M"`.
pub fn parse_bytes(value: &Bound<'_, PyAny>, name: &str) -> PyResult<u64> {
    let parsed = if let Ok(text) = value.cast::<PyString>() {
        match text.to_string_lossy().parse() {
            Ok(Size::Bytes(bytes)) => Some(bytes),
            _ => None,
        }
    } else {
        value.extract::<u64>().ok()
    };
    parsed.ok_or_else(|| {
        let shown = value.repr().map_or_else(|_| String::new(), |repr| repr.to_string());
        usage_error(
            value.py(),
            format!("{name} is {shown}; it is a number of bytes, or a str such as \"256M\""),
        )
    })
}

/// The scorer of this name; `k1` and `b`, which are checked, are of BM25.
pub fn scorer_from_name(py: Python<'_>, name: &str, k1: f64, b: f64) -> PyResult<Scorer> {
    let bm25 = Bm25::new(k1, b).map_err(|error| Failure::from(error).into_exception(py))?;
    match name {
        "bm25" => Ok(bm25.into()),
        "dot" => Ok(Scorer::Dot),
        other => Err(usage_error(py, format!("scorer is {other:?}; it is \"bm25\" or \"dot\""))),
    }
}

/// One field: name, members, tokenizer, accents folded, stop words, stemmer, positions, norms, codecs of
/// document numbers and of frequencies.
pub type FieldTuple = (
    String,
    Vec<String>,
    String,
    bool,
    Vec<String>,
    Option<String>,
    bool,
    String,
    String,
    String,
    Vec<String>,
);

/// A schema as `tierdex.Schema` passes it: its first members, its title, its fields, and what is stored.
pub type SchemaTuple = (Vec<String>, Option<String>, Vec<FieldTuple>, String);

/// What may be stored of documents.
const STORED: [Stored; 3] = [Stored::Nothing, Stored::Members, Stored::All];

/// The schema of `tierdex.Schema`.
pub fn schema_from_tuple(py: Python<'_>, schema: SchemaTuple) -> PyResult<Schema> {
    let (members, title, fields, stored) = schema;
    let fields = read_fields(py, fields)?;
    let stored = STORED.into_iter().find(|kind| kind.name() == stored).ok_or_else(|| {
        usage_error(py, format!("stored is {stored:?}; it is \"nothing\", \"members\" or \"all\""))
    })?;
    let schema = Schema { stored, ..Schema::new(&members, title.as_deref(), fields) };
    schema.validate().map_err(|error| Failure::from(error).into_exception(py))?;
    Ok(schema)
}

/// Fields as `tierdex.Schema` passes them.
pub fn read_fields(py: Python<'_>, fields: Vec<FieldTuple>) -> PyResult<Vec<Field>> {
    fields.into_iter().map(|field| read_field(py, field)).collect()
}

/// The reverse of [`schema_from_tuple`].
pub fn schema_tuple(schema: &Schema) -> SchemaTuple {
    let field = |field: &Field| {
        (
            field.name.clone(),
            field.members.clone(),
            field.analysis.tokenizer.name().to_string(),
            field.analysis.fold_accents,
            field.analysis.stop_words.clone(),
            field.analysis.stemmer.map(|language| language.name().to_string()),
            field.positions,
            field.norms.name().to_string(),
            field.doc_codec.name().to_string(),
            field.freq_codec.name().to_string(),
            field.synonyms.rules().to_vec(),
        )
    };
    let fields = schema.fields.iter().map(field).collect();
    (schema.first_members().to_vec(), schema.title.clone(), fields, schema.stored.name().to_string())
}

fn read_field(py: Python<'_>, field: FieldTuple) -> PyResult<Field> {
    let (name, members, tokenizer, fold_accents, stop_words, stemmer, positions, norms, docs, freqs, rules) =
        field;
    let stemmer = match stemmer {
        None => None,
        Some(language) => Some(Language::from_name(&language).ok_or_else(|| {
            let names: Vec<_> = Language::ALL.iter().map(|language| language.name()).collect();
            usage_error(
                py,
                format!(
                    "field {name:?}: there is no stemmer for {language:?}, only for {}",
                    names.join(", ")
                ),
            )
        })?),
    };
    let choice = |what: &str, value: &str, names: &[&str]| {
        let found = names.iter().position(|name| *name == value);
        found.ok_or_else(|| {
            usage_error(py, format!("field {name:?}: {what} is {value:?}; it is one of {}", names.join(", ")))
        })
    };
    let tokenizers = Tokenizer::ALL;
    let tokenizer = tokenizers[choice("tokenizer", &tokenizer, &tokenizers.map(Tokenizer::name))?];
    let kinds = [NormKind::Byte, NormKind::Exact];
    let norms = kinds[choice("norms", &norms, &kinds.map(NormKind::name))?];
    let codec = |what: &str, value: &str| {
        let names: Vec<_> = Codec::ALL.iter().map(|codec| codec.name()).collect();
        choice(what, value, &names).map(|number| Codec::ALL[number])
    };
    let (doc_codec, freq_codec) = (codec("codec", &docs)?, codec("freq_codec", &freqs)?);
    let mut analysis = Analysis { tokenizer, fold_accents, ..Analysis::default() };
    analysis.stop_words = normalize_stop_words(&stop_words, &analysis);
    analysis.stemmer = stemmer;
    let synonyms = Synonyms::from_rules(rules).map_err(|error| Failure::from(error).into_exception(py))?;
    Ok(Field { name, members, analysis, synonyms, positions, norms, doc_codec, freq_codec })
}

/// The stop words in lower case, without accents if these are folded; sorted, without duplicates.
fn normalize_stop_words(words: &[String], analysis: &Analysis) -> Vec<String> {
    let mut analyzer = Analyzer::new(analysis);
    let mut words: Vec<String> = words.iter().flat_map(|word| analyzer.terms(word)).collect();
    words.sort_unstable();
    words.dedup();
    words
}
