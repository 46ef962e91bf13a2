//! `tierdex serve` as a process: its first line, its log, signals, exit codes, and its memory.

use crate::workspace::{Workspace, control_group::ControlGroup};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tierdex::io::Size;

/// A running server, and its standard error.
struct Serving {
    child: Child,
    /// Standard error after the first line, as far as it was read, and the thread that reads it.
    log: Arc<Mutex<String>>,
    reader: JoinHandle<()>,
    address: String,
}

impl Serving {
    fn start(command: &mut Command) -> Serving {
        let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap());
        let Some(address) = read_address(&mut log) else {
            panic!("the server did not start: {}", child.wait().unwrap());
        };
        let read = Arc::<Mutex<String>>::default();
        let shared = read.clone();
        let reader = std::thread::spawn(move || {
            let mut line = String::new();
            while log.read_line(&mut line).unwrap() > 0 {
                shared.lock().unwrap().push_str(&std::mem::take(&mut line));
            }
        });
        Serving { child, log: read, reader, address }
    }

    fn get(&self, path: &str) -> String {
        self.get_with(path, "Accept: */*")
    }

    fn get_with(&self, path: &str, header: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{header}\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// Posts lines of JSON while the answer is read.
    fn post_lines(&self, path: &str, lines: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let mut reader = stream.try_clone().unwrap();
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/jsonl\r\n\
             Content-Length: {}\r\n\r\n",
            lines.len()
        );
        std::thread::scope(|scope| {
            let answer = scope.spawn(move || {
                let mut answer = String::new();
                // A rejected batch is closed before it is sent.
                let _ = reader.read_to_string(&mut answer);
                answer
            });
            let _ = stream.write_all((head + lines).as_bytes());
            answer.join().unwrap()
        })
    }

    fn kill(&self, signal: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
    }

    /// Sends SIGHUP, and waits until the log has a text.
    fn hang_up(&self, logged: &str) {
        self.kill("-HUP");
        let began = Instant::now();
        while !self.log.lock().unwrap().contains(logged) {
            assert!(began.elapsed() < Duration::from_secs(30), "{logged}: {}", self.log.lock().unwrap());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Sends a signal, and returns the exit code and the rest of the log.
    fn end(mut self, signal: &str) -> (Option<i32>, String) {
        self.kill(signal);
        let code = self.child.wait().unwrap().code();
        self.reader.join().unwrap();
        (code, std::mem::take(&mut *self.log.lock().unwrap()))
    }
}

/// The address in the line that a server writes when it is ready; `None` if it has ended.
fn read_address(log: &mut impl BufRead) -> Option<String> {
    loop {
        let mut line = String::new();
        if log.read_line(&mut line).unwrap() == 0 {
            return None;
        }
        if let Some((_, rest)) = line.split_once("listening on http://") {
            return rest.split_once(',').map(|(address, _)| address.to_string());
        }
    }
}

/// A directory with an index of `documents` in `docs`.
fn indexed(documents: u64) -> Workspace {
    let workspace = Workspace::new();
    let words = |number: u64| {
        format!("solid state disk n{number} m{} {}", number % 97, "page ".repeat(number as usize % 50))
    };
    let line =
        |number| format!("{{\"id\":\"d{number}\",\"title\":\"t{number}\",\"text\":\"{}\"}}\n", words(number));
    workspace.file("docs.jsonl", (0..documents).map(line).collect::<String>());
    workspace.ok("index docs.jsonl --out docs");
    workspace
}

#[test]
fn a_signal_stops_the_server_with_exit_code_0() {
    let workspace = indexed(300);
    let serve = |arguments: &[&str]| {
        let mut command = workspace.command(["serve", "docs", "--listen", "127.0.0.1:0", "--dram", "64M"]);
        Serving::start(command.args(arguments))
    };
    for signal in ["-TERM", "-INT"] {
        let server = serve(&["--slow", "0", "--log-queries"]);
        let answer = server.get("/api/v1/indexes/docs/search?q=disk+n7");
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        assert!(answer.contains("\"id\":\"d7\""), "{answer}");
        let (code, log) = server.end(signal);
        assert_eq!(code, Some(0), "{log}");
        for part in
            ["\"route\":\"/api/v1/indexes/{index}/search\"", "\"query\":\"disk n7\"", "\"event\":\"stopped\""]
        {
            assert!(log.contains(part), "{part} is not in {log}");
        }
    }
    // The pages that were hot are read again.
    assert!(std::fs::metadata(workspace.path("docs/hot-pages")).unwrap().len() > 0);
    let server = serve(&["--quiet"]);
    assert!(server.get("/health/ready").starts_with("HTTP/1.1 200"));
    let (code, log) = server.end("-TERM");
    assert_eq!(code, Some(0));
    assert!(!log.contains("\"route\""), "{log}");
}

#[test]
fn wrong_arguments_end_with_one_line_and_exit_code_2() {
    let workspace = indexed(300);
    for (arguments, message) in [
        ("serve", "DIR"),
        ("serve /nonexistent", "no such directory"),
        ("serve docs --listen 0.0.0.0:0", "--insecure"),
        ("serve docs --listen here", "--listen"),
        ("serve docs --listen 127.0.0.1:0 --dram 1M", "--dram"),
    ] {
        let output = workspace.run(arguments);
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments}: {error}");
        assert!(error.contains(message), "{arguments}: {error}");
    }
}

#[test]
fn flags_variables_and_a_file_give_the_settings_in_this_order() {
    let workspace = indexed(300);
    workspace.file(
        "conf/serve.toml",
        "dirs = [\"../docs\"]\nlisten = \"127.0.0.1:0\"\ndram = \"64M\"\nslow = 7\nquiet = true\n",
    );
    let mut command =
        workspace.command(["serve", "--config", "conf/serve.toml", "--slow=8", "--print-config"]);
    let output = command.env("TIERDEX_SLOW", "9").env("TIERDEX_DRAIN", "3").output().unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    let lines = ["dram = 67108864", "slow = 8", "quiet = true", "drain = 3"];
    for line in lines.iter().chain(&["wait-max = 100", "insecure = false"]) {
        assert!(printed.lines().any(|printed| printed == *line), "{line} is not in {printed}");
    }
    // What is printed is such a file, for any folder.
    workspace.file("other/again.toml", printed.clone());
    let again = workspace.run("serve --config other/again.toml --print-config");
    assert_eq!(String::from_utf8(again.stdout).unwrap(), printed);
    let server = Serving::start(&mut workspace.command(["serve", "--config", "conf/serve.toml"]));
    assert!(server.get("/api/v1/indexes/docs/search?q=disk").starts_with("HTTP/1.1 200"));
    server.hang_up("to read again");
    assert!(server.get("/health/ready").starts_with("HTTP/1.1 200"));
    assert_eq!(server.end("-TERM").0, Some(0));

    for (text, message) in [
        ("slow = 1\nlisten = \"here\"\n", "conf/serve.toml, line 2: "),
        ("\n\nspeed = 1\n", "conf/serve.toml, line 3: unknown field `speed`"),
        ("dram = \"lots\"", "conf/serve.toml, line 1: "),
        ("dirs = \n", "conf/serve.toml, line 1: "),
        ("slow = 1", "no directory"),
        ("threads = 0", "conf/serve.toml, line 1: expected a number"),
        ("dirs = [\"../docs\"]\ntls-cert = \"cert.pem\"", "--tls-key"),
    ] {
        workspace.file("conf/serve.toml", text);
        let output = workspace.run("serve --config conf/serve.toml");
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{text}: {error}");
        assert!(error.contains(message) && error.lines().count() == 1, "{text}: {error}");
    }
}

/// The command marks words in the text of a snippet; the server returns where they are.
#[test]
fn snippets_and_marks_are_those_of_the_command() {
    let workspace = indexed(2000);
    let server =
        Serving::start(&mut workspace.command(["serve", "docs", "--listen", "127.0.0.1:0", "--dram", "64M"]));
    let mut marked = 0;
    for query in
        ["disk", "solid state n7", "+page +m12", "n1*", "dsik~2 page", "m3 OR m5 OR m7", "(disk n9)~2"]
    {
        let output =
            workspace.command(["search", "docs", "--query", query, "--format", "json"]).output().unwrap();
        let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let plus = query.replace('+', "%2B").replace(' ', "+");
        let answer = server.get(&format!("/api/v1/indexes/docs/search?q={plus}"));
        let body = answer.split_once("\r\n\r\n").unwrap().1;
        let answer: serde_json::Value = serde_json::from_str(body).unwrap();
        let (found, served) = (found["hits"].as_array().unwrap(), answer["hits"].as_array().unwrap());
        assert_eq!(found.len(), served.len(), "{query}");
        for (found, served) in found.iter().zip(served) {
            for member in ["id", "score", "title"] {
                assert_eq!(found[member], served[member], "{query}");
            }
            let mut text = String::new();
            let points: Vec<char> = served["snippet"]["text"].as_str().unwrap().chars().collect();
            let mut at = 0;
            for mark in served["snippet"]["marks"].as_array().unwrap() {
                let [start, end] = [0, 1].map(|number| mark[number].as_u64().unwrap() as usize);
                text.extend(&points[at..start]);
                text.extend("**".chars().chain(points[start..end].iter().copied()).chain("**".chars()));
                (at, marked) = (end, marked + 1);
            }
            text.extend(&points[at..]);
            assert_eq!(found["snippet"], text, "{query}");
        }
    }
    assert!(marked > 50, "{marked}");
    assert_eq!(server.end("-TERM").0, Some(0));
}

#[test]
fn the_unit_of_systemd_and_its_settings_are_valid() {
    let workspace = Workspace::new();
    let deploy = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy");
    let settings = deploy.join("serve.toml");
    let mut command = workspace.command(["serve", "--print-config", "--config"]);
    let output = command.arg(&settings).output().unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(printed.contains("dram = 536870912"), "{printed}{}", String::from_utf8_lossy(&output.stderr));
    let unit = std::fs::read_to_string(deploy.join("tierdex.service")).unwrap();
    // The program is not installed where the unit expects it.
    let unit = unit.replace("/usr/local/bin/tierdex", env!("CARGO_BIN_EXE_tierdex"));
    let unit = workspace.file("tierdex.service", unit);
    match Command::new("systemd-analyze").arg("verify").arg(unit).output() {
        Ok(output) => assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr)),
        Err(error) => println!("skipped, systemd-analyze does not start: {error}"),
    }
}

#[test]
fn sighup_reads_the_keys_again() {
    let workspace = indexed(300);
    // The SHA-256 of the keys.
    let first = "9f9f5111f7b27a781f1f1ddde5ebc2dd2b796bfc7365c9c28b548e564176929f";
    let second = "3465f6e6975baa864ca957f0914ecda9bf7eb601ac31ac20a5dc3d329279a843";
    workspace.file("keys", format!("web read {first}\n"));
    let mut command = workspace.command(["serve", "docs", "--listen", "127.0.0.1:0", "--dram", "64M"]);
    let server = Serving::start(command.args(["--api-keys", "keys"]));
    let status = |key: &str| {
        let header = format!("Authorization: Bearer {key}");
        server.get_with("/api/v1/indexes", &header)["HTTP/1.1 ".len()..][..3].to_string()
    };
    assert_eq!(status("0123456789abcdef"), "200");
    assert_eq!(status("fedcba9876543210"), "401");
    workspace.file("keys", format!("other read {second}\n"));
    server.hang_up("keys read again");
    assert_eq!(status("fedcba9876543210"), "200");
    assert_eq!(status("0123456789abcdef"), "401");
    // A wrong file changes nothing.
    workspace.file("keys", "no key");
    server.hang_up("keys not changed");
    assert_eq!(status("fedcba9876543210"), "200");
    let (code, log) = server.end("-TERM");
    assert_eq!(code, Some(0));
    assert!(log.contains("keys, line 1"), "{log}");
}

#[test]
fn a_second_signal_stops_at_once() {
    let workspace = indexed(300);
    let mut command = workspace.command(["serve", "docs", "--listen", "127.0.0.1:0", "--dram", "64M"]);
    let mut server = Serving::start(command.args(["--drain-delay", "60"]));
    server.kill("-TERM");
    let began = Instant::now();
    // The first signal is taken when health checks fail.
    while server.get("/health/ready").starts_with("HTTP/1.1 200") {
        assert!(began.elapsed() < Duration::from_secs(10));
        std::thread::sleep(Duration::from_millis(10));
    }
    server.kill("-TERM");
    assert_eq!(server.child.wait().unwrap().code(), Some(130));
}

/// Many connections, searches with snippets, explanations, batches, documents and metrics at once.
#[test]
fn a_server_keeps_to_the_smallest_accepted_budget() {
    let workspace = indexed(60_000);
    let rejected = workspace.run("serve docs --listen 127.0.0.1:0 --dram 2M");
    let error = String::from_utf8(rejected.stderr).unwrap();
    let least = error.split_once("too small: ").and_then(|(_, rest)| rest.split(' ').next());
    let least: Size = least.unwrap_or_else(|| panic!("{error}")).parse().unwrap();
    let least = least.of(0);
    assert!(least < 40 << 20, "{least} bytes");
    let Some(group) = ControlGroup::new("serve", least + least / 5) else { return };
    let (docs, least) = (workspace.path("docs").display().to_string(), least.to_string());
    let server =
        Serving::start(&mut group.command(&["serve", &docs, "--listen", "127.0.0.1:0", "--dram", &least]));
    let searches = "/api/v1/indexes/docs/search?q=";
    let paths = [
        format!("{searches}disk+n7*&k=1000"),
        format!("{searches}page+solid+state&k=100"),
        format!("{searches}%2Bsolid+%2Bpage+m7&explain=true"),
        format!("{searches}m1*&count=true"),
        "/api/v1/indexes/docs/documents/d59999".to_string(),
        "/api/v1/indexes/docs/terms?limit=1000".to_string(),
        "/metrics".to_string(),
        "/api/v1/stats/history".to_string(),
    ];
    let queries = (0..3000).map(|number| format!("{{\"qid\":\"{number}\",\"query\":\"disk m{number}\"}}\n"));
    let queries: String = queries.collect();
    let answered = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for thread in 0..32 {
            let (server, paths, answered) = (&server, &paths, &answered);
            scope.spawn(move || {
                for request in 0..25 {
                    let answer = server.get(&paths[(thread + request) % paths.len()]);
                    let status = &answer["HTTP/1.1 ".len()..][..3];
                    assert!(["200", "400", "429"].contains(&status), "{answer}");
                    answered.fetch_add(usize::from(status == "200"), Ordering::Relaxed);
                }
            });
        }
        for _ in 0..3 {
            scope.spawn(|| {
                let answer = server.post_lines("/api/v1/indexes/docs/batch?k=100", &queries);
                assert!(answer.contains("\"qid\":\"2999\"") || answer.contains(" 429 "), "{answer}");
            });
        }
    });
    assert!(answered.into_inner() > 200);
    assert_eq!(group.kills(), 0);
    assert_eq!(server.end("-TERM").0, Some(0));
}
