//! Checks of the house, as `cargo run -p xtask` and as tests: which room uses which, where `unsafe` and system
//! calls stand, and whether the links of the documents lead somewhere.

mod documents;
mod layers;
mod places;
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
    let root = tree::root();
    let sources = tree::files(&root, "rs");
    let mut problems = layers::problems(&sources);
    problems.extend(places::problems(&sources));
    problems.extend(documents::problems(&root));
    problems
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_house_is_in_order() {
        let problems = super::all_problems();
        assert!(problems.is_empty(), "{}", problems.join("\n"));
    }
}
