//! Recognises files that are not text by their first bytes, and names the command that makes them readable.

use super::open::Compression;

/// Number of first bytes that are inspected: up to and including the magic number of a tar archive.
pub(super) const INSPECTED_BYTES: u64 = 300;

/// Offset of the magic number in a tar archive.
const TAR_MAGIC_OFFSET: usize = 257;

/// Offset of the name of the first entry in a ZIP archive.
const ZIP_NAME_OFFSET: usize = 30;

/// First bytes of a file, what such a file is, and the command that converts it; `FILE` stands for its name.
const MAGIC_NUMBERS: &[(&[u8], &str, &str)] = &[
    (b"\xFD7zXZ\0", "a file compressed by xz", "decompress it with `unxz FILE`"),
    (b"\x04\x22\x4D\x18", "a file compressed by lz4", "decompress it with `unlz4 FILE`"),
    (b"\x1F\x9D", "a file compressed by compress", "decompress it with `uncompress FILE`"),
    (b"7z\xBC\xAF\x27\x1C", "a 7z archive", "unpack it with `7z x FILE`"),
    (b"Rar!\x1A\x07", "a RAR archive", "unpack it with `unrar x FILE`"),
    (b"Obj\x01", "an Avro file", "write its rows as JSON lines with `avro-tools tojson FILE`"),
    (b"ORC", "an ORC file", "write its rows as JSON lines"),
    (
        b"SQLite format 3\0",
        "an SQLite database",
        "write its rows as JSON lines, or as TSV with `sqlite3 -tabs`",
    ),
    (b"%PDF-", "a PDF document", "convert it to text with `pdftotext FILE`"),
    (b"{\\rtf", "an RTF document", "convert it to text with `pandoc -t plain FILE`"),
    (
        b"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1",
        "an Office document",
        "convert it to text with `soffice --headless --convert-to txt FILE`",
    ),
];

/// Names of the first entry in ZIP archives that are documents, such as EPUB.
const ZIP_DOCUMENT_ENTRIES: &[&[u8]] =
    &[b"[Content_Types].xml", b"_rels/", b"docProps/", b"word/", b"xl/", b"ppt/", b"mimetypeapplication/"];

/// What a file is and what to do with it, for a file that begins with `head` after decompression. `None` if
/// it may be text.
pub(super) fn advise_conversion(head: &[u8], name: &str, compression: Compression) -> Option<String> {
    let (kind, advice) = recognise_kind(head)?;
    let packed = match compression {
        Compression::Plain => String::new(),
        packed => format!(" compressed by {packed}"),
    };
    Some(format!("{kind}{packed}; {}", advice.replace("FILE", name)))
}

fn recognise_kind(head: &[u8]) -> Option<(&'static str, &'static str)> {
    if let Some((_, kind, advice)) = MAGIC_NUMBERS.iter().find(|(magic, ..)| head.starts_with(magic)) {
        // Three letters could begin a text.
        return (kind != &"an ORC file" || head.contains(&0)).then_some((*kind, *advice));
    }
    let zip_name = head.get(ZIP_NAME_OFFSET..).unwrap_or_default();
    match head {
        [b'B', b'Z', b'h', b'1'..=b'9', 0x31, 0x41, 0x59, 0x26, ..] => {
            Some(("a file compressed by bzip2", "decompress it with `bunzip2 FILE`"))
        }
        [b'P', b'K', 3, 4, ..] if ZIP_DOCUMENT_ENTRIES.iter().any(|start| zip_name.starts_with(start)) => {
            Some(("an Office document or e-book", "convert it to text with `pandoc -t plain FILE`"))
        }
        [b'P', b'K', 3 | 5, 4 | 6, ..] => {
            Some(("a ZIP archive", "unpack it with `unzip FILE -d FOLDER` and index the folder"))
        }
        _ if head.get(TAR_MAGIC_OFFSET..).is_some_and(|magic| magic.starts_with(b"ustar")) => {
            Some(("a tar archive", "unpack it with `tar xf FILE` and index the folder"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_named_with_the_command_that_makes_them_readable() {
        let mut tar = vec![b'a'; 300];
        tar[TAR_MAGIC_OFFSET..TAR_MAGIC_OFFSET + 5].copy_from_slice(b"ustar");
        let zip = |entry: &str| [b"PK\x03\x04", &[0; 26][..], entry.as_bytes()].concat();
        for (head, compression, expected) in [
            (tar, Compression::Gzip, "a tar archive compressed by gzip; unpack it with `tar xf f` and"),
            (zip("a.txt"), Compression::Plain, "a ZIP archive; unpack it with `unzip f -d FOLDER` and"),
            (zip("word/document.xml"), Compression::Plain, "an Office document or e-book; convert"),
            (
                b"BZh91AY&SY".to_vec(),
                Compression::Plain,
                "a file compressed by bzip2; decompress it with `bunzip2 f`",
            ),
            (b"\xFD7zXZ\0\0".to_vec(), Compression::Plain, "a file compressed by xz; "),
            (
                b"%PDF-1.7".to_vec(),
                Compression::Plain,
                "a PDF document; convert it to text with `pdftotext f`",
            ),
            (b"ORC\x0a\0".to_vec(), Compression::Plain, "an ORC file; "),
        ] {
            let found = advise_conversion(&head, "f", compression).unwrap();
            assert!(found.starts_with(expected), "{found}");
        }
        for text in [&b""[..], b"ORC", b"PARIS", b"BZh9 text", b"PK", b"%", b"{}", &[b'a'; 300]] {
            assert_eq!(advise_conversion(text, "f", Compression::Plain), None, "{text:?}");
        }
    }
}
