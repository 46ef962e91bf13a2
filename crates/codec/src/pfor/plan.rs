//! Which form and width make the shortest block.
//!
//! One histogram of bit widths gives every length exactly. With `wider[b]` values of more than `b` bits, a
//! width of `b` has `wider[b]` exceptions. A high part takes a byte as `VByte` for being there, and as many more
//! as if 7 bits more were cut off it: `high_bytes[b] = wider[b] + high_bytes[b + 7]`.

use super::header::{Form, Header};
use crate::bitpack::WIDTH_MAX;
use crate::kernel;

/// Largest count, and largest number of bytes, that a list block can state.
const LIST_MAX: usize = u8::MAX as usize;

/// The exceptions that each width would have.
struct Tally {
    /// `wider[b]` = number of values of more than `b` bits; zero from the widest on.
    wider: [usize; WIDTHS],
    /// `high_bytes[b]` = bytes of their high parts as `VByte`.
    high_bytes: [usize; WIDTHS],
    /// Width of the widest value.
    widest: u32,
}

/// Widths 0 to 32, and up to 7 more beyond the largest exception.
const WIDTHS: usize = 40;

/// The header of the shortest block of `values`, of which there is at least one.
/// Among equals the one with fewer exceptions, and the bitmap before the list.
pub(super) fn choose(values: &[u32]) -> Header {
    let (first, n) = (values[0], values.len());
    if first != 0 && values.iter().all(|value| *value == first) {
        return Header { form: Form::Constant, width: WIDTH_MAX - first.leading_zeros() };
    }
    let tally = Tally::of(values);
    let mut best = Header { form: Form::Plain, width: tally.widest };
    let mut best_len = best.block_len(n);
    for width in (0..tally.widest).rev() {
        let mut keep_if_shorter = |form| {
            let header = Header { form, width };
            let len = header.block_len(n);
            if len < best_len {
                (best, best_len) = (header, len);
            }
        };
        keep_if_shorter(tally.bitmap(width));
        tally.list(width).map(keep_if_shorter);
    }
    best
}

/// Bytes of the shortest block of `values`, of which there is at least one.
pub(crate) fn block_len(values: &[u32]) -> usize {
    choose(values).block_len(values.len())
}

impl Tally {
    fn of(values: &[u32]) -> Tally {
        let counts = kernel::width_counts(values);
        let widest = counts.iter().rposition(|count| *count > 0).unwrap_or(0);
        let (mut wider, mut high_bytes) = ([0; WIDTHS], [0; WIDTHS]);
        for width in (0..widest).rev() {
            wider[width] = wider[width + 1] + usize::from(counts[width + 1]);
            high_bytes[width] = wider[width] + high_bytes[width + 7];
        }
        Tally { wider, high_bytes, widest: widest as u32 }
    }

    fn bitmap(&self, width: u32) -> Form {
        Form::Bitmap { count: self.wider[width as usize], high_width: self.widest - width }
    }

    /// None if the counts do not fit their bytes.
    fn list(&self, width: u32) -> Option<Form> {
        let (count, high_bytes) = (self.wider[width as usize], self.high_bytes[width as usize]);
        // Each high part has a byte at least, so the count fits if the bytes do.
        (high_bytes <= LIST_MAX).then_some(Form::List { count, high_bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::BLOCK;

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
        let list = |count| {
            let values: Vec<u32> = (0..BLOCK).map(|k| if k < count { 255 } else { 0 }).collect();
            Tally::of(&values).list(0)
        };
        assert_eq!(list(127), Some(Form::List { count: 127, high_bytes: 254 }));
        assert_eq!(list(128), None);
    }
}
