//! Offsets of the parts of a sealed file, and the encoding of its header and footer.

use super::identity::{Identity, Seal};
use crc32c::crc32c;

/// Bytes of a page, the unit of checksums and of reads.
pub const PAGE: u64 = 4096;

/// The length of the header in bytes, which is also the file offset of the payload.
pub const HEADER_LEN: u64 = 64;

/// The version of the file format that this program writes.
pub const FORMAT_VERSION: u16 = 9;

/// The oldest version that this program reads.
pub const FORMAT_VERSION_MIN: u16 = 6;

/// The length of the footer in bytes.
pub(super) const FOOTER_LEN: u64 = 64;

/// Bytes of an entry of the page table and of the top table: one CRC-32C.
pub(super) const ENTRY_LEN: u64 = 4;

/// Entries of a group of the page table. A group has one entry in the top table and is one page long.
pub(super) const GROUP_ENTRIES: u64 = PAGE / ENTRY_LEN;

const HEADER_MAGIC: &[u8; 8] = b"TIERDEX\n";
const FOOTER_MAGIC: &[u8; 8] = b"XEDREIT\n";

/// Offset of the footer's own checksum in the footer.
const FOOTER_CRC: usize = FOOTER_LEN as usize - 4;

/// The bytes of a header or of a footer.
pub(super) type EndBlock = [u8; 64];

const _: () = assert!(HEADER_LEN == FOOTER_LEN && size_of::<EndBlock>() as u64 == HEADER_LEN);

/// File offsets of the parts of a sealed file. They follow from the length of the payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EnvelopeLayout {
    /// The end of the payload and offset of the page table.
    pub(super) payload_end: u64,
    /// Number of entries of the page table.
    pub(super) pages: u64,
    /// Number of entries of the top table.
    pub(super) groups: u64,
    /// Offset of the top table.
    pub(super) top_start: u64,
    /// Offset of the footer.
    pub(super) footer_start: u64,
    /// The length of the whole file.
    pub(super) file_len: u64,
}

impl EnvelopeLayout {
    /// The layout of a file whose payload ends at this file offset. `None` when the payload would end inside
    /// the header, or the file would exceed 2^64 bytes.
    pub(super) fn of(payload_end: u64) -> Option<EnvelopeLayout> {
        if payload_end < HEADER_LEN {
            return None;
        }
        let pages = payload_end.div_ceil(PAGE);
        let groups = pages.div_ceil(GROUP_ENTRIES);
        let top_start = payload_end.checked_add(pages.checked_mul(ENTRY_LEN)?)?;
        let footer_start = top_start.checked_add(groups.checked_mul(ENTRY_LEN)?)?;
        let file_len = footer_start.checked_add(FOOTER_LEN)?;
        Some(EnvelopeLayout { payload_end, pages, groups, top_start, footer_start, file_len })
    }

    /// The file offsets of group `number` of the page table.
    pub(super) fn group(&self, number: u64) -> std::ops::Range<u64> {
        let end = self.pages.min((number + 1) * GROUP_ENTRIES);
        self.payload_end + number * GROUP_ENTRIES * ENTRY_LEN..self.payload_end + end * ENTRY_LEN
    }
}

/// A decoded footer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Footer {
    pub(super) version: u16,
    pub(super) layout: EnvelopeLayout,
    pub(super) top_crc: u32,
    pub(super) seal: Seal,
}

/// Why a footer is rejected.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FooterError {
    /// The footer is missing or its bytes were changed; the reason, for the message.
    Damaged(String),
    /// The footer is intact but has a version of the format that this program does not read.
    Version(u16),
}

/// Encodes the header of a file.
pub(super) fn encode_header(identity: Identity, version: u16) -> EndBlock {
    encode_start(HEADER_MAGIC, identity, version)
}

/// Encodes the footer of a file. Returns it with the seal of the file.
pub(super) fn encode_footer(
    identity: Identity,
    version: u16,
    layout: EnvelopeLayout,
    top_crc: u32,
) -> (EndBlock, Seal) {
    let mut bytes = encode_start(FOOTER_MAGIC, identity, version);
    bytes[20..28].copy_from_slice(&layout.payload_end.to_le_bytes());
    bytes[28..32].copy_from_slice(&top_crc.to_le_bytes());
    let crc = crc32c(&bytes[..FOOTER_CRC]);
    bytes[FOOTER_CRC..].copy_from_slice(&crc.to_le_bytes());
    (bytes, Seal { len: layout.file_len, crc })
}

/// Decodes a footer and checks it against the identity and the length of the file.
pub(super) fn decode_footer(
    bytes: &EndBlock,
    identity: Identity,
    file_len: u64,
) -> Result<Footer, FooterError> {
    let crc = u32_at(bytes, FOOTER_CRC);
    if bytes[..8] != *FOOTER_MAGIC {
        return damaged_footer("there is no footer: the file is cut short, or of another kind");
    }
    if crc32c(&bytes[..FOOTER_CRC]) != crc {
        return damaged_footer("the footer's checksum does not match");
    }
    let version = u16::from_le_bytes([bytes[8], bytes[9]]);
    if !(FORMAT_VERSION_MIN..=FORMAT_VERSION).contains(&version) {
        return Err(FooterError::Version(version));
    }
    let Some(layout) = EnvelopeLayout::of(u64_at(bytes, 20)).filter(|layout| layout.file_len == file_len)
    else {
        return damaged_footer("the footer tells another length than the file has");
    };
    let top_crc = u32_at(bytes, 28);
    // All bytes of a footer follow from these fields, so it must equal the footer that a writer encodes.
    let (expected, seal) = encode_footer(identity, version, layout, top_crc);
    if bytes[..20] != expected[..20] {
        let (found, expected) = (describe_identity(bytes), describe_identity(&expected));
        return damaged_footer(&format!("it is {found}, not {expected}"));
    }
    if *bytes != expected {
        return damaged_footer("the footer's padding is not zero");
    }
    Ok(Footer { version, layout, top_crc, seal })
}

/// Decodes the entries of a page table or of a top table.
pub(super) fn decode_entries(bytes: &[u8]) -> Box<[u32]> {
    let (entries, _) = bytes.as_chunks::<{ ENTRY_LEN as usize }>();
    entries.iter().map(|entry| u32::from_le_bytes(*entry)).collect()
}

/// Encodes the part that header and footer have in common.
fn encode_start(magic: &[u8; 8], identity: Identity, version: u16) -> EndBlock {
    let mut bytes = [0; 64];
    bytes[..8].copy_from_slice(magic);
    bytes[8..10].copy_from_slice(&version.to_le_bytes());
    bytes[10] = identity.kind;
    bytes[11] = identity.field;
    bytes[12..20].copy_from_slice(&identity.segment.to_le_bytes());
    bytes
}

fn describe_identity(end: &EndBlock) -> String {
    format!("kind {} field {} segment {}", end[10], end[11], u64_at(end, 12))
}

fn damaged_footer(detail: &str) -> Result<Footer, FooterError> {
    Err(FooterError::Damaged(detail.to_owned()))
}

fn u32_at(bytes: &EndBlock, at: usize) -> u32 {
    u32::from_le_bytes(std::array::from_fn(|i| bytes[at + i]))
}

fn u64_at(bytes: &EndBlock, at: usize) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDENTITY: Identity = Identity { kind: 3, field: 1, segment: 77 };

    #[test]
    fn the_layout_follows_from_the_end_of_the_payload() {
        let layout = EnvelopeLayout::of(HEADER_LEN).unwrap();
        assert_eq!((layout.pages, layout.groups, layout.file_len), (1, 1, 64 + 4 + 4 + 64));
        let full_group = EnvelopeLayout::of(GROUP_ENTRIES * PAGE).unwrap();
        assert_eq!((full_group.pages, full_group.groups), (1024, 1));
        let one_more = EnvelopeLayout::of(GROUP_ENTRIES * PAGE + 1).unwrap();
        assert_eq!((one_more.pages, one_more.groups), (1025, 2));
        assert_eq!(one_more.group(1).end, one_more.top_start);
        assert_eq!(one_more.group(1).end - one_more.group(1).start, ENTRY_LEN);
    }

    #[test]
    fn the_length_of_a_file_does_not_overflow() {
        for payload_end in [0, 1, HEADER_LEN - 1, u64::MAX, u64::MAX - PAGE, u64::MAX / 1025 * 1024 + PAGE] {
            assert_eq!(EnvelopeLayout::of(payload_end), None, "{payload_end}");
        }
        let ten_terabytes = EnvelopeLayout::of(10 << 40).unwrap();
        assert_eq!(ten_terabytes.pages, 10 << 28);
        assert_eq!(ten_terabytes.groups, 10 << 18);
        assert_eq!(ten_terabytes.group((10 << 18) - 1).end, ten_terabytes.top_start);
    }

    /// Decodes a footer that was changed by `edit` and then given a valid checksum.
    fn decode_edited(edit: impl FnOnce(&mut EndBlock)) -> Result<Footer, FooterError> {
        let layout = EnvelopeLayout::of(1000).unwrap();
        let (mut bytes, _) = encode_footer(IDENTITY, FORMAT_VERSION, layout, 5);
        edit(&mut bytes);
        let crc = crc32c(&bytes[..FOOTER_CRC]);
        bytes[FOOTER_CRC..].copy_from_slice(&crc.to_le_bytes());
        decode_footer(&bytes, IDENTITY, layout.file_len)
    }

    #[test]
    fn crafted_footers_are_rejected() {
        assert!(decode_edited(|_| ()).is_ok());
        assert_eq!(decode_edited(|bytes| bytes[8] += 1), Err(FooterError::Version(FORMAT_VERSION + 1)));
        assert_eq!(decode_edited(|bytes| bytes[8] = 5), Err(FooterError::Version(5)));
        assert_eq!(decode_edited(|bytes| bytes[8] = 6).map(|footer| footer.version), Ok(6));
        let edits: [fn(&mut EndBlock); 6] = [
            |bytes| bytes[0] = b'x',
            |bytes| bytes[10] = 9,
            |bytes| bytes[12] = 9,
            |bytes| bytes[20..28].fill(0xFF),
            |bytes| bytes[20..28].fill(0),
            |bytes| bytes[40] = 1,
        ];
        for edit in edits {
            assert!(matches!(decode_edited(edit), Err(FooterError::Damaged(_))));
        }
    }
}
