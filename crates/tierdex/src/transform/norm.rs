//! Document lengths in one byte.
//!
//! | codes | lengths | step |
//! |---|---|---|
//! | 0 ..= 31 | 0 ..= 31 | exact |
//! | 32 ..= 175 | 32 ..= 16,383 | 16 steps an octave |
//! | 176 ..= 247 | 16,384 ..= 2^32 - 1 | 4 steps an octave |
//!
//! A code stands for all lengths from its floor to the next code's floor; ranking takes the middle of them. A
//! smaller code never stands for a longer document, so impacts compare codes.

/// Codes in use.
pub const CODES: usize = 248;

const FLOORS: [u32; CODES] = floors();

const fn floors() -> [u32; CODES] {
    let mut floors = [0u32; CODES];
    let mut code = 0;
    while code < 32 {
        floors[code] = code as u32;
        code += 1;
    }
    let mut octave = 5;
    while octave < 32 {
        let steps: u64 = if octave < 14 { 16 } else { 4 };
        let mut step = 0;
        while step < steps {
            floors[code] = ((1u64 << octave) + ((1u64 << octave) / steps) * step) as u32;
            code += 1;
            step += 1;
        }
        octave += 1;
    }
    assert!(code == CODES);
    floors
}

/// Code of a document of `length` tokens.
pub fn encode(length: u32) -> u8 {
    (FLOORS.partition_point(|&floor| floor <= length) - 1) as u8
}

/// Shortest length that `code` stands for. Codes that are not in use count as the last one.
pub fn floor(code: u8) -> u32 {
    FLOORS[usize::from(code).min(CODES - 1)]
}

/// Length that ranking uses for `code`: the middle of those it stands for.
pub fn length(code: u8) -> f32 {
    let code = usize::from(code).min(CODES - 1);
    let ceiling = match FLOORS.get(code + 1) {
        Some(&next) => f64::from(next) - 1.0,
        None => f64::from(u32::MAX),
    };
    ((f64::from(FLOORS[code]) + ceiling) / 2.0) as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_monotone_and_close() {
        assert!(FLOORS.is_sorted_by(|a, b| a < b));
        assert_eq!((FLOORS[175], FLOORS[176]), (15_872, 16_384));
        for code in 0..CODES as u8 {
            assert_eq!(encode(floor(code)), code);
            assert!(code == 0 || encode(floor(code) - 1) == code - 1);
        }
        for exact in 0..32 {
            assert_eq!(length(encode(exact)), exact as f32);
        }
        for len in (32..16_384).chain([1 << 20, u32::MAX]) {
            let error = (length(encode(len)) - len as f32).abs() / len as f32;
            assert!(error < if len < 16_384 { 1.0 / 32.0 } else { 0.13 }, "{len}: {error}");
        }
    }
}
