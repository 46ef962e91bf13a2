//! Amounts of data and of measurements.

use crate::value_names::value_names;
use clap::ValueEnum;

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

value_names!(Scale; Small = "small", Machine = "machine", Full = "full");
