//! Checks of the project, as `cargo run -p xtask` and as a test: the order of crates and modules, circular
//! imports, the folders in which `unsafe` and system calls are allowed, the length of comment lines, and the
//! links and commands of the documents.

mod allowed;
mod comments;
mod documents;
mod imports;
mod items;
mod layers;
mod tree;

use std::process::ExitCode;

fn main() -> ExitCode {
    let problems = all_problems();
    for problem in &problems {
        println!("{problem}");
    }
    println!("{} problems", problems.len());
    if problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn all_problems() -> Vec<String> {
    let root = tree::workspace_root();
    let sources = tree::read_files(&root, "rs");
    let mut problems = layers::find_problems(&sources);
    problems.extend(allowed::find_problems(&sources));
    problems.extend(comments::find_problems(&sources));
    problems.extend(imports::find_problems(&sources));
    problems.extend(items::find_problems(&sources));
    problems.extend(documents::find_problems(&root));
    problems
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_project_has_no_problems() {
        let problems = super::all_problems();
        assert!(problems.is_empty(), "{}", problems.join("\n"));
    }
}
