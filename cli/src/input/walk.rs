//! Expands command-line arguments to an ordered list of input files.
//!
//! Arguments keep their order; the files of a folder follow in the byte order of their paths. Hidden names,
//! symbolic links to folders and special files inside folders are passed over and counted, and so is, without
//! being counted, the folder of the index that is being written. What the user named must be readable now;
//! what a folder holds may fail and is then a problem in its place in the list.

use super::name::display_name;
use super::report::{Problem, ProblemKind};
use std::fs::{self, DirEntry, File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// One item of the list.
#[derive(Debug)]
pub(super) enum Entry {
    File(InputFile),
    Problem(Problem),
}

/// A file to read.
#[derive(Debug)]
pub(super) struct InputFile {
    pub place: Place,
    /// Bytes on disk; `None` for a stream.
    pub size: Option<u64>,
    /// Whether the user named it, rather than a folder around it.
    pub named: bool,
}

/// Where a file's bytes come from.
#[derive(Debug)]
pub(super) enum Place {
    StandardInput,
    Path(PathBuf),
}

impl InputFile {
    /// The file as the user knows it.
    pub fn name(&self) -> String {
        match &self.place {
            Place::StandardInput => "stdin".to_string(),
            Place::Path(path) => display_name(path),
        }
    }

    /// The last part of its path; empty for standard input.
    pub fn title(&self) -> String {
        match &self.place {
            Place::StandardInput => String::new(),
            Place::Path(path) => display_name(Path::new(path.file_name().unwrap_or(path.as_os_str()))),
        }
    }
}

/// What was passed over in folders.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PassedOver {
    /// Names that begin with a dot.
    pub hidden: u64,
    /// Symbolic links to folders.
    pub links: u64,
    /// Pipes, sockets and devices.
    pub special: u64,
}

/// The list of files for the arguments, without what is in the folder `output`.
pub(super) fn expand(inputs: &[PathBuf], output: Option<&Path>) -> Result<(Vec<Entry>, PassedOver), String> {
    if inputs.iter().filter(|input| is_standard_input(input)).count() > 1 {
        return Err("standard input is named twice; it can be read only once".to_string());
    }
    let output = output.and_then(|output| fs::metadata(output).ok()).map(|output| identity(&output));
    let mut walker = Walker { output, ..Walker::default() };
    let mut entries = Vec::new();
    for input in inputs {
        expand_argument(input, &mut walker, &mut entries)?;
    }
    Ok((entries, walker.passed_over))
}

/// What a file or folder is, by whatever path it is reached.
fn identity(metadata: &Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

fn is_standard_input(input: &Path) -> bool {
    input.as_os_str() == "-" || input.as_os_str() == "/dev/stdin"
}

fn expand_argument(input: &Path, walker: &mut Walker, entries: &mut Vec<Entry>) -> Result<(), String> {
    if is_standard_input(input) {
        entries.push(named(Place::StandardInput, None));
        return Ok(());
    }
    let metadata = fs::metadata(input).map_err(|error| cannot_read(input, &error))?;
    if metadata.is_dir() {
        if walker.output == Some(identity(&metadata)) {
            return Err(format!("{} is the folder of the index; name another input", display_name(input)));
        }
        entries.extend(walker.walk(input).map_err(|error| cannot_read(input, &error))?);
        return Ok(());
    }
    // A pipe is not tried: to open it twice would lose its writer.
    if metadata.is_file() {
        File::open(input).map_err(|error| cannot_read(input, &error))?;
    }
    let size = metadata.is_file().then_some(metadata.len());
    entries.push(named(Place::Path(input.to_path_buf()), size));
    Ok(())
}

fn named(place: Place, size: Option<u64>) -> Entry {
    Entry::File(InputFile { place, size, named: true })
}

fn cannot_read(input: &Path, error: &io::Error) -> String {
    let advice = match error.kind() {
        io::ErrorKind::NotFound => "check the name",
        io::ErrorKind::PermissionDenied => "check its permissions",
        _ => "leave it out or repair it",
    };
    format!("cannot read {}: {error}; {advice}", display_name(input))
}

/// Walks through folders. Those that wait are in a list, so deep ones cost no stack.
#[derive(Default)]
struct Walker {
    folders: Vec<PathBuf>,
    found: Vec<(PathBuf, Found)>,
    passed_over: PassedOver,
    output: Option<(u64, u64)>,
}

/// What is at a path: a file with its size in bytes, or the error of reading it.
type Found = io::Result<u64>;

impl Walker {
    /// Everything under `root`; an error when `root` itself cannot be listed.
    fn walk(&mut self, root: &Path) -> io::Result<impl Iterator<Item = Entry> + use<>> {
        self.list(root)?;
        while let Some(folder) = self.folders.pop() {
            if let Err(error) = self.list(&folder) {
                self.found.push((folder, Err(error)));
            }
        }
        let mut found = std::mem::take(&mut self.found);
        found.sort_unstable_by(|(a, _), (b, _)| {
            a.as_os_str().as_encoded_bytes().cmp(b.as_os_str().as_encoded_bytes())
        });
        Ok(found.into_iter().map(|(path, found)| entry(path, found)))
    }

    fn list(&mut self, folder: &Path) -> io::Result<()> {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            if entry.file_name().as_encoded_bytes().starts_with(b".") {
                self.passed_over.hidden += 1;
            } else if let Err(error) = self.visit(&entry) {
                self.found.push((entry.path(), Err(error)));
            }
        }
        Ok(())
    }

    fn visit(&mut self, entry: &DirEntry) -> io::Result<()> {
        let linked = entry.file_type()?.is_symlink();
        let metadata = if linked { fs::metadata(entry.path())? } else { entry.metadata()? };
        if metadata.is_file() {
            self.found.push((entry.path(), Ok(metadata.len())));
        } else if !metadata.is_dir() {
            self.passed_over.special += 1;
        } else if linked {
            self.passed_over.links += 1;
        } else if self.output != Some(identity(&metadata)) {
            self.folders.push(entry.path());
        }
        Ok(())
    }
}

fn entry(path: PathBuf, found: Found) -> Entry {
    match found {
        Ok(size) => Entry::File(InputFile { place: Place::Path(path), size: Some(size), named: false }),
        Err(error) => Entry::Problem(Problem::of_file(
            display_name(&path),
            ProblemKind::Unreadable,
            format!("cannot read: {error}"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn names(root: &Path, entries: &[Entry]) -> Vec<String> {
        let root = format!("{}/", root.display());
        let show = |entry: &Entry| match entry {
            Entry::File(file) => file.name().replace(&root, ""),
            Entry::Problem(problem) => format!("!{}", problem.file.replace(&root, "")),
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
        let (entries, passed_over) = expand(&[root.to_path_buf(), root.join("z/b")], None).unwrap();
        assert_eq!(passed_over, PassedOver { hidden: 2, links: 1, special: 0 });
        let expected = ["B", "a-b", "a.txt", "a/x", "!dangling", "linked-file", "z/b", "z/deep/er/f", "z/b"];
        assert_eq!(names(root, &entries), expected);
        let flags: Vec<bool> = entries
            .iter()
            .filter_map(|e| if let Entry::File(f) = e { Some(f.named) } else { None })
            .collect();
        assert_eq!(flags.iter().filter(|&&named| named).count(), 1);
        assert!(flags.last().unwrap());
    }

    #[test]
    fn missing_arguments_are_errors() {
        let folder = tempfile::tempdir().unwrap();
        let error = expand(&[folder.path().join("none")], None).unwrap_err();
        assert!(error.contains("none") && error.contains("check the name"), "{error}");
        assert!(!error.contains('\n'));
        assert!(expand(&["-".into(), "/dev/stdin".into()], None).is_err());
        assert!(expand(&[], None).unwrap().0.is_empty());
    }

    #[test]
    fn hidden_arguments_and_linked_arguments_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::create_dir(root.join(".real")).unwrap();
        fs::write(root.join(".real/.f"), "").unwrap();
        fs::write(root.join(".real/g"), "").unwrap();
        symlink(root.join(".real"), root.join("link")).unwrap();
        let (entries, _) = expand(&[root.join(".real/.f"), root.join("link")], None).unwrap();
        assert_eq!(names(root, &entries), [".real/.f", "link/g"]);
    }
}
