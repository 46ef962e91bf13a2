//! Which form and width make the shortest block.
//!
//! The number of values wider than each width gives every length exactly.

use super::header::{Form, Header};
use crate::Kernel;
use crate::bitpack::WIDTH_MAX;

/// Largest number of exceptions that a list block can state.
const LIST_MAX: usize = u8::MAX as usize;

/// The header of the shortest block of `values`, of which there is at least one.
/// Among equals the one with fewer exceptions, and the bitmap before the list.
pub(super) fn choose(kernel: Kernel, values: &[u32]) -> Header {
    let (first, n) = (values[0], values.len());
    if first != 0 && values.iter().all(|value| *value == first) {
        return Header { form: Form::Constant, width: WIDTH_MAX - first.leading_zeros() };
    }
    let wider = kernel.wider(values);
    let widest = wider.iter().rposition(|count| *count > 0).map_or(0, |width| width as u32 + 1);
    let mut best = Header { form: Form::Plain, width: widest };
    let mut best_len = best.block_len(n);
    for width in (0..widest).rev() {
        for form in with_exceptions(usize::from(wider[width as usize]), widest - width) {
            let header = Header { form, width };
            let len = header.block_len(n);
            if len < best_len {
                (best, best_len) = (header, len);
            }
        }
    }
    best
}

/// Bytes of the shortest block of `values`, of which there is at least one.
pub(crate) fn block_len(kernel: Kernel, values: &[u32]) -> usize {
    choose(kernel, values).block_len(values.len())
}

/// The forms with the exceptions of one width; a list only if its count fits a byte.
fn with_exceptions(count: usize, high_width: u32) -> impl Iterator<Item = Form> {
    let list = (count <= LIST_MAX).then_some(Form::List { count, high_width });
    [Some(Form::Bitmap { count, high_width }), list].into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::BLOCK;

    fn choose(values: &[u32]) -> Header {
        super::choose(Kernel::SCALAR, values)
    }

    #[test]
    fn equal_values_are_constant_but_zeros_are_plain() {
        assert_eq!(choose(&[5; 9]), Header { form: Form::Constant, width: 3 });
        assert_eq!(choose(&[0; 9]), Header { form: Form::Plain, width: 0 });
        assert_eq!(choose(&[u32::MAX]), Header { form: Form::Constant, width: 32 });
    }

    #[test]
    fn few_exceptions_make_a_list_and_many_a_bitmap() {
        let mut values = [1; BLOCK];
        values[..3].fill(1 << 20);
        assert_eq!(choose(&values), Header { form: Form::List { count: 3, high_width: 20 }, width: 1 });
        values[..70].fill(1 << 20);
        assert_eq!(choose(&values), Header { form: Form::Bitmap { count: 70, high_width: 20 }, width: 1 });
    }

    #[test]
    fn a_list_that_cannot_state_its_length_is_not_offered() {
        assert_eq!(with_exceptions(255, 1).count(), 2);
        assert_eq!(with_exceptions(256, 1).count(), 1);
    }
}
