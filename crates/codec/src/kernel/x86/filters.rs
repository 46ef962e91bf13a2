//! Macros that define a filter over scores, and the selection of the largest keys.

/// Defines `keep_at_least`. It uses these functions of the module: `load` and `store`, also of fewer values
/// than a vector has; the masks of lanes `at_least(values, threshold)` and `first_lanes(n)`; and
/// `compress(mask, values)`.
macro_rules! keep_at_least {
    ($features:literal) => {
        /// Implements [`crate::Kernel::keep_at_least`].
        #[target_feature(enable = $features)]
        pub(crate) fn keep_at_least(
            values: &mut [u32],
            scores: &mut [u32],
            from: usize,
            threshold: u32,
        ) -> usize {
            let threshold = broadcast(threshold as i32);
            let n = values.len();
            let whole = n - (n - from) % LANES;
            let mut kept = 0;
            // Values are read before they are overwritten: `kept` is at most `position`.
            for position in (from..whole).step_by(LANES) {
                let vector = load(&scores[position..position + LANES]);
                let passing = at_least(vector, threshold);
                let chunk = compress(passing, load(&values[position..position + LANES]));
                store(&mut values[kept..kept + LANES], chunk);
                store(&mut scores[kept..kept + LANES], compress(passing, vector));
                kept += passing.count_ones() as usize;
            }
            let vector = load(&scores[whole..]);
            let passing = at_least(vector, threshold) & first_lanes(n - whole);
            let chunk = compress(passing, load(&values[whole..]));
            store(&mut values[kept..], chunk);
            store(&mut scores[kept..], compress(passing, vector));
            kept + passing.count_ones() as usize
        }
    };
}

/// Defines `largest`, by vectors of `KEY_LANES` keys. It uses these functions of the module: `load_keys` of
/// an array, `broadcast_keys`, the mask `keys_at_least(keys, pivots)`, `compress_keys(mask, keys)`,
/// `store_keys` to an array and `smaller_keys(keys, others)`.
macro_rules! select_keys {
    ($features:literal) => {
        /// Minimum number of keys that are selected by vectors. Fewer are selected by the portable loop.
        const SELECT_KEYS_MIN: usize = 48;

        /// Maximum rounds of selection. A round typically discards about half of the keys.
        const ROUNDS_MAX: usize = 48;

        /// Implements [`crate::Kernel::largest`]: quickselect.
        #[target_feature(enable = $features)]
        pub(crate) fn largest(keys: &mut [u64], k: usize, scratch: &mut Vec<u64>) -> u64 {
            select_largest(keys, k, scratch);
            smallest_key(&keys[..k])
        }

        /// The smallest key, `u64::MAX` if there are none.
        #[target_feature(enable = $features)]
        fn smallest_key(keys: &[u64]) -> u64 {
            let (chunks, rest) = keys.as_chunks::<KEY_LANES>();
            let mut smallest = broadcast_keys(u64::MAX);
            for chunk in chunks {
                smallest = smaller_keys(smallest, load_keys(chunk));
            }
            let mut lanes = [0; KEY_LANES];
            store_keys(&mut lanes, smallest);
            lanes.iter().chain(rest).copied().fold(u64::MAX, u64::min)
        }

        /// Moves the largest `k` keys to the front.
        #[target_feature(enable = $features)]
        fn select_largest(keys: &mut [u64], k: usize, scratch: &mut Vec<u64>) {
            let (mut rest, mut wanted) = (keys, k);
            if rest.len() > SELECT_KEYS_MIN && scratch.len() < rest.len() + KEY_LANES {
                scratch.resize(rest.len() + KEY_LANES, 0);
            }
            // The number of rounds is bounded; keys for which the sampled pivots are bad are left to the
            // portable algorithm.
            let mut rounds = 0;
            while rest.len() > SELECT_KEYS_MIN && rounds < ROUNDS_MAX {
                rounds += 1;
                if wanted == 0 || wanted == rest.len() {
                    return;
                }
                let upper = partition_keys(rest, sample_pivot(rest), scratch);
                if upper == rest.len() {
                    // The pivot is the smallest key; all keys may be equal.
                    break;
                }
                if upper >= wanted {
                    rest = &mut rest[..upper];
                } else {
                    (rest, wanted) = (&mut rest[upper..], wanted - upper);
                }
            }
            scalar::score::select_largest(rest, wanted);
        }

        /// The median of nine keys.
        fn sample_pivot(keys: &[u64]) -> u64 {
            let step = keys.len() / 9;
            let mut sample: [u64; 9] = std::array::from_fn(|i| keys[i * step + step / 2]);
            sample.sort_unstable();
            sample[4]
        }

        /// Moves the keys of at least `pivot` to the front and returns their number. `scratch` is longer
        /// than `keys` by at least a vector.
        #[target_feature(enable = $features)]
        fn partition_keys(keys: &mut [u64], pivot: u64, scratch: &mut [u64]) -> usize {
            let pivots = broadcast_keys(pivot);
            let (mut upper, mut lower) = (0, 0);
            let whole = keys.len() - keys.len() % KEY_LANES;
            for at in (0..whole).step_by(KEY_LANES) {
                let chunk = load_keys(keys[at..].first_chunk().expect("a whole vector"));
                let above = keys_at_least(chunk, pivots);
                let below = !above & ((1u16 << KEY_LANES) - 1) as u8;
                // The keys up to `at + KEY_LANES` have been read, and `upper` is at most `at`.
                let out = keys[upper..].first_chunk_mut().expect("space for a vector");
                store_keys(out, compress_keys(above, chunk));
                let out = scratch[lower..].first_chunk_mut().expect("space for a vector");
                store_keys(out, compress_keys(below, chunk));
                upper += above.count_ones() as usize;
                lower += KEY_LANES - above.count_ones() as usize;
            }
            for at in whole..keys.len() {
                let key = keys[at];
                if key >= pivot {
                    keys[upper] = key;
                    upper += 1;
                } else {
                    scratch[lower] = key;
                    lower += 1;
                }
            }
            keys[upper..].copy_from_slice(&scratch[..lower]);
            upper
        }
    };
}
