//! Checks of the documents: links lead to files, CI runs the test command of the README, and
//! ARCHITECTURE.md names every crate and module.

use crate::tree::{File, read_files};
use std::{fs, path::Path};

/// Required documents.
const REQUIRED_DOCUMENTS: &[&str] = &[
    "README.md",
    "ARCHITECTURE.md",
    "STYLE.md",
    "CHANGELOG.md",
    "LICENSE-MIT",
    "LICENSE-APACHE",
    "docs/format/README.md",
];

/// Folders whose subfolders ARCHITECTURE.md must name.
const MAPPED_FOLDERS: &[&str] =
    &["crates", "crates/tierdex/src", "crates/io/src", "crates/cache/src", "crates/codec/src"];

/// Problems, one line each.
pub fn find_problems(root: &Path) -> Vec<String> {
    let mut problems: Vec<String> = REQUIRED_DOCUMENTS
        .iter()
        .filter(|name| !root.join(name).is_file())
        .map(|name| format!("{name}: missing"))
        .collect();
    let documents = read_files(root, "md");
    for document in &documents {
        problems.extend(dead_links(root, document));
    }
    problems.extend(test_command(root));
    problems.extend(unmapped_files(root));
    problems
}

fn dead_links(root: &Path, document: &File) -> Vec<String> {
    let folder = root.join(&document.path);
    let folder = folder.parent().expect("a file has a folder");
    let dead = links_in(&document.text).filter(|(_, target)| {
        let path = target.split('#').next().unwrap_or_default();
        !target.contains("://") && !path.is_empty() && !folder.join(path).exists()
    });
    dead.map(|(line, target)| format!("{}:{line}: no file for the link to {target}", document.path)).collect()
}

fn links_in(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().flat_map(|(i, line)| {
        let targets = line.split("](").skip(1);
        targets.filter_map(move |rest| Some((i + 1, rest.split_once(')')?.0)))
    })
}

/// The README's test command must be a line of `.ci/run`.
fn test_command(root: &Path) -> Option<String> {
    let readme = fs::read_to_string(root.join("README.md")).ok()?;
    let ci = fs::read_to_string(root.join(".ci/run")).ok()?;
    let commands: Vec<&str> =
        readme.lines().map(str::trim).filter(|line| line.starts_with("cargo test")).collect();
    match commands.as_slice() {
        [command, ..] if ci.lines().any(|line| line.trim() == *command) => None,
        [command, ..] => Some(format!(".ci/run: does not run the README's `{command}`")),
        [] => Some("README.md: names no test command".to_string()),
    }
}

fn unmapped_files(root: &Path) -> Vec<String> {
    let map = fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap_or_default();
    let mut problems = Vec::new();
    for folder in MAPPED_FOLDERS {
        for entry in fs::read_dir(root.join(folder)).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if entry.path().is_dir() && !map.contains(&format!("{name}/")) {
                problems.push(format!("ARCHITECTURE.md: does not name {folder}/{name}/"));
            }
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::links_in;

    #[test]
    fn links_are_found() {
        let text = "See [a](x.md) and [b](y/z.md#part).\n[c](https://example.org)";
        let found: Vec<_> = links_in(text).collect();
        assert_eq!(found, [(1, "x.md"), (1, "y/z.md#part"), (2, "https://example.org")]);
    }
}
