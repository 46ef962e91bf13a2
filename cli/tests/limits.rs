//! What the system does not give: memory, threads, and files as large as they would be.

mod place;

use place::{DOCUMENTS, Place, failed, succeeded};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output};

/// A user for each test of each process: limits count all threads of a user, and neither they nor permissions
/// hold for root.
fn user(test: u32) -> [String; 4] {
    let id = 100_000 + 4 * std::process::id() + test;
    ["setpriv".to_string(), format!("--reuid={id}"), format!("--regid={id}"), "--clear-groups".to_string()]
}

fn documents() -> String {
    let word = |id: u32, word: u32| format!(" w{}", id.wrapping_mul(7919) % (1 + word * 50));
    let text = |id: u32| (0..40).map(|number| word(id, number)).collect::<String>();
    let line = |id: u32| format!("{{\"id\":\"{id}\",\"text\":\"cat{}\"}}\n", text(id));
    (0..20_000).map(line).collect()
}

fn run(place: &Place, wrapper: &[&str], arguments: &str) -> Output {
    let mut command = Command::new(wrapper[0]);
    let program = place::program(arguments.split(' '));
    command
        .args(&wrapper[1..])
        .arg(program.get_program())
        .args(program.get_args())
        .env("RUST_BACKTRACE", "1");
    let input = std::fs::File::open(place.path("docs.jsonl")).unwrap();
    command.current_dir(place.path("")).stdin(input).output().unwrap()
}

/// Success; else exit code 1 and one line on standard error.
fn ends_well(output: &Output, what: &str) -> bool {
    let error = String::from_utf8_lossy(&output.stderr);
    if output.status.code() != Some(0) {
        assert_eq!(output.status.code(), Some(1), "{what}: {error}");
        assert!(error.starts_with("tierdex: "), "{what}: {error}");
        // A panic shows the backtrace that was asked for.
        let backtrace = error.starts_with("tierdex: this is a defect, unless memory ran out: zstd ");
        assert!(error.lines().count() == 1 || backtrace, "{what}: {error}");
    }
    output.status.success()
}

#[test]
fn memory_that_is_not_there_ends_in_one_line() {
    let place = Place::new();
    place.file("docs.jsonl", documents());
    place.file("docs.zst", zstd::encode_all(documents().as_bytes(), 3).unwrap());
    place.file("q", "q1\tcat\n");
    place.ok("index docs.jsonl --out i");
    let mut exhausted = 0;
    for arguments in [
        "index docs.jsonl --out new --replace --threads 1",
        "index docs.zst --out new --replace --threads 2 --format jsonl",
        "search i cat -k 20000 --format json",
        "batch i --queries q --run r -k 20000",
    ] {
        for megabytes in (14u64..30).chain([32, 40, 48, 4096]) {
            let limit = format!("--as={}", megabytes << 20);
            let output = run(&place, &["prlimit", &limit], arguments);
            let error = String::from_utf8_lossy(&output.stderr);
            if output.status.code() == Some(127) || error.contains("cannot allocate memory in static TLS") {
                continue;
            }
            let what = format!("{arguments}, {megabytes} MB");
            if !ends_well(&output, &what) {
                exhausted += u32::from(error.contains("out of memory"));
                let names = place.names();
                assert!(
                    names.iter().all(|name| name != "r" && !name.starts_with(".tierdex")),
                    "{what}: {names:?}"
                );
                assert_eq!(place.run("info new").status.code(), Some(1), "{what}");
            }
        }
        let _ = std::fs::remove_dir_all(place.path("new"));
    }
    assert!(exhausted > 3, "commands were short of memory {exhausted} times");
}

#[test]
fn threads_that_cannot_be_started_end_in_one_line() {
    let place = Place::new();
    place.file("docs.jsonl", DOCUMENTS);
    for folder in ["", "out"] {
        std::fs::create_dir_all(place.path(folder)).unwrap();
        std::fs::set_permissions(place.path(folder), std::fs::Permissions::from_mode(0o777)).unwrap();
    }
    let user = user(0);
    let user: Vec<&str> = user.iter().map(String::as_str).collect();
    if !run(&place, &user, "--version").status.success() {
        println!("not run: it needs to become another user");
        return;
    }
    let mut failures = 0;
    for arguments in [
        "index docs.jsonl --out out/a --replace --threads 4",
        "index - --out out/b --replace --format text --threads 1",
        "tierdex-bench generate --out out/c --docs 1000 --postings 5000 --vocabulary 50",
    ] {
        for threads in 1..=4 {
            let limit = format!("--nproc={threads}");
            let output = run(&place, &[&user[..], &["prlimit", &limit]].concat(), arguments);
            let what = format!("{arguments}, {threads} threads");
            if ends_well(&output, &what) {
                let _ = std::fs::remove_dir_all(place.path("out/c"));
                continue;
            }
            failures += 1;
            let error = String::from_utf8_lossy(&output.stderr);
            assert!(error.contains("start"), "{what}: {error}");
            assert_eq!(threads == 1, error.contains("watches for Ctrl-C"), "{what}: {error}");
        }
    }
    assert!(failures >= 5, "only {failures} commands had too few threads");
}

#[test]
fn files_that_may_not_grow_end_in_one_line() {
    let place = Place::new();
    place.file("docs.jsonl", documents());
    place.file("q", "q1\tcat\n");
    place.ok("index docs.jsonl --out i");
    let limit = ["prlimit", "--fsize=65536"];
    for (arguments, words) in [
        ("index docs.jsonl --out new", "cannot write"),
        ("batch i --queries q --run r -k 20000", "cannot write r: "),
    ] {
        failed(&run(&place, &limit, arguments), 1, words);
    }
    assert_eq!(place.names(), ["docs.jsonl", "i", "q"]);
    succeeded(&place.run("batch i --queries q --run r"));
}

#[test]
fn files_that_may_not_be_read_are_not_called_damaged() {
    let place = Place::new();
    place.file("docs.jsonl", DOCUMENTS);
    place.ok("index docs.jsonl --out i");
    std::fs::set_permissions(place.path(""), std::fs::Permissions::from_mode(0o755)).unwrap();
    let user = user(1);
    let user: Vec<&str> = user.iter().map(String::as_str).collect();
    if !run(&place, &user, "--version").status.success() {
        println!("not run: it needs to become another user");
        return;
    }
    let docs = std::fs::read_dir(place.path("i")).unwrap().map(|entry| entry.unwrap().path());
    let docs = docs.into_iter().find(|path| path.extension().is_some_and(|end| end == "docs")).unwrap();
    std::fs::set_permissions(&docs, std::fs::Permissions::from_mode(0o600)).unwrap();
    let words = format!("cannot open i/{}: permission denied", docs.file_name().unwrap().to_str().unwrap());
    failed(&run(&place, &user, "search i cat"), 1, &words);
    let output = run(&place, &user, "check i");
    failed(&output, 1, "i: 1 problem; let this user read the files of the index");
    assert!(String::from_utf8(output.stdout).unwrap().starts_with(&words));
}
