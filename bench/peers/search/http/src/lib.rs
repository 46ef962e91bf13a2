//! Serves an engine over HTTP with the libraries that `tierdex serve` uses, so that the load generator of
//! `crates/server/examples/load.rs` measures both.
//!
//! `POST` to any path, with `{"query": "...", "k": 10}`, is answered by `{"hits": [{"document": 7,
//! "score": 1.5}, ...]}`. A thread for blocking calls evaluates the query. There are no limits, no log and no
//! metrics.

#![forbid(unsafe_code)]

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::{Value, json};
use std::{net::SocketAddr, sync::Arc};
use tierdex_bench_protocol::{Answer, LineServer, Result};
use tokio::net::TcpListener;

#[derive(Deserialize)]
struct Search {
    query: String,
    k: usize,
}

/// Answers requests at `address` until the process is killed. Prints `READY` when it does.
///
/// # Errors
/// If the address cannot be bound.
pub fn serve_http(server: impl LineServer + Send + 'static, address: SocketAddr) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_io().build();
    let runtime = runtime.map_err(|error| format!("cannot start threads: {error}"))?;
    runtime.block_on(async {
        let listener = TcpListener::bind(address).await;
        let listener = listener.map_err(|error| format!("cannot listen at {address}: {error}"))?;
        println!("READY");
        let routes = Router::new().route("/{*path}", post(search)).with_state(Arc::new(server));
        axum::serve(listener, routes).await.map_err(|error| error.to_string())
    })
}

async fn search<S: LineServer + Send + 'static>(
    State(server): State<Arc<S>>,
    Json(Search { query, k }): Json<Search>,
) -> std::result::Result<Json<Value>, (StatusCode, String)> {
    let failed = |error: String| (StatusCode::INTERNAL_SERVER_ERROR, error);
    let find = move || server.answer(&format!("DOCS_{k}\t{query}"));
    let answer = tokio::task::spawn_blocking(find).await.map_err(|error| failed(error.to_string()))?;
    match answer.map_err(failed)? {
        Answer::Documents(hits) => {
            let hit = |(document, score)| json!({ "document": document, "score": score });
            Ok(Json(json!({ "hits": hits.into_iter().map(hit).collect::<Vec<_>>() })))
        }
        _ => Err((StatusCode::BAD_REQUEST, "the query is not supported".to_string())),
    }
}
