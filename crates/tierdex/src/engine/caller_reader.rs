//! What a calling thread needs to evaluate its own request, while a search thread sleeps.

use corosensei::stack::DefaultStack;
use tierdex_cache::PageReader;

/// A reader, and the stack of the evaluation before.
pub(super) struct CallerReader {
    pub(super) reader: Box<PageReader>,
    pub(super) stack: Option<DefaultStack>,
}
