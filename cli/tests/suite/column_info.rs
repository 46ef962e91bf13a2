//! Columns in what the command tells of an index.

use crate::workspace::Workspace;
use tierdex::schema::{Column, ColumnType, ColumnValue, Schema};
use tierdex::{Document, IndexWriter, Merge, WriterOptions};

/// Two segments of 2,000 documents, of which the first has no values.
fn index_with_columns(workspace: &Workspace) {
    let sizes =
        Column { multi: true, member: "box.sizes".to_string(), ..Column::new("sizes", ColumnType::U64) };
    let columns = vec![Column::new("year", ColumnType::I64), sizes, Column::new("none", ColumnType::Date)];
    let schema = Schema::default().with_columns(columns);
    let mut writer = IndexWriter::create(workspace.path("i"), schema, WriterOptions::default()).unwrap();
    let document = |number: u64| Document::new(number).with("text", "a text");
    writer.add_all((0..2000).map(document), 1).unwrap();
    writer.commit(Merge::None).unwrap();
    let with_values = |number: u64| {
        let sized = (0..number % 3).fold(document(number), |document, size| {
            document.with_column("sizes", ColumnValue::U64(10 * size))
        });
        sized.with_column("year", ColumnValue::I64(1990 + number as i64 % 16))
    };
    writer.add_all((2000..4000).map(with_values), 1).unwrap();
    writer.commit(Merge::None).unwrap();
}

#[test]
fn info_has_the_sizes_of_columns() {
    let workspace = Workspace::new();
    index_with_columns(&workspace);
    let table = workspace.ok("info i");
    for expected in [
        "\ncolumn year (of year; i64)\n  2,000 values in 2,000 documents\n  column ",
        "\ncolumn sizes (of box.sizes; u64, multi-valued)\n  2,000 values in 1,333 documents\n  column ",
        "\ncolumn none (of none; date)\n  0 values in 0 documents\n\n",
        " bits per value\n",
    ] {
        assert!(table.contains(expected), "{expected} in {table}");
    }
    let info = workspace.run_for_json("info i --format json");
    let [year, sizes, none] = info["columns"].as_array().unwrap().as_slice() else { panic!("{info}") };
    assert_eq!((year["documents"].as_u64(), year["values"].as_u64()), (Some(2000), Some(2000)));
    assert_eq!((sizes["documents"].as_u64(), sizes["values"].as_u64()), (Some(1333), Some(2000)));
    assert_eq!(
        (&sizes["type"], &sizes["multi"], &sizes["member"]),
        (&"u64".into(), &true.into(), &"box.sizes".into())
    );
    assert_eq!((none["values"].as_u64(), none["bytes"].as_u64()), (Some(0), Some(0)));
    // Sixteen years take four bits each; the envelope, directory and tail are some 300 bytes.
    let (bytes, bits) = (year["bytes"].as_u64().unwrap(), year["bits_per_value"].as_f64().unwrap());
    assert!((1000..1500).contains(&bytes), "{bytes}");
    assert_eq!(bits, 8.0 * bytes as f64 / 2000.0);
    let files = std::fs::read_dir(workspace.path("i")).unwrap().map(Result::unwrap);
    let files = files.filter(|file| !file.file_name().to_string_lossy().starts_with("manifest"));
    let all: u64 = files.map(|file| file.metadata().unwrap().len()).sum();
    assert_eq!(info["bytes"].as_u64(), Some(all));
}
