//! Which form and width make the shortest block.
//!
//! One histogram of bit widths gives every length exactly. With `wider[b]` values of more than `b` bits, a
//! width of `b` has `x = wider[b]` exceptions. A high part of `h` bits takes `ceil(h / 7)` bytes as `VByte`:
//! one for being there, and one more for each of 7, 14, 21, 28 that `h` exceeds, so that all of them take
//! `wider[b] + wider[b+7] + wider[b+14] + wider[b+21] + wider[b+28]` bytes.

use super::header::{Form, Header};
use crate::bitpack::WIDTH_MAX;
use crate::kernel;

/// Largest count, and largest number of bytes, that a list block can state.
const LIST_MAX: usize = u8::MAX as usize;

/// `wider[b]` = number of values of more than `b` bits; zero from the widest on.
type Wider = [usize; 64];

/// The header of the shortest block of `values`, of which there is at least one.
/// Among equals the one with fewer exceptions, and the bitmap before the list.
pub(super) fn choose(values: &[u32]) -> Header {
    let (first, n) = (values[0], values.len());
    if first != 0 && values.iter().all(|value| *value == first) {
        return Header { form: Form::Constant, width: WIDTH_MAX - first.leading_zeros() };
    }
    let (wider, widest) = count_wider(values);
    let mut best = Header { form: Form::Plain, width: widest };
    let mut best_len = best.block_len(n);
    for width in (0..widest).rev() {
        for form in [Some(bitmap(&wider, width, widest)), list(&wider, width)].into_iter().flatten() {
            let header = Header { form, width };
            let len = header.block_len(n);
            if len < best_len {
                (best, best_len) = (header, len);
            }
        }
    }
    best
}

/// The counts, and the width of the widest value.
fn count_wider(values: &[u32]) -> (Wider, u32) {
    let counts = kernel::width_counts(values);
    let mut wider = [0; 64];
    for width in (0..WIDTH_MAX as usize).rev() {
        wider[width] = wider[width + 1] + usize::from(counts[width + 1]);
    }
    let widest = counts.iter().rposition(|count| *count > 0).unwrap_or(0);
    (wider, widest as u32)
}

fn bitmap(wider: &Wider, width: u32, widest: u32) -> Form {
    Form::Bitmap { count: wider[width as usize], high_width: widest - width }
}

/// None if the counts do not fit their bytes.
fn list(wider: &Wider, width: u32) -> Option<Form> {
    let count = wider[width as usize];
    let high_bytes = (0..5).map(|k| wider[width as usize + 7 * k]).sum();
    // Each high part has a byte at least, so the count fits if the bytes do.
    (high_bytes <= LIST_MAX).then_some(Form::List { count, high_bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_are_constant_but_zeros_are_plain() {
        assert_eq!(choose(&[5; 9]), Header { form: Form::Constant, width: 3 });
        assert_eq!(choose(&[0; 9]), Header { form: Form::Plain, width: 0 });
        assert_eq!(choose(&[u32::MAX]), Header { form: Form::Constant, width: 32 });
    }

    #[test]
    fn few_exceptions_make_a_list_and_many_a_bitmap() {
        let mut values = [1; 256];
        values[..3].fill(1 << 20);
        assert_eq!(choose(&values), Header { form: Form::List { count: 3, high_bytes: 9 }, width: 1 });
        values[..70].fill(1 << 20);
        assert_eq!(choose(&values), Header { form: Form::Bitmap { count: 70, high_width: 20 }, width: 1 });
    }

    #[test]
    fn a_list_that_cannot_state_its_length_is_not_chosen() {
        let wider = |count| std::array::from_fn(|b| if b < 8 { count } else { 0 });
        assert_eq!(list(&wider(127), 0), Some(Form::List { count: 127, high_bytes: 254 }));
        assert_eq!(list(&wider(128), 0), None);
    }
}
