//! The envelope of every index file: a file that notices each changed bit.
//!
//! *You have* a kind, a field, a segment and bytes. *You get* a [`Seal`] to keep in the manifest, and later those bytes
//! or an error. The payload means nothing here.
//!
//! ```text
//! offset            bytes
//! 0                 64       header: magic "TIERDEX\n", version u16, kind u8, field u8, segment u64, zeros
//! 64                n        payload; it ends at payload_end = 64 + n
//! payload_end       4 * p    page table: a checksum of each of the p pages of [0, payload_end), the last one short
//!                   4 * g    top table: a checksum of each of the g groups of 1,024 entries of the page table
//!                   64       footer: magic "XEDREIT\n", version u16, kind u8, field u8, segment u64,
//!                            payload_end u64, checksum of the top table u32, zeros,
//!                            CRC-32C of the 60 bytes before it u32
//! ```
//!
//! Numbers are little-endian. p = ceil(payload_end / 4096), g = ceil(p / 1024); the length of the file follows from
//! payload_end alone and must be met exactly, so no count is ever believed. There is no padding that is not covered.
//!
//! Checksums are CRC-32C, each salted (see [`checksum`]) with the file's identity and the number of the page, so that a
//! page of another file, or of another place in the same file, does not pass.
//!
//! Opening reads the footer and the top table. A group of the page table is read and checked when a page that it covers is
//! first read; it then stays in memory: 1/1024 of what was touched.

mod checksum;
mod layout;
mod read;
mod write;

pub use read::SealedFile;
pub use write::SealedWriter;

/// The unit of checking, in bytes.
pub const PAGE: u64 = 4096;

/// The length of the header in bytes; the file offset of the payload.
pub const HEADER_LEN: u64 = 64;

/// The version of the envelope that this program writes and reads.
pub const FORMAT_VERSION: u16 = 3;

/// What a file is. It stands in the header and the footer and salts each checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Which kind of file; the numbers are the engine's.
    pub kind: u8,
    /// Which field of the schema, 0 when it has none.
    pub field: u8,
    /// Which segment, or which generation for a manifest.
    pub segment: u64,
}

/// What must be known to tell the file that was written from any other: kept in the manifest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seal {
    /// The length of the whole file in bytes.
    pub len: u64,
    /// The CRC-32C of the footer's first 60 bytes, which the footer ends with.
    pub crc: u32,
}
