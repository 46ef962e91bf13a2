//! Opens an index, and holds it in memory as a whole.

use crate::{Error, Result};
use std::path::Path;
use tierdex::internal::engine::{MetaTier, MetadataLocation, load_metadata};
use tierdex::{Index, internal::index::Searcher, io::RegionKind};

/// Opens an index. A directory without one is a failure.
///
/// # Errors
/// If there is no index, or it is damaged.
pub(crate) fn open_index(dir: &Path) -> Result<Index> {
    Index::open(dir).map_err(|error| Error::Failed(error.to_string()))
}

/// Loads an index into a memory region, and returns its searcher.
///
/// # Errors
/// If the region cannot be allocated, or the index is damaged.
pub(crate) fn load_index(index: &Index, region: &RegionKind) -> Result<Searcher> {
    load_metadata(index.segments(), &MetadataLocation::of(MetaTier::Index(region.clone()), None))?;
    Ok(index.searcher())
}
