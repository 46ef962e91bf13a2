//! The settings of a run: checked values of the flags, and the sweeps.

use tierdex::{StopSignal, codec::Codec, io::RegionKind};

/// The parsed and checked flags.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) sweeps: Vec<Sweep>,
    pub(super) threads: usize,
    pub(super) short: u32,
    pub(super) long: u32,
    pub(super) common: f64,
    pub(super) filter: u32,
    /// Whether lists are read from an emulated hard disk.
    pub(super) hdd: bool,
    pub(super) depth: usize,
    pub(super) bl_depth: usize,
    pub(super) read_bytes: usize,
    pub(super) region: RegionKind,
    pub(super) limit: usize,
    pub(super) seed: u64,
    /// Checked before each measurement.
    pub(super) stop: StopSignal,
}

/// The parameter that a sweep varies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sweep {
    Threads,
    Ratio,
    Intersection,
    Lists,
    Codec,
    Depth,
    Memory,
    /// No parameter: queries of a log over an index.
    Real,
}

impl Sweep {
    /// The sweeps that `--sweep` can name.
    pub(super) const ALL: [Sweep; 7] = [
        Sweep::Threads,
        Sweep::Ratio,
        Sweep::Intersection,
        Sweep::Lists,
        Sweep::Codec,
        Sweep::Depth,
        Sweep::Memory,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Sweep::Threads => "threads",
            Sweep::Ratio => "ratio",
            Sweep::Intersection => "intersection",
            Sweep::Lists => "lists",
            Sweep::Codec => "codec",
            Sweep::Depth => "depth",
            Sweep::Memory => "memory",
            Sweep::Real => "real",
        }
    }

    pub(super) fn from_name(name: &str) -> Option<Sweep> {
        Sweep::ALL.into_iter().find(|sweep| sweep.name() == name)
    }

    pub(super) fn names() -> String {
        Sweep::ALL.map(Sweep::name).join(", ")
    }
}

/// The codecs that are compared.
pub(super) const COMPARED_CODECS: [Codec; 3] = [Codec::Raw, Codec::Pfor256Delta, Codec::Bp256Delta];
