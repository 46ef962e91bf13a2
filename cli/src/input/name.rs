//! Display names of files: printable, and different for different paths.

use crate::messages::is_printable;
use std::{fmt::Write, path::Path};

/// The path, with each byte of invalid UTF-8, of unprintable characters and of backslashes escaped as
/// `\xNN`. So different files have different ids, and no name contains a newline.
pub(super) fn display_name(path: &Path) -> String {
    let mut name = String::new();
    for chunk in path.as_os_str().as_encoded_bytes().utf8_chunks() {
        for character in chunk.valid().chars() {
            match matches!(character, '\\' | '\u{2028}' | '\u{2029}') || !is_printable(character) {
                true => escape_bytes(character.encode_utf8(&mut [0; 4]).as_bytes(), &mut name),
                false => name.push(character),
            }
        }
        escape_bytes(chunk.invalid(), &mut name);
    }
    name
}

fn escape_bytes(bytes: &[u8], name: &mut String) {
    for byte in bytes {
        // Writing to a string does not fail.
        let _ = write!(name, "\\x{byte:02x}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{ffi::OsStr, os::unix::ffi::OsStrExt};

    #[test]
    fn display_names_are_printable_and_distinct() {
        for (name, expected) in [
            (&b"a/b.txt"[..], "a/b.txt"),
            ("Größe 漢".as_bytes(), "Größe 漢"),
            (b"a\xFF.txt", "a\\xff.txt"),
            (b"a\xFE.txt", "a\\xfe.txt"),
            (b"\xE6\xBC\xE6\xBC\xA2", "\\xe6\\xbc漢"),
            (b"\x1B[31m\n", "\\x1b[31m\\x0a"),
            ("\u{85}".as_bytes(), "\\xc2\\x85"),
            ("\u{2028}".as_bytes(), "\\xe2\\x80\\xa8"),
        ] {
            assert_eq!(display_name(Path::new(OsStr::from_bytes(name))), expected);
        }
    }
}
