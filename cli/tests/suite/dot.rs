//! `--dot`: the sum of boost times frequency.

use crate::workspace::Workspace;

#[test]
fn dot_sums_boosts_times_frequencies() {
    let workspace = Workspace::new();
    workspace.file("docs.jsonl", "{\"id\":\"1\",\"text\":\"a a a b\"}\n{\"id\":\"2\",\"text\":\"b b c\"}\n");
    workspace.file("queries.tsv", "q\ta b\n");
    workspace.ok("index docs.jsonl --out i");
    workspace.ok("batch i --queries queries.tsv --run run --dot");
    assert_eq!(
        std::fs::read_to_string(workspace.path("run")).unwrap(),
        "q Q0 1 1 4 tierdex\nq Q0 2 2 2 tierdex\n"
    );
    workspace.fails(2, "search i a --dot --k1 1", "cannot be used with");
}
