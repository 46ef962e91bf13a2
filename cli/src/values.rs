//! Values of flags that are one of some names, which `--help` lists.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use std::error::Error;
use std::str::FromStr;
use tierdex::codec::Codec;
use tierdex::schema::Language;

/// One of `names`, of which the type knows what they mean.
pub fn one_of<T>(names: &'static [&'static str]) -> impl TypedValueParser<Value = T>
where
    T: FromStr<Err: Into<Box<dyn Error + Send + Sync>>> + Clone + Send + Sync + 'static,
{
    PossibleValuesParser::new(names).try_map(|name| name.parse::<T>())
}

/// A codec; of frequencies only those that need no order.
pub fn codec(of_frequencies: bool) -> impl TypedValueParser<Value = Codec> {
    let codecs = Codec::ALL.iter().filter(move |codec| !(of_frequencies && codec.is_delta()));
    PossibleValuesParser::new(codecs.map(|codec| codec.name()))
        .try_map(|name| Codec::from_name(&name).ok_or("no codec is called so"))
}

/// A language with a stemmer.
pub fn language() -> impl TypedValueParser<Value = Language> {
    PossibleValuesParser::new(Language::ALL.iter().map(|language| language.name()))
        .try_map(|name| Language::from_name(&name).ok_or("no language is called so"))
}

/// Of [`tierdex::engine::Mode`].
pub const MODES: &[&str] = &["base", "base-prefetch", "hybrid", "hybrid-prefetch", "direct"];

/// Of [`tierdex::cache::PolicyKind`].
pub const POLICIES: &[&str] = &["lru", "s3-fifo", "sieve", "window"];

/// Of [`tierdex::io::EngineKind`].
pub const ENGINES: &[&str] = &["auto", "uring", "pread", "mmap"];

#[cfg(test)]
mod tests {
    use super::*;
    use tierdex::cache::PolicyKind;
    use tierdex::engine::Mode;
    use tierdex::io::EngineKind;

    #[test]
    fn all_names_are_listed_and_known() {
        assert_eq!(Mode::ALL.map(|mode| mode.to_string()), *MODES);
        assert_eq!(PolicyKind::ALL.map(|policy| policy.to_string()), *POLICIES);
        assert!(
            ENGINES.iter().all(|name| name.parse::<EngineKind>().is_ok_and(|kind| kind.to_string() == *name))
        );
    }
}
