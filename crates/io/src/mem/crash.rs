//! Crash images: the bytes and names of an in-memory disk that survive a crash.

use super::state::{Directory, Inode, MemState};
use crate::random::SplitMix64;

/// Which of the bytes and names that were not made durable survive a crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CrashImage {
    /// None: the disk as of the last syncs.
    Lost,
    /// All: as when the process is killed and the system continues.
    Kept,
    /// A random subset, chosen by the seed. Each unsynced creation, rename and removal is kept or lost
    /// independently; those kept take effect in order. Of the unsynced bytes of each file a prefix of random
    /// length is kept, cut at a sector of 512 bytes; some of its sectors are zeroed.
    Random(u64),
}

/// The unit of atomic writes of a device, in bytes.
const SECTOR: usize = 512;

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
        MemState::durable(files.collect(), self.capacity())
    }

    fn surviving_names(&self, image: CrashImage, random: &mut SplitMix64) -> Directory {
        match image {
            CrashImage::Lost => self.durable_directory().clone(),
            CrashImage::Kept => self.live().clone(),
            CrashImage::Random(_) => self.random_names(random),
        }
    }

    fn random_names(&self, random: &mut SplitMix64) -> Directory {
        let mut directory = self.durable_directory().clone();
        for change in self.changes() {
            if random.one_in(2) {
                change.apply(&mut directory);
            }
        }
        directory
    }
}

fn surviving_bytes(file: &Inode, image: CrashImage, random: &mut SplitMix64) -> Vec<u8> {
    match image {
        CrashImage::Lost => file.bytes()[..file.synced()].to_vec(),
        CrashImage::Kept => file.bytes().to_vec(),
        CrashImage::Random(_) => random_bytes(file, random),
    }
}

fn random_bytes(file: &Inode, random: &mut SplitMix64) -> Vec<u8> {
    let mut bytes = file.bytes().to_vec();
    bytes.truncate(torn_length(file.synced(), bytes.len(), random));
    zero_random_sectors(&mut bytes, file.synced(), random);
    bytes
}

/// A length between `synced` and `len`: one of the two, or the start of a sector between them.
fn torn_length(synced: usize, len: usize, random: &mut SplitMix64) -> usize {
    match random.below(4) {
        0 => synced,
        1 => len,
        _ => {
            let cut = synced + random.below((len - synced) as u64 + 1) as usize;
            (cut - cut % SECTOR).max(synced)
        }
    }
}

/// Zeroes one unsynced sector in four, as if it was allocated but never written, in half of the files.
fn zero_random_sectors(bytes: &mut [u8], synced: usize, random: &mut SplitMix64) {
    if random.one_in(2) {
        return;
    }
    for start in (synced - synced % SECTOR..bytes.len()).step_by(SECTOR) {
        let end = (start + SECTOR).min(bytes.len());
        if random.one_in(4) {
            bytes[start.max(synced)..end].fill(0);
        }
    }
}
