//! Parquet and Arrow files as input: the index is that of the same documents as JSON lines, and damage costs
//! what is damaged.

mod damage;
mod files;
mod types;

use crate::workspace::{Workspace, assert_failed, assert_succeeded, spawn_and_finish};
use files::{Layout, arrow_file, arrow_stream, article, articles, json_lines, parquet_file};
use parquet::basic::{Compression, GzipLevel, ZstdLevel};
use std::io::Write;
use std::path::PathBuf;

/// The fields of [`articles`].
const FIELDS: &str = "--field body:text --field tags:text --field lang:text --field author:text:from=meta.author --field year:text";

/// All files of an index, with their names.
fn index_files(workspace: &Workspace, index: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let entries = std::fs::read_dir(workspace.path(index)).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<(PathBuf, Vec<u8>)> =
        entries.map(|path| (path.file_name().unwrap().into(), std::fs::read(path).unwrap())).collect();
    files.sort();
    files
}

#[track_caller]
fn assert_same_index(workspace: &Workspace, index: &str, expected: &str, context: &str) {
    assert_same_files(&index_files(workspace, index), &index_files(workspace, expected), context);
}

#[track_caller]
fn assert_same_files(found: &[(PathBuf, Vec<u8>)], expected: &[(PathBuf, Vec<u8>)], context: &str) {
    let differ = found.iter().zip(expected).filter(|(found, expected)| found != expected);
    let names: Vec<&PathBuf> = differ.map(|(found, _)| &found.0).collect();
    assert!(names.is_empty() && found.len() == expected.len(), "{context}: {names:?}");
}

/// Checks that indexes differ in the blocks of stored documents only, which begin anew where input is
/// divided, and that these hold the same documents. Their ids are in the file `ids`.
#[track_caller]
fn assert_same_documents(workspace: &Workspace, index: &str, expected: &str, context: &str) {
    let other_files = |index: &str| {
        let mut files = index_files(workspace, index);
        files.retain(|(name, _)| {
            let name = name.to_string_lossy();
            !name.ends_with(".stored") && !name.starts_with("manifest-")
        });
        files
    };
    assert_same_files(&other_files(index), &other_files(expected), context);
    let get = |index: &str| workspace.ok(&format!("get {index} --ids ids"));
    assert!(get(index) == get(expected), "{context}: stored documents");
}

/// Files of articles, in each format.
fn write_articles(workspace: &Workspace, count: usize) {
    let batches = articles(0..count, 300);
    workspace.file("docs.jsonl", json_lines(0..count));
    workspace.file("docs.parquet", parquet_file(&batches, Layout { group_rows: 700, ..Layout::default() }));
    workspace.file("docs.arrow", arrow_file(&batches, None));
    workspace.file("stream.arrows", arrow_stream(&batches, None));
    // Formats are recognised by content.
    std::fs::copy(workspace.path("docs.parquet"), workspace.path("table")).unwrap();
    std::fs::copy(workspace.path("stream.arrows"), workspace.path("stream")).unwrap();
}

#[test]
fn rows_give_the_same_index_as_lines_of_json() {
    let workspace = Workspace::new();
    write_articles(&workspace, 2000);
    workspace.ok(&format!("index docs.jsonl --out expected {FIELDS}"));
    for (number, input) in
        ["docs.parquet", "docs.arrow", "stream.arrows", "table", "stream"].into_iter().enumerate()
    {
        for threads in [1, 2] {
            let index = format!("i{number}-{threads}");
            let said = workspace.ok(&format!("index {input} --out {index} {FIELDS} --threads {threads}"));
            assert!(said.starts_with("2,000 documents, "), "{said}");
            assert!(said.contains("not indexed: "), "{said}");
            assert_same_index(&workspace, &index, "expected", input);
        }
    }
    let hits = workspace.run_for_json("search expected author:doe5 --format json");
    assert!(hits["total"].as_u64().unwrap() > 0, "{hits}");
}

#[test]
fn all_members_are_stored_as_they_are_in_json() {
    let workspace = Workspace::new();
    write_articles(&workspace, 500);
    for input in ["docs.jsonl", "docs.parquet", "docs.arrow"] {
        workspace.ok(&format!("index {input} --out {input}.index {FIELDS} --store all"));
    }
    assert_same_index(&workspace, "docs.parquet.index", "docs.jsonl.index", "Parquet");
    assert_same_index(&workspace, "docs.arrow.index", "docs.jsonl.index", "Arrow");
    let stored = workspace.ok("get docs.parquet.index article-7");
    for words in ["price", "1.75", "meta.pages"] {
        assert!(stored.contains(words), "{words}: {stored}");
    }
}

#[test]
fn each_compression_is_read() {
    let workspace = Workspace::new();
    let batches = articles(0..400, 400);
    workspace.file("docs.jsonl", json_lines(0..400));
    workspace.ok(&format!("index docs.jsonl --out expected {FIELDS}"));
    for (number, codec) in [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::GZIP(GzipLevel::default()),
        Compression::ZSTD(ZstdLevel::default()),
        Compression::LZ4_RAW,
        Compression::LZ4,
    ]
    .into_iter()
    .enumerate()
    {
        for v2 in [false, true] {
            for dictionary in [false, true] {
                let index = format!("i{number}-{v2}-{dictionary}");
                workspace.file(
                    "docs.parquet",
                    parquet_file(&batches, Layout { codec, v2, dictionary, group_rows: 150 }),
                );
                workspace.ok(&format!("index docs.parquet --out {index} {FIELDS}"));
                assert_same_index(&workspace, &index, "expected", &format!("{codec} {v2} {dictionary}"));
            }
        }
    }
    for codec in [arrow_ipc::CompressionType::ZSTD, arrow_ipc::CompressionType::LZ4_FRAME] {
        workspace.file("docs.arrow", arrow_file(&batches, Some(codec)));
        workspace.ok(&format!("index docs.arrow --out a{} {FIELDS}", codec.0));
        assert_same_index(&workspace, &format!("a{}", codec.0), "expected", "Arrow");
    }
}

#[test]
fn standard_input_and_compressed_files_are_read() {
    let workspace = Workspace::new();
    write_articles(&workspace, 600);
    workspace.ok(&format!("index docs.jsonl --out expected {FIELDS}"));
    for (index, input) in [("i1", "docs.parquet"), ("i2", "docs.arrow"), ("i3", "stream.arrows")] {
        let arguments = format!("index - --out {index} {FIELDS}");
        let mut command = workspace.command(arguments.split(' '));
        command.stdin(std::fs::File::open(workspace.path(input)).unwrap());
        assert_succeeded(&spawn_and_finish(&mut command));
        assert_same_index(&workspace, index, "expected", input);
        let bytes = std::fs::read(workspace.path(input)).unwrap();
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(&bytes).unwrap();
        workspace.file("packed", packed.finish().unwrap());
        workspace.ok(&format!("index packed --out {index}-packed {FIELDS}"));
        assert_same_index(&workspace, &format!("{index}-packed"), "expected", input);
    }
    // The temporary file of standard input cannot be written.
    let mut command = workspace.command("index - --out none".split(' '));
    command.stdin(std::fs::File::open(workspace.path("docs.parquet")).unwrap());
    command.env("TMPDIR", workspace.path("missing"));
    assert_failed(&spawn_and_finish(&mut command), 1, "TMPDIR names another directory");
}

#[test]
fn keys_of_folders_are_members() {
    let workspace = Workspace::new();
    let lines = |rows: std::ops::Range<usize>, key: &str| {
        let lines = json_lines(rows);
        let lines = lines.lines().map(|line| format!("{},\"part\":\"{key}\"}}\n", &line[..line.len() - 1]));
        lines.collect::<String>()
    };
    workspace.file("docs.jsonl", lines(0..50, "a/b") + &lines(50..90, "two words"));
    let null = "t/part=__HIVE_DEFAULT_PARTITION__/0.arrow";
    workspace.file("t/part=a%2Fb/x=1/0.parquet", parquet_file(&articles(0..50, 20), Layout::default()));
    workspace.file("t/part=two words/0.arrow", arrow_file(&articles(50..90, 20), None));
    workspace.ok("index docs.jsonl --out expected --field body:text --field part:text");
    workspace.ok("index t --out i --field body:text --field part:text");
    workspace.file("ids", (0..90).map(|number| format!("article-{number}\n")).collect::<String>());
    assert_same_documents(&workspace, "i", "expected", "keys of folders");
    assert_eq!(workspace.search_index("i", "part:words").0, 40);
    workspace.ok("index t --out all --field body:text --store all");
    assert!(workspace.ok("get all article-7").contains("a/b"));
    // A folder without a value has no such column.
    workspace.file(null, arrow_file(&articles(90..99, 20), None));
    let words = "no column is called `part`; it has `id`, ";
    workspace.fails(1, &format!("index {null} --out j --field body:text --field part:text"), words);
}

#[test]
fn missing_columns_name_those_that_exist() {
    let workspace = Workspace::new();
    write_articles(&workspace, 10);
    let columns = "it has `id`, `title`, `body`, `tags`, `lang`, `year`, ";
    for input in ["docs.parquet", "docs.arrow", "stream.arrows"] {
        workspace.fails_in_one_line(
            1,
            &format!("index {input} --out i"),
            "no column is called `text`; it has ",
        );
        let advice = "name the text as in --text-field COLUMN";
        workspace.fails_in_one_line(1, &format!("index {input} --out i"), advice);
        for flags in [
            "--field bodies:text",
            "--field body:text --field bodies:text",
            "--field body:text:from=bodies+body",
        ] {
            let words = format!("{input}: no column is called `bodies`; {columns}");
            workspace.fails_in_one_line(1, &format!("index {input} --out i {flags}"), &words);
        }
        let words = "no column is called `docno`";
        workspace.fails_in_one_line(
            1,
            &format!("index {input} --out i --text-field body --id-field docno"),
            words,
        );
        let words = "`meta` is a struct; name a column in it, as in meta.author";
        workspace.fails_in_one_line(1, &format!("index {input} --out i --field meta:text"), words);
        let words = "`tags` is a list, which cannot be an id";
        workspace.fails_in_one_line(
            1,
            &format!("index {input} --out i --text-field body --id-field tags"),
            words,
        );
        workspace.ok(&format!("index {input} --out {input}.index --text-field body --id-field meta.author"));
    }
    // In a folder the other files are indexed.
    workspace.file("f/a.parquet", std::fs::read(workspace.path("docs.parquet")).unwrap());
    workspace.file("f/b.jsonl", "{\"id\":1,\"text\":\"oak\"}");
    let output = workspace.run("index f --out i");
    assert!(assert_succeeded(&output).contains("; 1 file or folder could not be read"));
    assert!(String::from_utf8_lossy(&output.stderr).contains("f/a.parquet: no column is called `text`"));
    workspace.fails(1, "index f --out j --on-error fail", "f/a.parquet: no column is called `text`");
}

#[test]
fn documents_without_an_id_are_named_by_file_and_row() {
    let workspace = Workspace::new();
    let batches = articles(0..400, 130);
    workspace.file("a.parquet", parquet_file(&batches, Layout { group_rows: 90, ..Layout::default() }));
    workspace.file("a.arrow", arrow_file(&batches, None));
    let word = article(333).body.split(' ').next().unwrap().to_string();
    for input in ["a.parquet", "a.arrow"] {
        let index = format!("{input}.index");
        // The title is an id where there is one: each third row has none.
        workspace.ok(&format!(
            "index {input} --out {index} --text-field body --id-field title --title-field lang"
        ));
        let (_, ids) = workspace.search_index(&index, &word);
        assert!(ids.contains(&format!("{input}:334")), "{ids:?}");
    }
}

#[test]
fn large_row_groups_are_divided() {
    let workspace = Workspace::new();
    // About 12 MB in one row group and one record batch: each is read in several ranges. The blocks of stored
    // documents begin with them.
    let batches = articles(0..20_000, 20_000);
    workspace.file("docs.jsonl", json_lines(0..20_000));
    workspace
        .file("docs.parquet", parquet_file(&batches, Layout { group_rows: 1 << 20, ..Layout::default() }));
    workspace.file("docs.arrow", arrow_file(&batches, None));
    workspace.file("ids", (0..20_000).map(|number| format!("article-{number}\n")).collect::<String>());
    for fields in ["--text-field body", FIELDS] {
        workspace.ok(&format!("index docs.jsonl --out expected {fields} --memory 512M"));
        for input in ["docs.parquet", "docs.arrow"] {
            for threads in [1, 2] {
                let said = workspace.ok(&format!(
                    "index {input} --out i {fields} --memory 512M --threads {threads} --summary json"
                ));
                assert!(said.starts_with("{\"documents\":20000,"), "{said}");
                assert_same_documents(&workspace, "i", "expected", input);
                std::fs::rename(workspace.path("i"), workspace.path(&format!("i{threads}"))).unwrap();
            }
            assert_same_index(&workspace, "i1", "i2", input);
            ["i1", "i2"].iter().for_each(|index| std::fs::remove_dir_all(workspace.path(index)).unwrap());
        }
        std::fs::remove_dir_all(workspace.path("expected")).unwrap();
    }
}
