//! The median of measured values.

/// The middle value, or the mean of the two middle values; `None` if there is no value.
pub(crate) fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        odd if odd % 2 == 1 => Some(values[middle]),
        _ => Some((values[middle - 1] + values[middle]) / 2.0),
    }
}

#[cfg(test)]
mod tests {
    use super::median;

    #[test]
    fn an_even_number_of_values_has_the_mean_of_the_middle_ones() {
        assert_eq!((median(vec![]), median(vec![3.0, 1.0, 2.0])), (None, Some(2.0)));
        assert_eq!(median(vec![4.0, 1.0, 2.0, 8.0]), Some(3.0));
    }
}
