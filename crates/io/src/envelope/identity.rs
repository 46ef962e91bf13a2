//! The identity of a sealed file and the seal that refers to it.

/// The identity of a file. It is stored in the header and the footer and salts every checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The kind of file; the engine defines the numbers.
    pub kind: u8,
    /// The field of the schema; 0 when the file belongs to no field.
    pub field: u8,
    /// The number of the segment, or the generation of a manifest.
    pub segment: u64,
}

/// Length and checksum of a file, stored in the manifest to distinguish it from any other file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seal {
    /// The length of the whole file in bytes.
    pub len: u64,
    /// The CRC-32C of the first 60 bytes of the footer, which is also its last field.
    pub crc: u32,
}
