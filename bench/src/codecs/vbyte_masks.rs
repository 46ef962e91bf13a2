//! The tables of Masked VByte (Plaisance, Kurz, Lemire: Vectorized VByte Decoding, section 4).
//!
//! Twelve continuation bits select a [`DecodeStep`]: how many bytes it consumes, and one of 170 byte
//! shuffles.
//!
//! 1. The next six values have at most two bytes each: 2^6 = 64 shuffles, into six cells of 16 bits.
//! 2. Else the next four have at most three bytes: 3^4 = 81 shuffles, into four cells of 32 bits.
//! 3. Else the next two have at most five bytes: 5^2 = 25 shuffles, into two cells of 64 bits: the first byte
//!    of a value goes to the last byte of its cell, the others to its bytes 0, 2, 4 and 6.
//!
//! Bits of which no case holds, because a value has more than five bytes, have a step of no bytes.

/// How the decoder decodes the next bytes, given their continuation bits.
#[derive(Clone, Copy)]
pub(super) struct DecodeStep {
    /// Bytes of the decoded values; 0 if the bytes are damaged.
    pub(super) bytes: u8,
    /// Index into [`SHUFFLE_MASKS`].
    pub(super) shuffle: u8,
}

/// Index in [`SHUFFLE_MASKS`] of the first shuffle of case 2 and of case 3 (see above), and their number in
/// all.
pub(super) const FOUR_VALUES: u8 = 64;
pub(super) const TWO_VALUES: u8 = 64 + 81;
const SHUFFLE_COUNT: usize = 64 + 81 + 25;

/// Number of continuation bits that select a step.
pub(super) const STEP_BITS: u32 = 12;

/// The step for each combination of twelve continuation bits; the lowest bit is that of the first byte.
pub(super) static DECODE_STEPS: [DecodeStep; 1 << STEP_BITS] = all_steps();

/// Masks of the instruction `pshufb`: the source offset of each result byte; 0x80 gives a zero.
pub(super) static SHUFFLE_MASKS: [[u8; 16]; SHUFFLE_COUNT] = all_shuffles();

const fn all_steps() -> [DecodeStep; 1 << STEP_BITS] {
    let mut steps = [DecodeStep { bytes: 0, shuffle: 0 }; 1 << STEP_BITS];
    let mut bits = 0;
    while bits < steps.len() {
        steps[bits] = step_of(bits);
        bits += 1;
    }
    steps
}

const fn step_of(bits: usize) -> DecodeStep {
    let cases = [(6, 2, 0), (4, 3, FOUR_VALUES), (2, 5, TWO_VALUES)];
    let mut case = 0;
    while case < cases.len() {
        let (values, most, first) = cases[case];
        if let Some((bytes, number)) = value_lengths(bits, values, most) {
            return DecodeStep { bytes, shuffle: first + number };
        }
        case += 1;
    }
    DecodeStep { bytes: 0, shuffle: 0 }
}

/// The bytes of the first `values` values, and their lengths less one as a number to the base `most`, the
/// first value in the highest digit. `None` if one of them is longer, or does not end within the bits.
const fn value_lengths(bits: usize, values: u8, most: u8) -> Option<(u8, u8)> {
    let (mut at, mut number, mut value) = (0, 0, 0);
    while value < values {
        let mut length = 1;
        while (bits >> at) & 1 == 1 {
            at += 1;
            length += 1;
        }
        at += 1;
        if length > most || at > STEP_BITS as u8 {
            return None;
        }
        number = number * most + (length - 1);
        value += 1;
    }
    Some((at, number))
}

const fn all_shuffles() -> [[u8; 16]; SHUFFLE_COUNT] {
    let mut all = [[0x80; 16]; SHUFFLE_COUNT];
    let mut index = 0;
    while index < SHUFFLE_COUNT {
        let number = index as u8;
        all[index] = if number < FOUR_VALUES {
            shuffle_of(number, 6, 2, false)
        } else if number < TWO_VALUES {
            shuffle_of(number - FOUR_VALUES, 4, 3, false)
        } else {
            shuffle_of(number - TWO_VALUES, 2, 5, true)
        };
        index += 1;
    }
    all
}

/// The shuffle of values whose lengths are the digits of `number`. `spread` selects the order of case 3.
const fn shuffle_of(number: u8, values: usize, most: u8, spread: bool) -> [u8; 16] {
    let cell = if values == 6 { 2 } else { 16 / values };
    let (mut shuffle, mut from, mut value) = ([0x80; 16], 0, 0);
    while value < values {
        let mut digits = number;
        let mut lower = values - 1 - value;
        while lower > 0 {
            digits /= most;
            lower -= 1;
        }
        let length = (digits % most + 1) as usize;
        let mut byte = 0;
        while byte < length {
            let to = match (spread, byte) {
                (false, byte) => byte,
                (true, 0) => 7,
                (true, byte) => 2 * (byte - 1),
            };
            shuffle[value * cell + to] = from;
            from += 1;
            byte += 1;
        }
        value += 1;
    }
    shuffle
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cases_have_the_numbers_of_the_paper() {
        let count = |shuffles: std::ops::Range<u8>| {
            DECODE_STEPS.iter().filter(|step| step.bytes > 0 && shuffles.contains(&step.shuffle)).count()
        };
        // Steps of each case, and damaged ones.
        let (six, four, two) = (count(0..64), count(64..145), count(145..170));
        assert_eq!((six, four), (729, 1672));
        assert!(two > 1000 && six + four + two < 4096);
        for shuffle in 0..170u8 {
            assert!(DECODE_STEPS.iter().any(|step| step.bytes > 0 && step.shuffle == shuffle), "{shuffle}");
        }
    }

    #[test]
    fn a_step_consumes_the_bytes_of_its_shuffle() {
        for step in DECODE_STEPS.iter().filter(|step| step.bytes > 0) {
            let shuffle = SHUFFLE_MASKS[usize::from(step.shuffle)];
            let mut from: Vec<u8> = shuffle.into_iter().filter(|byte| *byte != 0x80).collect();
            from.sort_unstable();
            assert_eq!(from, (0..step.bytes).collect::<Vec<_>>());
        }
    }

    #[test]
    fn steps_of_some_continuation_bits() {
        // Six values of one byte; lengths 2, 1, 1, 1, 1, 1; a value of six bytes.
        let found = [0, 1, 0b11_1110].map(|bits| (DECODE_STEPS[bits].bytes, DECODE_STEPS[bits].shuffle));
        assert_eq!(found[..2], [(6, 0), (7, 32)]);
        assert_eq!(DECODE_STEPS[0b1_1111].bytes, 0);
        // Lengths 1 and 5 bytes need more than six bits, which follow: 1 + 6 is too long.
        assert_eq!(found[2].0, 0);
    }
}
