//! Code that is the same for all vector widths of x86-64, as macros.
//!
//! The macros define functions and types in the module that expands them, with the instruction sets of that
//! module. They use these names of the module: `Vector`, `LANES`, `add`, `or` and `broadcast` for the
//! vectors and their operations, and those that the documentation of a macro lists.

#[macro_use]
mod filters;

use core::ops::Range;

/// Defines `$name(bytes.., after, out)`, which decodes values, or their prefix sums if there is an `after`,
/// by `decode_values::<SUM>(bytes.., prev, out)`.
macro_rules! decode_or_sum {
    ($(#[$doc:meta])* $features:literal, fn $name:ident($($bytes:ident),*) -> $result:ty) => {
        $(#[$doc])*
        #[target_feature(enable = $features)]
        pub(crate) fn $name($($bytes: &[u8],)* after: Option<u32>, out: &mut [u32]) -> $result {
            match after {
                Some(prev) => decode_values::<true>($($bytes,)* prev, out),
                None => decode_values::<false>($($bytes,)* 0, out),
            }
        }
    };
}

/// Defines `PrefixSums`, by two methods of `PrefixSumConstants`: `inclusive` computes the prefix sums within
/// a vector, `last` broadcasts its last value. `PrefixSumConstants` are the constants of both, made once for
/// all vectors.
macro_rules! prefix_sums {
    ($features:literal) => {
        /// Computes prefix sums of a sequence of vectors.
        #[derive(Clone, Copy)]
        pub(super) struct PrefixSums {
            steps: PrefixSumConstants,
            /// The sum of all values so far, in every lane.
            sum: Vector,
        }

        impl PrefixSums {
            /// The value before the first one is `prev`.
            #[inline]
            #[target_feature(enable = $features)]
            pub(super) fn after(prev: u32) -> PrefixSums {
                PrefixSums { steps: PrefixSumConstants::new(), sum: broadcast(prev as i32) }
            }

            /// The prefix sums of the next vector. The dependency chain between calls is a single addition:
            /// the total of the vector is broadcast before it is added to the sum so far.
            #[inline]
            #[target_feature(enable = $features)]
            pub(super) fn next(&mut self, values: Vector) -> Vector {
                let own = self.steps.inclusive(values);
                let sums = add(own, self.sum);
                self.sum = add(self.sum, self.steps.last(own));
                sums
            }
        }
    };
}

/// Defines `unpack`, by `unpack_vertical::<W, SIZE, SUM>(packed, highs, out)` for a block of 256 values in
/// the vertical layout and `unpack_horizontal::<SIZE, SUM>(packed, highs, out)` for any other. Both end with
/// the steps of `FinishingSteps`, which uses `PrefixSums`, `HighPartCursor` and `shift_left`. `highs` is a
/// `HighPartBuffer` with the high parts that are unpacked before the values.
macro_rules! unpack_by_form {
    ($features:literal) => {
        /// Implements [`crate::Kernel::unpack`].
        #[target_feature(enable = $features)]
        pub(crate) fn unpack(packed: &Packed, out: &mut [u32]) {
            match (size::size_of_high_parts(&packed.patch), packed.after.is_some()) {
                (SIZE_NONE, false) => unpack_as::<SIZE_NONE, false>(packed, out),
                (SIZE_NONE, true) => unpack_as::<SIZE_NONE, true>(packed, out),
                (SIZE_BYTES, false) => unpack_as::<SIZE_BYTES, false>(packed, out),
                (SIZE_BYTES, true) => unpack_as::<SIZE_BYTES, true>(packed, out),
                (_, false) => unpack_as::<SIZE_WORDS, false>(packed, out),
                (_, true) => unpack_as::<SIZE_WORDS, true>(packed, out),
            }
        }

        #[inline]
        #[target_feature(enable = $features)]
        fn unpack_as<const SIZE: HighPartSize, const SUM: bool>(packed: &Packed, out: &mut [u32]) {
            let mut highs = HighPartBuffer::new();
            if let Some(patch) = &packed.patch {
                highs.prepare::<SIZE>(patch);
            }
            match (packed.layout, <&mut [u32; BLOCK]>::try_from(&mut *out)) {
                (Layout::Vertical, Ok(block)) => {
                    let unpack = VerticalUnpackers::<SIZE, SUM>::UNPACK_FUNCTIONS[packed.width as usize];
                    // SAFETY: The CPU has the instructions of this function, and those of the table need no
                    // more. The caller has checked that there are 32 * width bytes.
                    unsafe { unpack(packed, &highs, block) }
                }
                _ => unpack_horizontal::<SIZE, SUM>(packed, &highs, out),
            }
        }

        /// Unpacks 256 values from `32 * W` bytes; unsafe because it does not check that there are as many.
        type UnpackFunction = unsafe fn(&Packed, &HighPartBuffer, &mut [u32; BLOCK]);

        /// One function per width, so that the words and shifts of each row are constants.
        struct VerticalUnpackers<const SIZE: HighPartSize, const SUM: bool>;

        impl<const SIZE: HighPartSize, const SUM: bool> VerticalUnpackers<SIZE, SUM> {
            const UNPACK_FUNCTIONS: [UnpackFunction; 33] = by_width!(unpack_vertical, SIZE, SUM);
        }

        /// The steps after unpacking: exceptions and prefix sums.
        struct FinishingSteps<'a> {
            highs: HighPartCursor<'a>,
            /// The shift of high parts above the low parts.
            shift: __m128i,
            sums: PrefixSums,
        }

        impl<'a> FinishingSteps<'a> {
            #[inline]
            #[target_feature(enable = $features)]
            fn new(packed: &Packed<'a>, highs: &'a HighPartBuffer) -> FinishingSteps<'a> {
                let shift = _mm_cvtsi32_si128(packed.width as i32);
                FinishingSteps {
                    highs: HighPartCursor::new(packed.patch, highs),
                    shift,
                    sums: PrefixSums::after(packed.after.unwrap_or(0)),
                }
            }

            /// Called once for each of the up to `256 / LANES` groups, in order.
            #[inline]
            #[target_feature(enable = $features)]
            fn apply<const SIZE: HighPartSize, const SUM: bool>(
                &mut self,
                mut values: Vector,
                group: usize,
            ) -> Vector {
                if SIZE != SIZE_NONE {
                    // SAFETY: Called once for each group, and the buffer was filled for this size.
                    let highs = unsafe { self.highs.next::<SIZE>(group) };
                    values = or(values, shift_left(highs, self.shift));
                }
                if SUM {
                    values = self.sums.next(add(values, broadcast(1)));
                }
                values
            }
        }

        /// The `width` lowest bits of every lane.
        #[inline]
        #[target_feature(enable = $features)]
        fn low_bits(width: u32) -> Vector {
            broadcast(((1u64 << width) - 1) as u32 as i32)
        }
    };
}

/// Defines `pfor_decode`, which decodes a block by `exception_bitmap` and `unpack`, both inlined.
macro_rules! pfor_decode {
    ($features:literal) => {
        /// Implements [`crate::Kernel::pfor_decode`].
        #[target_feature(enable = $features)]
        pub(crate) fn pfor_decode(
            bytes: &[u8],
            layout: Layout,
            after: Option<u32>,
            out: &mut [u32],
        ) -> Result<usize> {
            read::decode(InlinedLoops, bytes, layout, after, out)
        }

        /// A value is made only where the CPU has the instructions of `pfor_decode`.
        #[derive(Clone, Copy)]
        struct InlinedLoops;

        impl PforLoops for InlinedLoops {
            #[inline(always)]
            fn read_exception_bitmap(
                self,
                bytes: &[u8],
                bitmap_len: usize,
                sparse: bool,
                bitmap: &mut Bitmap,
            ) -> Option<StoredBitmap> {
                assert!(bitmap_len <= bitmap.len());
                // SAFETY: The CPU has the instructions, and the bitmap is not too long.
                unsafe { read_exception_bitmap(bytes, bitmap_len, sparse, bitmap) }
            }

            #[inline(always)]
            fn unpack(self, packed: &Packed, out: &mut [u32]) {
                packed.assert_consistent(out.len());
                // SAFETY: The CPU has the instructions, the widths are valid, and the lengths match.
                unsafe { unpack(packed, out) }
            }
        }
    };
}

/// The positions of the values of `few` that may be in `many`: groups of `L` values that end before the first
/// value of `many`, or start after its last one, are left out. `many` is not empty.
#[inline(always)]
pub(super) fn overlapping_range<const L: usize>(few: &[u32], many: &[u32]) -> Range<usize> {
    let (least, most) = (many[0], many[many.len() - 1]);
    let (mut start, mut end) = (0, few.len());
    while end >= start + L && few[start + L - 1] < least {
        start += L;
    }
    while end > start + L && few[end - L] > most {
        end -= L;
    }
    start..end
}

/// The shuffle of bytes to lanes, and the shift of each lane, that unpack one width of the horizontal
/// layout.
pub(super) struct UnpackShuffle<const SIZE_BYTES: usize, const LANES: usize> {
    /// For each lane the four bytes from the first byte of its value on.
    pub(super) bytes: [u8; SIZE_BYTES],
    /// For each lane, in its first byte in `bytes`, the bit at which the value starts.
    pub(super) shifts: [u32; LANES],
}

impl<const SIZE_BYTES: usize, const LANES: usize> UnpackShuffle<SIZE_BYTES, LANES> {
    /// The shuffles of the widths from 0 on. Each `together` lanes are shuffled from bytes of their own,
    /// which start with those of their first value.
    pub(super) const fn of_widths<const WIDTHS: usize>(together: usize) -> [Self; WIDTHS] {
        let mut all = [const { UnpackShuffle { bytes: [0; SIZE_BYTES], shifts: [0; LANES] } }; WIDTHS];
        let mut k = 0;
        while k < WIDTHS * LANES {
            let (width, lane) = (k / LANES, k % LANES);
            let bit = width * lane - width * (lane - lane % together) / 8 * 8;
            all[width].shifts[lane] = bit as u32 % 8;
            let mut byte = 0;
            while byte < 4 {
                all[width].bytes[4 * lane + byte] = (bit / 8 + byte) as u8;
                byte += 1;
            }
            k += 1;
        }
        all
    }
}
