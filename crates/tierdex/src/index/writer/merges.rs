//! The merges of a commit.

use super::super::encode::EncodingThreads;
use super::super::merge::{MergeInput, merge_segments};
use super::super::policy::{MergePolicy, SegmentSize};
use super::{IndexWriter, Merge};
use crate::segment::{ManifestSegment, read::READ_AHEAD_BYTES};
use crate::{Error, Result, limits::MERGE_FAN_IN};
use std::ops::Range;
use tierdex_io::FORMAT_VERSION;

/// Bytes of memory that a thread reads ahead of one segment: skip records, blocks and positions.
const INPUT_BYTES: usize = 3 * READ_AHEAD_BYTES as usize;

impl IndexWriter {
    /// Merges segments before a commit, and writes those of an older format version again.
    pub(super) fn merge_by(&mut self, choice: Merge) -> Result<()> {
        match choice {
            Merge::One => self.merge_to_one()?,
            Merge::Keep => {
                let sizes: Vec<SegmentSize> =
                    self.segments.iter().map(|segment| self.size_of(segment)).collect();
                // Sources are removed after the commit. What other merges of the commit leave is not known.
                let bytes_max = self.disk.available_bytes()?.map_or(u64::MAX, |available| available / 2);
                let merges = MergePolicy::default().choose_merges(&sizes, bytes_max);
                self.merge_ranges(&merges)?;
            }
            Merge::None => (),
        }
        for at in 0..self.segments.len() {
            if self.is_old(&self.segments[at]) {
                self.segments[at] = self.merge_group(at..at + 1)?;
            }
        }
        Ok(())
    }

    /// Whether a segment is written in an older format version.
    fn is_old(&self, segment: &ManifestSegment) -> bool {
        let is_committed = |id| self.committed.segments.iter().any(|segment| segment.id == id);
        self.committed.version < FORMAT_VERSION && is_committed(segment.id)
    }

    /// The size of a segment, with the deletes that the next commit adds.
    fn size_of(&self, segment: &ManifestSegment) -> SegmentSize {
        let deleted = match self.pending_deletes.get(&segment.id) {
            Some(pending) => pending.documents().len(),
            None => segment.documents - segment.live_documents(),
        };
        SegmentSize::of(segment, deleted)
    }

    /// Merges groups of adjacent segments into one each, in passes, until one segment is left. Those of an
    /// older format version are upgraded by it.
    fn merge_to_one(&mut self) -> Result<()> {
        while self.segments.len() > 1 {
            let count = self.segments.len();
            let groups = (0..count).step_by(MERGE_FAN_IN);
            let groups = groups.map(|start| start..count.min(start + MERGE_FAN_IN));
            let groups: Vec<_> = groups.filter(|group| group.len() > 1).collect();
            self.merge_ranges(&groups)?;
        }
        if self.segments.iter().any(|segment| self.size_of(segment).deleted > 0) {
            self.segments[0] = self.merge_group(0..1)?;
        }
        Ok(())
    }

    /// Replaces each of these ranges of segments, which are in order, by one segment. Removes the files of
    /// merged segments that no commit names, so that each pass of a merge frees the disk space of the pass
    /// before.
    fn merge_ranges(&mut self, ranges: &[Range<usize>]) -> Result<()> {
        let mut merged = Vec::new();
        let mut copied = 0;
        for range in ranges {
            merged.extend_from_slice(&self.segments[copied..range.start]);
            merged.push(self.merge_group(range.clone())?);
            copied = range.end;
        }
        merged.extend_from_slice(&self.segments[copied..]);
        let before = std::mem::replace(&mut self.segments, merged);
        self.remove_merged(&before)
    }

    /// Writes the documents of adjacent segments as a new one.
    fn merge_group(&mut self, group: Range<usize>) -> Result<ManifestSegment> {
        let id = self.allocate_file_number()?;
        let group = &self.segments[group];
        self.check_space(group)?;
        let (disk, schema) = (self.disk.as_ref(), &self.schema);
        let sources = group.iter().map(|segment| self.open_segment(segment)).collect::<Result<Vec<_>>>()?;
        let deleted = group.iter().map(|segment| self.deleted_of(segment)).collect::<Result<Vec<_>>>()?;
        let inputs = sources.iter().zip(&deleted);
        let inputs =
            inputs.map(|(segment, deleted)| MergeInput { segment, deleted: deleted.as_ref(), live: None });
        let inputs: Vec<_> = inputs.collect();
        let mut threads = self.encoding_threads();
        // Buffers of inputs take up to half of the memory: postings have been written.
        let readers = self.options.memory / 2 / (inputs.len() * INPUT_BYTES);
        threads = EncodingThreads { count: threads.count.min(readers), ..threads };
        let merged = merge_segments(disk, schema, &inputs, id, self.key_seed.is_some(), threads)?;
        // Segments without other documents were dropped before.
        let meta =
            merged.ok_or_else(|| Error::Failed("segments without documents cannot be merged".to_string()))?;
        Ok(ManifestSegment { meta, deletes: None })
    }

    /// An error if the disk does not have the space that a merge of these segments may need.
    fn check_space(&self, group: &[ManifestSegment]) -> Result<()> {
        let needed = group.iter().map(|segment| self.size_of(segment).bytes).sum();
        match self.disk.available_bytes()? {
            Some(available) if available < needed => Err(Error::Failed(format!(
                "merging {} segments of {} needs {needed} bytes of disk space; {available} are free",
                group.len(),
                self.disk.describe()
            ))),
            _ => Ok(()),
        }
    }

    /// Removes the files of merged segments that no commit names.
    fn remove_merged(&self, before: &[ManifestSegment]) -> Result<()> {
        self.check_lock()?;
        let kept = |id| self.segments.iter().chain(&self.committed.segments).any(|segment| segment.id == id);
        for segment in before.iter().filter(|segment| !kept(segment.id)) {
            for name in segment.file_names() {
                self.disk.remove(&name)?;
            }
        }
        Ok(())
    }
}
