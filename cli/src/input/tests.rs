//! Tests of [`InputSource`] and [`parse`] on files.

use super::{line_chunker::ChunkSizes, *};
use std::io::{self, Read, Write};
use std::{fs, path::PathBuf, sync::atomic::Ordering};
use tempfile::TempDir;
use tierdex::Error;

/// A reader that yields its bytes in small, uneven reads, as a pipe may.
pub(super) struct SmallReads {
    bytes: io::Cursor<Vec<u8>>,
    step: usize,
}

impl SmallReads {
    pub fn new(bytes: &[u8]) -> SmallReads {
        SmallReads { bytes: io::Cursor::new(bytes.to_vec()), step: 0 }
    }
}

impl Read for SmallReads {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.step = self.step * 5 % 1031 + 1;
        let portion = self.step.min(into.len());
        self.bytes.read(&mut into[..portion])
    }
}

pub(super) fn gzip_member(bytes: &[u8]) -> Vec<u8> {
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

pub(super) fn zstd_long_window(bytes: &[u8], window_log: u32) -> Vec<u8> {
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
    encoder.long_distance_matching(true).unwrap();
    encoder.window_log(window_log).unwrap();
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Result of a run. Names are relative to the directory of the test.
#[derive(Debug, Default, PartialEq, Eq)]
struct ParsedInput {
    documents: Vec<[String; 3]>,
    problems: Vec<String>,
    chunks: Vec<u64>,
    binary: u64,
}

struct InputFixture {
    folder: TempDir,
    options: InputOptions,
    sizes: ChunkSizes,
}

impl InputFixture {
    fn new(files: &[(&str, &[u8])]) -> InputFixture {
        let fixture = InputFixture {
            folder: tempfile::tempdir().unwrap(),
            options: InputOptions::default(),
            sizes: ChunkSizes::default(),
        };
        for (name, bytes) in files {
            let path = fixture.path(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
        fixture
    }

    fn path(&self, name: &str) -> PathBuf {
        if name.is_empty() { self.folder.path().to_path_buf() } else { self.folder.path().join(name) }
    }

    fn relative_names(&self, name: &str) -> String {
        name.replace(&format!("{}/", self.folder.path().display()), "")
    }

    fn open(&self, inputs: &[&str]) -> Result<InputSource, String> {
        let inputs: Vec<PathBuf> = inputs.iter().map(|name| self.path(name)).collect();
        InputSource::open_with_sizes(&inputs, &self.options, self.sizes)
    }

    fn try_parse(&self, inputs: &[&str]) -> Result<ParsedInput, String> {
        let mut source = self.open(inputs)?;
        let mut outcome = ParsedInput::default();
        while let Some(chunk) = source.next()? {
            let mut documents = Vec::new();
            let report = parse(chunk, &self.options, &mut |document| {
                let value = |member| {
                    let values = document.values.iter().filter(|(number, _)| *number == member);
                    values.map(|(_, value)| *value).collect::<Vec<_>>().join("\n")
                };
                documents.push([self.relative_names(document.id), value(0), value(1)]);
                Ok(())
            })
            .unwrap();
            assert_eq!(report.documents, documents.len() as u64);
            outcome.documents.extend(documents);
            outcome
                .problems
                .extend(report.problems.iter().map(|problem| self.relative_names(&problem.to_string())));
            outcome.chunks.push(report.bytes);
            outcome.binary += report.counts[ProblemKind::Binary] + report.counts[ProblemKind::BinaryInFolder];
        }
        if let Some(total) = source.total_bytes() {
            assert_eq!(source.progress().load(Ordering::Relaxed), total);
        }
        Ok(outcome)
    }

    fn parse_inputs(&self, inputs: &[&str]) -> ParsedInput {
        self.try_parse(inputs).unwrap()
    }

    /// Reads all files of the directory and compares documents and problems.
    #[track_caller]
    fn check_all_files(&self, documents: &[[&str; 3]], problems: &[&str]) {
        let outcome = self.parse_inputs(&[""]);
        assert_eq!(outcome.documents, documents);
        assert_eq!(outcome.problems, problems);
    }
}

fn json_line(id: usize, text: &str) -> String {
    format!("{{\"id\":{id},\"text\":\"{text}\"}}\n")
}

#[test]
fn format_and_compression_are_detected() {
    let json = br#"{"id":1,"text":"j"}"#;
    let fixture = InputFixture::new(&[
        ("a.jsonl", json),
        ("b.ndjson.gz", &gzip_member(json)),
        ("c.json", &zstd_frame(json)),
        ("d.tsv.zst", &gzip_member(b"2\tt\n")),
        ("e.txt", &gzip_member(b"plain")),
        ("f.gz", b"not packed"),
    ]);
    fixture.check_all_files(
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
fn format_and_columns_can_be_given() {
    let mut fixture = InputFixture::new(&[("a.jsonl", b"1\tx"), ("b.txt", b"2\ty")]);
    fixture.options.format = Some(InputFormat::Tsv);
    fixture.check_all_files(&[["1", "", "x"], ["2", "", "y"]], &[]);
    fixture.options.columns = Some(TsvColumn::parse_list("title,text", &InputMembers::default()).unwrap());
    fixture.check_all_files(&[["a.jsonl:1", "1", "x"], ["b.txt:1", "2", "y"]], &[]);
    fixture.options.format = Some(InputFormat::Text);
    fixture.check_all_files(&[["a.jsonl", "a.jsonl", "1\tx"], ["b.txt", "b.txt", "2\ty"]], &[]);
}

#[test]
fn byte_order_marks_and_carriage_returns_are_ignored() {
    let fixture = InputFixture::new(&[
        ("a.jsonl", b"\xEF\xBB\xBF{\"text\":\"1\"}\r\n\r\n \n{\"text\":\"2\"}\r\n{\"text\":\"3\"}"),
        ("b.tsv", b"\xEF\xBB\xBF\r\n1\tx\r\n\r\n2\ty\r"),
        ("c.txt", b"\xEF\xBB\xBFx\r\n"),
        ("d.tsv", b"\xEF\xBB\xBF"),
        ("e.tsv", b"\xEF\xBB\xBF\n3\tz\n\xEF\xBB\xBF\tw"),
    ]);
    fixture.check_all_files(
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
fn malformed_lines_have_their_line_number_in_any_chunk() {
    let mut fixture = InputFixture::new(&[]);
    fixture.sizes.chunk_bytes = 64;
    let mut all = Vec::new();
    let mut expected = Vec::new();
    for number in 1..=500usize {
        match number % 7 {
            0 => all.extend(b"{\"text\":\n"),
            3 => all.extend(b"{\"text\":\"\xFF\"}\n"),
            5 => all.extend(b"\n"),
            _ => all.extend(json_line(number, "ok").bytes()),
        }
        if number % 7 == 0 || number % 7 == 3 {
            expected.push(number);
        }
    }
    fs::write(fixture.path("a.jsonl"), &all).unwrap();
    let outcome = fixture.parse_inputs(&["a.jsonl"]);
    assert!(outcome.chunks.len() > 50);
    assert_eq!(outcome.chunks.iter().sum::<u64>(), all.len() as u64);
    assert_eq!(outcome.documents.len(), 500 - expected.len() - 71);
    assert_eq!(outcome.problems.len(), expected.len());
    for (problem, number) in outcome.problems.iter().zip(&expected) {
        assert!(problem.starts_with(&format!("a.jsonl:{number}: not ")), "{problem}");
    }
}

#[test]
fn tsv_columns_of_the_first_line_apply_to_the_whole_file() {
    let mut fixture = InputFixture::new(&[
        ("a.tsv", b"\n\n\n\n\n\n\n\n\n1\tt\tx\n2\tonly\n3\tt\ty\tz\n4\tt\t\xFF\n"),
        ("b.tsv", b"words\tand\nwords"),
    ]);
    fixture.sizes.chunk_bytes = 8;
    fixture.check_all_files(
        &[["1", "t", "x"], ["3", "t", "y\tz"], ["words", "", "and"]],
        &[
            "a.tsv:11: 2 columns, 3 expected",
            "a.tsv:13: not valid UTF-8 at byte 5 of the line; convert the file, for example with `iconv -f latin1 -t utf-8`",
            "b.tsv:2: 1 column, 2 expected",
        ],
    );
}

#[test]
fn chunks_do_not_depend_on_the_compression() {
    let text: String = (0..20_000).map(|id| json_line(id, &"word ".repeat(id % 40))).collect();
    let halves = text.split_at(text.len() / 3);
    let mut fixture = InputFixture::new(&[
        ("plain.jsonl", text.as_bytes()),
        ("gz.jsonl", &[gzip_member(halves.0.as_bytes()), gzip_member(halves.1.as_bytes())].concat()),
        ("zst.jsonl", &[zstd_frame(halves.0.as_bytes()), zstd_long_window(halves.1.as_bytes(), 27)].concat()),
    ]);
    fixture.sizes.chunk_bytes = 100_000;
    let plain = fixture.parse_inputs(&["plain.jsonl"]);
    assert_eq!(plain.documents.len(), 20_000);
    assert!(plain.chunks.len() > 10 && plain.chunks.iter().all(|&bytes| bytes <= 100_000));
    assert_eq!(plain, fixture.parse_inputs(&["gz.jsonl"]));
    assert_eq!(plain, fixture.parse_inputs(&["zst.jsonl"]));
}

#[test]
fn small_files_share_a_chunk() {
    let mut fixture = InputFixture::new(&[]);
    for number in 0..30 {
        fs::write(fixture.path(&format!("{number:02}")), "x".repeat(100)).unwrap();
    }
    fs::write(fixture.path("15.jsonl"), "{\"text\":\"\"}").unwrap();
    fixture.sizes.chunk_bytes = 1500;
    let outcome = fixture.parse_inputs(&[""]);
    assert_eq!(outcome.documents.len(), 31);
    assert!(outcome.chunks.len() < 10, "{:?}", outcome.chunks);
    assert_eq!(outcome.documents[16][0], "15.jsonl:1");
    fixture.sizes.chunk_bytes = 1;
    assert_eq!(fixture.parse_inputs(&[""]).chunks.len(), 31);
}

#[test]
fn binary_empty_and_invalid_files_are_handled() {
    let fixture = InputFixture::new(&[
        ("bad.txt", b"a\xFFb"),
        ("binary", b"a\0b"),
        ("binary.gz", &gzip_member(b"\0")),
        ("empty", b""),
        ("empty.jsonl", b""),
        ("empty.tsv", b""),
        ("nul.jsonl", b"\0\n{\"text\":\"a\0\"}\n{\"text\":\"ok\"}"),
    ]);
    let outcome = fixture.parse_inputs(&[""]);
    assert_eq!(outcome.binary, 2);
    assert_eq!(
        outcome.documents,
        [["bad.txt", "bad.txt", "a\u{FFFD}b"], ["empty", "empty", ""], ["nul.jsonl:3", "", "ok"]]
    );
    assert_eq!(outcome.problems.len(), 5, "{:?}", outcome.problems);
    assert_eq!(outcome.problems[..2], ["binary: binary file", "binary.gz: binary file"]);
    assert!(outcome.problems[2].starts_with("bad.txt: invalid UTF-8 was replaced"));

    let outcome = fixture.parse_inputs(&["binary"]);
    assert_eq!((outcome.binary, outcome.documents.len()), (1, 0));
    assert!(outcome.problems[0].starts_with("binary: binary file; "), "{:?}", outcome.problems);
    assert_eq!(fixture.parse_inputs(&["empty.jsonl"]), ParsedInput::default());
    assert_eq!(fixture.parse_inputs(&[]), ParsedInput::default());
}

#[test]
fn long_documents_are_split() {
    let mut fixture = InputFixture::new(&[("a.jsonl", b"")]);
    fixture.options.split = Some(16);
    let text = "one two three four five six";
    let titled = |id: &str, text: &str| format!("{{\"id\":\"{id}\",\"title\":\"T\",\"text\":\"{text}\"}}\n");
    let lines = [titled("L", text), titled("S", " sixteen bytes. "), titled("blank", &" ".repeat(17))];
    fs::write(fixture.path("a.jsonl"), lines.concat()).unwrap();
    fs::write(fixture.path("b.txt"), text).unwrap();
    fixture.check_all_files(
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
    fixture.options.split = Some(15);
    let error = fixture.open(&[""]).err().unwrap();
    assert!(error.contains("give at least 16"), "{error}");
}

#[test]
fn lines_and_files_above_the_limit_are_skipped() {
    let mut fixture = InputFixture::new(&[("b.txt", &[b'x'; 101]), ("c.txt", &[b'x'; 100])]);
    fixture.sizes = ChunkSizes { chunk_bytes: 30, document_bytes_max: 100 };
    let input = [json_line(1, "a"), json_line(2, &"x".repeat(200)), json_line(3, "b")].concat();
    fs::write(fixture.path("a.jsonl"), input).unwrap();
    let outcome = fixture.parse_inputs(&[""]);
    let ids: Vec<&str> = outcome.documents.iter().map(|document| document[0].as_str()).collect();
    assert_eq!(ids, ["1", "3", "c.txt"]);
    assert_eq!(
        outcome.problems,
        [
            "a.jsonl:2: the line is longer than the maximum of 100 bytes (a larger --memory allows more)",
            "b.txt: the file is longer than the maximum of 100 bytes (a larger --memory allows more)"
        ]
    );
}

#[test]
fn a_line_of_fifty_megabytes_is_one_document() {
    let long = "word ".repeat(10 << 20);
    let fixture = InputFixture::new(&[]);
    let input = [json_line(1, "a"), json_line(2, &long), json_line(3, "b")].concat();
    fs::write(fixture.path("a.jsonl"), &input).unwrap();
    let outcome = fixture.parse_inputs(&["a.jsonl"]);
    assert_eq!(outcome.documents.len(), 3);
    assert!(outcome.documents[1][2] == long);
    assert_eq!(outcome.documents[2][0], "3");
    assert_eq!(outcome.chunks.iter().sum::<u64>(), input.len() as u64);
}

#[test]
fn damaged_compressed_arguments_stop_the_run() {
    let text: String = (0..1000).map(|id| json_line(id, "words")).collect();
    for (name, packed) in [("a.jsonl", gzip_member(text.as_bytes())), ("a.txt", zstd_frame(text.as_bytes()))]
    {
        let fixture = InputFixture::new(&[(name, &packed[..packed.len() - 3]), ("z.txt", b"z")]);
        let error = fixture.try_parse(&[name]).unwrap_err();
        assert!(error.contains(name) && error.contains("truncated") && !error.contains('\n'), "{error}");
        // In a folder it is a problem, and the next file is read. Whole lines before the damage are indexed.
        let outcome = fixture.parse_inputs(&[""]);
        let kept = outcome.documents.len() - 1;
        assert!(if name == "a.txt" { kept == 0 } else { kept > 900 }, "{kept}");
        assert_eq!(outcome.documents[kept][0], "z.txt");
        let expected = format!("{name}: cannot decompress: ");
        assert!(outcome.problems.len() == 1 && outcome.problems[0].starts_with(&expected), "{outcome:?}");
    }
}

#[test]
fn unreadable_files_of_a_folder_are_problems() {
    let fixture = InputFixture::new(&[("a", b"x"), ("z", b"y")]);
    std::os::unix::fs::symlink("nowhere", fixture.path("b")).unwrap();
    let mut source = fixture.open(&[""]).unwrap();
    fs::remove_file(fixture.path("z")).unwrap();
    let report = parse(source.next().unwrap().unwrap(), &fixture.options, &mut |_| Ok(())).unwrap();
    let problems: Vec<String> =
        report.problems.iter().map(|problem| fixture.relative_names(&problem.file)).collect();
    assert_eq!((problems, report.documents), (vec!["b".to_string(), "z".to_string()], 1));
    assert!(source.next().unwrap().is_none());
    assert!(fixture.open(&["b"]).is_err());
}

#[test]
fn problems_after_the_last_document_are_reported() {
    let fixture = InputFixture::new(&[("sub/.hidden", b"x")]);
    std::os::unix::fs::symlink("nowhere", fixture.path("sub/b")).unwrap();
    let outcome = fixture.parse_inputs(&["sub"]);
    assert_eq!((outcome.documents.len(), outcome.problems.len(), outcome.chunks.len()), (0, 1, 1));
}

#[test]
fn files_without_read_permission_are_problems_in_folders_and_errors_as_arguments() {
    use std::os::unix::fs::PermissionsExt;
    let fixture = InputFixture::new(&[("f", b"x"), ("sub/g", b"x"), ("z", b"x")]);
    fs::set_permissions(fixture.path("f"), fs::Permissions::from_mode(0o000)).unwrap();
    fs::set_permissions(fixture.path("sub"), fs::Permissions::from_mode(0o000)).unwrap();
    // Root can read all files.
    if fs::File::open(fixture.path("f")).is_err() {
        let outcome = fixture.parse_inputs(&[""]);
        assert_eq!(outcome.documents, [["z", "z", "x"]]);
        assert_eq!(outcome.problems.len(), 2, "{:?}", outcome.problems);
        let error = fixture.open(&["f"]).err().unwrap();
        assert!(error.contains("check its permissions"), "{error}");
        assert!(fixture.open(&["sub"]).is_err());
    }
    fs::set_permissions(fixture.path("sub"), fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn sockets_in_folders_are_skipped_and_devices_are_streams() {
    let fixture = InputFixture::new(&[("a", b"x")]);
    let _socket = std::os::unix::net::UnixListener::bind(fixture.path("socket")).unwrap();
    fixture.check_all_files(&[["a", "a", "x"]], &[]);
    let source = InputSource::open(&[PathBuf::from("/dev/null")], &fixture.options);
    let mut source = source.unwrap();
    assert!(source.total_bytes().is_none());
    assert!(source.next().unwrap().is_none());
    assert!(InputSource::open(&["-".into()], &fixture.options).unwrap().total_bytes().is_none());
}

#[test]
fn limit_errors_are_problems_and_other_errors_are_returned() {
    let fixture =
        InputFixture::new(&[("a.jsonl", b"{\"text\":\"1\"}\n{\"text\":\"2\"}\n{\"text\":\"3\"}\n")]);
    let chunk = || fixture.open(&[""]).unwrap().next().unwrap().unwrap();
    let report = parse(chunk(), &fixture.options, &mut |document| match document.values[0].1 {
        "2" => Err(Error::TooLarge("too much".to_string())),
        _ => Ok(()),
    });
    let report = report.unwrap();
    assert_eq!(report.documents, 2);
    assert_eq!(fixture.relative_names(&report.problems[0].to_string()), "a.jsonl:2: too much");

    let mut calls = 0;
    let failure = parse(chunk(), &fixture.options, &mut |_| {
        calls += 1;
        Err(Error::Usage("stop".to_string()))
    });
    assert!(matches!(failure, Err(Error::Usage(_))));
    assert_eq!(calls, 1);
}

#[test]
fn reading_and_parsing_can_run_on_different_threads() {
    fn assert_send<T: Send>() {}
    assert_send::<InputSource>();
    assert_send::<super::chunk::InputChunk>();
    assert_send::<ChunkReport>();
}
