//! Sizes of the metadata of segments: dictionaries, skip data, norms, page checksums.

use super::options::{MetaTier, MetadataLocation};
use crate::index::Index;
use crate::segment::read::{FieldReader, Segment};
use tierdex_io::{Arena, SealedFile};

/// Bytes of the metadata of one segment or of several.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ResidentSizes {
    /// Term dictionaries.
    pub(super) terms: u64,
    /// Skip data.
    pub(super) skips: u64,
    pub(super) norms: u64,
    /// Page indexes of dictionaries.
    pub(super) term_index: u64,
    /// Prefix keys of terms, resident if dictionaries are.
    pub(super) restart_keys: u64,
    /// Page checksums.
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
        self.checksums +=
            segment.files().map(|file| Arena::allocation_bytes(file.table_bytes())).sum::<u64>();
        segment.fields().iter().for_each(|field| self.add_field(field));
    }

    fn add_field(&mut self, field: &FieldReader) {
        self.terms += Arena::allocation_bytes(payload_bytes(field.terms().file()));
        self.skips += Arena::allocation_bytes(payload_bytes(field.skips()));
        self.term_index += field.terms().index_memory();
        self.restart_keys += field.terms().restart_keys_memory();
        self.norms += Arena::allocation_bytes(payload_bytes(field.norms_file()));
    }

    /// Bytes of DRAM with the metadata in this location.
    pub(super) fn in_dram(&self, location: &MetadataLocation) -> u64 {
        let lists = match location.tier {
            MetaTier::Disk | MetaTier::Region(_) => 0,
            MetaTier::Terms => self.terms + self.restart_keys,
            MetaTier::Dram => self.terms + self.restart_keys + self.skips,
        };
        self.id_index + lists + if location.region.is_none() { self.always() } else { 0 }
    }

    /// Bytes of the region of this location, if there is one.
    pub(super) fn in_region(&self, location: &MetadataLocation) -> u64 {
        let lists = match location.tier {
            MetaTier::Region(_) => self.terms + self.restart_keys + self.skips,
            MetaTier::Disk | MetaTier::Terms | MetaTier::Dram => 0,
        };
        lists + self.always()
    }

    /// Bytes that are resident in every tier, in the region if there is one.
    fn always(&self) -> u64 {
        self.term_index + self.norms + self.checksums
    }
}

fn payload_bytes(file: &SealedFile) -> u64 {
    file.payload().end - file.payload().start
}
