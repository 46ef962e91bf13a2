//! The experiment runs and checks its results. No test depends on measured times.

use serde_json::{Value, json};
use std::{fs, sync::Arc};
use tierdex::{StopSignal, io::PosixDisk};
use tierdex_bench::{
    generate, generate::Collection, intersect::IntersectRequest, request::ExperimentRequest,
};

/// The rows of a quick run with these parameters.
fn run_quick(mut request: Value) -> tierdex_bench::Result<Vec<Value>> {
    request["quick"] = true.into();
    let request: IntersectRequest = serde_json::from_value(request).unwrap();
    let mut answer = request.answer(&StopSignal::default())?;
    Ok(serde_json::from_value(answer["rows"].take()).unwrap())
}

#[test]
fn sweeps_vary_a_parameter() {
    let number = |rows: &[Value], x: f64, algorithm: &str, name: &str| {
        let found = rows.iter().find(|row| row["x"] == x && row["algorithm"] == algorithm);
        found.unwrap()[name].as_u64().unwrap()
    };
    for sweep in ["threads", "ratio", "intersection", "lists", "codec", "memory"] {
        let rows = run_quick(json!({ "sweep": sweep, "threads": 4 })).unwrap();
        assert!(rows.len() >= 3 * 5 && rows.iter().all(|row| row["sweep"] == sweep), "{rows:?}");
        match sweep {
            "threads" => {
                let pages = |algorithm| number(&rows, 1.0, algorithm, "pages_read");
                let skipped = |algorithm| number(&rows, 1.0, algorithm, "pages_skipped");
                assert!(pages("sl") < pages("bl") && skipped("bl") == 0 && skipped("sl") > 0);
                assert!(pages("zz") == pages("sl") && pages("bf") < pages("sl"));
            }
            "memory" => assert_eq!(number(&rows, 100.0, "direct", "pages_read"), 0),
            _ => {}
        }
    }
}

#[test]
fn a_query_log_runs_over_an_index() {
    let directory = tempfile::TempDir::new().unwrap();
    let index = directory.path().join("index");
    let made = generate::Flags::with_sizes(20_000, 400_000, 5_000, 1);
    let disk = Arc::new(PosixDisk::create(&index).unwrap());
    Collection::new(&made).unwrap().create(disk, 1, &StopSignal::default()).unwrap();
    let queries = directory.path().join("queries.tsv");
    fs::write(
        &queries,
        "1\tt0000001 t0000040\n2\tt0000002\n3\tt0000003 nothing\nt0000010 t0000003 t0000010 t0000500\n",
    )
    .unwrap();
    let work = directory.path().join("work");
    let request = json!({ "index": index, "queries": queries, "work": work, "threads": 4 });
    let rows = run_quick(request).unwrap();
    assert_eq!(rows.len(), 3 * 5);
    assert!(rows.iter().all(|row| row["queries"] == 2 && row["found"].as_u64() > Some(0)));
    assert!(rows.iter().any(|row| row["label"] == "bp256-delta"));
    assert_eq!(fs::read_dir(&work).unwrap().count(), 0, "the list files are removed");
}

#[test]
fn invalid_parameters_are_rejected() {
    for (name, wrong) in [("short", 0), ("long", 99), ("threads", 0), ("limit", 0)] {
        let failed = run_quick(json!({ name: wrong }));
        assert!(matches!(failed, Err(tierdex_bench::Error::Usage(why)) if why.contains(name)), "{name}");
    }
}
