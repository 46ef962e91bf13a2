//! Stored documents by their ids.

use crate::api_error::{ApiError, ApiErrorKind};
use tierdex::Snapshot;

/// Bytes of a document that are shown, from its beginning.
pub(crate) const DOCUMENT_BYTES: usize = 512 << 10;

/// The number of the document with an id, in an index that has keys for that.
pub(crate) fn document_of_id(snapshot: &Snapshot, id: &str) -> Result<Option<u32>, ApiError> {
    if !snapshot.index().is_updatable() {
        let message = "the documents of this index are not found by their ids, only by number and generation; \
                       `tierdex merge DIR --updatable` makes an index whose are";
        return Err(ApiError::new(ApiErrorKind::Usage, message));
    }
    Ok(snapshot.find_id(id)?)
}
