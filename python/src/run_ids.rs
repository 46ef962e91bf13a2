//! Ids in a TREC run, where white space separates columns: an id with white space or control characters is
//! written with these and `%` percent-encoded, as the command does. Others are written as they are.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Write;

/// The id as it is written.
pub fn written(id: &str) -> Cow<'_, str> {
    let splits = |c: char| c.is_whitespace() || c.is_control();
    if id.is_empty() {
        return Cow::Borrowed("%");
    }
    if !id.contains(splits) {
        return Cow::Borrowed(id);
    }
    let mut out = String::with_capacity(id.len() + 8);
    for c in id.chars() {
        if splits(c) || c == '%' {
            for byte in c.encode_utf8(&mut [0; 4]).bytes() {
                // Writing to a string does not fail.
                let _ = write!(out, "%{byte:02X}");
            }
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

/// Two ids that are written alike, and how.
pub fn written_alike<'i>(ids: impl Iterator<Item = &'i str> + Clone) -> Option<(&'i str, String)> {
    let encoded = ids.clone().filter_map(|id| match written(id) {
        Cow::Owned(encoded) => Some((encoded, id)),
        Cow::Borrowed(_) => None,
    });
    let originals: HashMap<String, &str> = encoded.collect();
    if originals.is_empty() {
        return None;
    }
    let same = ids.into_iter().find_map(|id| originals.get_key_value(id));
    same.map(|(encoded, original)| (*original, encoded.clone()))
}
