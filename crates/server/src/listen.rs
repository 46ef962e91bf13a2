//! Accepts connections, serves each in a task, and stops gracefully.
//!
//! To stop: 1. health checks say so, and each answer closes its connection; 2. after a delay, those that wait
//! are the last connections to be accepted, idle ones are closed, and half-read headers after a second; 3.
//! requests in progress end, or are cancelled when the time for them is over.

use crate::api::router;
use crate::connection::{OpenConnection, Phase, WatchedStream};
use crate::exchange::answer;
use crate::options::{HEADER_BYTES_MAX, RECEIVE_BUFFER_BYTES, RESERVED_CONNECTIONS, SEND_BUFFER_BYTES};
use crate::state::{ServerState, Stopping};
use crate::tls::Tls;
use axum::Router;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tierdex::StopSignal;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;

/// Headers of a request, at most.
const HEADERS_MAX: usize = 64;

/// Time between two looks at all connections, and at the stop signal.
const WATCH: Duration = Duration::from_millis(250);
const POLL_STOP: Duration = Duration::from_millis(20);

/// Time between the announcement that the server stops and the end of accepting connections, at least.
const ANNOUNCED: Duration = Duration::from_millis(100);

/// Time of the handshake of TLS.
const HANDSHAKE: Duration = Duration::from_secs(5);

/// Bytes of an answer that TLS holds before they are sent.
const TLS_SEND_BYTES: usize = 16 << 10;

/// Connections that wait to be accepted, at most.
const BACKLOG: u32 = 128;

/// Pause when all connections are busy, and after an error of the listener.
const ACCEPT_PAUSE: Duration = Duration::from_millis(20);

/// Opens a listener whose connections have small buffers in the kernel: they are counted.
///
/// # Errors
/// If the address cannot be used.
pub(crate) fn open_listener(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    socket.set_reuseaddr(true)?;
    socket.set_send_buffer_size(SEND_BUFFER_BYTES)?;
    socket.set_recv_buffer_size(RECEIVE_BUFFER_BYTES)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Serves until the signal says stop, and all requests have ended or were cancelled.
pub(crate) async fn run(
    listener: TcpListener,
    state: &Arc<ServerState>,
    stop: &StopSignal,
    reload: &AtomicBool,
) {
    let router = router(state);
    let (stopping, watched) = watch::channel(Stopping::No);
    state.set_stopping(watched.clone());
    let accepting = tokio::spawn(accept(listener, state.clone(), router, watched.clone()));
    let watching = tokio::spawn(close_connections(state.clone(), watched));
    while stop.check().is_ok() {
        if reload.swap(false, Ordering::Relaxed) {
            let state = state.clone();
            // It reads files.
            drop(tokio::task::spawn_blocking(move || state.reload()));
        }
        tokio::time::sleep(POLL_STOP).await;
    }
    state.log.event("stopping: waiting for requests in progress");
    stopping.send_replace(Stopping::Announced);
    // Clients that are active learn that their connections close.
    tokio::time::sleep(state.options.drain_delay.max(ANNOUNCED)).await;
    stopping.send_replace(Stopping::Closing);
    // Drops the listener.
    let _ = accepting.await;
    let began = Instant::now();
    while state.connections.count() > 0 && began.elapsed() < state.options.drain {
        tokio::time::sleep(POLL_STOP).await;
    }
    if state.connections.count() > 0 {
        state.log.event("stopping: cancelling requests that take too long");
        stopping.send_replace(Stopping::Cancelling);
        let began = Instant::now();
        while state.connections.count() > 0 && began.elapsed() < Duration::from_secs(1) {
            tokio::time::sleep(POLL_STOP).await;
        }
    }
    watching.abort();
}

async fn accept(
    listener: TcpListener,
    state: Arc<ServerState>,
    router: Router,
    mut stopping: watch::Receiver<Stopping>,
) {
    loop {
        let accepted = tokio::select! {
            biased;
            accepted = listener.accept() => accepted,
            _ = stopping.wait_for(|stopping| *stopping >= Stopping::Closing) => return,
        };
        let Ok((stream, _)) = accepted else {
            // No file descriptor is free.
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let opened = loop {
            match state.connections.add(RESERVED_CONNECTIONS) {
                Some(opened) => break opened,
                None if *stopping.borrow() >= Stopping::Closing => return,
                None => tokio::time::sleep(ACCEPT_PAUSE).await,
            }
        };
        tokio::spawn(serve(stream, opened, state.clone(), router.clone(), stopping.clone()));
    }
}

async fn serve(
    stream: TcpStream,
    opened: OpenConnection,
    state: Arc<ServerState>,
    router: Router,
    mut stopping: watch::Receiver<Stopping>,
) {
    // A small answer is sent at once.
    let _ = stream.set_nodelay(true);
    let stream = WatchedStream::new(stream, opened.connection.clone());
    let Some(acceptor) = state.tls.as_ref().map(Tls::acceptor) else {
        return serve_http(stream, opened, state, router, stopping).await;
    };
    let connection = &opened.connection;
    let accepted = acceptor.accept_with(stream, |tls| tls.set_buffer_limit(Some(TLS_SEND_BYTES)));
    let accepted = tokio::select! {
        accepted = tokio::time::timeout(HANDSHAKE, accepted) => accepted,
        () = connection.close.notified() => return,
        _ = stopping.wait_for(|stopping| *stopping >= Stopping::Closing) => return,
    };
    let Ok(Ok(stream)) = accepted else { return state.metrics.refused.handshake() };
    connection.set_phase(Phase::New);
    serve_http(stream, opened, state, router, stopping).await;
}

async fn serve_http(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    opened: OpenConnection,
    state: Arc<ServerState>,
    router: Router,
    mut stopping: watch::Receiver<Stopping>,
) {
    let connection = &opened.connection;
    let service = service_fn(|request| answer(state.clone(), connection.clone(), router.clone(), request));
    let stream = TokioIo::new(stream);
    let mut http = http1::Builder::new();
    http.max_headers(HEADERS_MAX).max_buf_size(HEADER_BYTES_MAX).keep_alive(true);
    let mut served = pin!(http.serve_connection(stream, service));
    loop {
        tokio::select! {
            // An error concerns this client only: it has sent no HTTP, or has gone away.
            _ = &mut served => return,
            () = connection.close.notified() => if connection.may_close() { return },
            changed = stopping.changed() => match (*stopping.borrow(), changed) {
                (Stopping::Closing, _) => served.as_mut().graceful_shutdown(),
                (Stopping::Cancelling, _) | (_, Err(_)) => return,
                _ => {}
            },
        }
    }
}

async fn close_connections(state: Arc<ServerState>, stopping: watch::Receiver<Stopping>) {
    loop {
        tokio::time::sleep(WATCH).await;
        let is_stopping = *stopping.borrow() >= Stopping::Closing;
        state.connections.close_due(is_stopping);
    }
}
