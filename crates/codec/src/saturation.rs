//! The score function of BM25, one value at a time: the definition that every kernel reproduces bit by bit.

/// Maximum weight: the largest `f32` below 2^31.
pub(crate) const WEIGHT_MAX: f32 = ((1_u32 << 31) as f32).next_down();

/// Rounds when it is added: an `f64` of this magnitude has no bits below 1, so a number below 2^31 that is
/// added to it is rounded to an integer, ties to even, which is in the low 32 bits of the sum.
const ROUNDING_ADDEND: f64 = 1.5 * (1_u64 << 52) as f64;

/// A lookup table from a one-byte code to a number.
pub struct CodeTable {
    numbers: [f32; 256],
    /// Byte 0 of each number, byte 1, and so on: vector instructions look up bytes where they would have to
    /// gather words.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "no vector kernel"))]
    pub(crate) planes: [[u8; 256]; 4],
}

impl CodeTable {
    /// A table of `numbers`, indexed by code.
    pub fn new(numbers: [f32; 256]) -> CodeTable {
        let byte = |plane: usize| numbers.map(|number: f32| number.to_le_bytes()[plane]);
        CodeTable { numbers, planes: std::array::from_fn(byte) }
    }

    /// The number of a code.
    #[inline]
    pub fn get(&self, code: u8) -> f32 {
        self.numbers[usize::from(code)]
    }
}

/// The parameters of the BM25 score of one term. The score of a document depends on them, on the number of
/// the document (its value) and on the frequency of the term.
#[derive(Clone, Copy)]
pub struct Saturation<'a> {
    /// Upper bound of the score before rounding, approached as the frequency grows: the caller's weight
    /// times a power of two, which decides how much is lost by rounding. Callers guarantee that it is
    /// finite, at least 0 and below 2^31. Greater weights give the scores of the largest `f32` below 2^31;
    /// negative ones and NaN give those of 0.
    pub weight: f32,
    /// `k` of each code, finite and at least 0.
    pub k: &'a CodeTable,
    /// The code of each value from 0 on.
    pub codes: &'a [u8],
}

impl Saturation<'_> {
    /// Score of one value, at least 1.
    ///
    /// # Panics
    /// If the value has no code.
    #[inline]
    pub fn score_of(&self, value: u32, frequency: u32) -> u32 {
        let f = frequency as f32;
        let score = self.weight_in_bounds() * (f / (f + self.k.get(self.codes[value as usize])));
        // See `ROUNDING_ADDEND`; `round_ties_even` is a function call where the compiler may not assume
        // SSE4.1. The low bits of 0 / 0 are 0, which gives 1.
        let rounded = (f64::from(score) + ROUNDING_ADDEND).to_bits() as i32;
        rounded.max(1) as u32
    }

    /// The weight clamped to its bounds, so that each score fits a signed integer, the type that vector
    /// instructions convert to.
    #[inline]
    #[allow(clippy::manual_clamp, reason = "NaN becomes 0")]
    pub(crate) fn weight_in_bounds(&self) -> f32 {
        self.weight.max(0.0).min(WEIGHT_MAX)
    }
}
