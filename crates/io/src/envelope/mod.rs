//! Sealed files: the format of every index file, with checksums that detect every changed bit.
//!
//! Writing takes an [`Identity`] and the payload, and returns a [`Seal`] for the manifest. Reading returns
//! bytes of the payload only after their checksum was verified. The payload is not interpreted.
//!
//! ```text
//! offset            bytes
//! 0                 64       header: magic "TIERDEX\n", version u16, kind u8, field u8, segment u64, zeros
//! 64                n        payload; it ends at payload_end = 64 + n
//! payload_end       4 * p    page table: a checksum per page of [0, payload_end); the last page may be short
//!                   4 * g    top table: a checksum per group of 1,024 entries of the page table
//!                   64       footer: magic "XEDREIT\n", version u16, kind u8, field u8, segment u64,
//!                            payload_end u64, checksum of the top table u32, zeros,
//!                            CRC-32C of the 60 bytes before it u32
//! ```
//!
//! Numbers are little-endian. p = ceil(payload_end / 4096), g = ceil(p / 1024); the length of the file
//! follows from payload_end alone and must match exactly, so no stored count is trusted. All padding is
//! covered by a checksum.
//!
//! Checksums are CRC-32C, each salted (see [`checksum`]) with the file's identity and the number of the
//! page, so that a page of another file, or of another offset in the same file, is detected.
//!
//! Opening reads the footer and the top table. A group of the page table is read and checked on the first
//! read of a page that it covers; it then stays in memory and needs 1/1024 of the size of its pages.

mod checksum;
mod identity;
mod layout;
mod read;
mod write;

pub use identity::{Identity, Seal};
pub use layout::{FORMAT_VERSION, FORMAT_VERSION_MIN, HEADER_LEN, PAGE};
pub use read::SealedFile;
pub use write::SealedWriter;
