//! Parsers for flags with a closed set of values, which `--help` lists.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use std::{error::Error, str::FromStr};
use tierdex::{codec::Codec, schema::Language};

/// A parser that accepts `names` and converts them with `T::from_str`.
pub fn one_of<T>(names: &'static [&'static str]) -> impl TypedValueParser<Value = T>
where
    T: FromStr<Err: Into<Box<dyn Error + Send + Sync>>> + Clone + Send + Sync + 'static,
{
    PossibleValuesParser::new(names).try_map(|name| name.parse::<T>())
}

/// A parser for codecs. Delta codecs need sorted input and are rejected for frequencies.
pub fn codec_parser(for_frequencies: bool) -> impl TypedValueParser<Value = Codec> {
    let codecs = Codec::ALL.iter().filter(move |codec| !(for_frequencies && codec.is_delta()));
    PossibleValuesParser::new(codecs.map(|codec| codec.name()))
        .try_map(|name| Codec::from_name(&name).ok_or("unknown codec"))
}

/// A parser for the languages that have a stemmer.
pub fn language_parser() -> impl TypedValueParser<Value = Language> {
    PossibleValuesParser::new(Language::ALL.iter().map(|language| language.name()))
        .try_map(|name| Language::from_name(&name).ok_or("unknown language"))
}
