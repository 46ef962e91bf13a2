//! Sizes of the metadata of segments: dictionaries, skip data, norms, directories of columns, page checksums.

use super::memory_report::{DICTIONARIES, LISTS, MemoryUse};
use super::meta_tier::{MetaTier, MetadataLocation};
use crate::index::Index;
use crate::segment::read::{ColumnReader, FieldReader, KeysReader, Segment, StoredReader};
use tierdex_io::{Arena, SealedFile};

/// Bytes of the metadata of one segment or of several.
#[derive(Clone, Copy, Debug, Default)]
pub struct ResidentSizes {
    /// Term dictionaries.
    pub terms: u64,
    /// Skip data.
    pub skips: u64,
    /// Documents, frequencies, positions and values of columns, resident if the whole index is.
    pub lists: u64,
    /// Lengths of documents.
    pub norms: u64,
    /// Page indexes of dictionaries.
    pub term_index: u64,
    /// Prefix keys of terms, resident if dictionaries are.
    pub restart_keys: u64,
    /// Directories of columns.
    pub column_directories: u64,
    /// Page checksums.
    pub checksums: u64,
    /// First documents of the pages of the index of external ids, first hashes of the pages of keys, and
    /// first entries of the pages of the block index of stored documents, always in DRAM.
    pub document_index: u64,
    /// Deleted documents and their statistics, always in DRAM.
    pub deletes: u64,
}

impl ResidentSizes {
    /// Of all segments of an index, with their deletes.
    pub fn of(index: &Index) -> ResidentSizes {
        let mut sizes = ResidentSizes::default();
        for segment in index.segments() {
            sizes.add_segment(segment);
            sizes.deletes += segment.deletes().map_or(0, |deletes| deletes.memory() as u64);
        }
        sizes
    }

    /// Of the files of one segment.
    pub fn of_segment(segment: &Segment) -> ResidentSizes {
        let mut sizes = ResidentSizes::default();
        sizes.add_segment(segment);
        sizes
    }

    fn add_segment(&mut self, segment: &Segment) {
        self.document_index += segment.ids().memory()
            + segment.keys().map_or(0, KeysReader::memory)
            + segment.stored().map_or(0, StoredReader::memory);
        self.checksums +=
            segment.files().map(|file| Arena::allocation_bytes(file.table_bytes())).sum::<u64>();
        segment.fields().iter().for_each(|field| self.add_field(field));
        segment.columns().iter().for_each(|column| self.add_column(column));
    }

    fn add_column(&mut self, column: &ColumnReader) {
        self.column_directories += Arena::allocation_bytes(column.memory());
        self.lists += Arena::allocation_bytes(payload_bytes(column.file()));
    }

    fn add_field(&mut self, field: &FieldReader) {
        self.terms += Arena::allocation_bytes(payload_bytes(field.terms().file()));
        self.skips += Arena::allocation_bytes(payload_bytes(field.skips_file()));
        let lists = [Some(field.postings_file()), field.positions_file()].into_iter().flatten();
        self.lists += lists.map(|file| Arena::allocation_bytes(payload_bytes(file))).sum::<u64>();
        self.term_index += field.terms().index_memory();
        self.restart_keys += field.terms().restart_keys_memory();
        self.norms += Arena::allocation_bytes(payload_bytes(field.norms_file()));
    }

    /// The parts in memory with the metadata in this location, without the indexes of ids and stored
    /// documents, and deletes.
    pub fn rows(&self, location: &MetadataLocation) -> Vec<MemoryUse> {
        let region = location.region.as_ref().map(|kind| kind.to_string());
        let of_tier = region.clone().filter(|_| location.is_whole_region());
        let row = |what, bytes, region: &Option<String>| MemoryUse::new(what, bytes, region.clone());
        let mut rows = vec![
            row("page index of dictionaries", self.term_index, &region),
            row("page checksums", self.checksums, &region),
        ];
        if location.tier != MetaTier::Disk {
            rows.push(row(DICTIONARIES, self.terms, &of_tier));
            rows.push(row("prefix keys of terms", self.restart_keys, &of_tier));
        }
        if location.tier.keeps_skips() {
            rows.push(row("skip data and short lists", self.skips, &of_tier));
        }
        if matches!(location.tier, MetaTier::Index(_)) {
            rows.push(row(LISTS, self.lists, &of_tier));
        }
        rows.push(row("norms", self.norms, &region));
        if self.column_directories > 0 {
            rows.push(row("directories of columns", self.column_directories, &region));
        }
        rows
    }

    /// Bytes of DRAM with the metadata in this location.
    pub fn in_dram(&self, location: &MetadataLocation) -> u64 {
        let of_tier = if location.is_whole_region() { 0 } else { self.of_tier(location) };
        self.document_index
            + self.deletes
            + of_tier
            + if location.region.is_none() { self.always() } else { 0 }
    }

    /// Bytes of the region of this location, if there is one.
    pub fn in_region(&self, location: &MetadataLocation) -> u64 {
        self.always() + if location.is_whole_region() { self.of_tier(location) } else { 0 }
    }

    /// Bytes of all that is resident, in one allocation.
    pub(super) fn in_one_region(&self, location: &MetadataLocation) -> u64 {
        self.always() + self.of_tier(location)
    }

    /// Bytes that are resident in the tier of this location, without those of every tier.
    fn of_tier(&self, location: &MetadataLocation) -> u64 {
        let terms = self.terms + self.restart_keys;
        match location.tier {
            MetaTier::Disk => 0,
            MetaTier::Terms => terms,
            MetaTier::Dram | MetaTier::Region(_) => terms + self.skips,
            MetaTier::Index(_) => terms + self.skips + self.lists,
        }
    }

    /// Bytes that are resident in every tier, in the region if there is one.
    fn always(&self) -> u64 {
        self.term_index + self.norms + self.column_directories + self.checksums
    }
}

fn payload_bytes(file: &SealedFile) -> u64 {
    file.payload().end - file.payload().start
}
