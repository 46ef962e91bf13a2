//! A list that is walked forward, a page in memory at a time.

use super::fetch::Reader;
use super::list::{PagedList, gallop};
use tierdex::error::Result;

/// Forward over a list: ids that are asked for rise.
pub(super) struct Walker<'a> {
    list: &'a PagedList,
    page: usize,
    /// Whether `ids` are those of the page.
    loaded: bool,
    ids: Vec<u32>,
    at: usize,
}

impl<'a> Walker<'a> {
    pub(super) fn new(list: &'a PagedList) -> Walker<'a> {
        Walker { list, page: 0, loaded: false, ids: Vec::new(), at: 0 }
    }

    fn load(&mut self, reader: &mut Reader, page: usize) -> Result<()> {
        if !self.loaded || page != self.page {
            self.loaded = false;
            reader.page(self.list, page, &mut self.ids)?;
            (self.page, self.loaded, self.at) = (page, true, 0);
        }
        Ok(())
    }

    /// Member (III-B): whether the list holds `id`. With `filter`, a page is read only if its filter may hold it.
    pub(super) fn member(&mut self, reader: &mut Reader, id: u32, filter: bool) -> Result<bool> {
        let Some(page) = self.list.find(self.page, id) else { return Ok(false) };
        let tested = filter && !(self.loaded && page == self.page);
        if tested && !self.list.may_hold(page, id) {
            (self.page, self.loaded) = (page, false);
            return Ok(false);
        }
        self.load(reader, page)?;
        self.at = gallop(&self.ids, self.at, |other| other < id);
        let found = self.ids.get(self.at) == Some(&id);
        reader.reads.false_positives += u64::from(tested && self.list.has_filters() && !found);
        Ok(found)
    }

    /// Stands at a place, and gives the id there.
    pub(super) fn seek(&mut self, reader: &mut Reader, place: u64) -> Result<u32> {
        let page = self.list.page_at(place);
        self.load(reader, page)?;
        self.at = (place - self.list.ids_of(page).0) as usize;
        Ok(self.ids[self.at])
    }

    /// Successor (III-C): the smallest id of the list that is not less than `id`, and its place. Where it begins the next
    /// page, the skip pointers know it and no page is read.
    pub(super) fn successor(&mut self, reader: &mut Reader, id: u32) -> Result<Option<(u32, u64)>> {
        let Some((first, last)) = self.list.ends() else { return Ok(None) };
        if id > last {
            return Ok(None);
        }
        if id < first {
            return Ok(Some((first, 0)));
        }
        // It is within the list, and what was asked for before is not larger.
        let Some(page) = self.list.find(self.page, id) else { return Ok(None) };
        self.load(reader, page)?;
        self.at = gallop(&self.ids, self.at, |other| other < id);
        let (before, _) = self.list.ids_of(page);
        let here = self.ids.get(self.at).map(|found| (*found, before + self.at as u64));
        Ok(here.or_else(|| Some((*self.list.firsts().get(page + 1)?, self.list.ids_of(page + 1).0))))
    }
}
