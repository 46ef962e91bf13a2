//! The file of a run: whose it is, what it replaces, and what it never touches.

mod place;

use place::{DOCUMENTS, Place, succeeded};
use std::fs;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::{Command, Stdio};

fn with_index() -> Place {
    let place = Place::new();
    place.file("docs.jsonl", DOCUMENTS);
    place.file("q", "q1\tcat\n");
    place.ok("index docs.jsonl --out i");
    place
}

#[test]
fn of_two_batches_to_one_run_the_later_one_stays() {
    let place = with_index();
    place.file("r.partial", "precious");
    assert!(Command::new("mkfifo").arg(place.path("slow")).status().unwrap().success());
    let mut first = place.command("batch i --queries slow --run r".split(' '));
    let mut first = first.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut queries = fs::OpenOptions::new().write(true).open(place.path("slow")).unwrap();
    queries.write_all(b"first\tbird\n").unwrap();
    while place.names().iter().all(|name| !name.starts_with(".tierdex-run")) {
        assert_eq!(fs::read_to_string(place.path("r.partial")).unwrap(), "precious");
        assert!(first.try_wait().unwrap().is_none(), "it ended by itself");
        std::thread::yield_now();
    }
    place.ok("batch i --queries q --run r");
    assert!(fs::read_to_string(place.path("r")).unwrap().starts_with("q1 Q0 2 1 "));
    drop(queries);
    succeeded(&first.wait_with_output().unwrap());
    let run = fs::read_to_string(place.path("r")).unwrap();
    assert!(run.starts_with("first Q0 3 1 ") && run.lines().count() == 1, "{run}");

    place.fails(1, "batch none --queries q --run r", "no such directory");
    assert_eq!(fs::read_to_string(place.path("r.partial")).unwrap(), "precious");
    assert_eq!(place.names(), ["docs.jsonl", "i", "q", "r", "r.partial", "slow"]);
}

#[test]
fn links_are_written_through_and_permissions_stay() {
    let place = with_index();
    fs::create_dir(place.path("runs")).unwrap();
    symlink("runs/new", place.path("link")).unwrap();
    symlink(place.path("link"), place.path("link to link")).unwrap();
    succeeded(&place.run_with(["batch", "i", "--queries", "q", "--run", "link to link"]));
    assert!(place.path("link").is_symlink() && place.path("link to link").is_symlink());
    assert!(fs::read_to_string(place.path("runs/new")).unwrap().starts_with("q1 Q0 "));

    let mode = |name: &str| fs::metadata(place.path(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode("runs/new"), mode("q"), "a new run is a file like any other");
    for bits in [0o600, 0o660] {
        fs::set_permissions(place.path("runs/new"), fs::Permissions::from_mode(bits)).unwrap();
        place.ok("batch i --queries q --run link");
        assert_eq!(mode("runs/new"), bits);
    }
    assert_eq!(fs::read_dir(place.path("runs")).unwrap().count(), 1);

    symlink("nowhere/new", place.path("lost")).unwrap();
    place.fails(1, "batch i --queries q --run lost", "cannot write lost: ");
    symlink("round", place.path("round")).unwrap();
    place.fails(1, "batch i --queries q --run round", "cannot write round: ");
}

#[test]
fn no_file_is_written_over_another_of_the_same_command() {
    let place = with_index();
    fs::hard_link(place.path("q"), place.path("same")).unwrap();
    symlink("q", place.path("link")).unwrap();
    symlink("new", place.path("dangling")).unwrap();
    for (files, words) in [
        ("--queries q --run q", "--queries and --run name the same file"),
        ("--queries q --run ./same", "--queries and --run"),
        ("--queries link --run q", "--queries and --run"),
        ("--queries q --run r --lookahead-log link", "--queries and --lookahead-log"),
        ("--queries q --run new --lookahead-log i/../new", "--run and --lookahead-log"),
        ("--queries q --run dangling --lookahead-log new", "--run and --lookahead-log"),
    ] {
        place.fails(2, &format!("tierdex-bench batch i {files}"), words);
    }
    assert_eq!(fs::read_to_string(place.path("q")).unwrap(), "q1\tcat\n");
    place.ok(
        "tierdex-bench batch i --queries q --run /dev/null --mode hybrid-prefetch --lookahead-log /dev/null",
    );
}

/// What the shell has opened is written on, where it is, and not replaced.
#[test]
fn descriptors_are_written_and_not_replaced() {
    let place = with_index();
    for (run, redirection) in [
        ("/dev/stdout", ">>log"),
        ("/dev/stderr", "2>>log"),
        ("/dev/fd/1", ">>log"),
        ("/proc/self/fd/1", ">>log"),
        ("/dev/fd/5", "5>>log"),
        ("link", ">>log"),
    ] {
        let _ = fs::remove_file(place.path("link"));
        symlink("/dev/stdout", place.path("link")).unwrap();
        place.file("log", "before\n");
        let tierdex = env!("CARGO_BIN_EXE_tierdex");
        let script = format!("{tierdex} batch i --queries q --run {run} {redirection}; echo after >>log");
        let mut shell = Command::new("bash");
        succeeded(&shell.args(["-c", &script]).current_dir(place.path("")).output().unwrap());
        let log = fs::read_to_string(place.path("log")).unwrap();
        assert!(log.starts_with("before\n") && log.ends_with("after\n"), "{run}: {log}");
        assert!(log.contains("q1 Q0 2 1 "), "{run}: {log}");
    }
}

#[test]
fn a_run_is_never_a_file_of_the_index_nor_the_queries_on_standard_input() {
    let place = with_index();
    for name in ["manifest-0000000000000001", "0000000000000001.0.docs", "new"] {
        place.fails(2, &format!("batch i --queries q --run i/{name}"), "in the folder of the index");
    }
    assert!(place.ok("check i").starts_with("sound"));
    let queries = fs::File::open(place.path("q")).unwrap();
    let output = place.command("batch i --queries - --run q".split(' ')).stdin(queries).output().unwrap();
    place::failed(&output, 2, "name the same file");
    assert_eq!(fs::read_to_string(place.path("q")).unwrap(), "q1\tcat\n");
}

#[test]
fn a_run_that_may_not_be_written_is_not_replaced() {
    let place = with_index();
    let id = (200_000 + std::process::id()).to_string();
    fs::set_permissions(place.path(""), fs::Permissions::from_mode(0o777)).unwrap();
    place.file("r", "another's");
    fs::set_permissions(place.path("r"), fs::Permissions::from_mode(0o444)).unwrap();
    let user = ["--reuid", &id, "--regid", &id, "--clear-groups"];
    let mut command = Command::new("setpriv");
    command.args(user).arg(env!("CARGO_BIN_EXE_tierdex")).current_dir(place.path(""));
    let output = command.args("batch i --queries q --run r".split(' ')).output().unwrap();
    if String::from_utf8_lossy(&output.stderr).contains("setpriv") {
        println!("not run: it needs to become another user");
        return;
    }
    place::failed(&output, 1, "cannot write r: ");
    assert_eq!(fs::read_to_string(place.path("r")).unwrap(), "another's");
}
