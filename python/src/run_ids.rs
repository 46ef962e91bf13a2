//! Ids in a TREC run ([`run_id`]).

use std::{borrow::Cow, collections::HashMap};
use tierdex::run_id;

/// Two ids that are written alike, and how.
pub fn written_alike<'i>(ids: impl Iterator<Item = &'i str> + Clone) -> Option<(&'i str, String)> {
    let encoded = ids.clone().filter_map(|id| match run_id(id) {
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
