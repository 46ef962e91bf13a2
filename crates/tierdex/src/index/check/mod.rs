//! Checks an index: all bytes against their checksums, then all structures against each other.

mod columns;
mod deletes;
mod documents;
mod field;
mod keys;

use super::{input_files::check_input_files, manifest::Manifest, recovery::no_index};
use crate::segment::ManifestSegment;
use crate::segment::read::{Segment, open_deletes};
use crate::{Error, Result};
use keys::CheckedSegment;
use std::path::Path;
use tierdex_io::{Disk, ErrorKind, PosixDisk};

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
    check_files(disk, &manifest, &mut report);
    if !report.problems.is_empty() {
        return Ok(report);
    }
    let mut checked = Vec::with_capacity(manifest.segments.len());
    for segment in &manifest.segments {
        match check_segment(disk, &manifest, segment, &mut report) {
            Ok(segment) => checked.push(segment),
            Err(error) => report.problems.push(error),
        }
    }
    if manifest.key_seed.is_some() && report.problems.is_empty() {
        report.problems.extend(keys::check_unique_ids(&checked).err());
    }
    report.problems.extend(check_input_files(disk, &manifest).err());
    Ok(report)
}

/// Reads all files of a commit and compares them with their checksums.
fn check_files(disk: &dyn Disk, manifest: &Manifest, report: &mut CheckReport) {
    for file in manifest.named_files() {
        match file.open(disk).and_then(|open| Ok(open.verify()?)) {
            Ok(()) => {
                report.files += 1;
                report.bytes += file.seal.len;
            }
            Err(error) => report.problems.push(error),
        }
    }
}

fn check_segment(
    disk: &dyn Disk,
    manifest: &Manifest,
    of: &ManifestSegment,
    report: &mut CheckReport,
) -> Result<CheckedSegment> {
    let segment = Segment::open(disk, &manifest.schema, of.meta.clone())?;
    for (field, stats) in segment.fields().iter().zip(&of.fields) {
        field::check_field(field, stats)?;
        report.terms += stats.terms;
        report.postings += stats.postings;
    }
    documents::check_documents(&segment)?;
    columns::check_columns(&segment)?;
    if let (Some(keys), Some(seed)) = (segment.keys(), &manifest.key_seed) {
        keys::check_keys(keys, segment.ids(), seed, of.documents)?;
    }
    let deletes = open_deletes(disk, of)?;
    if let Some(deletes) = &deletes {
        deletes::check_deletes(&segment, of, deletes)?;
    }
    report.documents += u64::from(of.documents);
    Ok(CheckedSegment { segment, deletes })
}
