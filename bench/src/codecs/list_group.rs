//! Groups of lists: the unit that is encoded and timed.

/// Kind of the values of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueKind {
    /// Strictly increasing document ids.
    Ids,
    /// Frequencies: in any order, mostly small.
    Frequencies,
}

/// Lists of one dataset and one length class.
pub struct ListGroup {
    /// Name of the dataset.
    pub dataset: &'static str,
    /// Kind of the values.
    pub kind: ValueKind,
    /// Lists have `2^k` to `2^(k+1) - 1` values; `None` if lengths are mixed.
    pub k: Option<u32>,
    /// The lists, none of them empty.
    pub lists: Vec<Vec<u32>>,
}

impl ListGroup {
    /// Number of values of all lists.
    pub fn ints(&self) -> u64 {
        self.lists.iter().map(|list| list.len() as u64).sum()
    }
}
