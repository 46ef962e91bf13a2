//! A server in this process over an index of generated documents, and a client that speaks plain HTTP.
#![allow(dead_code, reason = "each test uses a part")]

pub mod library;

use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tierdex::{EngineOptions, IndexWriter, Merge, ReadCosts, Schema, StopSignal, WriterOptions};
use tierdex_server::{Compat, ServerOptions, serve};

/// A running server; dropping it stops it.
pub struct TestServer {
    pub address: SocketAddr,
    stop: StopSignal,
    reload: Arc<AtomicBool>,
    thread: Option<JoinHandle<tierdex::Result<()>>>,
}

/// The answer to a request.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

/// A connection that is kept alive.
pub struct Client {
    stream: BufReader<TcpStream>,
}

/// Waits until a condition holds.
pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The size of a test: that of every run, or that of a campaign, which is one if `TIERDEX_CAMPAIGN` is set.
pub fn test_size<T>(of_each_run: T, of_campaigns: T) -> T {
    if std::env::var_os("TIERDEX_CAMPAIGN").is_some() { of_campaigns } else { of_each_run }
}

pub fn options(dirs: &[&Path]) -> ServerOptions {
    ServerOptions {
        dirs: dirs.iter().map(|dir| dir.to_path_buf()).collect(),
        listen: "127.0.0.1:0".parse().unwrap(),
        keys: None,
        tls: None,
        insecure: false,
        allowed_hosts: Vec::new(),
        compat: Compat::Opensearch,
        dram: 64 << 20,
        threads: Some(2),
        engine: EngineOptions::new().read_costs(ReadCosts::default()),
        drain: Duration::from_secs(5),
        drain_delay: Duration::ZERO,
        wait_max: Duration::from_millis(100),
        slow: Duration::from_secs(10),
        log_queries: false,
        log_requests: false,
    }
}

impl TestServer {
    pub fn start(options: ServerOptions) -> TestServer {
        let (sender, receiver) = channel();
        let stop = StopSignal::default();
        let stopped = stop.clone();
        let reload = Arc::<AtomicBool>::default();
        let reloaded = reload.clone();
        let run = move || serve(options, &stopped, &reloaded, |address| sender.send(address).unwrap());
        let thread = std::thread::spawn(run);
        let Ok(address) = receiver.recv() else {
            panic!("the server did not start: {:?}", thread.join());
        };
        TestServer { address, stop, reload, thread: Some(thread) }
    }

    /// Tells the server to stop.
    pub fn raise(&self) {
        self.stop.raise();
    }

    /// Tells the server to read its keys and its certificate again.
    pub fn reload(&self) {
        self.reload.store(true, Ordering::Relaxed);
    }

    /// Stops the server and waits until it has ended.
    pub fn stop(mut self) {
        self.stop.raise();
        self.thread.take().unwrap().join().unwrap().unwrap();
    }

    pub fn connect(&self) -> Client {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream.set_nodelay(true).unwrap();
        Client { stream: BufReader::new(stream) }
    }

    pub fn get(&self, path: &str) -> Answer {
        self.connect().get(path)
    }

    pub fn post(&self, path: &str, body: &Value) -> Answer {
        self.connect().post(path, body)
    }

    /// The index `docs` as the server describes it.
    pub fn index(&self) -> Value {
        self.get("/api/v1/indexes/docs").json()
    }

    /// `GET /api/v1/stats`.
    pub fn stats(&self) -> Value {
        self.get("/api/v1/stats").json()
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.stop.raise();
        self.thread.take().into_iter().for_each(|thread| drop(thread.join()));
    }
}

impl Client {
    pub fn get(&mut self, path: &str) -> Answer {
        self.send(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes());
        self.answer().expect("the server closed the connection")
    }

    pub fn post(&mut self, path: &str, body: &Value) -> Answer {
        let body = body.to_string();
        self.send(&post_bytes(path, "application/json", body.as_bytes()));
        self.answer().expect("the server closed the connection")
    }

    /// Sends a request with more headers, each with its line end.
    pub fn request(&mut self, method: &str, path: &str, headers: &str, body: &str) -> Answer {
        let length = body.len();
        let head = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n");
        self.send(format!("{head}{headers}\r\n{body}").as_bytes());
        self.answer_to(method == "HEAD").expect("the server closed the connection")
    }

    pub fn send(&mut self, bytes: &[u8]) {
        self.stream.get_mut().write_all(bytes).unwrap();
    }

    /// Sends bytes to a server that may have closed the connection.
    pub fn try_send(&mut self, bytes: &[u8]) -> bool {
        self.stream.get_mut().write_all(bytes).is_ok()
    }

    /// Waits until the first bytes of an answer have arrived.
    pub fn wait_for_answer(&mut self) {
        loop {
            match self.stream.fill_buf() {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                bytes => return assert!(!bytes.unwrap().is_empty()),
            }
        }
    }

    /// Reads an answer; `None` if the server has closed the connection.
    pub fn answer(&mut self) -> Option<Answer> {
        self.answer_to(false)
    }

    /// Reads an answer, which has no body if it is that to `HEAD`.
    fn answer_to(&mut self, is_head: bool) -> Option<Answer> {
        let status = self.line()?;
        let status = status.split(' ').nth(1)?.parse().ok()?;
        let mut headers = Vec::new();
        loop {
            let line = self.line()?;
            if line.is_empty() {
                break;
            }
            let (name, value) = line.split_once(": ")?;
            headers.push((name.to_ascii_lowercase(), value.to_string()));
        }
        let mut answer = Answer { status, headers, body: Vec::new() };
        if is_head {
            return Some(answer);
        }
        if answer.header("transfer-encoding") == Some("chunked") {
            while let Some(chunk) = self.chunk()? {
                answer.body.extend(chunk);
            }
        } else if let Some(length) = answer.header("content-length") {
            answer.body.resize(length.parse().ok()?, 0);
            self.stream.read_exact(&mut answer.body).ok()?;
        }
        Some(answer)
    }

    /// The next chunk of a body; the inner `None` after the last.
    fn chunk(&mut self) -> Option<Option<Vec<u8>>> {
        let length = usize::from_str_radix(&self.line()?, 16).ok()?;
        let mut chunk = vec![0; length];
        self.stream.read_exact(&mut chunk).ok()?;
        self.line()?;
        Some((length > 0).then_some(chunk))
    }

    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let read = self.stream.read_line(&mut line).ok()?;
        (read > 0).then(|| line.trim_end().to_string())
    }

    /// Whether the server closes the connection within a time.
    pub fn is_closed_within(&mut self, time: Duration) -> bool {
        self.stream.get_ref().set_read_timeout(Some(time)).unwrap();
        let mut rest = Vec::new();
        self.stream.read_to_end(&mut rest).is_ok()
            || matches!(self.stream.read(&mut [0; 1]), Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset)
    }
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(given, _)| given == name).map(|(_, value)| &**value)
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| {
            panic!("{error}: {}", String::from_utf8_lossy(&self.body));
        })
    }

    /// The kind of an error.
    pub fn error_kind(&self) -> String {
        self.json()["error"]["kind"].as_str().unwrap_or_default().to_string()
    }
}

pub fn post_bytes(path: &str, media_type: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {media_type}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

/// Random numbers of a seed.
pub struct Random(pub u64);

impl Random {
    /// A number below `count`.
    pub fn below(&mut self, count: usize) -> usize {
        self.0 = self.0.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
        (self.0 >> 33) as usize % count
    }
}

/// Words of the documents that [`write_index`] makes.
pub const WORDS: [&str; 12] = [
    "solid", "state", "disk", "memory", "cache", "page", "block", "list", "query", "term", "index", "segment",
];

/// The text of a document: words whose frequencies differ.
pub fn text_of(number: u64) -> String {
    let mut state = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let words: Vec<&str> = (0..20 + next() % 20)
        .map(|_| {
            let (one, other) = (next() as usize % WORDS.len(), next() as usize % WORDS.len());
            WORDS[one.min(other)]
        })
        .collect();
    format!("{} n{number}", words.join(" "))
}

/// Adds documents to an index, which is made if there is none, and commits them.
pub fn write_index(dir: &Path, documents: std::ops::Range<u64>) {
    let options = WriterOptions { memory: 16 << 20, updatable: true, ..WriterOptions::default() };
    let mut schema = Schema::default();
    schema.fields[0].positions = true;
    let mut writer = match documents.start {
        0 => IndexWriter::create(dir, schema, options),
        _ => IndexWriter::append(dir, options),
    }
    .unwrap();
    for number in documents {
        let title = format!("Title {number}");
        writer
            .add(&format!("d{number}"), [("title", title.as_str()), ("text", text_of(number).as_str())])
            .unwrap();
    }
    writer.commit(Merge::Keep).unwrap();
}
