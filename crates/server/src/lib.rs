//! Search over HTTP: a JSON API, a page, health checks and metrics, for one index or for a folder of them.
//!
//! A request is checked, admitted if it would not wait for long (`admission`), and evaluated by the threads
//! of an [`Engine`](tierdex::Engine), which serves all indexes within one memory budget. The memory of
//! connections, bodies and answers is a part of the budget. The threads of HTTP parse requests and write
//! answers; they evaluate only a search that is alone and short.
//!
//! Of the libraries only this one is async and knows JSON.
#![forbid(unsafe_code)]

mod admission;
mod api;
mod api_error;
mod catalog;
mod connection;
mod es;
mod exchange;
mod explain;
mod extract;
mod history;
mod keys;
mod listen;
mod log;
mod metrics;
mod metrics_text;
mod options;
mod page;
mod record;
mod sampling;
mod search;
mod shape;
mod state;
mod stored;
mod tls;
mod tokens;

pub use explain::{ExplainedList, ExplainedNode, ExplainedQuery, ExplainedSegment};
pub use options::{Compat, ServerOptions};
pub use tls::TlsFiles;

use catalog::Catalog;
use keys::Keys;
use log::Log;
use state::ServerState;
use std::net::SocketAddr;
use std::num::NonZero;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread::available_parallelism;
use std::time::Duration;
use tierdex::{Error, Result, StopSignal};
use tls::Tls;

/// Processors for each thread of HTTP: one is enough for eight that search.
const PROCESSORS_PER_THREAD: usize = 8;

/// Serves until `stop` is raised, and then until the requests in progress have ended. Calls `ready` with the
/// address when all indexes are open and requests are accepted. When `reload` is set, reads the files of keys
/// and of the certificate again, and clears it.
///
/// # Errors
/// [`Error::Usage`] if the address is not a loopback address and the options do not allow that, a directory
/// does not exist, a file of keys or certificates is wrong, or the memory budget is too small;
/// [`Error::Failed`] if the address cannot be used; else as [`Engine::new`](tierdex::Engine::new).
pub fn serve(
    options: ServerOptions,
    stop: &StopSignal,
    reload: &AtomicBool,
    ready: impl FnOnce(SocketAddr),
) -> Result<()> {
    let keys = options.keys.as_deref().map(Keys::read).transpose()?.unwrap_or_default();
    let tls = options.tls.as_ref().map(Tls::read).transpose()?;
    if !options.listen.ip().is_loopback() && !keys.are_required() && !options.insecure {
        return Err(Error::Usage(format!(
            "{} can be reached from other machines, and there are no keys: give --api-keys FILE, or --insecure to \
             let everybody search",
            options.listen
        )));
    }
    let failed = |what: &str, error: std::io::Error| Error::Failed(format!("{what}: {error}"));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(http_threads())
        .thread_name("http")
        .enable_io()
        .enable_time()
        .build()
        .map_err(|error| failed("cannot start the threads of the server", error))?;
    let listener = {
        let _runtime = runtime.enter();
        let opened = listen::open_listener(options.listen);
        opened.map_err(|error| failed(&format!("cannot listen on {}", options.listen), error))?
    };
    let address = listener.local_addr().map_err(|error| failed("cannot listen", error))?;
    let log = Arc::new(Log::start().map_err(|error| failed("cannot start a thread", error))?);
    let catalog = Catalog::open(&options, &log)?;
    let state = Arc::new(ServerState::new(options, keys, tls, catalog, log));
    std::thread::scope(|scope| {
        let _close = CloseCatalog(&state.catalog);
        scope.spawn(|| state.catalog.refresh(&state.log));
        runtime.block_on(async {
            let sampled = state.clone();
            tokio::spawn(async move { sampling::sample_each_second(&sampled).await });
            ready(address);
            listen::run(listener, &state, stop, reload).await;
        });
    });
    // Requests that were cancelled hold the state for a moment.
    runtime.shutdown_timeout(Duration::from_secs(1));
    let log = state.log.clone();
    // The engine writes which pages were hot.
    drop(state);
    log.event("stopped");
    Ok(())
}

/// Ends the thread that opens new commits, also after an error.
struct CloseCatalog<'c>(&'c Catalog);

impl Drop for CloseCatalog<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}

fn http_threads() -> usize {
    available_parallelism().map_or(1, NonZero::get).div_ceil(PROCESSORS_PER_THREAD)
}
