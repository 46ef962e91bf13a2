//! Salted CRC-32C.
//!
//! A checksum is the CRC-32C of: role u8, kind u8, field u8, segment u64, number u64, and the bytes
//! themselves. The role distinguishes pages, groups of the page table and the top table; the number counts
//! within the role.

use super::identity::Identity;
use crc32c::{crc32c, crc32c_append};

/// Computes the checksums of one file. The CRC of the salt up to the segment is computed once per role.
pub(super) struct Checksums {
    page: u32,
    group: u32,
    top: u32,
}

impl Checksums {
    pub(super) fn new(identity: Identity) -> Checksums {
        Checksums { page: salt(0, identity), group: salt(1, identity), top: salt(2, identity) }
    }

    /// Checksum of page `number` of the file.
    pub(super) fn page(&self, number: u64, bytes: &[u8]) -> u32 {
        salted(self.page, number, bytes)
    }

    /// Checksum of group `number` of the page table.
    pub(super) fn group(&self, number: u64, bytes: &[u8]) -> u32 {
        salted(self.group, number, bytes)
    }

    /// Checksum of the top table.
    pub(super) fn top(&self, bytes: &[u8]) -> u32 {
        salted(self.top, 0, bytes)
    }
}

fn salt(role: u8, identity: Identity) -> u32 {
    let start = crc32c(&[role, identity.kind, identity.field]);
    crc32c_append(start, &identity.segment.to_le_bytes())
}

fn salted(salt: u32, number: u64, bytes: &[u8]) -> u32 {
    crc32c_append(crc32c_append(salt, &number.to_le_bytes()), bytes)
}
