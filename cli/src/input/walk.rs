//! Expands the input arguments to an ordered list of files.
//!
//! Arguments keep their order; the files of a folder follow in the byte order of their paths. Inside
//! folders, hidden names, symbolic links to folders and special files are skipped and counted; the directory
//! of the index that is written is skipped without being counted. An argument that cannot be read is an
//! error. A file in a folder that cannot be read is a problem at its position in the list.

use super::name::display_name;
use super::report::{Problem, ProblemKind};
use std::fs::{self, DirEntry, File, Metadata};
use std::path::{Path, PathBuf};
use std::{io, os::unix::fs::MetadataExt};

/// A file to read, or the problem of a file or folder that cannot be read.
#[derive(Debug)]
pub(super) enum InputEntry {
    File(ListedFile),
    Problem(Problem),
}

/// A file to read.
#[derive(Debug)]
pub(super) struct ListedFile {
    pub location: InputLocation,
    /// Size on disk in bytes; `None` for a stream.
    pub size: Option<u64>,
    /// Time of the last change of a file that was found in a folder, in nanoseconds since 1970-01-01 UTC.
    pub modified: Option<i64>,
    /// Number of the file among those whose documents are recorded.
    pub number: Option<u32>,
    /// Whether the file is an argument itself, not found in a folder.
    pub named: bool,
}

/// Where the bytes of an input come from.
#[derive(Debug)]
pub(super) enum InputLocation {
    StandardInput,
    Path(PathBuf),
}

impl ListedFile {
    /// Display name of the file.
    pub fn name(&self) -> String {
        match &self.location {
            InputLocation::StandardInput => "stdin".to_string(),
            InputLocation::Path(path) => display_name(path),
        }
    }

    /// Display name of the last component of its path; empty for standard input.
    pub fn title(&self) -> String {
        match &self.location {
            InputLocation::StandardInput => String::new(),
            InputLocation::Path(path) => {
                display_name(Path::new(path.file_name().unwrap_or(path.as_os_str())))
            }
        }
    }
}

/// Numbers of directory entries that were skipped, by reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SkippedEntries {
    /// Names that begin with a dot.
    pub hidden: u64,
    /// Symbolic links to folders.
    pub links: u64,
    /// Pipes, sockets and devices.
    pub special: u64,
}

/// The files of the arguments.
#[derive(Debug, Default)]
pub(super) struct InputList {
    pub entries: Vec<InputEntry>,
    pub skipped: SkippedEntries,
    /// The arguments that are folders.
    pub folders: Vec<PathBuf>,
    /// The files and folders in them that cannot be read.
    pub unreadable: Vec<PathBuf>,
}

/// Lists the files of the arguments, without those in the directory `output`.
pub(super) fn expand_inputs(inputs: &[PathBuf], output: Option<&Path>) -> Result<InputList, String> {
    if inputs.iter().filter(|input| is_standard_input(input)).count() > 1 {
        return Err("standard input is given twice; it can be read only once".to_string());
    }
    let output = output.and_then(|output| fs::metadata(output).ok()).map(|output| file_identity(&output));
    let mut walker = FolderWalker { output, ..FolderWalker::default() };
    let mut list = InputList::default();
    for input in inputs {
        expand_argument(input, &mut walker, &mut list)?;
    }
    Ok(InputList { skipped: walker.skipped, ..list })
}

/// Device and inode, which identify a file or folder by any path.
fn file_identity(metadata: &Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

fn is_standard_input(input: &Path) -> bool {
    input.as_os_str() == "-" || input.as_os_str() == "/dev/stdin"
}

fn expand_argument(input: &Path, walker: &mut FolderWalker, list: &mut InputList) -> Result<(), String> {
    if is_standard_input(input) {
        list.entries.push(argument_entry(InputLocation::StandardInput, None));
        return Ok(());
    }
    let metadata = fs::metadata(input).map_err(|error| cannot_read_message(input, &error))?;
    if metadata.is_dir() {
        if walker.output == Some(file_identity(&metadata)) {
            return Err(format!("{} is the directory of the index; name another input", display_name(input)));
        }
        let found = walker.walk(input).map_err(|error| cannot_read_message(input, &error))?;
        list.folders.push(input.to_path_buf());
        let unreadable = found.iter().filter(|(_, found)| found.is_err());
        list.unreadable.extend(unreadable.map(|(path, _)| path.clone()));
        list.entries.extend(found.into_iter().map(|(path, found)| folder_entry(path, found)));
        return Ok(());
    }
    // A pipe is not opened here: opening it twice would lose its writer.
    if metadata.is_file() {
        File::open(input).map_err(|error| cannot_read_message(input, &error))?;
    }
    let size = metadata.is_file().then_some(metadata.len());
    list.entries.push(argument_entry(InputLocation::Path(input.to_path_buf()), size));
    Ok(())
}

fn argument_entry(location: InputLocation, size: Option<u64>) -> InputEntry {
    InputEntry::File(ListedFile { location, size, named: true, modified: None, number: None })
}

fn cannot_read_message(input: &Path, error: &io::Error) -> String {
    let advice = match error.kind() {
        io::ErrorKind::NotFound => "check the name",
        io::ErrorKind::PermissionDenied => "check its permissions",
        _ => "omit or repair it",
    };
    format!("cannot read {}: {error}; {advice}", display_name(input))
}

/// Walks through folders. Pending folders are in a list, so that deep trees need no recursion.
#[derive(Default)]
struct FolderWalker {
    folders: Vec<PathBuf>,
    found: Vec<FoundFile>,
    skipped: SkippedEntries,
    output: Option<(u64, u64)>,
}

/// Path of a file, and its metadata or the error of reading them.
type FoundFile = (PathBuf, io::Result<Metadata>);

impl FolderWalker {
    /// All files under `root`; an error if `root` itself cannot be listed.
    fn walk(&mut self, root: &Path) -> io::Result<Vec<FoundFile>> {
        self.list_folder(root)?;
        while let Some(folder) = self.folders.pop() {
            if let Err(error) = self.list_folder(&folder) {
                self.found.push((folder, Err(error)));
            }
        }
        let mut found = std::mem::take(&mut self.found);
        found.sort_unstable_by(|(a, _), (b, _)| {
            a.as_os_str().as_encoded_bytes().cmp(b.as_os_str().as_encoded_bytes())
        });
        Ok(found)
    }

    fn list_folder(&mut self, folder: &Path) -> io::Result<()> {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            if entry.file_name().as_encoded_bytes().starts_with(b".") {
                self.skipped.hidden += 1;
            } else if let Err(error) = self.visit_entry(&entry) {
                self.found.push((entry.path(), Err(error)));
            }
        }
        Ok(())
    }

    fn visit_entry(&mut self, entry: &DirEntry) -> io::Result<()> {
        let linked = entry.file_type()?.is_symlink();
        let metadata = if linked { fs::metadata(entry.path())? } else { entry.metadata()? };
        if metadata.is_file() {
            self.found.push((entry.path(), Ok(metadata)));
        } else if !metadata.is_dir() {
            self.skipped.special += 1;
        } else if linked {
            self.skipped.links += 1;
        } else if self.output != Some(file_identity(&metadata)) {
            self.folders.push(entry.path());
        }
        Ok(())
    }
}

fn folder_entry(path: PathBuf, found: io::Result<Metadata>) -> InputEntry {
    match found {
        Ok(metadata) => InputEntry::File(ListedFile {
            location: InputLocation::Path(path),
            size: Some(metadata.len()),
            modified: Some(modified_nanoseconds(&metadata)),
            number: None,
            named: false,
        }),
        Err(error) => InputEntry::Problem(Problem::of_file(
            display_name(&path),
            ProblemKind::Unreadable,
            format!("cannot read: {error}"),
        )),
    }
}

fn modified_nanoseconds(metadata: &Metadata) -> i64 {
    metadata.mtime().saturating_mul(1_000_000_000).saturating_add(metadata.mtime_nsec())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn relative_names(root: &Path, entries: &[InputEntry]) -> Vec<String> {
        let root = format!("{}/", root.display());
        let show = |entry: &InputEntry| match entry {
            InputEntry::File(file) => file.name().replace(&root, ""),
            InputEntry::Problem(problem) => format!("!{}", problem.file.replace(&root, "")),
        };
        entries.iter().map(show).collect()
    }

    #[test]
    fn folders_are_listed_in_byte_order() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        for sub in ["a", "a/.git", "z/deep/er"] {
            fs::create_dir_all(root.join(sub)).unwrap();
        }
        for file in ["a/x", "a.txt", "a-b", "B", "a/.hidden", "a/.git/x", "z/deep/er/f", "z/b"] {
            fs::write(root.join(file), "12").unwrap();
        }
        symlink(root.join("a"), root.join("linked-folder")).unwrap();
        symlink(root.join("B"), root.join("linked-file")).unwrap();
        symlink(root.join("nowhere"), root.join("dangling")).unwrap();
        let list = expand_inputs(&[root.to_path_buf(), root.join("z/b")], None).unwrap();
        let InputList { entries, skipped, folders, unreadable } = list;
        assert_eq!((folders, unreadable), (vec![root.to_path_buf()], vec![root.join("dangling")]));
        assert_eq!(skipped, SkippedEntries { hidden: 2, links: 1, special: 0 });
        let expected = ["B", "a-b", "a.txt", "a/x", "!dangling", "linked-file", "z/b", "z/deep/er/f", "z/b"];
        assert_eq!(relative_names(root, &entries), expected);
        let flags: Vec<bool> = entries
            .iter()
            .filter_map(|e| if let InputEntry::File(f) = e { Some(f.named) } else { None })
            .collect();
        assert_eq!(flags.iter().filter(|&&named| named).count(), 1);
        assert!(flags.last().unwrap());
    }

    #[test]
    fn missing_and_repeated_arguments_are_errors() {
        let folder = tempfile::tempdir().unwrap();
        let error = expand_inputs(&[folder.path().join("none")], None).unwrap_err();
        assert!(error.contains("none") && error.contains("check the name"), "{error}");
        assert!(!error.contains('\n'));
        assert!(expand_inputs(&["-".into(), "/dev/stdin".into()], None).is_err());
        assert!(expand_inputs(&[], None).unwrap().entries.is_empty());
    }

    #[test]
    fn hidden_names_and_links_are_read_if_they_are_arguments() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::create_dir(root.join(".real")).unwrap();
        fs::write(root.join(".real/.f"), "").unwrap();
        fs::write(root.join(".real/g"), "").unwrap();
        symlink(root.join(".real"), root.join("link")).unwrap();
        let InputList { entries, .. } =
            expand_inputs(&[root.join(".real/.f"), root.join("link")], None).unwrap();
        assert_eq!(relative_names(root, &entries), [".real/.f", "link/g"]);
    }
}
