//! Amounts of data and of measurements.

use clap::ValueEnum;
use std::fmt;

/// How large the data of a run is, and how many values of each setting are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Scale {
    /// All figures in five minutes, to check that they can be made; the measurements mean little
    Small,
    /// All figures in two hours
    Machine,
    /// All sizes and settings of the papers as far as a generated index of 4.3 billion postings allows
    Full,
}

impl Scale {
    /// All scales.
    pub const ALL: [Scale; 3] = [Scale::Small, Scale::Machine, Scale::Full];
}

impl fmt::Display for Scale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Scale::Small => "small",
            Scale::Machine => "machine",
            Scale::Full => "full",
        })
    }
}
