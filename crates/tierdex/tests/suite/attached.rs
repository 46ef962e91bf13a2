//! Several indexes that share one engine: each has the hits of an engine of its own, in any budget that is
//! accepted, and sees its own commits.

use std::path::{Path, PathBuf};
use tierdex::{
    Engine, EngineOptions, Error, Index, IndexWriter, Merge, Query, ReadCosts, Schema, SearchHit,
    SearchRequest, Snapshot, WriterOptions,
};

fn write(dir: &Path, documents: std::ops::Range<usize>) {
    let options = WriterOptions::default();
    let mut writer = match documents.start {
        0 => IndexWriter::create(dir, Schema::default(), options).unwrap(),
        _ => IndexWriter::append(dir, options).unwrap(),
    };
    for number in documents {
        let text = format!("disk w{} v{} {}", number % 7, number % 501, "page ".repeat(number % 11));
        writer.add(&number.to_string(), [("text", text)]).unwrap();
    }
    writer.commit(Merge::Keep).unwrap();
}

fn search(engine: &Engine, snapshot: std::sync::Arc<Snapshot>, text: &str) -> Vec<SearchHit> {
    let query = Query::parse(text, snapshot.schema()).unwrap();
    engine.search(SearchRequest::new(query).snapshot(snapshot).k(20)).unwrap().hits
}

fn own_hits(dir: &Path, text: &str) -> Vec<SearchHit> {
    let engine = Engine::open(dir, &EngineOptions::new().read_costs(ReadCosts::default())).unwrap();
    search(&engine, engine.snapshot(), text)
}

const QUERIES: [&str; 5] = ["disk w3", "+w1 +page", "v5*", "v77", "page w2 -v3"];

#[test]
fn each_index_has_the_hits_of_an_engine_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let dirs: Vec<PathBuf> = ["a", "b", "c"].iter().map(|name| folder.path().join(name)).collect();
    for (dir, documents) in dirs.iter().zip([2000, 20_000, 300]) {
        write(dir, 0..documents);
    }
    let indexes: Vec<Index> = dirs.iter().map(|dir| Index::open(dir).unwrap()).collect();
    let all: Vec<&Index> = indexes.iter().collect();
    let options = EngineOptions::new().threads(2).read_costs(ReadCosts::default());
    let Err(Error::Usage(message)) = Engine::for_indexes(&all, &options.clone().dram(1 << 20)) else {
        panic!("a budget of 1 MiB was accepted");
    };
    assert!(message.contains("are needed"), "{message}");
    for options in [options.clone(), options.clone().dram(200 << 20), options.dram(24 << 20)] {
        let (engine, attached) = Engine::for_indexes(&all, &options).unwrap();
        for (dir, attached) in dirs.iter().zip(&attached) {
            for text in QUERIES {
                let hits = search(&engine, attached.snapshot(), text);
                assert!(!hits.is_empty(), "{text}");
                assert_eq!(hits, own_hits(dir, text), "{text}");
            }
        }
    }
}

#[test]
fn each_index_sees_its_own_commits() {
    let folder = tempfile::tempdir().unwrap();
    let (first, other) = (folder.path().join("first"), folder.path().join("other"));
    write(&first, 0..3000);
    write(&other, 0..100);
    let options = EngineOptions::new().dram(32 << 20).threads(1).read_costs(ReadCosts::default());
    let engine = Engine::open(&first, &options).unwrap();
    let attached = engine.attach(&Index::open(&other).unwrap()).unwrap();
    assert!(!attached.has_newer().unwrap() && !attached.refresh().unwrap());
    write(&other, 100..600);
    assert!(attached.has_newer().unwrap());
    assert!(!engine.refresh().unwrap());
    assert_eq!(attached.snapshot().index().documents(), 100);
    assert!(attached.refresh().unwrap());
    assert_eq!(attached.snapshot().index().documents(), 600);
    for text in QUERIES {
        assert_eq!(search(&engine, attached.snapshot(), text), own_hits(&other, text), "{text}");
        assert_eq!(search(&engine, engine.snapshot(), text), own_hits(&first, text), "{text}");
    }
}
