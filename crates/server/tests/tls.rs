//! The server over TLS: the same answers, a certificate that is replaced, and clients that do not finish.

mod support;

use rcgen::{CertifiedKey, generate_simple_self_signed};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use support::{TestServer, options, post_bytes, wait_until, write_index};
use tierdex_server::TlsFiles;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

/// A client that trusts one certificate.
struct TlsClient {
    stream: StreamOwned<ClientConnection, TcpStream>,
}

impl TlsClient {
    /// Connects, and does the handshake; an error if the certificate is another one.
    fn connect(server: &TestServer, trusted: &CertificateDer<'static>) -> std::io::Result<TlsClient> {
        let mut roots = RootCertStore::empty();
        roots.add(trusted.clone()).unwrap();
        let config = ClientConfig::builder_with_provider(Arc::new(default_provider()));
        let mut config = config
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let connection = ClientConnection::new(Arc::new(config), "localhost".try_into().unwrap()).unwrap();
        let stream = TcpStream::connect(server.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let mut stream = StreamOwned::new(connection, stream);
        stream.conn.complete_io(&mut stream.sock)?;
        Ok(TlsClient { stream })
    }

    /// Sends a request, the last one of the connection, and returns the status line, headers and body.
    fn ask(mut self, request: &[u8]) -> String {
        self.stream.write_all(request).unwrap();
        let mut answer = Vec::new();
        // The end of the answer is announced, so that nobody can cut it.
        self.stream.read_to_end(&mut answer).unwrap();
        String::from_utf8(answer).unwrap()
    }
}

fn get(path: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").into_bytes()
}

/// Writes a new certificate and its key; returns the certificate.
fn write_certificate(files: &TlsFiles) -> CertificateDer<'static> {
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(["localhost".to_string()]).unwrap();
    std::fs::write(&files.certificate, cert.pem()).unwrap();
    std::fs::write(&files.key, signing_key.serialize_pem()).unwrap();
    cert.der().clone()
}

fn served(folder: &Path) -> (TlsFiles, CertificateDer<'static>, TestServer) {
    write_index(&folder.join("docs"), 0..2000);
    let files = TlsFiles { certificate: folder.join("cert.pem"), key: folder.join("key.pem") };
    let certificate = write_certificate(&files);
    let mut options = options(&[&folder.join("docs")]);
    (options.tls, options.dram) = (Some(files.clone()), 256 << 20);
    (files, certificate, TestServer::start(options))
}

#[test]
fn short_and_long_answers_arrive_and_http1_is_negotiated() {
    let folder = tempfile::tempdir().unwrap();
    let (_, certificate, server) = served(folder.path());
    let mut client = TlsClient::connect(&server, &certificate).unwrap();
    assert_eq!(client.stream.conn.alpn_protocol(), Some(&b"http/1.1"[..]));
    // Two requests on one connection.
    let request = b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n";
    client.stream.write_all(request).unwrap();
    let mut start = [0; 12];
    client.stream.read_exact(&mut start).unwrap();
    assert_eq!(&start, b"HTTP/1.1 200");
    let answer = client.ask(&get("/api/v1/indexes/docs/search?q=disk+state&k=1000"));
    let (_, body) = answer.rsplit_once("\r\n\r\n").unwrap();
    let body: Value = serde_json::from_str(body).unwrap();
    assert_eq!(body["hits"].as_array().map(Vec::len), Some(1000), "{body}");

    let lines: String =
        (0..500).map(|number| format!("{{\"qid\":\"{number}\",\"query\":\"disk n{number}\"}}\n")).collect();
    let batch = post_bytes("/api/v1/indexes/docs/batch?k=3", "application/jsonl", lines.as_bytes());
    let batch = String::from_utf8(batch).unwrap().replacen("\r\n", "\r\nConnection: close\r\n", 1);
    let answer = TlsClient::connect(&server, &certificate).unwrap().ask(batch.as_bytes());
    assert!(answer.contains("\"qid\":\"499\""), "{answer}");
}

#[test]
fn new_connections_get_the_certificate_that_was_read_last() {
    let folder = tempfile::tempdir().unwrap();
    let (files, first, server) = served(folder.path());
    let open = TlsClient::connect(&server, &first).unwrap();
    let second = write_certificate(&files);
    assert!(TlsClient::connect(&server, &second).is_err());
    server.reload();
    let mut changed = None;
    wait_until("the new certificate is used", || {
        changed = TlsClient::connect(&server, &second).ok();
        changed.is_some()
    });
    assert!(changed.unwrap().ask(&get("/health/live")).starts_with("HTTP/1.1 200"));
    // Connections that are open keep theirs.
    assert!(open.ask(&get("/health/live")).starts_with("HTTP/1.1 200"));
    // A damaged file changes nothing.
    std::fs::write(&files.certificate, "no certificate").unwrap();
    server.reload();
    let has_failed = || {
        let answer = TlsClient::connect(&server, &second).unwrap().ask(&get("/metrics"));
        answer.contains("tierdex_reload_failures_total 1\n")
    };
    wait_until("the damaged file was read", has_failed);
    let answer = TlsClient::connect(&server, &second).unwrap().ask(&get("/health/live"));
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

#[test]
fn connections_without_tls_and_unfinished_handshakes_are_closed() {
    let folder = tempfile::tempdir().unwrap();
    let (_, certificate, server) = served(folder.path());
    let mut plain = server.connect();
    plain.send(&get("/health/live"));
    assert!(plain.answer().is_none());
    // The beginning of a client hello.
    let mut unfinished = server.connect();
    unfinished.send(&[22, 3, 1, 1, 0, 1, 0]);
    let mut silent = server.connect();
    let answer = TlsClient::connect(&server, &certificate).unwrap().ask(&get("/health/live"));
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(unfinished.is_closed_within(Duration::from_secs(15)));
    assert!(silent.is_closed_within(Duration::from_secs(15)));
}
