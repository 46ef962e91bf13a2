//! The algorithms by name.

/// How lists are intersected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Algorithm {
    /// Baseline: every list is read whole.
    Bl,
    /// Short-long: members of the shortest list are looked up in the others.
    Sl,
    /// Zig-zag: successors of an eliminator, list after list.
    Zz,
    /// Short-long with Bloom filters.
    Bf,
    /// One thread with many reads in flight.
    Direct,
}

impl Algorithm {
    /// Every one, the paper's first.
    pub const ALL: [Algorithm; 5] =
        [Algorithm::Bl, Algorithm::Sl, Algorithm::Zz, Algorithm::Bf, Algorithm::Direct];

    /// The name users type.
    pub fn name(self) -> &'static str {
        match self {
            Algorithm::Bl => "bl",
            Algorithm::Sl => "sl",
            Algorithm::Zz => "zz",
            Algorithm::Bf => "bf",
            Algorithm::Direct => "direct",
        }
    }

    /// The one that [`Algorithm::name`] calls `name`.
    pub fn from_name(name: &str) -> Option<Algorithm> {
        Algorithm::ALL.into_iter().find(|algorithm| algorithm.name() == name)
    }
}
