//! Checks the headers of delta encodings in a Parquet page. Decoders allocate as many values as a header
//! says, which may be any number.
//!
//! Source: apache/parquet-format `Encodings.md`, DELTA_BINARY_PACKED.

/// Maximum number of values in a block. Writers use 128 to 1,024.
const BLOCK_VALUES_MAX: u64 = 1 << 16;

/// Where a sequence of delta-encoded integers ends in `bytes`. `None` if it has more than `values_max` values
/// or does not end within the bytes.
pub(super) fn delta_sequence_end(bytes: &[u8], values_max: u64) -> Option<usize> {
    let mut at = 0;
    let block = unsigned(bytes, &mut at)?;
    let miniblocks = unsigned(bytes, &mut at)?;
    let count = unsigned(bytes, &mut at)?;
    // The first value.
    unsigned(bytes, &mut at)?;
    let is_regular = block > 0 && block <= BLOCK_VALUES_MAX && miniblocks > 0 && miniblocks <= block;
    if !is_regular || count > values_max || block % miniblocks != 0 {
        return None;
    }
    let miniblock = block / miniblocks;
    let mut left = count.saturating_sub(1);
    while left > 0 {
        // The smallest difference.
        unsigned(bytes, &mut at)?;
        let widths = bytes.get(at..)?.get(..miniblocks as usize)?;
        at += widths.len();
        for width in widths {
            if left == 0 {
                break;
            }
            if *width > 64 {
                return None;
            }
            let length = (miniblock * u64::from(*width)).div_ceil(8);
            // The last one may be cut.
            at = at.saturating_add(length as usize);
            left = left.saturating_sub(miniblock);
        }
        if at > bytes.len() && left > 0 {
            return None;
        }
    }
    Some(at.min(bytes.len()))
}

fn unsigned(bytes: &[u8], at: &mut usize) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = *bytes.get(*at)?;
        *at += 1;
        value |= u64::from(byte & 0x7F) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_end_where_their_values_end() {
        // Blocks of 128 values in 4 miniblocks: no value, one value, and 40 with widths of 1 and 2 bits.
        assert_eq!(delta_sequence_end(&[0x80, 1, 4, 0, 0, 9], 10), Some(5));
        assert_eq!(delta_sequence_end(&[0x80, 1, 4, 1, 0, 9], 10), Some(5));
        let mut forty = vec![0x80, 1, 4, 40, 0, 0, 1, 2, 0, 0];
        forty.extend([0; 4 + 8]);
        forty.push(9);
        assert_eq!(delta_sequence_end(&forty, 40), Some(forty.len() - 1));
        assert_eq!(delta_sequence_end(&forty, 39), None);
        // 2^35 values.
        assert_eq!(delta_sequence_end(&[0x80, 1, 4, 0x80, 0x80, 0x80, 0x80, 0x80, 1, 0], 1 << 20), None);
        assert_eq!(delta_sequence_end(&[0, 4, 1, 0], 10), None);
        assert_eq!(delta_sequence_end(&[], 10), None);
    }
}
