//! A forward cursor over a list, with one decoded page in memory.

use crate::intersection::{list::PagedList, list::gallop, page_reader::ListPageReader};
use tierdex::Result;

/// A forward cursor over a list. The ids passed to its methods must not decrease.
pub(super) struct PageCursor<'a> {
    list: &'a PagedList,
    page: usize,
    /// Whether `ids` are the ids of `page`.
    loaded: bool,
    ids: Vec<u32>,
    at: usize,
}

impl<'a> PageCursor<'a> {
    pub(super) fn new(list: &'a PagedList) -> PageCursor<'a> {
        PageCursor { list, page: 0, loaded: false, ids: Vec::new(), at: 0 }
    }

    fn load(&mut self, reader: &mut ListPageReader, page: usize) -> Result<()> {
        if !self.loaded || page != self.page {
            self.loaded = false;
            reader.read_page(self.list, page, &mut self.ids)?;
            (self.page, self.loaded, self.at) = (page, true, 0);
        }
        Ok(())
    }

    /// Whether the list contains `id` (section III-B: Member). With `filter`, a page is read only if its
    /// Bloom filter may contain `id`.
    pub(super) fn member(&mut self, reader: &mut ListPageReader, id: u32, filter: bool) -> Result<bool> {
        let Some(page) = self.list.find_page(self.page, id) else { return Ok(false) };
        let tested = filter && !(self.loaded && page == self.page);
        if tested && !self.list.may_hold(page, id) {
            (self.page, self.loaded) = (page, false);
            return Ok(false);
        }
        self.load(reader, page)?;
        self.at = gallop(&self.ids, self.at, |other| other < id);
        let found = self.ids.get(self.at) == Some(&id);
        reader.reads.false_positives += u64::from(tested && !found);
        Ok(found)
    }

    /// Moves to a position in the list and returns its id.
    pub(super) fn seek(&mut self, reader: &mut ListPageReader, position: u64) -> Result<u32> {
        let page = self.list.page_at(position);
        self.load(reader, page)?;
        self.at = (position - self.list.ids_of(page).before) as usize;
        Ok(self.ids[self.at])
    }

    /// The smallest id of the list that is not less than `id`, and its position in the list (section III-C:
    /// Successor). If it is the first id of the next page, it is taken from the skip pointers.
    pub(super) fn successor(&mut self, reader: &mut ListPageReader, id: u32) -> Result<Option<(u32, u64)>> {
        let Some((first, last)) = self.list.id_range() else { return Ok(None) };
        if id > last {
            return Ok(None);
        }
        if id < first {
            return Ok(Some((first, 0)));
        }
        // Always found: `id` is within the range of the list and not less than the ids before.
        let Some(page) = self.list.find_page(self.page, id) else { return Ok(None) };
        self.load(reader, page)?;
        self.at = gallop(&self.ids, self.at, |other| other < id);
        let before = self.list.ids_of(page).before;
        let here = self.ids.get(self.at).map(|found| (*found, before + self.at as u64));
        Ok(here.or_else(|| Some((*self.list.firsts().get(page + 1)?, self.list.ids_of(page + 1).before))))
    }
}
