//! Salted checksums of sealed files.
//!
//! A checksum is the CRC-32C of: role u8, kind u8, field u8, segment u64, number u64, and the bytes that are
//! protected. The role is 0 for pages, 1 for groups of the page table and 2 for the top table. The number
//! counts the pages or groups from 0.

use super::identity::Identity;
use crc32c::{crc32c, crc32c_append};

/// Computes the checksums of one file. The members are the CRCs of the salt up to the segment, for each role.
pub(super) struct Checksums {
    page: u32,
    group: u32,
    top: u32,
}

impl Checksums {
    pub(super) fn new(identity: Identity) -> Checksums {
        let [page, group, top] = [0, 1, 2].map(|role| salt_crc(role, identity));
        Checksums { page, group, top }
    }

    /// Checksum of page `number` of the file.
    pub(super) fn page(&self, number: u64, bytes: &[u8]) -> u32 {
        salted_crc(self.page, number, bytes)
    }

    /// Checksum of group `number` of the page table.
    pub(super) fn group(&self, number: u64, bytes: &[u8]) -> u32 {
        salted_crc(self.group, number, bytes)
    }

    /// Checksum of the top table.
    pub(super) fn top(&self, bytes: &[u8]) -> u32 {
        salted_crc(self.top, 0, bytes)
    }
}

/// The CRC of the salt up to the segment.
fn salt_crc(role: u8, identity: Identity) -> u32 {
    let start = crc32c(&[role, identity.kind, identity.field]);
    crc32c_append(start, &identity.segment.to_le_bytes())
}

/// The CRC of the salt, the number and the bytes.
fn salted_crc(salt: u32, number: u64, bytes: &[u8]) -> u32 {
    crc32c_append(crc32c_append(salt, &number.to_le_bytes()), bytes)
}
