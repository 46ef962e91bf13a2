//! Circular imports between the files of a crate.
//!
//! 1. Collect the paths in each file, without comments and `#[cfg(test)]` modules: `use` trees, and inline
//!    paths that start with `crate`, `super`, `self`, a child module or an imported name.
//! 2. Resolve each path, through imports and `pub use`, to the file that defines its item: an edge of the
//!    graph.
//! 3. Find the edges that are part of a circle.

use crate::tree::File;
use std::collections::{BTreeMap, BTreeSet};

/// A path from the root of the crate, which is `crate`.
type Path = Vec<String>;

/// A source file: the paths that its names stand for, and the paths that it uses.
struct Source<'a> {
    file: &'a str,
    names: BTreeMap<String, Path>,
    uses: Vec<Path>,
}

/// The circles, one line each.
pub fn find_problems(sources: &[File]) -> Vec<String> {
    import_circles(sources).into_iter().map(|(a, b)| format!("{a}: circular import with {b}")).collect()
}

/// Sorted pairs of files of which one imports the other and is imported by it, directly or by way of others.
fn import_circles(sources: &[File]) -> BTreeSet<(&str, &str)> {
    let mut crates = BTreeMap::<&str, BTreeMap<Path, Source>>::new();
    for file in sources {
        let Some(root) = crate_root(&file.path) else { continue };
        let path = &file.path[root.len()..];
        // A program beside a library is a crate of its own.
        let beside_lib = path == "main.rs" && sources.iter().any(|file| file.path == format!("{root}lib.rs"));
        let is_root = |part: &&str| ["lib", "main", "mod"].contains(part) && !beside_lib;
        let parts = path.trim_end_matches(".rs").split('/').filter(|part| !is_root(part));
        let module: Path = ["crate"].into_iter().chain(parts).map(String::from).collect();
        crates.entry(root).or_default().insert(module.clone(), parse_file(file, &module));
    }
    crates.values().flat_map(circles_of_crate).collect()
}

/// The folder of the sources of a crate.
fn crate_root(path: &str) -> Option<&str> {
    let end = |name: &str| path.find(name).map(|at| &path[..at + name.len()]);
    end("src/").or_else(|| end("bench/program/"))
}

fn circles_of_crate<'a>(files: &BTreeMap<Path, Source<'a>>) -> Vec<(&'a str, &'a str)> {
    let targets = |module: &Path| -> BTreeSet<&Path> {
        // A path that ends at a module uses no item of it.
        let uses = files[module].uses.iter().filter(|path| !files.contains_key(*path));
        uses.filter_map(|path| defining_module(files, path, 8)).filter(|target| *target != module).collect()
    };
    let edges: BTreeMap<&Path, BTreeSet<&Path>> = files.keys().map(|file| (file, targets(file))).collect();
    let reaches = |from: &Path, to: &Path| {
        let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
        while let Some(file) = open.pop() {
            open.extend(edges[file].iter().filter(|next| seen.insert(**next)));
        }
        seen.contains(to)
    };
    let all = edges.iter().flat_map(|(from, targets)| targets.iter().map(move |to| (*from, *to)));
    let circles = all.filter(|(from, to)| reaches(to, from));
    circles.map(|(a, b)| (files[a].file, files[b].file)).map(|(a, b)| (a.min(b), a.max(b))).collect()
}

/// The module that defines the item of a path; `None` for a path into another crate.
fn defining_module<'a>(files: &'a BTreeMap<Path, Source>, path: &[String], depth: usize) -> Option<&'a Path> {
    let len = (1..=path.len()).rev().find(|len| files.contains_key(&path[..*len]))?;
    let (module, source) = files.get_key_value(&path[..len])?;
    let imported = path.get(len).and_then(|item| source.names.get(item)).filter(|_| depth > 0);
    imported.map_or(Some(module), |path| defining_module(files, path, depth - 1))
}

fn parse_file<'a>(file: &'a File, module: &[String]) -> Source<'a> {
    let mut source = Source { file: &file.path, names: BTreeMap::new(), uses: Vec::new() };
    let (mut trees, mut code) = (Vec::new(), String::new());
    let (mut lines, mut test, mut end) = (file.code(), false, None);
    while let Some((_, line)) = lines.next() {
        let line = line.trim_end();
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            _ if end.is_some() => end = end.filter(|end: &String| end != line),
            ["mod", .., "{"] | [_, "mod", .., "{"] if test => {
                let indent = line.len() - line.trim_start().len();
                end = Some(line[..indent].to_string() + "}")
            }
            ["mod", name] | [_, "mod", name] => {
                let name = name.trim_end_matches(';').to_string();
                source.names.insert(name.clone(), [module, &[name]].concat());
            }
            ["use", ..] | ["pub" | "pub(crate)" | "pub(super)", "use", ..] => {
                let (public, mut tree) = (words[0] != "use", words.join(" "));
                while !tree.ends_with(';') {
                    tree += lines.next().map_or(";", |(_, line)| line.trim());
                }
                let tree = tree.split_once("use ").unwrap_or_default().1;
                expand_import(tree.trim_end_matches(';'), &[], &mut |path, name| {
                    trees.push((public, path, name))
                });
            }
            _ => code += &(line.to_string() + "\n"),
        }
        test = line.trim() == "#[cfg(test)]";
    }
    for (public, path, name) in trees {
        let Some(path) = absolute_path(&path, module, &source.names) else { continue };
        source.uses.extend((!public).then(|| path.clone()));
        source.names.insert(name, path);
    }
    let inline = code.split(|c: char| !c.is_alphanumeric() && c != '_' && c != ':');
    for path in inline.map(|path| path.trim_matches(':')).filter(|path| path.contains("::")) {
        let path: Path = path.split("::").map(String::from).collect();
        source.uses.extend(absolute_path(&path, module, &source.names));
    }
    source
}

/// Calls `leaf` with each path of a `use` tree and its name.
fn expand_import(tree: &str, prefix: &[String], leaf: &mut impl FnMut(Path, String)) {
    let (head, group) = tree.split_once("::{").map_or((tree, None), |(head, group)| (head, Some(group)));
    let (head, alias) = head.split_once(" as ").map_or((head, None), |(head, alias)| (head, Some(alias)));
    let own = head.split("::").filter(|part| *part != "self" || prefix.is_empty()).map(String::from);
    let path: Path = prefix.iter().cloned().chain(own).collect();
    let Some(group) = group else {
        let name = alias.map(String::from).or(path.last().cloned());
        return leaf(path, name.unwrap_or_default());
    };
    group_members(group).into_iter().for_each(|tree| expand_import(tree, &path, leaf));
}

/// The trees of a group, which starts after its brace.
pub fn group_members(group: &str) -> Vec<&str> {
    let mut depth = 0;
    let comma = |c: char| {
        depth += i32::from(c == '{') - i32::from(c == '}');
        c == ',' && depth == 0 || depth < 0
    };
    group.split(comma).map(str::trim).filter(|tree| !tree.is_empty()).collect()
}

/// A path from the root of the crate; `None` for a path into another crate.
fn absolute_path(path: &[String], module: &[String], names: &BTreeMap<String, Path>) -> Option<Path> {
    let (first, rest) = path.split_first()?;
    let parent = &module[..module.len() - 1];
    match first.as_str() {
        "crate" => Some(path.to_vec()),
        "self" => Some([module, rest].concat()),
        "super" if rest.first().is_some_and(|next| next == "super") => absolute_path(rest, parent, names),
        "super" => Some([parent, rest].concat()),
        name => Some([names.get(name)?, rest].concat()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let file =
            |(name, text): &(&str, &str)| File { path: format!("src/{name}.rs"), text: text.to_string() };
        let files: Vec<File> = files.iter().map(file).collect();
        import_circles(&files)
            .iter()
            .map(|(a, b)| format!("{a} {b}").replace("src/", "").replace(".rs", ""))
            .collect()
    }

    #[test]
    fn circles_are_found() {
        let lib = ("lib", "mod a;\nmod b;\nmod d;\npub use d::x::X;\npub const C: u8 = 0;\n");
        let back = ("b", "fn f() { super::a::g() }\n");
        for a in ["use crate::{b::{F, G}, d};\n", "use super::b;\nfn g() { b::f() }\n", "use crate::b::*;\n"]
        {
            assert_eq!(found(&[lib, ("a", a), back]), ["a b"], "{a}");
        }
        for a in
            ["use crate::d::F;\n", "// crate::b::F\n", "#[cfg(test)]\nmod t {\n    use crate::b::F;\n}\n"]
        {
            assert_eq!(found(&[lib, ("a", a), back]), [""; 0], "{a}");
        }
        let ring = [("a", "use crate::b::B;\n"), ("b", "use crate::X;\n"), ("d/x", "use crate::a::A;\n")];
        assert_eq!(
            found(&[&[lib, ("d/mod", "pub mod x;\n")], &ring[..]].concat()),
            ["a b", "a d/x", "b d/x"]
        );
        let root = ("lib", "mod a;\nuse a::A;\npub const C: u8 = 0;\n");
        assert_eq!(found(&[root, ("a", "use crate::C;\n")]), ["a lib"]);
    }
}
