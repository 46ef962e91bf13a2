//! Norms: document lengths in one byte.
//!
//! | codes | lengths | steps per octave | relative error at most |
//! |---|---|---|---|
//! | 0 ..= 127 | 0 ..= 127 | exact | 0 |
//! | 128 ..= 191 | 128 ..= 511 | 32 | 1/64 |
//! | 192 ..= 207 | 512 ..= 1,023 | 16 | 1/32 |
//! | 208 ..= 223 | 1,024 ..= 4,095 | 8 | 1/16 |
//! | 224 ..= 231 | 4,096 ..= 16,383 | 4 | 1/8 |
//! | 232 ..= 253 | 16,384 ..= 2^25 - 1 | 2 | 1/4 |
//! | 254 | 2^25 and more | | |
//!
//! A code represents all lengths from its floor up to the floor of the next code; scores are computed with
//! their midpoint. Codes increase with the length, so that impacts can compare codes. Steps are finest for
//! short documents, where one token more or less changes the order of hits.

/// Number of codes.
pub const NORM_CODES: usize = 255;

/// Ranges of octaves (7: from 2^7 up to 2^8), and the number of codes of each octave.
const OCTAVE_STEPS: &[(std::ops::Range<u32>, u32)] =
    &[(7..9, 32), (9..10, 16), (10..12, 8), (12..14, 4), (14..25, 2), (25..26, 1)];

/// The smallest length of each code.
const CODE_FLOORS: [u32; NORM_CODES] = compute_floors();

const fn compute_floors() -> [u32; NORM_CODES] {
    let mut floors = [0u32; NORM_CODES];
    let mut code = 0;
    while code < 128 {
        floors[code] = code as u32;
        code += 1;
    }
    let mut i = 0;
    while i < OCTAVE_STEPS.len() {
        let (octaves, steps) = (&OCTAVE_STEPS[i].0, OCTAVE_STEPS[i].1);
        let mut octave = octaves.start;
        while octave < octaves.end {
            let mut step = 0;
            while step < steps {
                floors[code] = (1 << octave) + ((1 << octave) / steps) * step;
                code += 1;
                step += 1;
            }
            octave += 1;
        }
        i += 1;
    }
    assert!(code == NORM_CODES);
    floors
}

/// The code of a document of `length` tokens.
pub fn encode(length: u32) -> u8 {
    (CODE_FLOORS.partition_point(|&floor| floor <= length) - 1) as u8
}

/// The smallest length of `code`. A code that is not used is treated as the last one.
pub fn floor(code: u8) -> u32 {
    CODE_FLOORS[usize::from(code).min(NORM_CODES - 1)]
}

/// The largest length of `code`.
pub fn ceiling(code: u8) -> u32 {
    CODE_FLOORS.get(usize::from(code) + 1).map_or(u32::MAX, |next| next - 1)
}

/// The length with which scores are computed for `code`: the midpoint of its lengths; for the last code, its
/// floor.
pub fn length(code: u8) -> f32 {
    let code = usize::from(code).min(NORM_CODES - 1);
    let floor = f64::from(CODE_FLOORS[code]);
    let ceiling = CODE_FLOORS.get(code + 1).map_or(floor, |&next| f64::from(next) - 1.0);
    ((floor + ceiling) / 2.0) as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_monotone_and_close() {
        assert!(CODE_FLOORS.is_sorted_by(|a, b| a < b));
        for code in 0..NORM_CODES as u8 {
            assert_eq!(encode(floor(code)), code);
            assert!(code == 0 || encode(floor(code) - 1) == code - 1);
        }
        for (lengths, most) in [
            (0..128, 0.0),
            (128..512, 1.0 / 64.0),
            (512..1024, 1.0 / 32.0),
            (1024..4096, 1.0 / 16.0),
            (4096..16_384, 1.0 / 8.0),
            (16_384..40_000, 1.0 / 4.0),
        ] {
            for exact in lengths {
                let off = (length(encode(exact)) - exact as f32).abs();
                assert!(off <= most * exact as f32, "{exact}: {off}");
            }
        }
        assert_eq!(encode(u32::MAX), 254);
    }
}
