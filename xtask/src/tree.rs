//! The source files and documents of the project.

use std::fs;
use std::path::{Path, PathBuf};

/// A file, and its path relative to the root with `/` as separator.
pub struct File {
    pub path: String,
    pub text: String,
}

impl File {
    /// Lines with their numbers, without comments.
    pub fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        let lines = self.text.lines().enumerate();
        lines.map(|(i, line)| (i + 1, line.split("//").next().unwrap_or_default()))
    }
}

/// The root of the workspace.
pub fn workspace_root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().expect("xtask is in the workspace").to_path_buf()
}

/// All files with an extension, sorted by path, without build output and hidden folders.
pub fn read_files(root: &Path, extension: &str) -> Vec<File> {
    let mut paths = Vec::new();
    collect_files(root, extension, &mut paths);
    paths.sort();
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let path =
            path.strip_prefix(root).expect("found below the root").to_string_lossy().replace('\\', "/");
        File { path, text }
    };
    paths.into_iter().map(read).collect()
}

fn collect_files(folder: &Path, extension: &str, paths: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    for entry in entries {
        let path = entry.expect("a readable folder").path();
        let name = path.file_name().expect("an entry has a name").to_string_lossy().into_owned();
        if name.starts_with('.') || name == "target" {
            continue;
        }
        if path.is_dir() {
            collect_files(&path, extension, paths);
        } else if path.extension().is_some_and(|found| found == extension) {
            paths.push(path);
        }
    }
}
