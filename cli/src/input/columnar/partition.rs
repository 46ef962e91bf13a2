//! Keys of partitioned folders: `year=2024` in the path of a file is a column of all of its rows.

use std::path::{Component, Path};

/// The value of a key without one.
const NO_VALUE: &str = "__HIVE_DEFAULT_PARTITION__";

/// The keys in the folders of a path, with their values.
pub(super) fn partition_keys(path: &Path) -> Vec<(String, String)> {
    let folders = path.parent().into_iter().flat_map(Path::components);
    let keys = folders.filter_map(|folder| {
        let Component::Normal(name) = folder else { return None };
        let (key, value) = name.to_str()?.split_once('=')?;
        (!key.is_empty() && value != NO_VALUE).then(|| (decode_percents(key), decode_percents(value)))
    });
    keys.collect()
}

/// A text in which `%2F` stands for a slash. Without UTF-8 the text as it is.
fn decode_percents(text: &str) -> String {
    let (mut bytes, mut rest) = (Vec::with_capacity(text.len()), text.as_bytes());
    while let Some((&byte, after)) = rest.split_first() {
        let code = after.get(..2).filter(|_| byte == b'%');
        let code = code.and_then(|code| std::str::from_utf8(code).ok());
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(decoded) => {
                bytes.push(decoded);
                rest = &after[2..];
            }
            None => {
                bytes.push(byte);
                rest = after;
            }
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_with_keys_are_columns() {
        let keys = |path: &str| partition_keys(Path::new(path));
        let pair = |key: &str, value: &str| (key.to_string(), value.to_string());
        assert_eq!(
            keys("data/year=2024/lang=a%2Fb/a=1.parquet"),
            [pair("year", "2024"), pair("lang", "a/b")]
        );
        assert_eq!(keys("/year=/x=__HIVE_DEFAULT_PARTITION__/=1/50%/a"), [pair("year", "")]);
        assert_eq!(keys("a.parquet"), []);
        assert_eq!(decode_percents("%FF%2"), "%FF%2");
    }
}
