//! New commits, new indexes, stopping, slow clients and clients that go away.

mod support;

use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use support::{TestServer, options, post_bytes, test_size, wait_until, write_index};

const SEARCH: &str = "/api/v1/indexes/docs/search";

#[test]
fn new_commits_and_new_indexes_are_served_without_a_failed_request() {
    let folder = tempfile::tempdir().unwrap();
    let server = TestServer::start(options(&[folder.path()]));
    let none = server.get("/api/v1/indexes").json();
    assert_eq!(none["indexes"], json!([]));
    assert_eq!(none["folders"].as_array().unwrap().len(), 1);
    assert_eq!(server.get(&format!("{SEARCH}?q=disk")).status, 404);
    assert_eq!(server.stats()["engine"], Value::Null);
    write_index(&folder.path().join("docs"), 0..200);
    wait_until("the index is found", || server.index()["documents"] == json!(200));
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let searches = scope.spawn(|| {
            let (mut client, mut count) = (server.connect(), 0);
            while !stop.load(Ordering::Relaxed) {
                let answer = client.get(&format!("{SEARCH}?q=disk&count=true"));
                assert_eq!(answer.status, 200);
                let answer = answer.json();
                // Each commit has a hundred documents more, and each document the term `n...` of its own.
                let generation = answer["generation"].as_u64().unwrap();
                assert!(answer["total"]["value"].as_u64().unwrap() <= 100 * (generation + 1));
                count += 1;
            }
            count
        });
        for commit in 2..8 {
            write_index(&folder.path().join("docs"), 100 * commit..100 * (commit + 1));
            let documents = json!(100 * (commit + 1));
            wait_until("the commit is served", || server.index()["documents"] == documents);
            let newest = format!("{SEARCH}?q=n{}", 100 * commit + 99);
            assert_eq!(server.get(&newest).json()["hits"].as_array().unwrap().len(), 1);
        }
        stop.store(true, Ordering::Relaxed);
        assert!(searches.join().unwrap() > 10);
    });
    write_index(&folder.path().join("more"), 0..10);
    wait_until("the second index is found", || server.get("/api/v1/indexes/more/search?q=n7").status == 200);
    let hits = server.get("/api/v1/indexes/more/search?q=n7").json();
    assert_eq!(hits["hits"][0]["id"], "d7");
    assert_eq!(server.index()["documents"], json!(800));
}

#[test]
fn a_damaged_commit_is_reported_and_the_one_before_served() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("docs");
    write_index(&dir, 0..100);
    let server = TestServer::start(options(&[&dir]));
    let manifests = || {
        let names = std::fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().file_name());
        names.map(|name| name.into_string().unwrap()).filter(|name| name.starts_with("manifest-"))
    };
    let newest = manifests().max().unwrap();
    let number: u64 = newest.trim_start_matches("manifest-").parse().unwrap();
    let next = newest.replace(&format!("{number}"), &format!("{}", number + 1));
    std::fs::write(dir.join(&next), b"no manifest").unwrap();
    wait_until("the damage is reported", || !server.index()["stale"].is_null());
    assert!(server.index()["stale"]["reason"].as_str().unwrap().contains(&next));
    assert_eq!(server.get(&format!("{SEARCH}?q=disk")).status, 200);
    assert_eq!(server.get("/health/ready").json()["indexes"]["docs"], "stale");
    std::fs::remove_file(dir.join(&next)).unwrap();
    write_index(&dir, 100..200);
    wait_until("the next commit is served", || server.index()["documents"] == json!(200));
    assert!(server.index()["stale"].is_null());
}

#[test]
fn no_admitted_request_is_lost_when_the_server_stops() {
    let folder = tempfile::tempdir().unwrap();
    write_index(&folder.path().join("docs"), 0..5000);
    for round in 0..test_size(10, 100) {
        let server = TestServer::start(options(&[folder.path()]));
        let idle: Vec<_> = (0..20).map(|_| server.connect()).collect();
        let mut half = server.connect();
        half.send(b"GET /api/v1/ind");
        let (answered, stopped) = (AtomicU64::new(0), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let mut client = server.connect();
                    let body =
                        post_bytes(SEARCH, "application/json", br#"{"query":"solid disk n*","count":true}"#);
                    loop {
                        if !client.try_send(&body) {
                            return;
                        }
                        // A connection may be closed before the request arrives, but not during an answer.
                        let Some(answer) = client.answer() else { return };
                        match answer.status {
                            200 => answered.fetch_add(1, Ordering::Relaxed),
                            503 => stopped.fetch_add(1, Ordering::Relaxed),
                            429 => 0,
                            status => panic!("{status}: {}", String::from_utf8_lossy(&answer.body)),
                        };
                        if answer.header("connection") == Some("close") {
                            return;
                        }
                    }
                });
            }
            std::thread::sleep(Duration::from_millis(30 + 10 * (round % 10)));
            server.raise();
        });
        assert!(answered.into_inner() > 0);
        let began = Instant::now();
        server.stop();
        // Neither idle connections nor half of a header hold it.
        assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
        drop(idle);
    }
}

#[test]
fn slow_clients_are_disconnected_while_others_are_answered() {
    let folder = tempfile::tempdir().unwrap();
    write_index(&folder.path().join("docs"), 0..500);
    let server = TestServer::start(options(&[folder.path()]));
    // As many as there may be connections, and more.
    let mut slow: Vec<_> = (0..test_size(150, 1000))
        .map(|number| {
            let mut client = server.connect();
            let head =
                format!("POST {SEARCH} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n");
            match number % 3 {
                0 => {}
                1 => drop(client.try_send(&head.as_bytes()[..40])),
                _ => drop(client.try_send(format!("{head}Content-Length: 100\r\n\r\n{{").as_bytes())),
            }
            client
        })
        .collect();
    // While all connections are taken, a request may have to be sent again.
    wait_until("the first slow clients are disconnected", || {
        server.get(&format!("{SEARCH}?q=disk")).status == 200
    });
    for _ in 0..50 {
        wait_until("a search is answered", || server.get(&format!("{SEARCH}?q=disk")).status == 200);
        assert_eq!(server.get("/health/ready").status, 200);
    }
    let connections = server.stats()["server"]["connections"].as_u64().unwrap();
    assert!(connections <= 24 + 8, "{connections}");
    // Bodies get 5 s and headers 10 s.
    for client in &mut slow {
        assert!(client.is_closed_within(Duration::from_secs(16)));
    }
}

#[test]
fn requests_of_clients_that_go_away_are_cancelled() {
    let folder = tempfile::tempdir().unwrap();
    write_index(&folder.path().join("docs"), 0..20_000);
    let server = TestServer::start(options(&[folder.path()]));
    let lines = format!("{}\n", json!({ "qid": "1", "query": "solid disk n* s*~1 cache page" })).repeat(2000);
    for number in 0..test_size(20, 100_000) {
        let mut client = server.connect();
        client.try_send(&post_bytes(SEARCH, "application/json", br#"{"query":"n* d* s* c*","count":true}"#));
        // Batches take long to send.
        if number % 100 >= 20 {
            continue;
        }
        let mut batch = server.connect();
        batch.try_send(&post_bytes("/api/v1/indexes/docs/batch", "application/x-ndjson", lines.as_bytes()));
        // These go away while their requests are evaluated, others before.
        std::thread::sleep(Duration::from_millis(3));
    }
    let in_progress = |stats: &Value| -> u64 {
        let classes = ["interactive", "batch"].map(|class| &stats["engine"]["requests"][class]);
        classes
            .iter()
            .map(|class| class["running"].as_u64().unwrap() + class["queued"].as_u64().unwrap())
            .sum()
    };
    wait_until("all evaluations have ended", || in_progress(&server.stats()) == 0);
    wait_until("all connections are closed", || server.stats()["server"]["connections"] == json!(1));
    assert!(server.stats()["server"]["cancelled"].as_u64().unwrap() > 0);
    // No slot, permit or memory is left behind.
    let mut client = server.connect();
    for _ in 0..200 {
        assert_eq!(client.get(&format!("{SEARCH}?q=disk")).status, 200);
    }
    assert_eq!(server.stats()["server"]["expected_wait_us"], json!(0));
}

#[test]
fn wrong_options_are_rejected_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    write_index(&folder.path().join("docs"), 0..10);
    let fails = |change: &dyn Fn(&mut tierdex_server::ServerOptions)| {
        let mut options = options(&[folder.path()]);
        change(&mut options);
        tierdex_server::serve(options, &Default::default(), &Default::default(), |_| ())
            .unwrap_err()
            .to_string()
    };
    let message = fails(&|options| options.listen = "0.0.0.0:0".parse().unwrap());
    assert!(message.contains("--insecure"), "{message}");
    let message = fails(&|options| options.dram = 1 << 20);
    assert!(message.contains("are needed"), "{message}");
    let message = fails(&|options| options.dirs.push("/nonexistent/folder".into()));
    assert!(message.contains("no such directory"), "{message}");
    let other = tempfile::tempdir().unwrap();
    write_index(&other.path().join("docs"), 0..10);
    let message = fails(&|options| options.dirs.push(other.path().join("docs")));
    assert!(message.contains("the same name"), "{message}");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let message = fails(&|options| options.listen = taken.local_addr().unwrap());
    assert!(message.contains("cannot listen on"), "{message}");
}
