//! The memory tier of the metadata of segments.

use crate::{Error, Result};
use std::{fmt, str::FromStr};
use tierdex_io::RegionKind;

/// Memory tier of dictionaries, skip data, norms and page checksums (APCache thesis, figures 8.1, 8.2).
/// Norms and checksums are accessed at random for each block, so they are never left on disk; nor are the
/// page indexes of dictionaries, which are with them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MetaTier {
    /// Dictionaries and skip data are on disk: a term lookup reads a page, and a list is fetched together
    /// with its skip data. Norms and checksums are in a region of the kind of the cache if the cache does not
    /// count towards the budget, else in DRAM.
    Disk,
    /// As [`MetaTier::Disk`], with dictionaries in DRAM.
    Terms,
    /// All of them are in DRAM.
    Dram,
    /// All of them are in a region of this kind.
    Region(RegionKind),
    /// The whole index but ids and stored text is in a region of this kind; in DRAM it counts towards the
    /// budget. Lists are used where they are.
    Index(RegionKind),
}

impl MetaTier {
    /// Whether skip data is resident.
    pub fn keeps_skips(&self) -> bool {
        !matches!(self, MetaTier::Disk | MetaTier::Terms)
    }
}

impl fmt::Display for MetaTier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MetaTier::Disk => f.write_str("disk"),
            MetaTier::Terms => f.write_str("terms"),
            MetaTier::Dram => f.write_str("dram"),
            MetaTier::Region(kind) => kind.fmt(f),
            MetaTier::Index(kind) => write!(f, "index:{kind}"),
        }
    }
}

impl FromStr for MetaTier {
    type Err = Error;

    fn from_str(text: &str) -> Result<MetaTier> {
        match text {
            "disk" => Ok(MetaTier::Disk),
            "terms" => Ok(MetaTier::Terms),
            "dram" => Ok(MetaTier::Dram),
            other => {
                let (region, tier): (&str, fn(RegionKind) -> MetaTier) = match other.strip_prefix("index:") {
                    Some(region) => (region, MetaTier::Index),
                    None => (other, MetaTier::Region),
                };
                region.parse().map(tier).map_err(|error: tierdex_io::Error| {
                    let others = "disk (nothing resident), terms (dictionaries resident), or index:REGION (the whole index)";
                    Error::Usage(format!("{error}; or {others}"))
                })
            }
        }
    }
}

/// Where the metadata of segments is.
#[derive(Clone, Debug)]
pub struct MetadataLocation {
    /// The tier.
    pub tier: MetaTier,
    /// The region of norms and page checksums, and of all else that is resident if `tier` names a region;
    /// `None`: DRAM.
    pub region: Option<RegionKind>,
}

impl MetadataLocation {
    /// The location for a tier, beside a cache in this region; `None` if the cache is a part of a budget of
    /// DRAM, or if there is none.
    pub fn of(tier: MetaTier, cache_region: Option<&RegionKind>) -> MetadataLocation {
        let region = match &tier {
            MetaTier::Disk | MetaTier::Terms => {
                cache_region.filter(|kind| **kind != RegionKind::Dram).cloned()
            }
            MetaTier::Dram => None,
            MetaTier::Region(kind) => Some(kind.clone()),
            MetaTier::Index(kind) => Some(kind.clone()).filter(|kind| *kind != RegionKind::Dram),
        };
        MetadataLocation { tier, region }
    }

    /// Whether dictionaries and skip data are in the region.
    pub(super) fn is_whole_region(&self) -> bool {
        self.region.is_some() && matches!(self.tier, MetaTier::Region(_) | MetaTier::Index(_))
    }
}

impl fmt::Display for MetadataLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let norms = self.region.as_ref().map_or("dram".to_string(), |region| region.to_string());
        match &self.tier {
            MetaTier::Disk => write!(f, "dictionary and skip data on disk, norms on {norms}"),
            MetaTier::Terms => write!(f, "dictionary on dram, skip data on disk, norms on {norms}"),
            MetaTier::Index(kind) => write!(f, "the index in {kind}"),
            tier => write!(f, "dictionary, skip data and norms on {tier}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_parse_to_their_values() {
        for tier in
            ["disk", "terms", "dram", "hugetlb", "numa:1", "file:/dev/shm/x", "index:dram", "index:numa:1"]
        {
            assert_eq!(tier.parse::<MetaTier>().unwrap().to_string(), tier);
        }
        assert!("ssd".parse::<MetaTier>().is_err() && "index:".parse::<MetaTier>().is_err());
    }
}
