//! Names of the values of an enum, as flags, reports and JSON write them.

use crate::{Error, Result};
use std::fmt::Display;

/// Implements `Display` for an enum by the names of its values. With a description of the type, which error
/// messages show, also implements `FromStr`.
macro_rules! value_names {
    ($type:ident; $($value:ident = $name:literal),+) => {
        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(match self { $($type::$value => $name),+ })
            }
        }
    };
    ($type:ident, $description:literal; $($value:ident = $name:literal),+) => {
        crate::value_names::value_names!($type; $($value = $name),+);
        impl std::str::FromStr for $type {
            type Err = crate::Error;

            fn from_str(text: &str) -> crate::Result<$type> {
                crate::value_names::parse_name(&[$($type::$value),+], text, $description)
            }
        }
    };
}

pub(crate) use value_names;

/// The member of `all` that is displayed as `text`. `what` names the kind of value in the error message.
pub(crate) fn parse_name<T: Copy + Display>(all: &[T], text: &str, what: &str) -> Result<T> {
    let found = all.iter().copied().find(|value| value.to_string() == text);
    found.ok_or_else(|| {
        let names: Vec<String> = all.iter().map(ToString::to_string).collect();
        let (last, others) = names.split_last().expect("at least one name");
        Error::Usage(format!("`{text}` is not a {what}; write {} or {last}", others.join(", ")))
    })
}

#[cfg(test)]
mod tests {
    use crate::{cell::QueryShape, cell::TermClass};
    use std::{fmt::Display, str::FromStr};

    fn assert_names<T: FromStr<Err = crate::Error> + Display>(names: &[&str], wrong: &str, expected: &str) {
        for name in names {
            assert_eq!(name.parse::<T>().ok().unwrap().to_string(), *name);
        }
        let error = wrong.parse::<T>().err().unwrap().to_string();
        assert_eq!(error, format!("`{wrong}` is not a {expected}"));
    }

    #[test]
    fn values_are_parsed_by_name_and_the_error_lists_all_names() {
        assert_names::<TermClass>(&["H", "M", "L"], "h", "class of terms; write H, M or L");
        let shapes = "shape of queries; write SINGLE, AND or OR";
        assert_names::<QueryShape>(&["SINGLE", "AND", "OR"], "XOR", shapes);
    }
}
