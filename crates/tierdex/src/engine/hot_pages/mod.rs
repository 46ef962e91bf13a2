//! Warm restarts: a file with the hot pages of the cache, which the next engine reads before they are
//! requested.
//!
//! A thread (`thread`) works beside the search threads:
//!
//! 1. After the start it reads the pages that the file (`file`) names, the hottest class first, into free
//!    frames. It evicts no page, ends when a search thread has evicted one, and pauses while interactive
//!    requests are evaluated or wait. Pages of files that are not open are skipped; so is the whole file if
//!    it is damaged.
//! 2. Then, each minute and when the engine is closed, it writes the pages of the cache to a temporary file
//!    that replaces the file. An engine that is closed before it has read all pages leaves the file as it is.
//!
//! A frame that is loading lets queries wait, so the thread completes its reads before it sleeps.

mod file;
mod state;
mod thread;

pub(super) use state::HotPages;
pub(super) use thread::HotPagesThread;
