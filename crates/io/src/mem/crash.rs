//! What survives a crash of a disk in memory.

use super::CrashImage;
use super::state::{Directory, Inode, State};
use crate::random::Random;

/// The unit, in bytes, that a device writes whole or not at all.
const SECTOR: usize = 512;

impl State {
    /// The disk that is found after a crash; see [`CrashImage`].
    pub(super) fn crash(&self, image: CrashImage) -> State {
        let mut random = Random::new(match image {
            CrashImage::Random(seed) => seed,
            CrashImage::Lost | CrashImage::Kept => 0,
        });
        let directory = self.surviving_names(image, &mut random);
        let files = directory
            .into_iter()
            .map(|(name, inode)| (name, surviving_bytes(self.inode(inode), image, &mut random)));
        State::durable(files.collect(), self.capacity())
    }

    fn surviving_names(&self, image: CrashImage, random: &mut Random) -> Directory {
        match image {
            CrashImage::Lost => self.durable_directory().clone(),
            CrashImage::Kept => self.live().clone(),
            CrashImage::Random(_) => self.some_names(random),
        }
    }

    fn some_names(&self, random: &mut Random) -> Directory {
        let mut directory = self.durable_directory().clone();
        for change in self.changes() {
            if random.one_in(2) {
                change.apply(&mut directory);
            }
        }
        directory
    }
}

fn surviving_bytes(file: &Inode, image: CrashImage, random: &mut Random) -> Vec<u8> {
    match image {
        CrashImage::Lost => file.bytes()[..file.synced()].to_vec(),
        CrashImage::Kept => file.bytes().to_vec(),
        CrashImage::Random(_) => some_bytes(file, random),
    }
}

fn some_bytes(file: &Inode, random: &mut Random) -> Vec<u8> {
    let mut bytes = file.bytes().to_vec();
    bytes.truncate(torn_length(file.synced(), bytes.len(), random));
    zero_some_sectors(&mut bytes, file.synced(), random);
    bytes
}

/// A length between `synced` and `len`: one of the two, or the start of a sector between them.
fn torn_length(synced: usize, len: usize, random: &mut Random) -> usize {
    match random.below(4) {
        0 => synced,
        1 => len,
        _ => {
            let cut = synced + random.below((len - synced) as u64 + 1) as usize;
            (cut - cut % SECTOR).max(synced)
        }
    }
}

/// One unsynced sector in four was allotted but never written. Half of the files are spared.
fn zero_some_sectors(bytes: &mut [u8], synced: usize, random: &mut Random) {
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
