//! Removes the byte order mark of UTF-8.

/// Byte order mark that some editors write before the first byte of UTF-8 text.
pub const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// The first bytes of a file, without a byte order mark.
pub(super) fn strip_byte_order_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes)
}
