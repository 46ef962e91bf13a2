//! Sizes as users type and read them.

/// Reads `4096`, `512K`, `256M`, `1G`, `2T` (powers of 1,024).
pub fn parse(text: &str) -> Result<usize, String> {
    let problem = || format!("`{text}` is not a size; write bytes, or a number with K, M, G or T behind it");
    let (digits, unit) = match text.strip_suffix(['B', 'b']).unwrap_or(text) {
        rest if rest.ends_with(|c: char| c.is_ascii_digit()) => (rest, 0),
        rest => {
            let unit = rest.chars().next_back().ok_or_else(problem)?;
            let power = "KMGT".find(unit.to_ascii_uppercase()).ok_or_else(problem)?;
            (&rest[..rest.len() - unit.len_utf8()], power + 1)
        }
    };
    let number: usize = digits.parse().map_err(|_| problem())?;
    number.checked_mul(1usize << (10 * unit)).ok_or_else(|| format!("`{text}` is too large"))
}

/// Bytes with a fitting unit: `13.2 MB` (powers of 1,000).
pub fn show(bytes: u64) -> String {
    let mut value = bytes as f64;
    for unit in ["B", "kB", "MB", "GB", "TB"] {
        if value < 1000.0 || unit == "TB" {
            return if unit == "B" { format!("{bytes} B") } else { format!("{value:.1} {unit}") };
        }
        value /= 1000.0;
    }
    unreachable!("the last unit returns")
}

/// A number with commas between groups of three digits.
pub fn group(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_and_shown() {
        assert_eq!(parse("4096"), Ok(4096));
        assert_eq!(parse("256M"), Ok(256 << 20));
        assert_eq!(parse("1g"), Ok(1 << 30));
        assert_eq!(parse("2KB"), Ok(2048));
        for wrong in ["", "M", "1.5G", "-1", "1X", "99999999999T", "é"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        assert_eq!(show(999), "999 B");
        assert_eq!(show(450_000_000), "450.0 MB");
        assert_eq!(group(1_234_567), "1,234,567");
        assert_eq!(group(12), "12");
    }
}
