//! Generated indexes. Each is written once and used by all cells and runs that need it.

use crate::paper::cell::{Experiment, FigureCell};
use crate::temporary_dir::remove_partial;
use crate::{Error, Result, generate, generate::Collection, output_dir, request::QueryFileRequest};
use std::{fs, fs::File, path::Path, path::PathBuf, sync::Arc};
use tierdex::{StopSignal, codec::Codec, io::FORMAT_VERSION, io::PosixDisk};

/// Settings of cells that describe an index.
pub(super) const INDEX_SETTINGS: [&str; 5] = ["docs", "postings", "vocabulary", "codec", "ids-only"];

/// An index: the sizes of its collection, its codec, and whether it has document numbers only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct IndexSpec {
    pub(super) docs: u64,
    pub(super) postings: u64,
    /// Number of terms.
    pub(super) vocabulary: u64,
    pub(super) codec: Codec,
    pub(super) ids_only: bool,
}

/// Number of queries in a generated file.
const GENERATED_QUERIES: usize = 1000;

/// The directory of the indexes. One process uses it at a time.
pub(super) struct DataSets {
    pub(super) dir: PathBuf,
    /// A locked file in the directory.
    _lock: File,
}

impl IndexSpec {
    /// The index of a cell; `None` if the cell has no number of documents.
    ///
    /// # Errors
    /// If a setting is missing or wrong.
    pub(super) fn of(cell: &FigureCell) -> Result<Option<IndexSpec>> {
        if cell.get("docs").is_none() {
            return Ok(None);
        }
        let wrong = |name: &str| Error::Failed(format!("the setting `{name}` of {cell} is missing or wrong"));
        let number = |name: &str| {
            let value = cell.get(name).and_then(|value| value.parse().ok());
            value.ok_or_else(|| wrong(name))
        };
        let codec = match cell.experiment {
            // This experiment decodes the lists of the index; its setting `codec` is the codec measured.
            Experiment::Codecs => Some(Codec::VByteDelta),
            _ => cell.get("codec").map_or(Some(Codec::Auto), Codec::from_name),
        };
        Ok(Some(IndexSpec {
            docs: number("docs")?,
            postings: number("postings")?,
            vocabulary: number("vocabulary")?,
            codec: codec.ok_or_else(|| wrong("codec"))?,
            ids_only: match cell.get("ids-only") {
                None | Some("false") => false,
                Some("true") => true,
                Some(_) => return Err(wrong("ids-only")),
            },
        }))
    }

    /// Name of the directory of the index.
    pub(super) fn name(&self) -> String {
        let IndexSpec { docs, postings, vocabulary, codec, ids_only } = self;
        let ids = if *ids_only { "-ids" } else { "" };
        format!(
            "docs{docs}-postings{postings}-terms{vocabulary}-{}{ids}-format{FORMAT_VERSION}",
            codec.name()
        )
    }

    pub(super) fn collection(&self) -> Result<Collection> {
        let sizes = generate::Flags::with_sizes(self.docs, self.postings, self.vocabulary, 1);
        Ok(Collection::new(&generate::Flags { codec: self.codec, ids_only: self.ids_only, ..sizes })?)
    }
}

impl DataSets {
    /// Uses `dir`, and creates it.
    ///
    /// # Errors
    /// If it cannot be created.
    pub(super) fn new(dir: &Path) -> Result<DataSets> {
        output_dir::create(dir)?;
        let path = dir.join("lock");
        let lock = File::create(&path).map_err(Error::failed(format!("cannot create {}", path.display())))?;
        output_dir::lock_file(&lock, dir, "--data")?;
        Ok(DataSets { dir: dir.to_path_buf(), _lock: lock })
    }

    /// The directory of an index.
    pub(super) fn path(&self, spec: &IndexSpec) -> PathBuf {
        self.dir.join(spec.name())
    }

    /// Generates an index if it does not exist. It is written under another name first, so an index whose
    /// directory exists is complete.
    ///
    /// # Errors
    /// If the index cannot be written.
    pub(super) fn generate_if_missing(&self, spec: &IndexSpec, stop: &StopSignal) -> Result<()> {
        let path = self.path(spec);
        if path.exists() {
            return Ok(());
        }
        let part = path.with_extension("part");
        remove_partial(&part)?;
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        spec.collection()?.create(Arc::new(PosixDisk::create(&part)?), threads, stop)?;
        rename_directory(&part, &path)
    }

    /// A file of generated queries of an index, in lines of words.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(super) fn queries(&self, spec: &IndexSpec) -> Result<PathBuf> {
        let IndexSpec { docs, postings, vocabulary, .. } = *spec;
        let lines = QueryFileRequest { docs, postings, vocabulary, count: GENERATED_QUERIES }.lines()?;
        let name = format!("queries-terms{}.txt", spec.vocabulary);
        output_dir::write_file(&self.dir, &name, lines.join("\n") + "\n")?;
        Ok(self.dir.join(name))
    }

    /// The index and copies of it, `count` directories in all.
    ///
    /// # Errors
    /// If a copy cannot be written; [`Error::Interrupted`] if `stop` is raised.
    pub(super) fn copies(&self, spec: &IndexSpec, count: usize, stop: &StopSignal) -> Result<Vec<PathBuf>> {
        let original = self.path(spec);
        let mut all = vec![original.clone()];
        for number in 2..=count {
            let copy = self.dir.join(format!("{}-copy{number}", spec.name()));
            if !copy.exists() {
                let part = copy.with_extension("part");
                remove_partial(&part)?;
                copy_files(&original, &part, stop)?;
                rename_directory(&part, &copy)?;
            }
            all.push(copy);
        }
        Ok(all)
    }
}

fn rename_directory(part: &Path, path: &Path) -> Result<()> {
    fs::rename(part, path).map_err(Error::failed(format!("cannot rename {}", part.display())))
}

fn copy_files(from: &Path, to: &Path, stop: &StopSignal) -> Result<()> {
    let failed = Error::failed(format!("cannot copy {} to {}", from.display(), to.display()));
    fs::create_dir(to).map_err(&failed)?;
    for entry in fs::read_dir(from).map_err(&failed)? {
        let entry = entry.map_err(&failed)?;
        stop.check().map_err(|_| Error::Interrupted)?;
        fs::copy(entry.path(), to.join(entry.file_name())).map_err(&failed)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell_with_codec(codec: &str) -> FigureCell {
        let settings = [("docs", "2000"), ("postings", "90000"), ("vocabulary", "500"), ("codec", codec)];
        FigureCell::new(Experiment::Sizes, &settings)
    }

    #[test]
    fn an_index_is_written_once_and_copied() {
        let dir = tempfile::tempdir().unwrap();
        let data = DataSets::new(dir.path()).unwrap();
        let spec = IndexSpec::of(&cell_with_codec("raw")).unwrap().unwrap();
        // The rest of an interrupted run.
        fs::create_dir(data.path(&spec).with_extension("part")).unwrap();
        data.generate_if_missing(&spec, &StopSignal::default()).unwrap();
        let written = || fs::metadata(data.path(&spec)).unwrap().modified().unwrap();
        let before = written();
        data.generate_if_missing(&spec, &StopSignal::default()).unwrap();
        assert_eq!(written(), before);
        let copies = data.copies(&spec, 3, &StopSignal::default()).unwrap();
        let files = |dir: &Path| fs::read_dir(dir).unwrap().count();
        assert!(copies.len() == 3 && copies.iter().all(|copy| files(copy) == files(&copies[0])));
    }

    #[test]
    fn a_wrong_codec_is_an_error() {
        let cell = cell_with_codec("zip");
        assert!(IndexSpec::of(&cell).unwrap_err().to_string().contains("`codec`"));
        // In the experiment `codecs` the setting names what is measured, so any name is accepted.
        let compared = FigureCell { experiment: Experiment::Codecs, ..cell };
        assert!(IndexSpec::of(&compared).unwrap().unwrap().name().contains("vbyte-delta"));
        assert_eq!(IndexSpec::of(&FigureCell::new(Experiment::Codecs, &[])).unwrap(), None);
    }
}
