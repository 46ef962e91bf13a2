//! Layout of a skip record.

/// Bytes that the entry of a superblock has before its arrays, and that it has for each block.
pub(super) const fn entry_bytes(positions: bool) -> (usize, usize) {
    if positions { (34, 15) } else { (26, 11) }
}

/// Offsets in a record at which its head of `superblocks` max shares and last documents starts and ends.
pub(super) const fn head_range(superblocks: usize, positions: bool) -> (usize, usize) {
    let start = if positions { 8 } else { 0 };
    (start, start + 6 * superblocks)
}

/// An entry has arrays with an element for each of its blocks: the last document, the max share, and the
/// bytes of documents, frequencies, positions (if the field has them) and impacts. These are the bytes that
/// a block takes in all arrays before the named one.
pub(super) const LAST_DOCUMENTS: usize = 0;
pub(super) const MAX_SHARES: usize = 4;
pub(super) const DOCS_LENS: usize = 6;
pub(super) const FREQS_LENS: usize = 8;
pub(super) const POSITIONS_LENS: usize = 10;
