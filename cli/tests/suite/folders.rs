//! `tierdex index FOLDER --upsert`: only changed files are read, and `--prune` deletes what is gone.

use crate::workspace::{Workspace, assert_succeeded, wait_until};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::time::{Duration, SystemTime};

const UPDATE: &str = "index mail --out i --upsert --summary json";
const PRUNE: &str = "index mail --out i --upsert --prune --summary json";

/// Writes a file that last changed this number of seconds after a time that is long past.
fn write(workspace: &Workspace, name: &str, seconds: u64, text: &str) {
    let path = workspace.path(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, text).unwrap();
    set_time(workspace, name, seconds);
}

fn set_time(workspace: &Workspace, name: &str, seconds: u64) {
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_600_000_000 + seconds);
    File::options().write(true).open(workspace.path(name)).unwrap().set_modified(time).unwrap();
}

/// JSON lines of documents, each with an id and a text.
fn lines(documents: &[(&str, &str)]) -> String {
    let line = |(id, text): &(&str, &str)| json!({ "id": id, "text": text }).to_string() + "\n";
    documents.iter().map(line).collect()
}

/// The ids and scores of the documents that match a query.
fn answer(workspace: &Workspace, index: &str, query: &str) -> BTreeMap<String, f64> {
    let output = workspace.run_with(["search", index, query, "--format", "json", "--count", "-k", "1000"]);
    let answer: Value = serde_json::from_str(&assert_succeeded(&output)).unwrap();
    let hits = answer["hits"].as_array().unwrap();
    assert_eq!(answer["total"], hits.len());
    hits.iter().map(|hit| (hit["id"].as_str().unwrap().into(), hit["score"].as_f64().unwrap())).collect()
}

fn ids(workspace: &Workspace) -> Vec<String> {
    answer(workspace, "i", "*:*").into_keys().collect()
}

/// Documents added, replaced and deleted, and files unchanged, of a summary.
fn counts(summary: &Value) -> [u64; 4] {
    let count = |name: &str| summary[name].as_u64().unwrap();
    [count("documents"), count("replaced"), count("deleted"), count("unchanged_files")]
}

fn three_files() -> Workspace {
    let workspace = Workspace::new();
    write(&workspace, "mail/a.txt", 0, "one two");
    write(&workspace, "mail/sub/b.txt", 0, "two three");
    write(&workspace, "mail/c.jsonl", 0, &lines(&[("c1", "three"), ("c2", "four"), ("c3", "five")]));
    assert_eq!(counts(&workspace.run_for_json(UPDATE)), [5, 0, 0, 0]);
    workspace
}

#[test]
fn only_changed_files_are_read() {
    let workspace = three_files();
    let generation = || workspace.run_for_json("info i --format json")["generation"].clone();
    let before = generation();
    assert_eq!(counts(&workspace.run_for_json(UPDATE)), [0, 0, 0, 3]);
    assert_eq!(counts(&workspace.run_for_json(PRUNE)), [0, 0, 0, 3]);
    assert_eq!(generation(), before, "nothing to commit");

    // Neither the size nor the time alone tells a change.
    write(&workspace, "mail/a.txt", 1, "one six");
    assert_eq!(counts(&workspace.run_for_json(UPDATE)), [1, 1, 0, 2]);
    write(&workspace, "mail/a.txt", 1, "one six seven");
    assert_eq!(counts(&workspace.run_for_json(UPDATE)), [1, 1, 0, 2]);
    write(&workspace, "mail/sub/new.txt", 0, "six");
    assert_eq!(counts(&workspace.run_for_json(UPDATE)), [1, 0, 0, 3]);
    let found: Vec<String> = answer(&workspace, "i", "six").into_keys().collect();
    assert_eq!(found, ["mail/a.txt", "mail/sub/new.txt"]);
    assert!(workspace.ok("check i").starts_with("sound"));
}

#[test]
fn documents_that_are_gone_are_deleted_by_prune_only() {
    let workspace = three_files();
    fs::remove_file(workspace.path("mail/a.txt")).unwrap();
    write(&workspace, "mail/c.jsonl", 1, &lines(&[("c1", "three"), ("c4", "six")]));
    assert_eq!(counts(&workspace.run_for_json(UPDATE)), [2, 1, 0, 1]);
    assert_eq!(ids(&workspace), ["c1", "c2", "c3", "c4", "mail/a.txt", "mail/sub/b.txt"]);
    // What was not deleted then is deleted now, although no file has changed.
    assert_eq!(counts(&workspace.run_for_json(PRUNE)), [0, 0, 1, 2]);
    assert_eq!(ids(&workspace), ["c1", "c2", "c3", "c4", "mail/sub/b.txt"]);
    write(&workspace, "mail/c.jsonl", 2, &lines(&[("c1", "three"), ("c4", "six")]));
    assert_eq!(counts(&workspace.run_for_json(PRUNE)), [2, 2, 2, 1]);
    assert_eq!(ids(&workspace), ["c1", "c4", "mail/sub/b.txt"]);
    assert!(workspace.ok("check i").starts_with("sound"));
}

#[test]
fn documents_move_between_files() {
    let workspace = Workspace::new();
    write(&workspace, "mail/a.jsonl", 0, &lines(&[("1", "x"), ("2", "x")]));
    write(&workspace, "mail/b.jsonl", 0, &lines(&[("3", "x"), ("4", "x")]));
    write(&workspace, "mail/c.jsonl", 0, &lines(&[("5", "x"), ("2", "y")]));
    workspace.run_for_json(UPDATE);
    // 3 goes to an earlier file and 1 to a later one; 2 is still in another file that has not changed.
    write(&workspace, "mail/a.jsonl", 1, &lines(&[("3", "z")]));
    write(&workspace, "mail/b.jsonl", 1, &lines(&[("4", "z"), ("1", "z")]));
    assert_eq!(counts(&workspace.run_for_json(PRUNE)), [3, 3, 0, 1]);
    assert_eq!(ids(&workspace), ["1", "2", "3", "4", "5"]);
    // A whole file is renamed; the file that still holds 2 is read as well.
    fs::rename(workspace.path("mail/b.jsonl"), workspace.path("mail/0.jsonl")).unwrap();
    assert_eq!(counts(&workspace.run_for_json(PRUNE)), [4, 4, 0, 1]);
    assert_eq!(text_of(&workspace, "2").unwrap(), "y");
    assert_eq!(ids(&workspace), ["1", "2", "3", "4", "5"]);
}

#[test]
fn more_than_half_is_deleted_only_if_all_may_be() {
    let workspace = three_files();
    fs::remove_file(workspace.path("mail/c.jsonl")).unwrap();
    let before = ids(&workspace);
    workspace.fails_in_one_line(2, PRUNE, "3 of 5 documents");
    assert_eq!(ids(&workspace), before);
    assert_eq!(counts(&workspace.run_for_json(&PRUNE.replace("--prune", "--prune=all"))), [0, 0, 3, 2]);
    assert_eq!(ids(&workspace), ["mail/a.txt", "mail/sub/b.txt"]);
    fs::remove_file(workspace.path("mail/a.txt")).unwrap();
    assert_eq!(counts(&workspace.run_for_json(PRUNE)), [0, 0, 1, 1], "exactly half");
}

#[test]
fn a_missing_or_empty_folder_deletes_nothing() {
    let workspace = three_files();
    fs::rename(workspace.path("mail"), workspace.path("other")).unwrap();
    let all = PRUNE.replace("--prune", "--prune=all");
    workspace.fails_in_one_line(2, &all, "check the name");
    fs::create_dir(workspace.path("mail")).unwrap();
    workspace.fails_in_one_line(1, &all, "mail: the folder has no files; nothing was changed");
    // Files of folders that are not given stay.
    assert_eq!(counts(&workspace.run_for_json(&all.replace("mail", "other"))), [5, 3, 0, 0]);
    assert_eq!(ids(&workspace).len(), 7);
    // So do those of a folder that cannot be listed: here a link to nothing.
    fs::remove_dir(workspace.path("mail")).unwrap();
    fs::rename(workspace.path("other"), workspace.path("mail")).unwrap();
    fs::rename(workspace.path("mail/sub"), workspace.path("away")).unwrap();
    std::os::unix::fs::symlink("nowhere", workspace.path("mail/sub")).unwrap();
    let summary = workspace.run_for_json(PRUNE);
    assert_eq!(counts(&summary), [0, 0, 0, 2], "{summary}");
    assert!(ids(&workspace).contains(&"mail/sub/b.txt".to_string()));
}

#[test]
fn files_with_problems_delete_nothing() {
    let workspace = three_files();
    write(&workspace, "mail/c.jsonl", 1, "{\"id\":\"c1\",\"text\":\"new\"}\n{broken\n");
    assert_eq!(counts(&workspace.run_for_json(PRUNE)), [1, 1, 0, 2]);
    assert_eq!(ids(&workspace), ["c1", "c2", "c3", "mail/a.txt", "mail/sub/b.txt"]);
    write(&workspace, "mail/c.jsonl", 2, &lines(&[("c1", "new")]));
    assert_eq!(counts(&workspace.run_for_json(PRUNE)), [1, 1, 2, 2]);
    assert_eq!(ids(&workspace), ["c1", "mail/a.txt", "mail/sub/b.txt"]);
}

#[test]
fn files_that_have_just_changed_are_read_again() {
    let workspace = three_files();
    fs::write(workspace.path("mail/a.txt"), "now").unwrap();
    assert_eq!(counts(&workspace.run_for_json(UPDATE)), [1, 1, 0, 2]);
    assert_eq!(counts(&workspace.run_for_json(UPDATE)), [1, 1, 0, 2]);
    set_time(&workspace, "mail/a.txt", 5);
    assert_eq!(counts(&workspace.run_for_json(UPDATE)), [1, 1, 0, 2]);
    assert_eq!(counts(&workspace.run_for_json(UPDATE)), [0, 0, 0, 3]);
}

#[test]
fn other_settings_read_all_files_again() {
    let workspace = three_files();
    assert_eq!(counts(&workspace.run_for_json(&format!("{UPDATE} --split 16"))), [5, 5, 0, 0]);
    assert_eq!(counts(&workspace.run_for_json(&format!("{UPDATE} --split 16"))), [0, 0, 0, 3]);
    // Shorter texts have fewer parts.
    write(&workspace, "mail/a.txt", 1, "one two three four five six");
    assert_eq!(counts(&workspace.run_for_json(&format!("{PRUNE} --split 16"))), [2, 0, 1, 2]);
    write(&workspace, "mail/a.txt", 2, "one two three four five");
    workspace.run_for_json(&format!("{PRUNE} --split 16"));
    write(&workspace, "mail/a.txt", 3, "one");
    assert_eq!(counts(&workspace.run_for_json(&format!("{PRUNE} --split 16"))), [1, 0, 2, 2]);
    assert_eq!(ids(&workspace), ["c1", "c2", "c3", "mail/a.txt", "mail/sub/b.txt"]);
}

#[test]
fn wrong_flags_are_usage_errors() {
    let workspace = three_files();
    workspace.file("one.jsonl", lines(&[("1", "x")]));
    for (arguments, expected) in [
        ("index mail --out i --prune", "--upsert"),
        ("index one.jsonl --out i --upsert --prune", "--prune needs a folder"),
        ("index mail --out i --upsert --prune=most", "possible values"),
    ] {
        workspace.fails(2, arguments, expected);
    }
}

/// Random changes of a folder: after each run the index answers as a new one of the folder.
#[test]
fn random_changes_give_the_answers_of_a_new_index() {
    let workspace = Workspace::new();
    let mut state = 7u64;
    let mut random = move |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    write(&workspace, "mail/keep.txt", 0, "w0 w1 w2");
    for round in 0..12 {
        for _ in 0..3 {
            let name = format!("mail/{}/{}.txt", random(3), random(4));
            match random(3) {
                0 => drop(fs::remove_file(workspace.path(&name))),
                _ => {
                    write(&workspace, &name, round, &format!("w{} w{} w{}", random(9), random(9), random(9)))
                }
            }
        }
        // Each file of lines has ids of its own, a random part of them.
        let file = random(3);
        let mut documents: Vec<(String, String)> = Vec::new();
        for id in 0..20 {
            if random(2) == 0 {
                documents.push((format!("{file}-{id}"), format!("w{} w{}", random(9), random(9))));
            }
        }
        let documents: Vec<_> = documents.iter().map(|(id, text)| (id.as_str(), text.as_str())).collect();
        write(&workspace, &format!("mail/{file}.jsonl"), round, &lines(&documents));
        workspace.run_for_json(&PRUNE.replace("--prune", "--prune=all"));
        workspace.ok("index mail --out fresh --replace");
        for query in ["*:*", "w1 w2 w3", "+w4 w5", "w6 -w7", "w1*"] {
            assert_eq!(
                answer(&workspace, "i", query),
                answer(&workspace, "fresh", query),
                "{round}: {query}"
            );
        }
    }
    assert!(workspace.ok("check i").starts_with("sound"));
}

/// The text of a document.
fn text_of(workspace: &Workspace, id: &str) -> Option<String> {
    let output = workspace.run_with(["get", "i", id]);
    let line: Value = serde_json::from_slice(&output.stdout).ok()?;
    Some(line["text"].as_str().unwrap().to_string())
}

#[test]
fn a_problem_between_two_files_belongs_to_none() {
    let workspace = three_files();
    write(&workspace, "mail/a2.txt", 0, "seven");
    write(&workspace, "mail/a4.jsonl", 0, &lines(&[("x", "one"), ("y", "two")]));
    write(&workspace, "mail/b.txt", 0, "eight");
    for name in ["mail/a3", "mail/a5"] {
        std::os::unix::fs::symlink("nowhere", workspace.path(name)).unwrap();
    }
    assert_eq!(counts(&workspace.run_for_json(PRUNE)), [4, 0, 0, 3]);
    assert_eq!(counts(&workspace.run_for_json(PRUNE)), [0, 0, 0, 6]);
    fs::remove_file(workspace.path("mail/a2.txt")).unwrap();
    write(&workspace, "mail/a4.jsonl", 1, &lines(&[("x", "one")]));
    assert_eq!(counts(&workspace.run_for_json(PRUNE)), [1, 1, 2, 4]);
    assert_eq!(ids(&workspace), ["c1", "c2", "c3", "mail/a.txt", "mail/b.txt", "mail/sub/b.txt", "x"]);
}

#[test]
fn files_with_problems_are_read_again_and_lose_nothing() {
    let workspace = three_files();
    write(&workspace, "mail/a.txt", 1, "\0\0\0\0");
    write(&workspace, "mail/c.jsonl", 1, &(lines(&[("c1", "three")]) + "{broken\n"));
    write(&workspace, "mail/d.jsonl", 1, &lines(&[("c3", "moved")]));
    for _ in 0..2 {
        workspace.run_for_json(PRUNE);
        assert_eq!(ids(&workspace), ["c1", "c2", "c3", "mail/a.txt", "mail/sub/b.txt"]);
        workspace.fails(1, &format!("{PRUNE} --on-error fail"), "c.jsonl:2");
    }
    // A file with problems may still hold what another file no longer does.
    fs::remove_file(workspace.path("mail/d.jsonl")).unwrap();
    workspace.run_for_json(PRUNE);
    assert!(ids(&workspace).contains(&"c3".to_string()));
}

#[test]
fn an_id_of_several_files_is_that_of_a_file_that_exists() {
    let workspace = Workspace::new();
    write(&workspace, "mail/a.jsonl", 0, &lines(&[("1", "from a"), ("2", "x"), ("3", "x")]));
    write(&workspace, "mail/b.jsonl", 0, &lines(&[("1", "from b")]));
    workspace.run_for_json(UPDATE);
    assert_eq!(text_of(&workspace, "1").unwrap(), "from b");
    fs::remove_file(workspace.path("mail/b.jsonl")).unwrap();
    workspace.run_for_json(PRUNE);
    assert_eq!(counts(&workspace.run_for_json(PRUNE)), [3, 3, 0, 0]);
    assert_eq!(text_of(&workspace, "1").unwrap(), "from a");
}

#[test]
fn folders_with_other_settings_and_names_stay_apart() {
    let workspace = three_files();
    write(&workspace, "notes/long.txt", 0, "one two three four five six");
    let notes = UPDATE.replace("mail", "notes");
    assert_eq!(counts(&workspace.run_for_json(&format!("{notes} --split 16"))), [2, 0, 0, 0]);
    assert_eq!(counts(&workspace.run_for_json(&format!("{UPDATE} --split 16"))), [5, 5, 0, 0]);
    // The same folder by other names, and a folder in it.
    for name in ["./mail", "mail/", workspace.path("mail").to_str().unwrap(), "mail mail/sub"] {
        let summary = workspace.run_for_json(&format!("{} --split 16", UPDATE.replace("mail", name)));
        assert_eq!(counts(&summary), [0, 0, 0, 3], "{name}");
    }
    // The same name in another directory is another folder.
    write(&workspace, "other/mail/a.txt", 0, "elsewhere");
    let mut command = workspace.command("index mail --out ../i --upsert --prune=all".split(' '));
    assert_succeeded(&command.current_dir(workspace.path("other")).output().unwrap());
    let mut expected =
        ["c1", "c2", "c3", "mail/a.txt", "mail/sub/b.txt", "notes/long.txt#0", "notes/long.txt#1"];
    expected.sort_unstable();
    assert_eq!(ids(&workspace), expected);
    assert_eq!(text_of(&workspace, "mail/a.txt").unwrap(), "elsewhere");
}

/// A run that waits for another one lists the folders after that.
#[test]
fn a_run_that_waits_lists_folders_when_it_has_the_lock() {
    let workspace = three_files();
    let (mut holder, input) = workspace.spawn_with_input("index - --out i --upsert");
    let lock = workspace.path("i/write.lock");
    wait_until(&mut holder, || lock.exists());
    let mut waiting = workspace.spawn("index mail --out i --upsert --prune --wait 30");
    // It has listed the folders once when it opens the directory of the index.
    let (files, directory) = (format!("/proc/{}/fd", waiting.id()), workspace.path("i"));
    wait_until(&mut waiting, || {
        let open = fs::read_dir(&files).into_iter().flatten().flatten();
        open.filter_map(|entry| fs::read_link(entry.path()).ok()).any(|path| path == directory)
    });
    write(&workspace, "mail/new.txt", 0, "new");
    drop(input);
    holder.wait().unwrap();
    let _ = workspace.run(UPDATE);
    assert!(waiting.wait().unwrap().success());
    assert!(ids(&workspace).contains(&"mail/new.txt".to_string()));
}
