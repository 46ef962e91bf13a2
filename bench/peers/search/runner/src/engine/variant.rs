//! Variants of an index and its queries, and which engines support them.

use super::kind::Kind;
use crate::flags::Flags;

/// Segments and constants of BM25 by which tierdex is compared with itself.
const OWN: (u32, (f64, f64)) = (8, (0.9, 0.4));

/// A variant of the index and of the queries.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Variant {
    /// Whether the index has positions.
    pub positions: bool,
    /// Segments of the index.
    pub segments: u32,
    /// k1 and b of BM25 if they are not 1.2 and 0.75.
    pub bm25: Option<(f64, f64)>,
}

impl Variant {
    /// That of all engines.
    pub fn of(flags: &Flags, positions: bool) -> Variant {
        let bm25 = flags.bm25();
        Variant { positions, segments: flags.segments, bm25 }
    }

    /// What follows the engine's name in that of its index.
    pub fn index_tail(&self) -> String {
        let positions = if self.positions { "-positions" } else { "" };
        let segments = if self.segments > 1 { format!("-{}", self.segments) } else { String::new() };
        format!("{positions}{segments}")
    }

    /// Variants for comparing tierdex with itself, each with the name of what differs.
    pub(super) fn own(&self) -> [(String, Variant); 2] {
        let segments = if self.segments == 1 { OWN.0 } else { 1 };
        let bm25 = if self.bm25.is_none() { Some(OWN.1) } else { None };
        let (k1, b) = bm25.unwrap_or((1.2, 0.75));
        let plural = if segments == 1 { "" } else { "s" };
        [
            (format!("{segments} segment{plural}"), Variant { segments, ..*self }),
            (format!("k1 {k1} b {b}"), Variant { bm25, ..*self }),
        ]
    }
}

impl Kind {
    /// Why an engine does not have a variant, if so.
    pub(super) fn lacks(self, variant: &Variant) -> Option<&'static str> {
        let several = variant.segments > 1;
        match self {
            Kind::Tantivy if variant.bm25.is_some() => Some("the constants of its BM25 are fixed"),
            Kind::Pisa if variant.positions => Some("it has no positions"),
            Kind::Pisa if several => Some("its index has no segments"),
            Kind::Seekstorm if variant.bm25.is_some() => Some("the constants of its BM25 are fixed"),
            Kind::Seekstorm if several => Some("its segments are not sets of documents"),
            _ => None,
        }
    }
}



#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variant_of_its_own_differs_in_one_thing() {
        let one = Variant { positions: true, segments: 1, bm25: None };
        let [segments, bm25] = one.own();
        assert_eq!(segments, ("8 segments".to_string(), Variant { segments: 8, ..one }));
        assert_eq!(bm25, ("k1 0.9 b 0.4".to_string(), Variant { bm25: Some((0.9, 0.4)), ..one }));
        let [segments, bm25] = Variant { segments: 4, bm25: Some((2.0, 0.5)), ..one }.own();
        assert_eq!((segments.0.as_str(), bm25.0.as_str()), ("1 segment", "k1 1.2 b 0.75"));
        assert_eq!((one.index_tail(), segments.1.index_tail()), ("-positions".into(), "-positions".into()));
    }

    #[test]
    fn not_all_have_all() {
        let phrases = Variant { positions: true, segments: 1, bm25: None };
        let tuned = Variant { positions: false, bm25: Some((0.9, 0.4)), ..phrases };
        assert!(Kind::Pisa.lacks(&phrases).is_some() && Kind::Pisa.lacks(&tuned).is_none());
        assert!(Kind::Tantivy.lacks(&tuned).is_some() && Kind::Tantivy.lacks(&phrases).is_none());
        assert!([phrases, tuned].iter().all(|variant| Kind::Lucene.lacks(variant).is_none()));
    }
}
