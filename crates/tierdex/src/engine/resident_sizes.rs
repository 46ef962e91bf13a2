//! Sizes of the metadata of segments: dictionaries, skip data, norms, page checksums.

use super::options::MetaTier;
use crate::index::Index;
use crate::schema::NormKind;
use crate::segment::read::{FieldReader, Segment};
use tierdex_io::{Arena, PAGE, SealedFile};

/// Bytes of the metadata of one segment or of several.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ResidentSizes {
    /// Term dictionaries.
    pub(super) terms: u64,
    /// Skip data.
    pub(super) skips: u64,
    /// One-byte norms.
    pub(super) norms: u64,
    /// Exact norms, always in DRAM.
    pub(super) exact_norms: u64,
    /// First terms of dictionary pages, always in DRAM.
    pub(super) term_index: u64,
    /// Prefix keys of terms, in DRAM if dictionaries are resident.
    pub(super) term_heads: u64,
    /// Page checksums, always in DRAM.
    pub(super) checksums: u64,
    /// First documents of the pages of the index of external ids, always in DRAM.
    pub(super) id_index: u64,
}

impl ResidentSizes {
    pub(super) fn of(index: &Index) -> ResidentSizes {
        let mut sizes = ResidentSizes::default();
        index.segments().iter().for_each(|segment| sizes.add_segment(segment));
        sizes
    }

    pub(super) fn of_segment(segment: &Segment) -> ResidentSizes {
        let mut sizes = ResidentSizes::default();
        sizes.add_segment(segment);
        sizes
    }

    fn add_segment(&mut self, segment: &Segment) {
        self.id_index += segment.ids().memory();
        self.checksums += segment.files().map(checksum_bytes).sum::<u64>();
        segment.fields().iter().for_each(|field| self.add_field(segment, field));
    }

    fn add_field(&mut self, segment: &Segment, field: &FieldReader) {
        self.terms += Arena::allocation_bytes(payload_bytes(field.terms().file()));
        self.skips += Arena::allocation_bytes(payload_bytes(field.skips()));
        self.term_index += field.terms().memory() as u64;
        self.term_heads += field.terms().restart_keys_memory();
        match field.field().norms {
            NormKind::Byte => self.norms += Arena::allocation_bytes(payload_bytes(field.norms_file())),
            NormKind::Exact => self.exact_norms += 4 * u64::from(segment.documents()),
        }
    }

    /// Bytes of DRAM with dictionaries, skip data and norms in that tier.
    pub(super) fn resident(&self, tier: &MetaTier) -> u64 {
        let always = self.term_index + self.checksums + self.id_index + self.exact_norms;
        always
            + match tier {
                MetaTier::Disk => self.norms,
                MetaTier::Terms => self.norms + self.terms + self.term_heads,
                MetaTier::Dram => self.norms + self.terms + self.term_heads + self.skips,
                MetaTier::Region(_) => self.term_heads,
            }
    }

    /// Bytes of a region that holds dictionaries, skip data and norms.
    pub(super) fn all(&self) -> u64 {
        self.terms + self.skips + self.norms
    }
}

fn payload_bytes(file: &SealedFile) -> u64 {
    file.payload().end - file.payload().start
}

/// Bytes of the page checksums of a file.
fn checksum_bytes(file: &SealedFile) -> u64 {
    4 * file.payload().end.div_ceil(PAGE)
}
