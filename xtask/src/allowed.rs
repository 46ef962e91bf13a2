//! Words that are allowed in certain folders only, and folder names that are not allowed.

use crate::tree::File;

/// Words, the folders or files in which they are allowed, and the rule.
const ALLOWED_WORDS: &[(&str, &[&str], &str)] = &[
    (
        "unsafe",
        &[
            "crates/codec/src/kernel/",
            "crates/codec/tests/pages/",
            "crates/io/src/",
            "bench/thesis/src/mapped_files.rs",
        ],
        "unsafe is allowed in codec/kernel, in io and to map the files of experiments",
    ),
    (
        "std::fs",
        &[
            "crates/io/",
            "bench/",
            "crates/server/",
            "cli/",
            "python/src/",
            "xtask/",
            "crates/codec/tests/",
            "crates/tierdex/tests/",
            "crates/tierdex/examples/",
        ],
        "only io makes system calls",
    ),
    (
        "std::thread",
        &[
            "crates/tierdex/src/engine/",
            "crates/tierdex/src/index/",
            "crates/io/",
            "crates/cache/tests/",
            "crates/server/",
            "bench/",
            "cli/",
            "python/src/",
            "crates/tierdex/tests/",
            "crates/tierdex/examples/",
            "crates/codec/tests/",
        ],
        "threads are started in engine, index and io",
    ),
    ("async", &["bench/peers/", "crates/server/"], "of the libraries only the server is async"),
    (
        "serde_json",
        &["bench/", "cli/", "crates/codec/tests/", "crates/server/"],
        "engine types know neither serde nor JSON",
    ),
];

/// Names that no folder or file may have.
const FORBIDDEN_NAMES: &[&str] = &["util", "utils", "common", "misc", "helpers"];

/// Words and names that are not allowed, one line each.
pub fn find_problems(sources: &[File]) -> Vec<String> {
    let mut problems = Vec::new();
    for file in sources.iter().filter(|file| file.path != "xtask/src/allowed.rs") {
        for (line, code) in file.code() {
            for (word, folders, why) in ALLOWED_WORDS {
                let allowed = folders.iter().any(|folder| file.path.starts_with(folder));
                if !allowed && has_word(code, word) {
                    problems.push(format!("{}:{line}: `{word}` is not allowed here: {why}", file.path));
                }
            }
        }
        for folder in
            file.path.split('/').filter(|part| FORBIDDEN_NAMES.contains(&part.trim_end_matches(".rs")))
        {
            problems.push(format!("{}: the name `{folder}` is not allowed", file.path));
        }
    }
    problems
}

fn has_word(code: &str, word: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    code.match_indices(word).any(|(at, _)| {
        let before = code[..at].chars().next_back();
        let after = code[at + word.len()..].chars().next();
        !before.is_some_and(part) && !after.is_some_and(part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> usize {
        find_problems(&[File { path: path.to_string(), text: text.to_string() }]).len()
    }

    #[test]
    fn words_outside_their_folders_are_found() {
        assert_eq!(found("crates/tierdex/src/rank/topk.rs", "unsafe { x }"), 1);
        assert_eq!(found("crates/tierdex/src/lib.rs", "#![forbid(unsafe_code)]"), 0);
        assert_eq!(found("crates/codec/src/kernel/avx2/mod.rs", "unsafe { x }"), 0);
        assert_eq!(found("crates/codec/src/pfor/mod.rs", "unsafe { x }"), 1);
        assert_eq!(found("crates/tierdex/src/segment/mod.rs", "use std::fs::File;"), 1);
        assert_eq!(found("crates/tierdex/src/query/mod.rs", "std::thread::spawn(f)"), 1);
        assert_eq!(found("cli/src/util/mod.rs", "x"), 1);
    }
}
