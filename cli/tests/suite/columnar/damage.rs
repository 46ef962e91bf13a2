//! Cut and changed files: an error that names the file, or the documents that can be read; within the memory,
//! and without a panic.

use super::files::{Layout, arrow_file, arrow_stream, articles, parquet_file};
use crate::random::Random;
use crate::workspace::{Workspace, assert_succeeded, program_command, spawn_and_finish};
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, DictionaryArray, Int32Array, RecordBatch, StringArray};
use parquet::basic::{Compression, ZstdLevel};
use serde_json::Value;
use std::process::{Command, Output};
use std::sync::Arc;

const DOCUMENTS: usize = 240;

/// Files with four row groups or record batches.
fn files() -> Vec<(&'static str, Vec<u8>)> {
    let batches = articles(0..DOCUMENTS, DOCUMENTS / 4);
    let group_rows = DOCUMENTS / 4;
    let plain = Layout { codec: Compression::UNCOMPRESSED, group_rows, ..Layout::default() };
    let packed = Layout { codec: Compression::ZSTD(ZstdLevel::default()), group_rows, ..Layout::default() };
    let deltas = Layout { v2: true, dictionary: false, ..plain };
    vec![
        ("plain.parquet", parquet_file(&batches, plain)),
        ("packed.parquet", parquet_file(&batches, packed)),
        ("deltas.parquet", parquet_file(&batches, deltas)),
        ("a.arrow", arrow_file(&batches, None)),
        ("packed.arrow", arrow_file(&batches, Some(arrow_ipc::CompressionType::LZ4_FRAME))),
        ("b.arrows", arrow_stream(&batches, None)),
    ]
}

/// Indexes a file with a limit of the address space. `None` if it failed with one line that names the file.
fn index_damaged(workspace: &Workspace, name: &str, context: &str) -> Option<(u64, Output)> {
    let arguments = format!("index {name} --out i --replace --memory 16M --threads 1 --summary json");
    let fields = "--field body:text --field tags:text --field lang:text --field author:text:from=meta.author --field year:text --store all";
    let program = program_command(arguments.split(' ').chain(fields.split(' ')));
    let mut command = Command::new("prlimit");
    command.arg("--as=1000000000").arg(program.get_program()).args(program.get_args());
    let output = spawn_and_finish(command.current_dir(workspace.path("")));
    let error = String::from_utf8_lossy(&output.stderr);
    for word in ["panicked", "internal error", "out of memory", "allocation"] {
        assert!(!error.contains(word), "{context}: {error}");
    }
    if output.status.success() {
        let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
        return Some((summary["documents"].as_u64().unwrap(), output));
    }
    assert_eq!(output.status.code(), Some(1), "{context}: {error}");
    assert!(error.contains(name), "{context}: {error}");
    None
}

#[test]
fn cut_files_are_errors_or_lose_the_end() {
    let workspace = Workspace::new();
    for (name, bytes) in files() {
        for part in 0..64 {
            let context = format!("{name}, {part}/64");
            workspace.file(name, &bytes[..bytes.len() * part / 64]);
            let Some((documents, output)) = index_damaged(&workspace, name, &context) else { continue };
            // A Parquet file has its footer at the end.
            assert!(!name.ends_with(".parquet"), "{context}");
            let error = String::from_utf8_lossy(&output.stderr);
            let is_whole = documents == DOCUMENTS as u64;
            assert!(is_whole || error.contains(&format!("{name}: record batch ")), "{context}: {error}");
            assert_eq!(documents % (DOCUMENTS as u64 / 4), 0, "{context}");
        }
    }
}

#[test]
fn changed_bytes_cost_what_is_damaged() {
    let workspace = Workspace::new();
    let mut random = Random::new(53);
    let (mut failed, mut partial) = (0, 0);
    for (name, bytes) in files() {
        for round in 0..60 {
            let mut damaged = bytes.clone();
            let at = random.below(bytes.len());
            damaged[at] ^= 1 << random.below(8);
            if round % 4 == 0 {
                damaged[at] = *random.pick(&[0, 0x7F, 0x80, 0xFF]);
            }
            let context = format!("{name}, byte {at}");
            workspace.file(name, &damaged);
            match index_damaged(&workspace, name, &context) {
                None => failed += 1,
                Some((documents, output)) if documents < DOCUMENTS as u64 => {
                    let error = String::from_utf8_lossy(&output.stderr);
                    assert!(error.contains(name), "{context}: {error}");
                    partial += 1;
                }
                Some((documents, _)) => assert_eq!(documents, DOCUMENTS as u64, "{context}"),
            }
        }
    }
    assert!(failed > 1 && partial > 50, "{failed} failed, {partial} partial");
}

#[test]
fn a_damaged_part_is_named_and_the_others_are_read() {
    let workspace = Workspace::new();
    let batches = articles(0..DOCUMENTS, DOCUMENTS / 4);
    let packed = Layout {
        codec: Compression::ZSTD(ZstdLevel::default()),
        group_rows: DOCUMENTS / 4,
        ..Layout::default()
    };
    let mut bytes = parquet_file(&batches, packed);
    // In the pages of texts of the second group.
    let middle = bytes.len() * 3 / 10;
    bytes[middle..middle + 40].fill(0xAA);
    workspace.file("t.parquet", &bytes);
    let (documents, output) = index_damaged(&workspace, "t.parquet", "").unwrap();
    assert_eq!(documents, DOCUMENTS as u64 * 3 / 4);
    let error = String::from_utf8(output.stderr).unwrap();
    let place = "t.parquet: row group 2, rows 61 to 120: column `";
    assert!(error.starts_with(&format!("tierdex: {place}")) && error.ends_with("; skipped\n"), "{error}");
    let said = workspace.ok("index t.parquet --out j --field body:text --report problems");
    assert!(said.contains("; 1 range of rows skipped as damaged"), "{said}");
    let report = std::fs::read_to_string(workspace.path("problems")).unwrap();
    assert!(report.contains("\"kind\":\"rows\"") && report.contains("row group 2"), "{report}");
    workspace.fails(1, "index t.parquet --out k --field body:text --on-error fail", place);
    // Of an Arrow file a record batch; the lengths around it are found by the footer.
    let mut bytes = arrow_file(&batches, None);
    let middle = bytes.len() * 3 / 10;
    bytes[middle..middle + 40].fill(0xFF);
    workspace.file("t.arrow", &bytes);
    let (documents, output) = index_damaged(&workspace, "t.arrow", "").unwrap();
    assert_eq!(documents, DOCUMENTS as u64 * 3 / 4);
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(
        error.starts_with("tierdex: t.arrow: record batch 2, rows 61 to 120: column `body`: "),
        "{error}"
    );
}

#[test]
fn texts_that_rows_share_are_read_within_the_memory() {
    let workspace = Workspace::new();
    // 400 rows of a text of 1 MB, which a file has once: the address space has place for few of them.
    let text = "oak ".repeat(250_000);
    let body = DictionaryArray::<Int32Type>::new(
        Int32Array::from(vec![0; 400]),
        Arc::new(StringArray::from(vec![text.as_str()])),
    );
    let batch = RecordBatch::try_from_iter([("body", Arc::new(body) as ArrayRef)]).unwrap();
    workspace.file("t.parquet", parquet_file(std::slice::from_ref(&batch), Layout::default()));
    workspace.file("t.arrow", arrow_file(&[batch], None));
    for name in ["t.parquet", "t.arrow"] {
        let arguments = format!("index {name} --out i --replace --text-field body --memory 16M --threads 1");
        let program = program_command(arguments.split(' '));
        let mut command = Command::new("prlimit");
        command.arg("--as=400000000").arg(program.get_program()).args(program.get_args());
        let output = spawn_and_finish(command.current_dir(workspace.path("")));
        let said = assert_succeeded(&output);
        assert!(said.starts_with("400 documents, ") && !said.contains("skipped"), "{name}: {said}");
    }
}

#[test]
fn empty_row_groups_and_rows_without_values_are_not_damage() {
    let workspace = Workspace::new();
    let batch = |rows: usize| {
        let body = StringArray::from(vec![None::<&str>; rows]);
        RecordBatch::try_from_iter_with_nullable([("text", Arc::new(body) as ArrayRef, true)]).unwrap()
    };
    workspace.file("f/empty.parquet", parquet_file(&[batch(0)], Layout::default()));
    workspace.file("f/empty.arrow", arrow_file(&[batch(0)], None));
    workspace.fails_in_one_line(1, "index f --out i", "nothing was committed: the input is empty");
    workspace.file("f/null.parquet", parquet_file(&[batch(3)], Layout::default()));
    workspace.file("f/null.arrow", arrow_file(&[batch(2)], None));
    let said = workspace.ok("index f --out i");
    assert!(said.starts_with("5 documents, ") && !said.contains("skipped"), "{said}");
}
