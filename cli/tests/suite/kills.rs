//! Commands that update an index are killed at random moments. Afterwards the index is sound and has all
//! documents of the last command that succeeded, or all changes of the killed one too.

use crate::random::Random;
use crate::workspace::Workspace;
use serde_json::json;
use std::process::Child;
use std::{collections::BTreeMap, io::Write, sync::Arc, thread::sleep, time::Duration};
use tierdex::internal::index::check_on;
use tierdex::{Index, Query, SearchOptions, io::PosixDisk};

const KILLS: usize = 200;

/// Commands that are started for them; some end before they are killed.
const COMMANDS_MAX: usize = 10 * KILLS;

/// Number of different ids.
const IDS: usize = 60;

/// Most files that a killed command has seen written. A commit writes about twenty.
const NEW_FILES_MAX: usize = 24;

const DELAY_MICROSECONDS_MAX: usize = 1500;

/// Documents by their ids, each with its text.
type Documents = BTreeMap<String, String>;

/// A command that updates documents, and what it leaves of others.
struct Update {
    arguments: String,
    input: String,
    left: Documents,
}

impl Update {
    /// Writes or deletes some documents, whose texts name the update.
    fn random(number: usize, before: &Documents, random: &mut Random) -> Update {
        let ids: Vec<String> = (0..1 + random.below(12)).map(|_| format!("d{}", random.below(IDS))).collect();
        let (mut left, mut input) = (before.clone(), String::new());
        let merge = *random.pick(&["similar", "similar", "none", "one"]);
        if random.one_in(4) {
            ids.iter().for_each(|id| drop(left.remove(id)));
            return Update { arguments: format!("delete i {}", ids.join(" ")), input, left };
        }
        for (at, id) in ids.into_iter().enumerate() {
            let text = format!("update {number} document {at}{}", " word".repeat(random.below(50)));
            input += &format!("{}\n", json!({ "id": id, "title": "a title", "text": text }));
            left.insert(id, text);
        }
        Update { arguments: format!("index - --out i --upsert --merge {merge}"), input, left }
    }

    /// Runs the command, and kills it after a random number of files and a random time. Returns whether it
    /// succeeded before.
    fn run_and_kill(&self, workspace: &Workspace, random: &mut Random) -> bool {
        let before = workspace.names_in("i");
        let (mut child, mut input) = workspace.spawn_with_input(&self.arguments);
        // A delete does not read it.
        let _ = input.write_all(self.input.as_bytes());
        drop(input);
        let files = random.below(NEW_FILES_MAX);
        let is_new = |name: &String| before.binary_search(name).is_err();
        while is_running(&mut child)
            && workspace.names_in("i").iter().filter(|name| is_new(name)).count() < files
        {
            std::thread::yield_now();
        }
        sleep(Duration::from_micros(random.below(DELAY_MICROSECONDS_MAX) as u64));
        child.kill().unwrap();
        let output = child.wait_with_output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() || output.status.code().is_none(), "{}: {error}", self.arguments);
        output.status.success()
    }
}

fn is_running(child: &mut Child) -> bool {
    child.try_wait().unwrap().is_none()
}

/// The documents of the index, which is verified. Each id occurs once.
fn read_documents(workspace: &Workspace, what: &str) -> Documents {
    let disk = Arc::new(PosixDisk::open(&workspace.path("i")).unwrap());
    let report = check_on(disk.as_ref()).unwrap();
    assert!(report.problems.is_empty(), "{what}: {:?}", report.problems);
    let index = Index::open_on(disk).unwrap();
    let query = Query::parse("*:*", index.schema()).unwrap();
    let options = SearchOptions { k: 2 * IDS, count: true, ..SearchOptions::default() };
    let found = index.searcher().search(&query, &options).unwrap();
    assert_eq!(found.total, index.documents(), "{what}");
    let mut docs = Documents::new();
    for hit in found.hits {
        let id = index.searcher().id(hit.document).unwrap();
        assert_eq!(index.searcher().find_id(&id).unwrap(), Some(hit.document), "{what}: {id}");
        let text = index.searcher().stored(hit.document).unwrap().unwrap().value("text").to_string();
        assert_eq!(docs.insert(id, text), None, "{what}: two documents of an id");
    }
    docs
}

#[test]
fn killed_updates_leave_all_of_their_changes_or_none() {
    let workspace = Workspace::new();
    workspace.file("first.jsonl", "{\"id\":\"d0\",\"text\":\"first\"}\n");
    workspace.ok("index first.jsonl --out i --updatable");
    let mut random = Random::new(1);
    let mut docs = read_documents(&workspace, "the first");
    let (mut killed, mut committed) = (0, 0);
    for number in 0..COMMANDS_MAX {
        if killed == KILLS {
            break;
        }
        let update = Update::random(number, &docs, &mut random);
        let succeeded = update.run_and_kill(&workspace, &mut random);
        let what = format!("update {number}, {}, succeeded {succeeded}", update.arguments);
        let found = read_documents(&workspace, &what);
        if found != update.left {
            assert!(!succeeded && found == docs, "{what}: {found:#?}, not {docs:#?} or {:#?}", update.left);
        }
        killed += usize::from(!succeeded);
        committed += usize::from(found == update.left);
        docs = found;
    }
    assert_eq!(killed, KILLS, "{committed} committed");
    workspace.ok("index first.jsonl --out i --upsert --merge one");
    docs.insert("d0".to_string(), "first".to_string());
    assert_eq!(read_documents(&workspace, "the last"), docs);
    assert!(workspace.ok("check i").starts_with("sound: "));
}
