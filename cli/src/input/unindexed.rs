//! Counts of the members of JSON objects and columns of TSV files that are not indexed.

use crate::size;

/// Maximum number of distinct names that are counted. Of further names it is known only that there are some.
const COUNTED_NAMES_MAX: usize = 16;

/// Maximum number of names in a message.
const SHOWN_NAMES_MAX: usize = 5;

/// Maximum length of a name in memory, in bytes; a longer name is cut.
const KEPT_NAME_BYTES_MAX: usize = 40;

/// Names of members and columns that are not indexed, with their numbers of occurrences.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Unindexed {
    names: Vec<(String, u64)>,
    further: bool,
}

impl Unindexed {
    /// Counts `count` more occurrences of a name.
    pub fn add(&mut self, name: &str, count: u64) {
        let name = &name[..name.floor_char_boundary(KEPT_NAME_BYTES_MAX)];
        match self.names.iter().position(|(known, _)| known == name) {
            Some(at) => self.names[at].1 += count,
            None if self.names.len() < COUNTED_NAMES_MAX => self.names.push((name.to_string(), count)),
            None => self.further = true,
        }
    }

    /// Adds the counts of another chunk.
    pub fn merge(&mut self, other: &Unindexed) {
        other.names.iter().for_each(|(name, count)| self.add(name, *count));
        self.further |= other.further;
    }

    /// The names with their counts, as a JSON object.
    pub fn as_json(&self) -> serde_json::Value {
        let names = self.names.iter().map(|(name, count)| (name.clone(), (*count).into()));
        names.collect::<serde_json::Map<_, _>>().into()
    }

    /// The most frequent names with their counts; `None` without a name.
    pub fn summary_clause(&self) -> Option<String> {
        let mut names = self.names.clone();
        names.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let shown = names.iter().take(SHOWN_NAMES_MAX);
        let mut shown: Vec<String> = shown
            .map(|(name, count)| format!("{} ({})", name.escape_debug(), size::show_number(*count)))
            .collect();
        if self.further || names.len() > SHOWN_NAMES_MAX {
            shown.push("and others".to_string());
        }
        (!shown.is_empty()).then(|| format!("not indexed: {}", shown.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_frequent_names_are_shown() {
        let mut all = Unindexed::default();
        assert_eq!(all.summary_clause(), None);
        all.add("date", 1);
        let mut other = Unindexed::default();
        other.add("url", 1200);
        other.add("date", 1);
        all.merge(&other);
        assert_eq!(all.summary_clause().unwrap(), "not indexed: url (1,200), date (2)");
        (0..100).for_each(|number| all.add(&format!("m{number}"), 1));
        assert_eq!(all.names.len(), COUNTED_NAMES_MAX);
        assert!(all.summary_clause().unwrap().ends_with("m0 (1), m1 (1), m2 (1), and others"));
    }
}
