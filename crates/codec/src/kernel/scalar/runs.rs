//! Loops over runs of consecutive values: copies and intersections.

use crate::block::{BLOCK, RUN_SLACK, RunPair, ValueRun};
use crate::kernel::table::RunBlock;

/// Implements [`crate::Kernel::copy_runs`]: most runs are short and take one vector.
#[inline(always)]
pub(crate) fn copy_runs(values: &RunBlock, runs: &[ValueRun], out: &mut [u32]) -> usize {
    let mut end = 0;
    for run in runs {
        let (from, len) = (usize::from(run.start), usize::from(run.len));
        assert!(from + len <= BLOCK);
        for k in (0..len).step_by(RUN_SLACK) {
            let from: &[u32; RUN_SLACK] = values[from + k..].first_chunk().expect("the slack of the block");
            let to: &mut [u32; RUN_SLACK] = out[end + k..].first_chunk_mut().expect("a vector fits");
            for (to, value) in to.iter_mut().zip(from) {
                *to = value.wrapping_add(run.add);
            }
        }
        end += len;
    }
    end
}

/// Implements [`crate::Kernel::intersect_runs`]. Only the ends of the runs cause branches that depend on the
/// values.
pub(crate) fn intersect_runs(
    first: &RunBlock,
    second: &RunBlock,
    margin: u32,
    pairs: &mut [RunPair],
    out: &mut [u32],
) -> usize {
    let capacity = out.len() - RUN_SLACK;
    let mut n = 0;
    for pair in pairs {
        let (firsts, seconds) = slices_of_pair(first, second, pair);
        let (mut i, mut j, start) = (0, 0, n);
        while let (Some(a), Some(b)) = (firsts.get(i), seconds.get(j)) {
            let b = b.wrapping_add(pair.second.add);
            out[n.min(capacity)] = *a;
            n += usize::from(is_within(margin, *a, b));
            i += usize::from(*a <= b.wrapping_add(margin));
            j += usize::from(b.wrapping_add(margin) <= *a);
        }
        n = n.min(capacity);
        pair.shared = (n - start) as u16;
    }
    n
}

/// Whether two values differ by at most `margin`.
#[inline(always)]
fn is_within(margin: u32, a: u32, b: u32) -> bool {
    a.wrapping_sub(b).wrapping_add(margin) <= 2 * margin
}

/// The values of the two runs of a pair.
#[inline(always)]
pub(crate) fn slices_of_pair<'a>(
    first: &'a RunBlock,
    second: &'a RunBlock,
    pair: &RunPair,
) -> (&'a [u32], &'a [u32]) {
    let (from, len) = (usize::from(pair.first), usize::from(pair.first_len));
    let (start, others) = (usize::from(pair.second.start), usize::from(pair.second.len));
    assert!(len > 0 && others > 0);
    (&first[..BLOCK][from..from + len], &second[..BLOCK][start..start + others])
}
