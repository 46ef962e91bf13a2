//! Indexes with fields of named members.

use crate::workspace::Workspace;
use serde_json::json;

const MAIL: &str = concat!(
    r#"{"headers":{"message-id":"m1","list":"finance","received":["a","b"]},"from":"ann@example.org","#,
    r#""to":[{"name":"Bob Stone","address":"b@x"},{"name":"Cleo","address":"c@x"}],"#,
    r#""subject":"Budget of the year","body":"The numbers are attached."}"#,
    "\n",
    r#"{"headers":{"message-id":"m2","list":"sport"},"from":"bob@example.org","to":[{"name":"Ann"}],"#,
    r#""subject":"Match","body":["Tickets and the budget","for travelling"],"size":17}"#,
    "\n",
);

const FIELDS: &str = "--field subject:text:stem=english --field body:text:positions --field \
                      people:text:from=from+to.name --field list:text:from=headers.list";

fn mails(flags: &str) -> Workspace {
    let workspace = Workspace::new();
    workspace.file("mail.jsonl", MAIL);
    workspace
        .ok(&format!("index mail.jsonl --out i --id-field headers.message-id --title-field subject {flags}"));
    workspace
}

#[test]
fn fields_index_their_members() {
    let workspace = mails(FIELDS);
    for (query, expected) in [
        ("subject:budget^2 body:budget", &["m1", "m2"][..]),
        ("budgets", &["m1"]),
        ("body:\"the numbers\"", &["m1"]),
        ("people:ann", &["m1", "m2"]),
        ("people:(stone cleo)", &["m1"]),
        ("list:sport", &["m2"]),
        ("list:budget", &[]),
    ] {
        assert_eq!(workspace.sorted_ids("i", query), expected, "{query}");
    }
    let shown = workspace.run_for_json("search i body:travelling --format json");
    assert_eq!(shown["hits"][0]["title"], "Match");
    assert_eq!(shown["hits"][0]["snippet"], "Tickets and the budget for **travelling**");
    let info = workspace.run_for_json("info i --format json");
    let members = ["subject", "body", "from", "to.name", "headers.list"];
    assert_eq!(info["members"], json!(members));
    assert_eq!(info["fields"][2]["members"], json!(["from", "to.name"]));
    assert!(workspace.ok("info i").contains("field people (of from and to.name; "));
    assert!(workspace.ok("check i").starts_with("sound: "));
}

#[test]
fn a_schema_file_is_a_list_of_fields() {
    let workspace = mails(FIELDS);
    workspace.file(
        "schema.json",
        r#"{"title": "subject", "fields": [
            {"name": "subject", "stem": "english"},
            {"name": "body", "type": "text", "positions": true},
            {"name": "people", "from": ["from", "to.name"]},
            {"name": "list", "from": "headers.list"}]}"#,
    );
    workspace.ok("index mail.jsonl --out j --id-field headers.message-id --schema schema.json");
    let parts = |index: &str| {
        let info = workspace.run_for_json(&format!("info {index} --format json"));
        (info["members"].clone(), info["title"].clone(), info["fields"].clone())
    };
    assert_eq!(parts("j"), parts("i"));
    for (content, message) in [
        ("{", "--schema bad.json: not valid JSON"),
        ("{\"fields\":[{\"name\":\"a b\"}]}", "field name `a b` is not"),
        ("{\"fields\":[{\"name\":\"a\",\"stem\":\"x\"}]}", "no stemmer of language `x`"),
        ("{\"fields\":[{\"name\":\"a\"}],\"store\":\"x\"}", "`x` is no value of store"),
    ] {
        workspace.file("bad.json", content);
        workspace.fails_in_one_line(2, "index mail.jsonl --out k --schema bad.json", message);
    }
    workspace.fails_in_one_line(2, "index mail.jsonl --out k --schema none.json", "--schema none.json: ");
}

#[test]
fn fields_are_added_and_never_changed() {
    let workspace = mails("--field subject:text");
    let add =
        |fields: &str| format!("index mail.jsonl --out i --append --id-field headers.message-id {fields}");
    workspace.ok(&add("--field body:text"));
    assert_eq!(workspace.sorted_ids("i", "subject:match").len(), 2);
    // Documents of the first run have no body in the index.
    assert_eq!(workspace.sorted_ids("i", "body:tickets"), ["m2"]);
    workspace.ok("index mail.jsonl --out i --append --id-field headers.message-id");
    assert_eq!(workspace.sorted_ids("i", "body:tickets").len(), 2);
    workspace.fails_in_one_line(2, &add("--field body:text:positions"), "positions: no, here yes");
    workspace.fails_in_one_line(
        2,
        &add("--text-field body"),
        "--text-field names the text of an index without",
    );
    assert_eq!(workspace.sorted_ids("i", "subject:match").len(), 3);
    workspace.fails_in_one_line(
        2,
        &add("--field body:text --field to:text --field to:text"),
        "`to` is named twice",
    );
    assert_eq!(workspace.run_for_json("info i --format json")["members"], json!(["subject", "body"]));
}

#[test]
fn the_title_of_an_index_does_not_change() {
    let workspace = mails("--field subject:text");
    let append = "index mail.jsonl --out i --append --id-field headers.message-id --title-field";
    workspace.ok(&format!("{append} subject"));
    workspace.ok(&format!("{append} subject --field from:text"));
    for flags in ["from", "from --field list:text", "subject.text --field body:text"] {
        workspace.fails_in_one_line(
            2,
            &format!("{append} {flags}"),
            "the index has the title `subject`, which",
        );
    }
    // In an index without fields of its own the flag says where the title is.
    workspace.file("plain.jsonl", "{\"id\":\"1\",\"headline\":\"Cats\",\"text\":\"purr\"}");
    workspace.ok("index plain.jsonl --out j --title-field headline");
    workspace.ok("index plain.jsonl --out j --append --title-field headline");
    assert_eq!(workspace.search_index("j", "cats").0, 2);
}

#[test]
fn flags_change_no_settings_of_an_index() {
    let workspace = mails("--field subject:text:stem=english --field body:text:positions --store all");
    let append = "index mail.jsonl --out i --append --id-field headers.message-id";
    for flags in ["--store all", "--codec auto", "--norms byte --field subject:text:stem=english"] {
        workspace.ok(&format!("{append} {flags}"));
    }
    for (flags, message) in [
        ("--positions", "positions: no, here yes; append"),
        ("--stem english", "stemmer: none, here english; append"),
        ("--store members", "stored: all, here members; append"),
    ] {
        workspace.fails_in_one_line(2, &format!("{append} {flags}"), message);
    }
    let summary = workspace.ok(&format!("{append} --field year:text:from=headers.year"));
    assert!(summary.contains("; no words in field year (of headers.year)"), "{summary}");
}

#[test]
fn title_and_text_keep_their_names_in_the_input_when_fields_are_added() {
    let workspace = Workspace::new();
    workspace.file("mail.jsonl", "{\"id\":\"1\",\"subject\":\"Cats\",\"body\":\"purr\",\"from\":\"ann\"}");
    let index = "index mail.jsonl --out i --title-field subject --text-field body";
    workspace.ok(index);
    workspace.ok(&format!("{index} --append --field from:text"));
    assert_eq!(workspace.sorted_ids("i", "cats purr"), ["1", "1"]);
    assert_eq!(workspace.sorted_ids("i", "from:ann"), ["1"]);
    let message = "--text-field is body, which is another member of the schema too";
    workspace.fails_in_one_line(2, &format!("{index} --append --field body:text"), message);
}

#[test]
fn documents_need_a_member_of_a_field() {
    let workspace = mails(FIELDS);
    workspace.file(
        "bad.jsonl",
        "{\"url\":\"u\"}\n{\"subject\":5}\n{\"subject\":null}\n{\"to\":{\"name\":\"x\"}}\n",
    );
    let output = workspace.run("index bad.jsonl --out i --append");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    let expected = [
        "bad.jsonl:1: the object has `url`, and none of the members subject, body, from, to.name, headers.list",
        "bad.jsonl:2: invalid type: integer `5`, expected a string or an array of strings in `subject`",
    ];
    expected.iter().for_each(|line| assert!(errors.contains(line), "{errors}"));
    assert_eq!(workspace.sorted_ids("i", "people:x"), ["bad.jsonl:4"]);

    workspace.file("t.tsv", "id\tfrom\tsubject\tweight\nt1\tzed\tCurling\t5\n");
    let summary = workspace.ok("index t.tsv --out i --append");
    assert!(summary.contains("not indexed: weight (1)"), "{summary}");
    assert_eq!(workspace.sorted_ids("i", "people:zed"), ["t1"]);
    workspace.file("u.tsv", "u1\tyak\tx\n");
    workspace.fails_in_one_line(1, "index u.tsv --out i --append", "is no header with an id and members");
    workspace.ok("index u.tsv --out i --append --columns id,from,-");
    assert_eq!(workspace.sorted_ids("i", "people:yak"), ["u1"]);
    workspace.file("note.txt", "plain text");
    workspace.fails(
        1,
        "index note.txt --out i --append",
        "a text file is indexed as the member `text`, which no field has",
    );
}

#[test]
fn synonyms_come_from_files_and_can_be_changed() {
    let workspace = Workspace::new();
    workspace.file("mail.jsonl", MAIL);
    workspace.file("synonyms.txt", "# money\nmoney, budget\nfigures => numbers\n");
    let flags = "--id-field headers.message-id --title-field subject";
    let wrong = format!("index mail.jsonl --out i {flags} --field subject:text:synonyms=none.txt");
    workspace.fails(2, &wrong, "synonyms none.txt: No such file");
    let fields = "--field subject:text:stem=english --field body:text:synonyms=none --synonyms synonyms.txt";
    workspace.ok(&format!("index mail.jsonl --out i {flags} {fields}"));
    assert_eq!(workspace.sorted_ids("i", "money"), ["m1"]);
    assert_eq!(workspace.sorted_ids("i", "body:money"), [""; 0]);
    assert!(workspace.ok("info i").contains("english stems, 2 rules for synonyms"));
    workspace.file("empty.jsonl", "");
    workspace.file("synonyms.txt", "money => tickets\n");
    workspace.ok("index empty.jsonl --out i --append --synonyms synonyms.txt --id-field headers.message-id");
    assert_eq!(workspace.sorted_ids("i", "money"), [""; 0]);
    assert_eq!(workspace.sorted_ids("i", "body:money"), ["m2"]);
    workspace.file("synonyms.txt", "money => a => b\n");
    let wrong = format!("index mail.jsonl --out i {flags} --append --synonyms synonyms.txt");
    workspace.fails(2, &wrong, "rule \"money => a => b\" for synonyms of field `subject`: it has more");
}
