//! What all requests to a server share.

use crate::admission::AdmissionControl;
use crate::catalog::Catalog;
use crate::connection::Connections;
use crate::history::History;
use crate::keys::Keys;
use crate::log::Log;
use crate::metrics::Metrics;
use crate::options::{BATCHES_MAX, Limits, ServerOptions};
use crate::tls::Tls;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;
use tokio::sync::{Semaphore, watch};

/// How far a server has stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stopping {
    No,
    /// Health checks say that the server stops.
    Announced,
    /// No connection is accepted.
    Closing,
    /// Requests in progress are cancelled.
    Cancelling,
}

/// Bytes of memory that requests take a part of, in units of 1 KiB.
pub(crate) struct MemoryShare {
    pub(crate) units: Arc<Semaphore>,
    pub(crate) max: u32,
}

/// Bytes of a unit of a [`MemoryShare`].
pub(crate) const UNIT: usize = 1 << 10;

/// State of a server.
pub(crate) struct ServerState {
    pub(crate) options: ServerOptions,
    pub(crate) keys: Keys,
    pub(crate) tls: Option<Tls>,
    pub(crate) catalog: Catalog,
    pub(crate) admission: Arc<AdmissionControl>,
    pub(crate) connections: Arc<Connections>,
    pub(crate) bodies: MemoryShare,
    pub(crate) answers: MemoryShare,
    /// Batches in progress.
    pub(crate) batches: Arc<Semaphore>,
    /// Reads of terms, ids and stored documents by threads of their own.
    pub(crate) blocking: Arc<Semaphore>,
    pub(crate) metrics: Metrics,
    pub(crate) history: History,
    pub(crate) log: Arc<Log>,
    pub(crate) began: Instant,
    reloading: Mutex<()>,
    stopping: OnceLock<watch::Receiver<Stopping>>,
}

/// Threads that read terms, ids and stored documents.
const BLOCKING_THREADS: usize = 2;

impl MemoryShare {
    fn new(bytes: usize) -> MemoryShare {
        let max = (bytes / UNIT) as u32;
        MemoryShare { units: Arc::new(Semaphore::new(max as usize)), max }
    }
}

impl ServerState {
    pub(crate) fn new(
        options: ServerOptions,
        keys: Keys,
        tls: Option<Tls>,
        catalog: Catalog,
        log: Arc<Log>,
    ) -> ServerState {
        let limits = Limits::of(options.dram);
        ServerState {
            admission: AdmissionControl::new(catalog.threads(), options.wait_max),
            connections: Connections::new(limits.connections),
            bodies: MemoryShare::new(limits.bodies),
            answers: MemoryShare::new(limits.answers),
            batches: Arc::new(Semaphore::new(BATCHES_MAX)),
            blocking: Arc::new(Semaphore::new(BLOCKING_THREADS)),
            metrics: Metrics::default(),
            history: History::default(),
            began: Instant::now(),
            reloading: Mutex::default(),
            stopping: OnceLock::new(),
            options,
            keys,
            tls,
            catalog,
            log,
        }
    }

    /// Reads the keys and the certificate again. What cannot be read stays as it was.
    pub(crate) fn reload(&self) {
        let _one_at_a_time = self.reloading.lock().unwrap_or_else(PoisonError::into_inner);
        let keys = self.keys.are_required().then(|| ("keys", self.keys.reload()));
        let certificate = self.tls.as_ref().map(|tls| ("certificate", tls.reload()));
        if keys.is_none() && certificate.is_none() {
            self.log.event("there are neither keys nor a certificate to read again");
        }
        for (what, read) in keys.into_iter().chain(certificate) {
            self.log.event(&match read {
                Ok(()) => format!("{what} read again"),
                Err(error) => {
                    self.metrics.reload_failures.fetch_add(1, Ordering::Relaxed);
                    format!("{what} not changed: {error}")
                }
            });
        }
    }

    pub(crate) fn set_stopping(&self, stopping: watch::Receiver<Stopping>) {
        // It is set once.
        let _ = self.stopping.set(stopping);
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.get().is_some_and(|stopping| *stopping.borrow() > Stopping::No)
    }
}
