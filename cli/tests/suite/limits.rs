//! Limits of the system: memory, threads, file sizes, permissions.

use crate::workspace::limited::{count_failed_starts, ends_well, new_user, run};
use crate::workspace::{Workspace, assert_failed, assert_succeeded};
use std::os::unix::fs::PermissionsExt;

fn long_documents() -> String {
    let word = |id: u32, word: u32| format!(" w{}", id.wrapping_mul(7919) % (1 + word * 50));
    let text = |id: u32| (0..40).map(|number| word(id, number)).collect::<String>();
    let line = |id: u32| format!("{{\"id\":\"{id}\",\"text\":\"cat{}\"}}\n", text(id));
    (0..20_000).map(line).collect()
}

#[test]
fn running_out_of_memory_ends_with_one_line() {
    let workspace = Workspace::new();
    workspace.file("docs.jsonl", long_documents());
    workspace.file("docs.zst", zstd::encode_all(long_documents().as_bytes(), 3).unwrap());
    workspace.file("q", "q1\tcat\n");
    workspace.ok("index docs.jsonl --out i");
    let run_within = |megabytes: u64, arguments: &str| {
        run(&workspace, &format!("prlimit --as={}", megabytes << 20), arguments)
    };
    // With less the system cannot load the program.
    let least = (8..64).find(|megabytes| run_within(*megabytes, "--version").status.success()).unwrap();
    let mut exhausted = 0;
    for arguments in [
        "index docs.jsonl --out new --replace --threads 1",
        "index docs.zst --out new --replace --threads 2 --format jsonl",
        "search i cat -k 20000 --format json",
        "batch i --queries q --run r -k 20000",
    ] {
        for megabytes in (least..least + 16).chain([least + 18, least + 26, least + 34, 4096]) {
            let output = run_within(megabytes, arguments);
            let error = String::from_utf8_lossy(&output.stderr);
            // The program cannot be loaded, or the C library ends it: no memory for thread-local storage.
            let c_library = ["cannot allocate memory in static TLS", "failed to register TLS destructor"];
            if output.status.code() == Some(127) || c_library.iter().any(|line| error.contains(line)) {
                continue;
            }
            let context = format!("{arguments}, {megabytes} MB");
            if !ends_well(&output, &context) {
                exhausted += u32::from(error.contains("out of memory"));
                let names = workspace.names();
                assert!(
                    names.iter().all(|name| name != "r" && !name.starts_with(".tierdex")),
                    "{context}: {names:?}"
                );
                assert_eq!(workspace.run("info new").status.code(), Some(1), "{context}");
            }
        }
        let _ = std::fs::remove_dir_all(workspace.path("new"));
    }
    assert!(exhausted > 3, "commands ran out of memory {exhausted} times");
}

#[test]
fn threads_that_cannot_be_started_end_the_command_with_one_line() {
    let workspace = Workspace::with_documents();
    let mut failures = 0;
    for arguments in [
        "index docs.jsonl --out out/a --replace --threads 4",
        "index - --out out/b --replace --format text --threads 1",
    ] {
        let Some(failed) = count_failed_starts(&workspace, arguments, || ()) else { return };
        failures += failed;
    }
    assert!(failures >= 4, "only {failures} commands had too few threads");
}

#[test]
fn a_file_size_limit_ends_the_command_with_one_line() {
    let workspace = Workspace::new();
    workspace.file("docs.jsonl", long_documents());
    workspace.file("q", "q1\tcat\n");
    workspace.ok("index docs.jsonl --out i");
    for (arguments, words) in [
        ("index docs.jsonl --out new", "cannot write"),
        ("batch i --queries q --run r -k 20000", "cannot write r: "),
    ] {
        assert_failed(&run(&workspace, "prlimit --fsize=65536", arguments), 1, words);
    }
    assert_eq!(workspace.names(), ["docs.jsonl", "i", "q"]);
    assert_succeeded(&workspace.run("batch i --queries q --run r"));
}

#[test]
fn files_without_read_permission_are_not_reported_as_damaged() {
    let workspace = Workspace::with_index("");
    std::fs::set_permissions(workspace.path(""), std::fs::Permissions::from_mode(0o755)).unwrap();
    let Some(user) = new_user(&workspace, 1) else { return };
    let docs = std::fs::read_dir(workspace.path("i")).unwrap().map(|entry| entry.unwrap().path());
    let docs = docs.into_iter().find(|path| path.extension().is_some_and(|end| end == "postings")).unwrap();
    std::fs::set_permissions(&docs, std::fs::Permissions::from_mode(0o600)).unwrap();
    let words = format!("cannot open i/{}: permission denied", docs.file_name().unwrap().to_str().unwrap());
    assert_failed(&run(&workspace, &user, "search i cat"), 1, &words);
    let output = run(&workspace, &user, "check i");
    assert_failed(&output, 1, "i: 1 problem; give this user read permission for the files of the index");
    assert!(String::from_utf8(output.stdout).unwrap().starts_with(&words));
}
