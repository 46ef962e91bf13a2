//! An index that is held in memory as a whole.

use crate::Result;
use tierdex::internal::engine::{MetaTier, MetadataLocation, load_metadata};
use tierdex::{Index, internal::index::Searcher, io::RegionKind};

/// Loads an index into a memory region, and returns its searcher.
///
/// # Errors
/// If the region cannot be allocated, or the index is damaged.
pub(crate) fn load_index(index: &Index, region: &RegionKind) -> Result<Searcher> {
    load_metadata(index.segments(), &MetadataLocation::of(MetaTier::Index(region.clone()), None))?;
    Ok(index.searcher())
}
