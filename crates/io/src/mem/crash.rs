//! Simulates a crash of an in-memory disk: decides which bytes and names survive.

use super::state::{Directory, Inode, MemState};
use crate::random::SplitMix64;

/// What survives a simulated crash of the bytes and names that were not made durable by a sync.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CrashImage {
    /// Nothing: the disk is as of the last syncs.
    Lost,
    /// Everything: as when the process is killed and the system continues.
    Kept,
    /// A random subset, chosen by this seed. Each unsynced creation, rename and removal is kept or lost
    /// independently; those kept take effect in order. Of the unsynced bytes of each file a prefix of random
    /// length is kept, cut at a sector of 512 bytes; some of its sectors are zeroed.
    Random(u64),
}

/// Bytes that a device writes atomically.
const SECTOR_BYTES: usize = 512;

impl MemState {
    /// The state after a crash; see [`CrashImage`].
    pub(super) fn crash(&self, image: CrashImage) -> MemState {
        let mut random = SplitMix64::new(match image {
            CrashImage::Random(seed) => seed,
            CrashImage::Lost | CrashImage::Kept => 0,
        });
        let directory = self.surviving_names(image, &mut random);
        let files = directory
            .into_iter()
            .map(|(name, inode)| (name, surviving_bytes(self.inode(inode), image, &mut random)));
        MemState::all_durable(files.collect(), self.capacity)
    }

    /// The directory after a crash.
    fn surviving_names(&self, image: CrashImage, random: &mut SplitMix64) -> Directory {
        match image {
            CrashImage::Lost => self.durable.clone(),
            CrashImage::Kept => self.live.clone(),
            CrashImage::Random(_) => self.random_names(random),
        }
    }

    /// The durable directory with a random subset of the later changes.
    fn random_names(&self, random: &mut SplitMix64) -> Directory {
        let mut directory = self.durable.clone();
        for change in &self.changes {
            if random.one_in(2) {
                change.apply(&mut directory);
            }
        }
        directory
    }
}

/// The bytes of a file after a crash.
fn surviving_bytes(file: &Inode, image: CrashImage, random: &mut SplitMix64) -> Vec<u8> {
    match image {
        CrashImage::Lost => file.bytes[..file.synced].to_vec(),
        CrashImage::Kept => file.bytes.clone(),
        CrashImage::Random(_) => random_bytes(file, random),
    }
}

/// A random prefix of the bytes of a file, with some unsynced sectors zeroed.
fn random_bytes(file: &Inode, random: &mut SplitMix64) -> Vec<u8> {
    let mut bytes = file.bytes.clone();
    bytes.truncate(torn_length(file.synced, bytes.len(), random));
    zero_random_sectors(&mut bytes, file.synced, random);
    bytes
}

/// The random length of a file after a crash: `synced`, `len`, or the start of a sector between them.
fn torn_length(synced: usize, len: usize, random: &mut SplitMix64) -> usize {
    match random.below(4) {
        0 => synced,
        1 => len,
        _ => {
            let cut = synced + random.below((len - synced) as u64 + 1) as usize;
            (cut - cut % SECTOR_BYTES).max(synced)
        }
    }
}

/// In half of the files, zeroes one unsynced sector in four, as if it was allocated but never written.
fn zero_random_sectors(bytes: &mut [u8], synced: usize, random: &mut SplitMix64) {
    if random.one_in(2) {
        return;
    }
    for start in (synced - synced % SECTOR_BYTES..bytes.len()).step_by(SECTOR_BYTES) {
        let end = (start + SECTOR_BYTES).min(bytes.len());
        if random.one_in(4) {
            bytes[start.max(synced)..end].fill(0);
        }
    }
}
