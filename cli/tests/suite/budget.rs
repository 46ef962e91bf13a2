//! The memory budget, enforced from outside: the command runs in a memory control group of 1.2 times the
//! budget. The tests of `tierdex-bench` have cells in read modes of the thesis.

use crate::workspace::{control_group::ControlGroup, program_command};
use std::io::{BufWriter, Write};
use std::process::{Command, Output, Stdio};
use std::{fs, path::Path, time::Duration};
use tierdex::schema::{Field, Schema, Stored};
use tierdex::{IndexWriter, Merge, WriterOptions, internal::index::ListsBuilder, io::Size};

fn run_tierdex(arguments: &[impl AsRef<str>]) -> Output {
    program_command(arguments.iter().map(AsRef::as_ref)).output().unwrap()
}

fn assert_ok(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Printing hits keeps to the smallest accepted budget, with a giant document, long titles and ids, all
/// matches, as table, JSON and run.
#[test]
fn printing_hits_keeps_to_the_smallest_accepted_budget() {
    const GIANT_DOCUMENT_BYTES: usize = 40 << 20;
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    let (index, input, queries, run) = (path("index"), path("docs.jsonl"), path("queries"), path("run"));
    let mut docs = BufWriter::new(fs::File::create(&input).unwrap());
    for number in 0..12_000 {
        let (filler, title) =
            ("i".repeat(if number % 3 == 0 { 4_000 } else { 10 }), "t\\u0001 ".repeat(number % 200));
        let text = format!("fox number{} and more words {}", number % 100, number * 7 % 1000);
        writeln!(docs, "{{\"id\":\"{filler}{number}\",\"title\":\"{title}\",\"text\":\"{text}\"}}").unwrap();
    }
    let (words, title) =
        ("quick brown fox ".repeat(GIANT_DOCUMENT_BYTES / 16), "giant ".repeat(GIANT_DOCUMENT_BYTES / 60));
    writeln!(docs, "{{\"id\":\"giant\",\"title\":\"{title}\",\"text\":\"{words}\"}}").unwrap();
    docs.into_inner().unwrap();
    assert_ok(&run_tierdex(&["index", &input, "--out", &index, "--memory", "256M"]));
    fs::write(&queries, "1\tfox\n2\tnumber7 words\n3\tgiant\n").unwrap();
    let search = |k: &'static str, format: &'static str| {
        vec!["search", &index, "fox", "-k", k, "--format", format, "--count"]
    };
    let batch = vec!["batch", &index, "--queries", &queries, "--run", &run, "-k", "5000"];
    let held = [&batch[..], &["--keep-in", "dram"]].concat();
    let commands = [search("1", "json"), search("20000", "json"), search("20000", "table"), batch, held];
    for command in commands {
        let with = |dram: &str| -> Vec<String> {
            [&command[..], &["--dram", dram]].concat().iter().map(|word| word.to_string()).collect()
        };
        let rejected = run_tierdex(&with("2M"));
        let error = String::from_utf8_lossy(&rejected.stderr);
        let least = error.split_once("too small: ").and_then(|(_, rest)| rest.split(' ').next());
        let least: Size = least.unwrap_or_else(|| panic!("{error}")).parse().unwrap();
        let least = least.of(0);
        assert_eq!(error.lines().count(), 1, "{error}");
        // Buffers of the threads for 20,000 hits, but far less than the giant document.
        assert!(least < 18 << 20, "{least} bytes are needed for {command:?}");
        let Some(group) = ControlGroup::new("shown", least + least / 5) else { return };
        let words = with(&least.to_string());
        let output = group.run(&words);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && group.kills() == 0, "{words:?}: {:?} {error}", output.status);
        if command.contains(&"json") {
            let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
            let hits = answer["hits"].as_array().unwrap();
            let shown = if command[4] == "1" { 1 } else { 12_001 };
            assert_eq!((answer["total"].as_u64(), hits.len()), (Some(12_001), shown));
            assert!(hits.iter().all(|hit| hit["snippet"].as_str().unwrap().contains("**fox**")));
        }
    }
}

/// A phrase in a document of millions of words takes memory for the positions of one document, not of a
/// block of such documents.
#[test]
fn a_phrase_in_a_giant_document_fits_a_budget() {
    const DRAM_BYTES: u64 = 160 << 20;
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    let (index, input) = (path("index"), path("giant.txt"));
    fs::write(&input, "quick brown fox ".repeat(2_000_000)).unwrap();
    assert_ok(&run_tierdex(&["index", &input, "--out", &index, "--positions", "--store", "none"]));
    let Some(group) = ControlGroup::new("phrase", DRAM_BYTES + DRAM_BYTES / 5) else { return };
    let dram = DRAM_BYTES.to_string();
    let output =
        group.run(&["search", &index, "\"quick brown\"", "--dram", &dram, "--format", "json", "--count"]);
    assert_ok(&output);
    assert_eq!(group.kills(), 0);
    assert!(String::from_utf8_lossy(&output.stdout).contains("\"total\":1,"));
}

/// Without --memory, indexing takes what the control group leaves.
#[test]
fn the_default_memory_of_indexing_follows_the_control_group() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    let (index, input) = (path("index"), path("docs.jsonl"));
    let mut docs = BufWriter::new(fs::File::create(&input).unwrap());
    for number in 0..450_000u32 {
        let word = |at: u32| {
            format!("w{} ", number.wrapping_mul(2_654_435_761).rotate_left(at) % (1000 << (at % 8)))
        };
        let text: String = (0..60).map(word).collect();
        writeln!(docs, "{{\"id\":\"{number}\",\"text\":\"{text}\"}}").unwrap();
    }
    docs.into_inner().unwrap();
    let Some(group) = ControlGroup::new("index", 90 << 20) else { return };
    let command = ["index", &input, "--out", &index, "--replace", "--positions"];
    assert_ok(&group.run(&command));
    assert_eq!(group.kills(), 0);
    // What the default was before is too much for this group, so that the test can fail.
    assert!(!group.run(&[&command[..], &["--memory", "1G"]].concat()).status.success());
    assert!(group.kills() > 0);
}

#[test]
fn stats_and_search_name_the_same_smallest_budget_in_one_line() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    let (index, input) = (path("index"), path("docs.jsonl"));
    fs::write(&input, "{\"text\":\"cat\"}\n").unwrap();
    assert_ok(&run_tierdex(&["index", &input, "--out", &index]));
    let least = |arguments: &[&str]| {
        let output = run_tierdex(&[arguments, &["--dram", "1M"]].concat());
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), error.lines().count()), (Some(2), 1), "{error}");
        let rest = error.strip_prefix("tierdex: a budget of 1M of DRAM is too small: ").unwrap();
        rest.split(' ').next().unwrap().to_string()
    };
    let (stats, search) = (least(&["stats", &index]), least(&["search", &index, "cat"]));
    assert_eq!(stats, search);
    let (queries, run) = (path("queries"), path("run"));
    fs::write(&queries, "1\tcat\n").unwrap();
    let rejected = run_tierdex(&["batch", &index, "--queries", &queries, "--run", &run, "--dram", "1M"]);
    let error = String::from_utf8_lossy(&rejected.stderr);
    assert!(rejected.status.code() == Some(2) && error.lines().count() == 1, "{error}");
    assert!(error.contains("; `tierdex stats"), "{error}");
    assert_ok(&run_tierdex(&["search", &index, "cat", "--dram", &stats]));
    let output = run_tierdex(&["stats", &index, "--dram", &stats, "--format", "json"]);
    assert_ok(&output);
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["dram"], stats.parse::<Size>().unwrap().of(0));
}

/// An index of posting lists without text: the term of a rank is in about one of every
/// `2 + rank / 8` documents.
fn generate_index(dir: &Path) {
    const DOCUMENTS: u32 = 400_000;
    let list = |rank: u32| {
        let documents = (0..DOCUMENTS).filter(move |document| {
            (document ^ rank.wrapping_mul(0x9E37_79B9)).wrapping_mul(2_654_435_761 + 2 * rank) >> 7
                < (1 << 25) / (2 + rank / 8)
        });
        documents.collect::<Vec<u32>>()
    };
    let mut lengths = vec![0; DOCUMENTS as usize];
    let ranks = || 0..3_000;
    ranks().flat_map(list).for_each(|document| lengths[document as usize] += 1);
    let field = Field { positions: false, ..Field::new("text", &["text"]) };
    let schema = Schema { stored: Stored::Nothing, ..Schema::of(vec![field]) };
    let mut writer = IndexWriter::create(dir, schema, WriterOptions::default()).unwrap();
    let id = |document: u32, id: &mut String| id.push_str(&document.to_string());
    let give = |builder: &mut ListsBuilder<'_, '_>| {
        ranks().try_for_each(|rank| {
            let documents = list(rank);
            builder.term(&format!("t{rank:07}"), |lists| lists.extend(&documents, &vec![1; documents.len()]))
        })
    };
    writer.import(lengths, id, give).unwrap();
    writer.commit(Merge::Keep).unwrap();
}

/// Runs a command in a control group. Returns its standard error, and the most anonymous memory that it had.
fn anonymous_memory(mut command: Command) -> (String, u64) {
    let mut process = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let status = format!("/proc/{}/status", process.id());
    let mut most = 0;
    while process.try_wait().unwrap().is_none() {
        let text = fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap_or_default();
        let kib: u64 = line.trim().trim_end_matches(" kB").parse().unwrap_or(0);
        most = most.max(kib << 10);
        std::thread::sleep(Duration::from_millis(2));
    }
    let output = process.wait_with_output().unwrap();
    (assert_ok(&output), most)
}

/// A batch of queries of 1 to 1,024 terms fills its budget: the cache has what is not reserved, at least its
/// minimum, and the anonymous memory of the process is the budget without the code of the program.
#[test]
fn a_batch_uses_its_budget() {
    const DRAM_BYTES: u64 = 32 << 20;
    const PROGRAM_BYTES: u64 = 7 << 20;
    let dir = tempfile::tempdir().unwrap();
    let (index, queries, run) =
        (dir.path().join("index"), dir.path().join("queries"), dir.path().join("run"));
    generate_index(&index);
    let term = |query: usize, at: usize| format!("t{:07}", (query * query * 31 + at * 97) % (30 << (at % 6)));
    let line = |query: usize| match query % 40 {
        39 => (0..1024).map(|at| format!("t{:07} ", 3 * at / 2 + 500 * (query / 40 % 3))).collect(),
        of if of % 2 == 0 => (0..1 + of % 5).map(|at| format!("{} ", term(query, at))).collect::<String>(),
        of => (0..1 + of % 5).map(|at| format!("+{} ", term(query, at))).collect(),
    };
    let lines: String = (0..400).map(|query| format!("{query}\t{}\n", line(query))).collect();
    fs::write(&queries, lines).unwrap();
    let hot_pages = dir.path().join("hot").display().to_string();
    let [index, queries, run] = [index, queries, run].map(|path| path.display().to_string());
    let hot: &[&str] = &["--hot-pages", &hot_pages];
    for (k, more) in [("10", &[][..]), ("1000", &[]), ("10", hot), ("10", hot)] {
        let Some(group) = ControlGroup::new("used", DRAM_BYTES + DRAM_BYTES / 5) else { return };
        let dram = DRAM_BYTES.to_string();
        let words =
            ["batch", &index, "--queries", &queries, "--run", &run, "--dram", &dram, "--threads", "2"];
        let words = [&words[..], &["-k", k, "--stats", "--syntax", "query"], more].concat();
        let (report, most) = anonymous_memory(group.command(&words));
        assert_eq!(group.kills(), 0);
        let number = |before: &str| -> f64 {
            let text = report.split(before).nth(1).unwrap_or_else(|| panic!("{report}"));
            text.split(' ').next().unwrap().parse().unwrap()
        };
        let (least, smallest) = (number("The cache has "), number("in use, ") * f64::from(1 << 20));
        // The report has a tenth of a MiB.
        assert!(smallest + f64::from(1 << 17) >= least, "{report}");
        let available = DRAM_BYTES - PROGRAM_BYTES;
        assert!(most <= available && 115 * most >= 100 * available, "{most} of {available} bytes: {report}");
    }
}

/// A batch on two threads within a budget writes the same run as one without, with the cache inside and
/// beside the budget, and with the index in memory.
#[test]
fn a_batch_within_a_budget_writes_the_same_run_and_is_not_killed() {
    const DRAM_BYTES: u64 = 24 << 20;
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    let (index, input, queries) = (path("index"), path("docs.jsonl"), path("queries"));
    let mut docs = BufWriter::new(fs::File::create(&input).unwrap());
    let word = |number: u32, at: u32| number.wrapping_mul(2_654_435_761 + 2 * at) >> (8 + at % 12);
    for number in 0..80_000 {
        let words: Vec<String> =
            (0..30).map(|at| format!("w{}", word(number, at) % (50 << (at % 8)))).collect();
        writeln!(docs, "{{\"id\":\"document {number}\",\"text\":\"all {}\"}}", words.join(" ")).unwrap();
    }
    docs.into_inner().unwrap();
    assert_ok(&run_tierdex(&["index", &input, "--out", &index, "--store", "none"]));
    let lines = (0..60).map(|id| format!("q{id}\tw{} +all w{} w{}\n", id * 7 % 50, id, id * 31 % 400));
    fs::write(&queries, lines.collect::<String>()).unwrap();
    let batch = |run: &str, more: &[&str]| -> Vec<String> {
        let words = ["batch", &index, "--queries", &queries, "--run", run, "-k", "200", "--threads", "2"];
        words.iter().chain(more).map(|word| word.to_string()).collect()
    };
    let expected = path("expected");
    assert_ok(&run_tierdex(&batch(&expected, &[])));
    let (dram, cache) =
        (DRAM_BYTES.to_string(), format!("file:/dev/shm/tierdex-batch-{}:2M", std::process::id()));
    let cases: [(&[&str], u64); 4] = [
        (&["--dram", &dram], 0),
        (&["--dram", &dram, "--cache", "dram:2M"], 2 << 20),
        (&["--dram", &dram, "--cache", &cache], 2 << 20),
        (&["--dram", &dram, "--keep-in", "dram"], 0),
    ];
    for (number, (more, beside)) in cases.into_iter().enumerate() {
        let Some(group) = ControlGroup::new("batch", DRAM_BYTES + DRAM_BYTES / 5 + beside) else { return };
        let run = path(&format!("run{number}"));
        assert_ok(&group.run(&batch(&run, more)));
        assert_eq!(group.kills(), 0, "{more:?}");
        assert!(fs::read(&run).unwrap() == fs::read(&expected).unwrap(), "{more:?}");
    }
}

/// With a tenth or nine tenths of the documents deleted, a batch within a budget writes the same run as one
/// without, and is not killed; nor is the command that deletes the tenth by ids.
#[test]
fn deleted_documents_are_a_part_of_the_budget() {
    const DOCUMENTS: u32 = 50_000;
    const DRAM_BYTES: u64 = 28 << 20;
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    let (index, ids, queries) = (path("index"), path("ids"), path("queries"));
    let word = |number: u32, at: u32| number.wrapping_mul(2_654_435_761 + 2 * at) >> (8 + at % 12);
    // Statistics of most documents take more memory than the group has beside the budget.
    let text = |number| {
        let words = (0..8).map(|at| format!("w{} ", word(number, at) % (50 << at)));
        let own = (0..24).map(|at| format!("own{number}x{at} "));
        words.chain(own).collect::<String>()
    };
    let options = || WriterOptions { updatable: true, ..WriterOptions::default() };
    let mut writer = IndexWriter::create(&index, Schema::default(), options()).unwrap();
    for number in 0..DOCUMENTS {
        writer.add(&format!("id{number}"), [("text", &format!("all {}", text(number)))]).unwrap();
    }
    writer.commit(Merge::None).unwrap();
    drop(writer);
    let lines = (0..60).map(|id| format!("q{id}\tw{} +all w{} own{}x1\n", id * 7 % 50, id, id * 31 % 400));
    fs::write(&queries, lines.collect::<String>()).unwrap();
    let tenth = (0..DOCUMENTS).step_by(10).map(|number| format!("id{number}\n"));
    fs::write(&ids, tenth.collect::<String>()).unwrap();
    let Some(group) = ControlGroup::new("delete", 90 << 20) else { return };
    assert_ok(&group.run(&["delete", &index, "--ids", &ids]));
    assert_eq!(group.kills(), 0);

    for percent in [10, 90] {
        if percent == 90 {
            let mut writer = IndexWriter::append(&index, options()).unwrap();
            let more = (0..DOCUMENTS).filter(|number| number % 10 < 9);
            more.for_each(|number| writer.delete(&format!("id{number}")).unwrap());
            writer.commit(Merge::None).unwrap();
        }
        let commit = tierdex::Index::open(&index).unwrap();
        assert_eq!(commit.documents(), u64::from(DOCUMENTS / 100 * (100 - percent)));
        assert!(commit.segments().iter().any(|segment| segment.deletes().is_some()));
        let run = |name: &str| -> Vec<String> {
            let run = path(name);
            let words =
                ["batch", &index, "--queries", &queries, "--run", &run, "-k", "200", "--threads", "2"];
            words.map(str::to_string).to_vec()
        };
        assert_ok(&run_tierdex(&run("expected")));
        let Some(group) = ControlGroup::new("deleted", DRAM_BYTES + DRAM_BYTES / 5) else { return };
        assert_ok(&group.run(&[run("found"), vec!["--dram".to_string(), DRAM_BYTES.to_string()]].concat()));
        assert_eq!(group.kills(), 0, "{percent}%");
        assert!(fs::read(path("found")).unwrap() == fs::read(path("expected")).unwrap(), "{percent}%");
    }
}
