//! The indexes of a server, by name. All share one engine. A thread opens new commits, and new indexes in
//! the folders.

use crate::log::Log;
use crate::options::ServerOptions;
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use std::time::{Duration, Instant, SystemTime};
use tierdex::io::{ErrorKind, PosixDisk};
use tierdex::{AttachedIndex, Engine, EngineOptions, Error, Index, Result, Snapshot, commit::Manifest};

/// Time between two looks for new commits, and between two looks for new indexes.
const REFRESH: Duration = Duration::from_millis(250);
const SCAN: Duration = Duration::from_secs(2);

/// Time between two attempts to open a commit that cannot be opened.
const RETRY: Duration = Duration::from_secs(2);

/// Characters of the name of an index, at most.
const NAME_MAX: usize = 64;

/// The part of the budget for commits and indexes to come, if there is as much.
const GROWTH_DIVISOR: u64 = 8;

/// Name of the file of hot pages in a directory that is served.
const HOT_PAGES: &str = "hot-pages";

/// All indexes of a server.
pub(crate) struct Catalog {
    /// Started with the first index.
    engine: OnceLock<Engine>,
    engine_options: EngineOptions,
    dram: u64,
    threads: usize,
    indexes: RwLock<BTreeMap<String, Arc<ServedIndex>>>,
    folders: Vec<PathBuf>,
    /// Directories that were reported as not served.
    reported: Mutex<Vec<PathBuf>>,
    refresh_failures: AtomicU64,
    is_closed: AtomicBool,
}

/// An index of a server.
pub(crate) struct ServedIndex {
    pub(crate) name: String,
    dir: PathBuf,
    /// The device and the number of the directory, when it was opened.
    identity: Option<(u64, u64)>,
    attached: AttachedIndex,
    stale: Mutex<Option<Stale>>,
}

/// Why an older commit than the newest is served.
#[derive(Clone, Debug)]
pub(crate) struct Stale {
    pub(crate) since: SystemTime,
    pub(crate) reason: String,
    /// The last attempt to open the newest commit.
    tried: Instant,
}

impl ServedIndex {
    pub(crate) fn snapshot(&self) -> Arc<Snapshot> {
        self.attached.snapshot()
    }

    pub(crate) fn stale(&self) -> Option<Stale> {
        lock(&self.stale).clone()
    }
}

impl Catalog {
    /// Opens the indexes in the directories of the options, and starts an engine unless there are none.
    ///
    /// # Errors
    /// [`Error::Usage`] if a directory does not exist, two indexes have one name, or the budget is too small;
    /// else as [`Index::open`].
    pub(crate) fn open(options: &ServerOptions, log: &Log) -> Result<Catalog> {
        let (mut found, mut folders) = (BTreeMap::new(), Vec::new());
        for dir in &options.dirs {
            let dir = std::fs::canonicalize(dir).unwrap_or_else(|_| dir.clone());
            if has_index(&dir)? {
                let name = index_name(&dir).ok_or_else(|| {
                    Error::Usage(format!(
                        "{}: the name of an index has letters, digits, `.`, `_` and `-`, at most {NAME_MAX}, and \
                         begins with a letter or digit; rename the directory",
                        dir.display()
                    ))
                })?;
                add_name(&mut found, name, dir)?;
            } else {
                for (name, dir) in indexes_in(&dir)? {
                    add_name(&mut found, name, dir)?;
                }
                folders.push(dir);
            }
        }
        let engine_options = with_hot_pages(options, log);
        let catalog = Catalog {
            engine: OnceLock::new(),
            dram: options.dram,
            threads: options.threads(),
            engine_options,
            indexes: RwLock::default(),
            folders,
            reported: Mutex::default(),
            refresh_failures: AtomicU64::new(0),
            is_closed: AtomicBool::new(false),
        };
        let mut opened = Vec::with_capacity(found.len());
        for (name, dir) in found {
            match Index::open(&dir) {
                Ok(index) => opened.push((name, dir, index)),
                // Others in the folder are served.
                Err(error) if catalog.folders.iter().any(|folder| dir.parent() == Some(folder)) => {
                    catalog.report(&dir, &error, log);
                }
                Err(error) => return Err(error),
            }
        }
        catalog.start(opened)?;
        Ok(catalog)
    }

    /// Starts the engine with these indexes.
    fn start(&self, found: Vec<(String, PathBuf, Index)>) -> Result<()> {
        if found.is_empty() {
            return Ok(());
        }
        let opened: Vec<&Index> = found.iter().map(|(_, _, index)| index).collect();
        // Folders get new indexes, and indexes grow.
        let roomy = self.engine_options.clone().growth(self.dram / GROWTH_DIVISOR);
        let started = Engine::for_indexes(&opened, &roomy).or_else(|error| match error {
            Error::Usage(_) => Engine::for_indexes(&opened, &self.engine_options),
            error => Err(error),
        });
        let (engine, attached) = started?;
        let mut indexes = self.indexes.write().unwrap_or_else(PoisonError::into_inner);
        for ((name, dir, _), attached) in found.into_iter().zip(attached) {
            indexes.insert(name.clone(), Arc::new(ServedIndex::new(name, dir, attached)));
        }
        // Nothing else starts it.
        let _ = self.engine.set(engine);
        Ok(())
    }

    /// The engine; `None` if there is no index yet.
    pub(crate) fn engine(&self) -> Option<&Engine> {
        self.engine.get()
    }

    /// Search threads.
    pub(crate) fn threads(&self) -> usize {
        self.threads
    }

    pub(crate) fn index(&self, name: &str) -> Option<Arc<ServedIndex>> {
        self.indexes.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    /// All indexes, by name.
    pub(crate) fn indexes(&self) -> Vec<Arc<ServedIndex>> {
        self.indexes.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// The folders that are searched for indexes.
    pub(crate) fn folders(&self) -> &[PathBuf] {
        &self.folders
    }

    pub(crate) fn refresh_failures(&self) -> u64 {
        self.refresh_failures.load(Ordering::Relaxed)
    }

    /// Ends [`Catalog::refresh`].
    pub(crate) fn close(&self) {
        self.is_closed.store(true, Ordering::Relaxed);
    }

    /// Opens new commits and new indexes until the catalog is closed.
    pub(crate) fn refresh(&self, log: &Log) {
        let scans = (SCAN.as_millis() / REFRESH.as_millis()) as usize;
        for turn in 1.. {
            std::thread::sleep(REFRESH);
            if self.is_closed.load(Ordering::Relaxed) {
                return;
            }
            self.indexes().iter().for_each(|index| self.refresh_index(index, log));
            if turn % scans == 0 {
                self.scan_folders(log);
            }
        }
    }

    fn refresh_index(&self, index: &ServedIndex, log: &Log) {
        let mut stale = lock(&index.stale);
        if stale.as_ref().is_some_and(|stale| stale.tried.elapsed() < RETRY) {
            return;
        }
        match self.try_refresh(index) {
            Ok(None) => *stale = None,
            Ok(Some(generation)) => {
                *stale = None;
                log.event(&format!("index {}: serves commit {generation}", index.name));
            }
            Err(error) => {
                self.refresh_failures.fetch_add(1, Ordering::Relaxed);
                let reason = error.to_string();
                if stale.as_ref().is_none_or(|stale| stale.reason != reason) {
                    log.event(&format!("index {}: the newest commit cannot be opened: {reason}", index.name));
                }
                let since = stale.as_ref().map_or_else(SystemTime::now, |stale| stale.since);
                *stale = Some(Stale { since, reason, tried: Instant::now() });
            }
        }
    }

    /// Opens the newest commit, also of an index that has taken the place of this one. Returns its generation
    /// if it is new.
    fn try_refresh(&self, index: &ServedIndex) -> Result<Option<u64>> {
        let identity = identity_of(&index.dir);
        if identity.is_none() {
            return Err(Error::Failed(format!("the directory {} was removed", index.dir.display())));
        }
        if identity != index.identity {
            self.add(index.name.clone(), index.dir.clone())?;
            let served = self.index(&index.name);
            return Ok(served.map(|served| served.snapshot().index().generation()));
        }
        let is_new = index.attached.has_newer()? && index.attached.refresh()?;
        Ok(is_new.then(|| index.snapshot().index().generation()))
    }

    /// Opens the indexes that are new in the folders.
    fn scan_folders(&self, log: &Log) {
        for folder in &self.folders {
            // The folder itself may have become an index.
            let own = index_name(folder).filter(|_| has_index(folder).unwrap_or(false));
            let own = own.map(|name| (name, folder.clone()));
            for (name, dir) in indexes_in(folder).unwrap_or_default().into_iter().chain(own) {
                let known = self.index(&name);
                if known.as_ref().is_some_and(|known| known.dir == dir) {
                    continue;
                }
                let added = match known {
                    Some(known) => Err(same_name(&name, &known.dir, &dir)),
                    None => self.add(name.clone(), dir.clone()),
                };
                match added {
                    Ok(()) => log.event(&format!("index {name}: opened {}", dir.display())),
                    Err(error) => self.report(&dir, &error, log),
                }
            }
        }
    }

    /// Logs once that a directory is not served.
    fn report(&self, dir: &Path, error: &Error, log: &Log) {
        let mut reported = lock(&self.reported);
        if !reported.iter().any(|other| other == dir) {
            log.event(&format!("{} is not served: {error}", dir.display()));
            reported.push(dir.to_path_buf());
        }
    }

    fn add(&self, name: String, dir: PathBuf) -> Result<()> {
        let index = Index::open(&dir)?;
        let Some(engine) = self.engine() else { return self.start(vec![(name, dir, index)]) };
        let attached = engine.attach(&index)?;
        let served = Arc::new(ServedIndex::new(name.clone(), dir, attached));
        self.indexes.write().unwrap_or_else(PoisonError::into_inner).insert(name, served);
        Ok(())
    }
}

impl ServedIndex {
    fn new(name: String, dir: PathBuf, attached: AttachedIndex) -> ServedIndex {
        let identity = identity_of(&dir);
        ServedIndex { name, dir, identity, attached, stale: Mutex::default() }
    }
}

/// Options with a file of hot pages in the first directory, if files can be written there.
fn with_hot_pages(options: &ServerOptions, log: &Log) -> EngineOptions {
    let engine = options.engine_options();
    let Some(dir) = options.dirs.first() else { return engine };
    let probe = dir.join(format!("{HOT_PAGES}.{}.tmp", std::process::id()));
    match std::fs::File::create(&probe).and_then(|_| std::fs::remove_file(&probe)) {
        Ok(()) => engine.hot_pages(dir.join(HOT_PAGES)),
        Err(error) => {
            log.event(&format!("the cache starts cold after a restart: {}: {error}", dir.display()));
            engine
        }
    }
}

/// The device and the number of a directory; `None` if there is none.
fn identity_of(dir: &Path) -> Option<(u64, u64)> {
    std::fs::metadata(dir).ok().map(|metadata| (metadata.dev(), metadata.ino()))
}

/// Whether a directory has an index. During a commit a list may have no manifest, so it is read twice.
fn has_index(dir: &Path) -> Result<bool> {
    let disk = PosixDisk::open(dir).map_err(|error| match error.kind() {
        ErrorKind::NotFound => {
            Error::Usage(format!("{}: no such directory; create it, or an index in it", dir.display()))
        }
        _ => error.into(),
    })?;
    Ok(Manifest::newest(&disk)?.is_some() || Manifest::newest(&disk)?.is_some())
}

/// The indexes in the directories of a folder, with their names. Others are skipped.
fn indexes_in(folder: &Path) -> Result<Vec<(String, PathBuf)>> {
    let failed = |error| tierdex::io::Error::from_os("list", folder.display().to_string(), &error);
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let dir = entry.map_err(failed)?.path();
        if let Some(name) = index_name(&dir)
            && dir.is_dir()
            && has_index(&dir).unwrap_or(false)
        {
            found.push((name, dir));
        }
    }
    found.sort();
    Ok(found)
}

/// The name of the index in a directory; `None` if the directory has no name that an index may have.
fn index_name(dir: &Path) -> Option<String> {
    let name = dir.file_name()?.to_str()?;
    let is_valid = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let has_start = name.starts_with(|c: char| c.is_ascii_alphanumeric());
    (has_start && name.len() <= NAME_MAX && name.chars().all(is_valid)).then(|| name.to_string())
}

fn add_name(found: &mut BTreeMap<String, PathBuf>, name: String, dir: PathBuf) -> Result<()> {
    match found.get(&name) {
        Some(other) if *other != dir => Err(same_name(&name, other, &dir)),
        _ => {
            found.insert(name, dir);
            Ok(())
        }
    }
}

fn same_name(name: &str, one: &Path, other: &Path) -> Error {
    Error::Usage(format!(
        "{} and {} have the same name, {name}; rename one of them",
        one.display(),
        other.display()
    ))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
