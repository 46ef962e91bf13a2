//! Layering of crates and modules: a crate uses only the crates listed for it, and a module of the engine
//! uses only modules before it.

use crate::{imports::group_members, tree::File};

/// Crates, each with its source folder and the crates that it may use.
const CRATE_ORDER: &[(&str, &str, &[&str])] = &[
    ("tierdex_codec", "crates/codec/src/", &[]),
    ("tierdex_io", "crates/io/src/", &[]),
    ("tierdex_cache", "crates/cache/src/", &["tierdex_io"]),
    ("tierdex", "crates/tierdex/src/", &["tierdex_codec", "tierdex_io", "tierdex_cache"]),
    ("tierdex_bench_protocol", "bench/protocol/src/", &[]),
    (
        "tierdex_bench",
        "bench/src/",
        &[
            "tierdex_codec",
            "tierdex_io",
            "tierdex_cache",
            "tierdex",
            "tierdex_bench_protocol",
            "tierdex_thesis",
        ],
    ),
    ("tierdex_thesis", "bench/thesis/src/", &["tierdex_io", "tierdex_cache", "tierdex"]),
    ("tierdex_server", "crates/server/src/", &["tierdex"]),
    ("tierdex_cli", "cli/src/", &["tierdex", "tierdex_server"]),
    ("tierdex_python_writer", "python/writer/src/", &[]),
    ("tierdex_python", "python/src/", &["tierdex", "tierdex_python_writer"]),
    ("tierdex-bench", "bench/program/", &["tierdex", "tierdex_bench", "tierdex_cli"]),
    // Contains the names of the crates in strings, but depends on none of them.
    (
        "xtask",
        "xtask/src/",
        &["tierdex_codec", "tierdex_io", "tierdex_cache", "tierdex", "tierdex_bench", "tierdex_cli"],
    ),
];

/// Separate workspaces that compare crates of other projects with those of this one.
const PEERS_FOLDER: &str = "bench/peers/";

/// Modules of the engine in dependency order.
const MODULE_ORDER: &[&str] = &[
    "limits",
    "error",
    "bytes",
    "schema",
    "text",
    "memtable",
    "transform",
    "segment",
    "cursor",
    "rank",
    "query",
    "eval",
    "index",
    "ciff",
    "engine",
    "advise",
];

/// Uses against the order, one line each.
pub fn find_problems(sources: &[File]) -> Vec<String> {
    let mut problems = Vec::new();
    for file in sources {
        let Some((name, folder, allowed)) =
            CRATE_ORDER.iter().find(|(_, folder, _)| file.path.starts_with(folder))
        else {
            let known = file.path.contains("/tests/")
                || file.path.contains("/examples/")
                || file.path.starts_with("fuzz/")
                || file.path.contains("/benches/")
                || file.path.starts_with(PEERS_FOLDER);
            if !known {
                problems.push(format!("{}: belongs to no crate listed in layers.rs", file.path));
            }
            continue;
        };
        let module = (*name == "tierdex").then(|| module_of(&file.path[folder.len()..]));
        for (line, code) in file.code() {
            for (other, _, _) in
                CRATE_ORDER.iter().filter(|(other, _, _)| other != name && !allowed.contains(other))
            {
                if uses_crate(code, other) {
                    problems.push(format!("{}:{line}: {name} must not use {other}", file.path));
                }
            }
        }
        if let Some(module) = module {
            let statements = joined_statements(file);
            problems.extend(
                statements.iter().filter_map(|(line, code)| against_order(file, *line, code, module)),
            );
        }
    }
    problems
}

/// The lines of a file; the lines of an import are joined.
fn joined_statements(file: &File) -> Vec<(usize, String)> {
    let mut statements: Vec<(usize, String)> = Vec::new();
    for (line, code) in file.code() {
        match statements.last_mut() {
            Some((_, import)) if import.contains("use ") && import.ends_with(['{', ',']) => {
                import.push_str(code.trim());
            }
            _ => statements.push((line, code.trim().to_string())),
        }
    }
    statements
}

/// The modules that a path or a group of paths in the crate starts with.
fn first_modules(paths: &str) -> Vec<&str> {
    let paths = paths.strip_prefix('{').map_or(vec![paths], group_members);
    let word = |path: &str| path.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(path.len());
    paths.into_iter().map(|path| &path[..word(path)]).collect()
}

fn module_of(path: &str) -> &str {
    path.split(['/', '.']).next().unwrap_or_default()
}

fn against_order(file: &File, line: usize, code: &str, module: &str) -> Option<String> {
    let order = |name: &str| MODULE_ORDER.iter().position(|known| *known == name);
    if module == "lib" {
        return None;
    }
    let Some(own) = order(module) else {
        return (line == 1)
            .then(|| format!("{}: module {module} is missing in the order of layers.rs", file.path));
    };
    let mut used = code.split("crate::").skip(1).flat_map(first_modules);
    let later = used.find(|used| order(used).is_some_and(|other| other > own))?;
    Some(format!("{}:{line}: module {module} uses {later}, which is after it in the order", file.path))
}

/// Whether code uses a crate: its name as a whole word, followed by `::` or ` as `.
fn uses_crate(code: &str, name: &str) -> bool {
    let word = |c: char| c.is_alphanumeric() || c == '_';
    code.match_indices(name).any(|(at, _)| {
        let before = code[..at].chars().next_back();
        let after = &code[at + name.len()..];
        !before.is_some_and(|c| word(c) || c == ':') && (after.starts_with("::") || after.starts_with(" as "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<String> {
        find_problems(&[File { path: path.to_string(), text: text.to_string() }])
    }

    #[test]
    fn uses_against_the_order_are_found() {
        assert_eq!(found("crates/tierdex/src/query/plan.rs", "use crate::rank::TopK;\n"), [""; 0]);
        assert_eq!(found("crates/tierdex/src/rank/topk.rs", "use crate::query::Plan;\n").len(), 1);
        assert_eq!(found("crates/tierdex/src/rank/topk.rs", "use crate::{Error, query::Plan};\n").len(), 1);
        let lines =
            "use crate::{\n    Error, limits::{A, B},\n    query::Plan,\n};\nlet x = crate::index::Y;\n";
        assert_eq!(found("crates/tierdex/src/rank/topk.rs", lines).len(), 2);
        assert_eq!(found("crates/tierdex/src/text/mod.rs", "let x = crate::index::Index;\n").len(), 1);
        assert_eq!(found("crates/tierdex/src/text/mod.rs", "// crate::index\n"), [""; 0]);
        assert_eq!(found("crates/io/src/mem.rs", "use tierdex_codec::Codec;\n").len(), 1);
        assert_eq!(found("crates/codec/src/raw.rs", "use tierdex::Error;\n").len(), 1);
        assert_eq!(found("crates/cache/src/job.rs", "use tierdex_io::Disk;\n"), [""; 0]);
        assert_eq!(found("crates/cache/src/job.rs", "use tierdex_codec::Codec;\n").len(), 1);
        assert_eq!(found("crates/io/src/mem.rs", "use tierdex_cache::Cache;\n").len(), 1);
        assert_eq!(found("cli/src/main.rs", "use tierdex_io::Disk;\n").len(), 1);
        assert_eq!(found("crates/tierdex/src/lib.rs", "use tierdex_bench::codecs;\n").len(), 1);
        assert_eq!(found("bench/peers/codecs/src/main.rs", "use tierdex_bench::codecs;\n"), [""; 0]);
        assert_eq!(found("crates/tierdex/src/cellar/mod.rs", "x\n").len(), 1);
        assert_eq!(found("crates/attic/src/lib.rs", "x\n").len(), 1);
    }
}
