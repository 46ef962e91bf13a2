//! The body of the fuzz target for the statistics of queries: decodes any bytes.
//!
//! Nothing here depends on the fuzzer, so that an ordinary test can run the same body.

use tierdex::Statistics;

/// Decodes the bytes with a valid checksum behind them; what is decoded must encode to the same value, and
/// can be merged. Returns whether they are statistics.
///
/// # Panics
/// If the value is another after it was encoded and decoded.
pub fn statistics(data: &[u8]) -> bool {
    let mut bytes = data.to_vec();
    bytes.extend(crc32c::crc32c(data).to_le_bytes());
    let Ok(decoded) = Statistics::decode(&bytes) else { return false };
    assert_eq!(Statistics::decode(&decoded.encode()).as_ref().ok(), Some(&decoded));
    if let Ok(merged) = Statistics::merge([&decoded]) {
        assert_eq!(Statistics::decode(&merged.encode()).ok(), Some(merged));
    }
    true
}
