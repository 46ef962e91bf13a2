//! The identity of a sealed file and the seal that refers to it.

/// Tells the files of an index apart. It is stored in the header and in the footer, and every checksum of the
/// file depends on it, so that a page of another file is detected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The kind of file: a number that the caller defines.
    pub kind: u8,
    /// The field of the schema; 0 when the file belongs to no field.
    pub field: u8,
    /// The number of the segment, or the generation of a manifest.
    pub segment: u64,
}

/// Length and checksum of a complete file. The manifest stores them, so that another or an older file with
/// the same name is detected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seal {
    /// The length of the whole file in bytes.
    pub len: u64,
    /// The CRC-32C of the first 60 bytes of the footer, which is also its last field.
    pub crc: u32,
}
