//! Help texts, and the commands in the documents.

use crate::workspace::Workspace;
use std::{fs, path::Path};

#[test]
fn the_help_lists_closed_sets_of_values() {
    let workspace = Workspace::new();
    for (command, values) in [("serve", "lru, s3-fifo, sieve]"), ("latency", "auto, uring, pread]")] {
        let help = workspace.ok(&format!("{command} --help"));
        let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(help.contains(&format!("[possible values: {values}")), "{command}, {values}: {help}");
    }
}

#[test]
fn experiments_and_flags_in_the_documents_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let workspace = Workspace::new();
    let mut checked = 0;
    let experiments = fs::read_dir(root.join("docs/experiments")).unwrap();
    let pages = experiments.map(|entry| entry.unwrap().path()).filter(|path| path.is_file());
    for page in pages.chain([root.join("README.md"), root.join("docs/promises.md")]) {
        let text = fs::read_to_string(&page).unwrap().replace("\\\n", " ");
        let fenced = text.split("```").skip(1).step_by(2).flat_map(str::lines).map(str::trim);
        for command in fenced.filter_map(|line| line.strip_prefix("tierdex-bench ")) {
            let words: Vec<&str> = command.split_whitespace().collect();
            // Commands of the driver are checked by its own tests.
            if ["paper", "compare"].contains(&words[0]) {
                continue;
            }
            let help = workspace.ok(&format!("{} --help", words[0]));
            for flag in words.iter().filter(|word| word.starts_with("--")) {
                assert!(help.contains(flag), "{}: `{command}`: no {flag}", page.display());
            }
            checked += 1;
        }
    }
    assert!(checked >= 4, "only {checked} commands were found");
}
