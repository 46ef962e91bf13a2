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
        place.fails(2, &format!("batch i {files}"), words);
    }
    assert_eq!(fs::read_to_string(place.path("q")).unwrap(), "q1\tcat\n");
    place.ok("batch i --queries q --run /dev/null --lookahead-log /dev/null");
}
