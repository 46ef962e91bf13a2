//! Parses and formats sizes and counts.

use tierdex::io::Size;

/// Parses `4096`, `512K`, `256M`, `1G`, `2T` (powers of 1,024).
pub fn parse_size(text: &str) -> Result<usize, String> {
    if let Ok(Size::Bytes(bytes)) = text.parse()
        && let Ok(bytes) = usize::try_from(bytes)
    {
        return Ok(bytes);
    }
    let number = text.strip_suffix(|c: char| "KMGTkmgt".contains(c)).unwrap_or(text);
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    Err(match number.trim_start_matches('0') {
        "" if is_number => "too small: a size is at least 1 byte".to_string(),
        _ if is_number => format!("too large: a size is at most {} bytes", usize::MAX),
        _ => format!("`{text}` is not a size; write bytes, or a number followed by K, M, G or T"),
    })
}

/// Formats bytes with a unit: `13.2 MiB` (powers of 1,024, as the flags take them).
pub fn show_bytes(bytes: u64) -> String {
    let mut value = bytes as f64;
    for unit in ["B", "KiB", "MiB", "GiB", "TiB"] {
        if value < 1024.0 || unit == "TiB" {
            return if unit == "B" { format!("{bytes} B") } else { format!("{value:.1} {unit}") };
        }
        value /= 1024.0;
    }
    unreachable!("the last unit returns")
}

/// Formats bytes as flags take them: `64M`, `1000`.
pub fn bytes_as_flag(bytes: u64) -> String {
    Size::Bytes(bytes).to_string()
}

/// Formats a throughput in MiB per second: `98.5 MiB/s`.
pub fn show_throughput(bytes: u64, seconds: f64) -> String {
    format!("{:.1} MiB/s", bytes as f64 / f64::from(1 << 20) / seconds.max(1e-9))
}

/// Formats a number with commas between groups of three digits.
pub fn show_number(number: u64) -> String {
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

/// Formats a number with its noun: `1 query`, `2,000 queries`.
pub fn show_count(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", show_number(number), if number == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_counts_are_parsed_and_formatted() {
        assert_eq!(parse_size("4096"), Ok(4096));
        assert_eq!(parse_size("256M"), Ok(256 << 20));
        assert_eq!(parse_size("1g"), Ok(1 << 30));
        for wrong in ["", "0", "M", "1.5G", "-1", "1X", "2KB", "10%", "99999999999T", "é"] {
            assert!(parse_size(wrong).is_err(), "{wrong}");
        }
        for (wrong, message) in
            [("0", "small"), ("00K", "small"), ("99999999999T", "large"), ("9999999999999999999999", "large")]
        {
            assert!(parse_size(wrong).unwrap_err().contains(message), "{wrong}");
        }
        for wrong in ["", "M", "1.5G", "0.5", "10%"] {
            assert!(parse_size(wrong).unwrap_err().contains("is not a size"), "{wrong}");
        }
        assert_eq!(show_bytes(999), "999 B");
        assert_eq!((show_bytes(1023), show_bytes(1024)), ("1023 B".to_string(), "1.0 KiB".to_string()));
        assert_eq!(show_bytes(64 << 20), "64.0 MiB");
        assert_eq!((bytes_as_flag(64 << 20), bytes_as_flag(1000)), ("64M".to_string(), "1000".to_string()));
        assert_eq!(show_number(1_234_567), "1,234,567");
        assert_eq!(show_number(12), "12");
        assert_eq!(show_count(1, "query", "queries"), "1 query");
        assert_eq!(show_count(2000, "query", "queries"), "2,000 queries");
    }
}
