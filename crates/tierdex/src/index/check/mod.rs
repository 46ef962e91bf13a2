//! Checks an index: all bytes against their checksums, then all structures against each other.

mod documents;
mod field;

use super::{manifest::Manifest, recovery::no_index};
use crate::segment::layout::{file_name, identity};
use crate::{Error, Result, schema::Schema, segment::SegmentMeta, segment::read::Segment};
use std::path::Path;
use tierdex_io::{Disk, ErrorKind, PosixDisk, SealedFile};

/// The result of [`check`].
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct CheckReport {
    /// Generation of the commit that was checked.
    pub generation: u64,
    /// Number of files that were read completely.
    pub files: usize,
    /// Bytes of `files`.
    pub bytes: u64,
    /// Number of terms whose order and skip records were checked.
    pub terms: u64,
    /// Number of postings that were decoded and counted.
    pub postings: u64,
    /// Number of documents whose lengths were compared with their postings.
    pub documents: u64,
    /// The errors found, each with file, offset and reason. Empty for an index without damage.
    pub problems: Vec<Error>,
    /// Index files that no commit names: left by a crash, harmless, removed by the next writer.
    pub orphans: Vec<String>,
}

/// Checks the newest commit of the index in a directory: every byte against its checksums, then every
/// invariant of every structure. If a newer commit replaces the one being checked, the check starts again
/// with the newer one.
///
/// ```
/// # use tierdex::{IndexWriter, Merge, Schema, WriterOptions};
/// # let dir = tempfile::tempdir().unwrap();
/// # let dir = dir.path().join("index");
/// # let mut writer = IndexWriter::create(&dir, Schema::default(), WriterOptions::default())?;
/// # writer.add("1", [("text", "a solid state disk")])?;
/// # writer.commit(Merge::Keep)?;
/// let report = tierdex::check(&dir)?;
/// assert!(report.problems.is_empty());
/// # Ok::<(), tierdex::Error>(())
/// ```
///
/// # Errors
/// When there is no commit to check. Damage is not an error, but a problem of the report.
pub fn check(dir: impl AsRef<Path>) -> Result<CheckReport> {
    check_on(&PosixDisk::open(dir.as_ref())?)
}

/// As [`check`], of an index on `disk`.
pub fn check_on(disk: &dyn Disk) -> Result<CheckReport> {
    loop {
        let report = check_newest(disk)?;
        let is_missing_file =
            |error: &Error| matches!(error, Error::Storage(e) if e.kind() == ErrorKind::NotFound);
        if !report.problems.iter().any(is_missing_file) || Manifest::newest(disk)? <= Some(report.generation)
        {
            return Ok(report);
        }
    }
}

/// Checks the commit that is the newest at the moment.
fn check_newest(disk: &dyn Disk) -> Result<CheckReport> {
    let mut report = CheckReport::default();
    let manifest = match Manifest::read_newest(disk) {
        Ok(Some(manifest)) => manifest,
        Ok(None) => return Err(no_index(disk)),
        Err(error) => {
            report.problems.push(error);
            return Ok(report);
        }
    };
    report.generation = manifest.generation;
    report.files += 1;
    report.orphans = manifest.orphans(disk)?;
    for segment in &manifest.segments {
        check_files(disk, segment, &mut report);
    }
    if !report.problems.is_empty() {
        return Ok(report);
    }
    for segment in &manifest.segments {
        if let Err(error) = check_segment(disk, &manifest.schema, segment, &mut report) {
            report.problems.push(error);
        }
    }
    Ok(report)
}

/// Reads all files of a segment and compares them with their checksums.
fn check_files(disk: &dyn Disk, segment: &SegmentMeta, report: &mut CheckReport) {
    for file in &segment.files {
        let name = file_name(segment.id, file.field, file.kind);
        let identity = identity(segment.id, file.field, file.kind);
        let verified = SealedFile::open(disk, &name, identity, file.seal).and_then(|open| open.verify());
        match verified {
            Ok(()) => {
                report.files += 1;
                report.bytes += file.seal.len;
            }
            Err(error) => report.problems.push(error.into()),
        }
    }
}

fn check_segment(
    disk: &dyn Disk,
    schema: &Schema,
    meta: &SegmentMeta,
    report: &mut CheckReport,
) -> Result<()> {
    let segment = Segment::open(disk, schema, meta.clone())?;
    for (field, stats) in segment.fields().iter().zip(&meta.fields) {
        field::check_field(field, stats)?;
        report.terms += stats.terms;
        report.postings += stats.postings;
    }
    documents::check_documents(&segment)?;
    report.documents += u64::from(meta.documents);
    Ok(())
}
