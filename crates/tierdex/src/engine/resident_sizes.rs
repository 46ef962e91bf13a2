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
    /// First terms of dictionary pages, always in DRAM.
    pub(super) term_index: u64,
    /// Prefix keys of terms, in DRAM if dictionaries are resident.
    pub(super) term_heads: u64,
    /// Page checksums of the files that evaluations read.
    pub(super) checksums: u64,
    /// Page checksums of the other files, always in DRAM.
    pub(super) other_checksums: u64,
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
        let checksums: u64 = segment.evaluated_files().map(SealedFile::table_bytes).sum();
        self.checksums +=
            segment.evaluated_files().map(|file| Arena::allocation_bytes(file.table_bytes())).sum::<u64>();
        self.other_checksums += segment.files().map(SealedFile::table_bytes).sum::<u64>() - checksums;
        segment.fields().iter().for_each(|field| self.add_field(field));
    }

    fn add_field(&mut self, field: &FieldReader) {
        self.terms += Arena::allocation_bytes(payload_bytes(field.terms().file()));
        self.skips += Arena::allocation_bytes(payload_bytes(field.skips()));
        self.term_index += field.terms().memory() as u64;
        self.term_heads += field.terms().restart_keys_memory();
        self.norms += Arena::allocation_bytes(payload_bytes(field.norms_file()));
    }

    /// Bytes of DRAM with the metadata in these location.
    pub(super) fn in_dram(&self, location: &MetadataLocation) -> u64 {
        let always = self.term_index + self.other_checksums + self.id_index;
        let lists = match location.tier {
            MetaTier::Disk => 0,
            MetaTier::Terms => self.terms + self.term_heads,
            MetaTier::Dram => self.terms + self.term_heads + self.skips,
            MetaTier::Region(_) => self.term_heads,
        };
        always + lists + if location.region.is_none() { self.norms + self.checksums } else { 0 }
    }

    /// Bytes of the region of these location, if there is one.
    pub(super) fn in_region(&self, location: &MetadataLocation) -> u64 {
        let lists = match location.tier {
            MetaTier::Region(_) => self.terms + self.skips,
            MetaTier::Disk | MetaTier::Terms | MetaTier::Dram => 0,
        };
        lists + self.norms + self.checksums
    }
}

fn payload_bytes(file: &SealedFile) -> u64 {
    file.payload().end - file.payload().start
}
