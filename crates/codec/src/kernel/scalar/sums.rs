//! Gaps and prefix sums. All arithmetic is mod 2^32.

/// `gaps[i] = values[i] - values[i-1] - step`, with `prev` before the first.
pub(crate) fn gaps(values: &[u32], prev: u32, step: u32, gaps: &mut [u32]) {
    let difference = |value: u32, before: u32| value.wrapping_sub(before).wrapping_sub(step);
    let (Some((first_gap, gaps)), Some(first)) = (gaps.split_first_mut(), values.first()) else { return };
    *first_gap = difference(*first, prev);
    for (gap, pair) in gaps.iter_mut().zip(values.windows(2)) {
        *gap = difference(pair[1], pair[0]);
    }
}

/// `values[i] = values[i-1] + values[i] + step`, with `prev` before the first, in place.
pub(crate) fn prefix_sum(values: &mut [u32], prev: u32, step: u32) {
    let mut sum = prev;
    for value in values {
        // The step goes to the gap, so that the chain from value to value is one addition.
        sum = sum.wrapping_add(value.wrapping_add(step));
        *value = sum;
    }
}
