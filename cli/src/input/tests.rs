//! Whole runs: files on disk through [`Source`] and [`parse`].

use super::lines::Sizes;
use super::*;
use std::fs;
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use tempfile::TempDir;
use tierdex::Error;

/// Yields its bytes in uneven, small portions, as a pipe may.
pub(super) struct Dribble {
    bytes: io::Cursor<Vec<u8>>,
    step: usize,
}

impl Dribble {
    pub fn new(bytes: &[u8]) -> Dribble {
        Dribble { bytes: io::Cursor::new(bytes.to_vec()), step: 0 }
    }
}

impl Read for Dribble {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.step = self.step * 5 % 1031 + 1;
        let portion = self.step.min(into.len());
        self.bytes.read(&mut into[..portion])
    }
}

pub(super) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub(super) fn zstd_frame(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
    encoder.include_checksum(true).unwrap();
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub(super) fn zstd_long(bytes: &[u8], window_log: u32) -> Vec<u8> {
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
    encoder.long_distance_matching(true).unwrap();
    encoder.window_log(window_log).unwrap();
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// What a run gave. Names are relative to the folder of the test.
#[derive(Debug, Default, PartialEq, Eq)]
struct Outcome {
    documents: Vec<[String; 3]>,
    problems: Vec<String>,
    pieces: Vec<u64>,
    binary: u64,
}

struct Bench {
    folder: TempDir,
    options: InputOptions,
    sizes: Sizes,
}

impl Bench {
    fn new(files: &[(&str, &[u8])]) -> Bench {
        let bench = Bench {
            folder: tempfile::tempdir().unwrap(),
            options: InputOptions::default(),
            sizes: Sizes::default(),
        };
        for (name, bytes) in files {
            let path = bench.path(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
        bench
    }

    fn path(&self, name: &str) -> PathBuf {
        if name.is_empty() { self.folder.path().to_path_buf() } else { self.folder.path().join(name) }
    }

    fn relative(&self, name: &str) -> String {
        name.replace(&format!("{}/", self.folder.path().display()), "")
    }

    fn open(&self, inputs: &[&str]) -> Result<Source, String> {
        let inputs: Vec<PathBuf> = inputs.iter().map(|name| self.path(name)).collect();
        Source::with_sizes(&inputs, &self.options, self.sizes)
    }

    fn try_run(&self, inputs: &[&str]) -> Result<Outcome, String> {
        let mut source = self.open(inputs)?;
        let mut outcome = Outcome::default();
        while let Some(piece) = source.next()? {
            let mut documents = Vec::new();
            let report = parse(piece, &self.options, &mut |id, title, text| {
                documents.push([self.relative(id), title.to_string(), text.to_string()]);
                Ok(())
            })
            .unwrap();
            assert_eq!(report.documents, documents.len() as u64);
            outcome.documents.extend(documents);
            outcome
                .problems
                .extend(report.problems.iter().map(|problem| self.relative(&problem.to_string())));
            outcome.pieces.push(report.bytes);
            outcome.binary += report.counts[ProblemKind::Binary];
        }
        if let Some(total) = source.total_bytes() {
            assert_eq!(source.progress().load(Ordering::Relaxed), total);
        }
        Ok(outcome)
    }

    fn run(&self, inputs: &[&str]) -> Outcome {
        self.try_run(inputs).unwrap()
    }

    /// Runs over everything in the folder and compares documents and problems.
    #[track_caller]
    fn check(&self, documents: &[[&str; 3]], problems: &[&str]) {
        let outcome = self.run(&[""]);
        assert_eq!(outcome.documents, documents);
        assert_eq!(outcome.problems, problems);
    }
}

fn line(id: usize, text: &str) -> String {
    format!("{{\"id\":{id},\"text\":\"{text}\"}}\n")
}

#[test]
fn names_and_contents_tell_how_to_read() {
    let json = br#"{"id":1,"text":"j"}"#;
    let bench = Bench::new(&[
        ("a.jsonl", json),
        ("b.ndjson.gz", &gzip(json)),
        ("c.json", &zstd_frame(json)),
        ("d.tsv.zst", &gzip(b"2\tt\n")),
        ("e.txt", &gzip(b"plain")),
        ("f.gz", b"not packed"),
    ]);
    bench.check(
        &[
            ["1", "", "j"],
            ["1", "", "j"],
            ["1", "", "j"],
            ["2", "", "t"],
            ["e.txt", "e.txt", "plain"],
            ["f.gz", "f.gz", "not packed"],
        ],
        &[],
    );
}

#[test]
fn the_format_can_be_forced() {
    let mut bench = Bench::new(&[("a.jsonl", b"1\tx"), ("b.txt", b"2\ty")]);
    bench.options.format = Some(Format::Tsv);
    bench.check(&[["1", "", "x"], ["2", "", "y"]], &[]);
    bench.options.columns = Some(Column::parse_list("title,text").unwrap());
    bench.check(&[["a.jsonl:1", "1", "x"], ["b.txt:1", "2", "y"]], &[]);
    bench.options.format = Some(Format::Text);
    bench.check(&[["a.jsonl", "a.jsonl", "1\tx"], ["b.txt", "b.txt", "2\ty"]], &[]);
}

#[test]
fn marks_and_line_ends_do_not_matter() {
    let bench = Bench::new(&[
        ("a.jsonl", b"\xEF\xBB\xBF{\"text\":\"1\"}\r\n\r\n \n{\"text\":\"2\"}\r\n{\"text\":\"3\"}"),
        ("b.tsv", b"\xEF\xBB\xBF\r\n1\tx\r\n\r\n2\ty\r"),
        ("c.txt", b"\xEF\xBB\xBFx\r\n"),
        ("d.tsv", b"\xEF\xBB\xBF"),
        ("e.tsv", b"\xEF\xBB\xBF\n3\tz\n\xEF\xBB\xBF\tw"),
    ]);
    bench.check(
        &[
            ["a.jsonl:1", "", "1"],
            ["a.jsonl:4", "", "2"],
            ["a.jsonl:5", "", "3"],
            ["1", "", "x"],
            ["2", "", "y"],
            ["c.txt", "c.txt", "x\r\n"],
            ["3", "", "z"],
            ["\u{FEFF}", "", "w"],
        ],
        &[],
    );
}

#[test]
fn malformed_lines_are_named_across_pieces() {
    let mut bench = Bench::new(&[]);
    bench.sizes.piece = 64;
    let mut all = Vec::new();
    let mut expected = Vec::new();
    for number in 1..=500usize {
        match number % 7 {
            0 => all.extend(b"{\"text\":\n"),
            3 => all.extend(b"{\"text\":\"\xFF\"}\n"),
            5 => all.extend(b"\n"),
            _ => all.extend(line(number, "ok").bytes()),
        }
        if number % 7 == 0 || number % 7 == 3 {
            expected.push(number);
        }
    }
    fs::write(bench.path("a.jsonl"), &all).unwrap();
    let outcome = bench.run(&["a.jsonl"]);
    assert!(outcome.pieces.len() > 50);
    assert_eq!(outcome.pieces.iter().sum::<u64>(), all.len() as u64);
    assert_eq!(outcome.documents.len(), 500 - expected.len() - 71);
    assert_eq!(outcome.problems.len(), expected.len());
    for (problem, number) in outcome.problems.iter().zip(&expected) {
        assert!(problem.starts_with(&format!("a.jsonl:{number}: not ")), "{problem}");
    }
}

#[test]
fn tsv_columns_hold_for_the_whole_file() {
    let mut bench = Bench::new(&[
        ("a.tsv", b"\n\n\n\n\n\n\n\n\n1\tt\tx\n2\tonly\n3\tt\ty\tz\n4\tt\t\xFF\n"),
        ("b.tsv", b"words\tand\nwords"),
    ]);
    bench.sizes.piece = 8;
    bench.check(
        &[["1", "t", "x"], ["3", "t", "y\tz"], ["words", "", "and"]],
        &[
            "a.tsv:11: 2 columns, 3 expected",
            "a.tsv:13: not UTF-8: invalid byte 5 of the line; convert the file, as by `iconv -f latin1 -t utf-8`",
            "b.tsv:2: 1 column, 2 expected",
        ],
    );
}

#[test]
fn cuts_do_not_depend_on_how_the_bytes_arrive() {
    let text: String = (0..20_000).map(|id| line(id, &"word ".repeat(id % 40))).collect();
    let halves = text.split_at(text.len() / 3);
    let mut bench = Bench::new(&[
        ("plain.jsonl", text.as_bytes()),
        ("gz.jsonl", &[gzip(halves.0.as_bytes()), gzip(halves.1.as_bytes())].concat()),
        ("zst.jsonl", &[zstd_frame(halves.0.as_bytes()), zstd_long(halves.1.as_bytes(), 27)].concat()),
    ]);
    bench.sizes.piece = 100_000;
    let plain = bench.run(&["plain.jsonl"]);
    assert_eq!(plain.documents.len(), 20_000);
    assert!(plain.pieces.len() > 10 && plain.pieces.iter().all(|&bytes| bytes <= 100_000));
    assert_eq!(plain, bench.run(&["gz.jsonl"]));
    assert_eq!(plain, bench.run(&["zst.jsonl"]));
}

#[test]
fn small_files_share_a_piece() {
    let mut bench = Bench::new(&[]);
    for number in 0..30 {
        fs::write(bench.path(&format!("{number:02}")), "x".repeat(100)).unwrap();
    }
    fs::write(bench.path("15.jsonl"), "{\"text\":\"\"}").unwrap();
    bench.sizes.piece = 1500;
    let outcome = bench.run(&[""]);
    assert_eq!(outcome.documents.len(), 31);
    assert!(outcome.pieces.len() < 10, "{:?}", outcome.pieces);
    assert_eq!(outcome.documents[16][0], "15.jsonl:1");
    bench.sizes.piece = 1;
    assert_eq!(bench.run(&[""]).pieces.len(), 31);
}

#[test]
fn plain_files_may_be_odd() {
    let bench = Bench::new(&[
        ("bad.txt", b"a\xFFb"),
        ("binary", b"a\0b"),
        ("binary.gz", &gzip(b"\0")),
        ("empty", b""),
        ("empty.jsonl", b""),
        ("empty.tsv", b""),
        ("nul.jsonl", b"\0\n{\"text\":\"a\0\"}\n{\"text\":\"ok\"}"),
    ]);
    let outcome = bench.run(&[""]);
    assert_eq!(outcome.binary, 2);
    assert_eq!(
        outcome.documents,
        [["bad.txt", "bad.txt", "a\u{FFFD}b"], ["empty", "empty", ""], ["nul.jsonl:3", "", "ok"]]
    );
    assert_eq!(outcome.problems.len(), 3, "{:?}", outcome.problems);
    assert!(outcome.problems[0].starts_with("bad.txt: bytes that are not UTF-8 are replaced"));

    let outcome = bench.run(&["binary"]);
    assert_eq!((outcome.binary, outcome.documents.len()), (1, 0));
    assert!(outcome.problems[0].starts_with("binary: binary, not text"), "{:?}", outcome.problems);
    assert_eq!(bench.run(&["empty.jsonl"]), Outcome::default());
    assert_eq!(bench.run(&[]), Outcome::default());
}

#[test]
fn long_documents_are_split() {
    let mut bench = Bench::new(&[("a.jsonl", b"")]);
    bench.options.split = Some(16);
    let text = "one two three four five six";
    let titled = |id: &str, text: &str| format!("{{\"id\":\"{id}\",\"title\":\"T\",\"text\":\"{text}\"}}\n");
    let lines = [titled("L", text), titled("S", " sixteen bytes. "), titled("blank", &" ".repeat(17))];
    fs::write(bench.path("a.jsonl"), lines.concat()).unwrap();
    fs::write(bench.path("b.txt"), text).unwrap();
    bench.check(
        &[
            ["L#0", "T", "one two three"],
            ["L#1", "", "four five six"],
            ["S", "T", " sixteen bytes. "],
            ["blank", "T", ""],
            ["b.txt#0", "b.txt", "one two three"],
            ["b.txt#1", "", "four five six"],
        ],
        &[],
    );
    bench.options.split = Some(15);
    let error = bench.open(&[""]).err().unwrap();
    assert!(error.contains("16 is the least"), "{error}");
}

#[test]
fn lines_and_files_above_the_limit_are_passed_over() {
    let mut bench = Bench::new(&[("b.txt", &[b'x'; 101]), ("c.txt", &[b'x'; 100])]);
    bench.sizes = Sizes { piece: 30, document_max: 100 };
    let input = [line(1, "a"), line(2, &"x".repeat(200)), line(3, "b")].concat();
    fs::write(bench.path("a.jsonl"), input).unwrap();
    let outcome = bench.run(&[""]);
    let ids: Vec<&str> = outcome.documents.iter().map(|document| document[0].as_str()).collect();
    assert_eq!(ids, ["1", "3", "c.txt"]);
    assert_eq!(
        outcome.problems,
        [
            "a.jsonl:2: the line is longer than a document may be (100 bytes; more --memory allows more)",
            "b.txt: the file is longer than a document may be (100 bytes; more --memory allows more)"
        ]
    );
}

#[test]
fn a_line_of_fifty_megabytes_is_one_document() {
    let long = "word ".repeat(10 << 20);
    let bench = Bench::new(&[]);
    let input = [line(1, "a"), line(2, &long), line(3, "b")].concat();
    fs::write(bench.path("a.jsonl"), &input).unwrap();
    let outcome = bench.run(&["a.jsonl"]);
    assert_eq!(outcome.documents.len(), 3);
    assert!(outcome.documents[1][2] == long);
    assert_eq!(outcome.documents[2][0], "3");
    assert_eq!(outcome.pieces.iter().sum::<u64>(), input.len() as u64);
}

#[test]
fn damaged_archives_stop_the_run_if_they_were_named() {
    let text: String = (0..1000).map(|id| line(id, "words")).collect();
    for (name, packed) in [("a.jsonl", gzip(text.as_bytes())), ("a.txt", zstd_frame(text.as_bytes()))] {
        let bench = Bench::new(&[(name, &packed[..packed.len() - 3]), ("z.txt", b"z")]);
        let error = bench.try_run(&[name]).unwrap_err();
        assert!(error.contains(name) && error.contains("cut short") && !error.contains('\n'), "{error}");
        // In a folder it is a problem, and what is behind it is read; of lines, the whole ones before are
        // kept.
        let outcome = bench.run(&[""]);
        let kept = outcome.documents.len() - 1;
        assert!(if name == "a.txt" { kept == 0 } else { kept > 900 }, "{kept}");
        assert_eq!(outcome.documents[kept][0], "z.txt");
        let expected = format!("{name}: cannot unpack: ");
        assert!(outcome.problems.len() == 1 && outcome.problems[0].starts_with(&expected), "{outcome:?}");
    }
}

#[test]
fn what_a_folder_cannot_give_is_a_problem() {
    let bench = Bench::new(&[("a", b"x"), ("z", b"y")]);
    std::os::unix::fs::symlink("nowhere", bench.path("b")).unwrap();
    let mut source = bench.open(&[""]).unwrap();
    fs::remove_file(bench.path("z")).unwrap();
    let report = parse(source.next().unwrap().unwrap(), &bench.options, &mut |_, _, _| Ok(())).unwrap();
    let problems: Vec<String> = report.problems.iter().map(|problem| bench.relative(&problem.file)).collect();
    assert_eq!((problems, report.documents), (vec!["b".to_string(), "z".to_string()], 1));
    assert!(source.next().unwrap().is_none());
    assert!(bench.open(&["b"]).is_err());
}

#[test]
fn problems_without_documents_are_reported_too() {
    let bench = Bench::new(&[("sub/.hidden", b"x")]);
    std::os::unix::fs::symlink("nowhere", bench.path("sub/b")).unwrap();
    let outcome = bench.run(&["sub"]);
    assert_eq!((outcome.documents.len(), outcome.problems.len(), outcome.pieces.len()), (0, 1, 1));
}

#[test]
fn forbidden_files_are_problems_in_folders_and_errors_by_name() {
    use std::os::unix::fs::PermissionsExt;
    let bench = Bench::new(&[("f", b"x"), ("sub/g", b"x"), ("z", b"x")]);
    fs::set_permissions(bench.path("f"), fs::Permissions::from_mode(0o000)).unwrap();
    fs::set_permissions(bench.path("sub"), fs::Permissions::from_mode(0o000)).unwrap();
    // Root may read everything.
    if fs::File::open(bench.path("f")).is_err() {
        let outcome = bench.run(&[""]);
        assert_eq!(outcome.documents, [["z", "z", "x"]]);
        assert_eq!(outcome.problems.len(), 2, "{:?}", outcome.problems);
        let error = bench.open(&["f"]).err().unwrap();
        assert!(error.contains("check its permissions"), "{error}");
        assert!(bench.open(&["sub"]).is_err());
    }
    fs::set_permissions(bench.path("sub"), fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn sockets_in_folders_are_passed_over_and_devices_are_streams() {
    let bench = Bench::new(&[("a", b"x")]);
    let _socket = std::os::unix::net::UnixListener::bind(bench.path("socket")).unwrap();
    bench.check(&[["a", "a", "x"]], &[]);
    let source = Source::open(&[PathBuf::from("/dev/null")], &bench.options);
    let mut source = source.unwrap();
    assert!(source.total_bytes().is_none());
    assert!(source.next().unwrap().is_none());
    assert!(Source::open(&["-".into()], &bench.options).unwrap().total_bytes().is_none());
}

#[test]
fn refusals_are_problems_and_failures_are_errors() {
    let bench = Bench::new(&[("a.jsonl", b"{\"text\":\"1\"}\n{\"text\":\"2\"}\n{\"text\":\"3\"}\n")]);
    let piece = || bench.open(&[""]).unwrap().next().unwrap().unwrap();
    let report = parse(piece(), &bench.options, &mut |_, _, text| match text {
        "2" => Err(Error::Limit("too much".to_string())),
        _ => Ok(()),
    });
    let report = report.unwrap();
    assert_eq!(report.documents, 2);
    assert_eq!(bench.relative(&report.problems[0].to_string()), "a.jsonl:2: too much");

    let mut calls = 0;
    let failure = parse(piece(), &bench.options, &mut |_, _, _| {
        calls += 1;
        Err(Error::Usage("stop".to_string()))
    });
    assert!(matches!(failure, Err(Error::Usage(_))));
    assert_eq!(calls, 1);
}

#[test]
fn halves_can_run_on_different_threads() {
    fn sendable<T: Send>() {}
    sendable::<Source>();
    sendable::<super::piece::Piece>();
    sendable::<PieceReport>();
}
