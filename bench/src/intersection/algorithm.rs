//! The names of the algorithms.

/// An intersection algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Algorithm {
    /// Baseline: reads all lists completely.
    Bl,
    /// Short-long: looks up the ids of the shortest list in the others.
    Sl,
    /// Zig-zag: seeks the successor of an eliminator in each list in turn.
    Zz,
    /// Short-long with Bloom filters.
    Bf,
    /// One thread with many reads in flight.
    Direct,
}

impl Algorithm {
    /// All algorithms, those of the paper first.
    pub const ALL: [Algorithm; 5] =
        [Algorithm::Bl, Algorithm::Sl, Algorithm::Zz, Algorithm::Bf, Algorithm::Direct];

    /// The name in flags and reports.
    pub fn name(self) -> &'static str {
        match self {
            Algorithm::Bl => "bl",
            Algorithm::Sl => "sl",
            Algorithm::Zz => "zz",
            Algorithm::Bf => "bf",
            Algorithm::Direct => "direct",
        }
    }

    /// The algorithm with the name `name`.
    pub fn from_name(name: &str) -> Option<Algorithm> {
        Algorithm::ALL.into_iter().find(|algorithm| algorithm.name() == name)
    }
}
