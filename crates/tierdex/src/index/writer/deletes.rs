//! Deletes of documents in finished segments: collected until the next commit, which writes for each segment
//! the set of all its deleted documents, and a layer of statistics of the new ones.

use super::{IndexWriter, pending_deletes::PendingDeletes};
use crate::segment::deleted_statistics::DeletedStatistics;
use crate::segment::read::open_deletes;
use crate::segment::write::{write_deleted_statistics, write_deletes};
use crate::segment::{DeletedDocuments, DeletesMeta, ManifestSegment, NumberedFile, SegmentMeta};
use crate::{Error, Result};

impl IndexWriter {
    /// Deletes documents of a segment of the next commit: `statistics` are those of these documents. They are
    /// deleted by the next commit.
    ///
    /// # Errors
    /// [`Error::Usage`] if there is no such segment, if a document is not in it or is deleted already, and if
    /// the statistics are impossible: nothing is deleted, and the writer stays usable. Other errors stop the
    /// writer.
    #[doc(hidden)]
    pub fn delete_documents(
        &mut self,
        segment: u64,
        documents: &[u32],
        statistics: DeletedStatistics,
    ) -> Result<()> {
        self.check_poisoned()?;
        let of_segment = self.segments.iter().position(|of| of.id == segment);
        let at = of_segment.ok_or_else(|| Error::Usage(format!("there is no segment {segment}")))?;
        if !self.pending_deletes.contains_key(&segment) {
            let open =
                |writer: &mut IndexWriter| PendingDeletes::open(writer.disk.as_ref(), &writer.segments[at]);
            let pending = self.run_step(open)?;
            self.pending_deletes.insert(segment, pending);
        }
        let (meta, pending) = (&self.segments[at].meta, self.pending_deletes.get_mut(&segment));
        let pending = pending.expect("inserted above");
        if let Some(missing) = documents.iter().find(|document| **document >= meta.documents) {
            return Err(Error::Usage(format!("segment {segment} has no document {missing}")));
        }
        let deleted = pending.documents.with(documents.iter().copied());
        if deleted.len() as usize != pending.documents.len() as usize + documents.len() {
            return Err(Error::Usage("a document is deleted twice".to_string()));
        }
        let is_possible = |field| statistics.field(field).documents as usize <= documents.len();
        let fields = statistics.fields();
        if fields > meta.fields.len() || !(0..fields).all(is_possible) {
            return Err(Error::Usage("statistics of other documents".to_string()));
        }
        if !documents.is_empty() {
            pending.documents = deleted;
            pending.new.push(statistics);
        }
        Ok(())
    }

    /// Writes the files of the deletes since the last commit. A segment without other documents is dropped.
    pub(super) fn write_deletes(&mut self) -> Result<()> {
        for (id, pending) in std::mem::take(&mut self.pending_deletes) {
            let at = self.segments.iter().position(|segment| segment.id == id).expect("checked when added");
            if pending.new.is_empty() {
                continue;
            }
            if pending.documents.len() == self.segments[at].documents {
                self.segments.remove(at);
                continue;
            }
            let layers = self.segments[at].deletes.take().map_or_else(Vec::new, |deletes| deletes.layers);
            let (kept, new) = pending.merge_layers()?;
            let layers = layers.into_iter().take(kept).collect();
            self.segments[at].deletes = Some(self.write_deletes_of(id, &pending.documents, layers, &new)?);
        }
        Ok(())
    }

    /// The deletes of a segment that has the documents of a group of segments.
    pub(super) fn merge_deletes(
        &mut self,
        group: &[ManifestSegment],
        meta: &SegmentMeta,
    ) -> Result<Option<DeletesMeta>> {
        let (mut documents, mut layers) = (DeletedDocuments::none(meta.documents), Vec::new());
        let mut base = 0;
        for segment in group {
            if let Some(deletes) = open_deletes(self.disk.as_ref(), segment)? {
                documents = documents.with(deletes.documents().iter().map(|document| base + document));
                layers.extend(deletes.layers().iter().cloned());
            }
            base += segment.documents;
        }
        if documents.is_empty() {
            return Ok(None);
        }
        let layers: Vec<&DeletedStatistics> = layers.iter().map(|layer| &**layer).collect();
        let layer = DeletedStatistics::merge(&layers)?;
        self.write_deletes_of(meta.id, &documents, Vec::new(), &layer).map(Some)
    }

    /// Writes all deleted documents of a segment, and the layer that follows those in `layers`.
    fn write_deletes_of(
        &mut self,
        segment: u64,
        documents: &DeletedDocuments,
        mut layers: Vec<NumberedFile>,
        layer: &DeletedStatistics,
    ) -> Result<DeletesMeta> {
        let (number, of_layer) = (self.allocate_file_number()?, self.allocate_file_number()?);
        let file = write_deletes(self.disk.as_ref(), number, segment, documents)?;
        layers.push(write_deleted_statistics(self.disk.as_ref(), of_layer, segment, layer)?);
        Ok(DeletesMeta { documents: documents.len(), file, layers })
    }
}
