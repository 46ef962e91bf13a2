//! Encoded posting lists on their way to the files: what an encoder hands over, and a buffer that carries it
//! from the thread that encodes to the one that writes. What is handed over does not depend on offsets in
//! the files.

use super::{superblock::Superblock, terms::ListCounts};
use crate::Result;

/// Takes encoded lists in the order of their terms: for each the positions of its blocks and its superblocks,
/// or its inline list, then its term.
pub(super) trait ListSink {
    /// Takes the encoded positions of the next block of the current list.
    fn add_positions(&mut self, bytes: &[u8]) -> Result<()>;

    /// Takes a closed superblock, after the positions of its blocks.
    fn add_superblock(&mut self, superblock: &Superblock) -> Result<()>;

    /// Takes a whole list shorter than a block, and its encoded positions, which are empty if the field has
    /// none.
    fn add_inline_list(&mut self, positions: &[u8], list: &[u8]) -> Result<()>;

    /// Ends the current list.
    fn end_list(&mut self, term: &[u8], counts: ListCounts) -> Result<()>;
}

/// Bytes of encoded lists after which they are sent to the writer.
pub const LISTS_SENT_BYTES: usize = 256 << 10;

/// Encoded lists, or parts of them. The memory can be reused.
#[derive(Default)]
pub struct EncodedLists {
    items: Vec<ListItem>,
    /// Bytes of all items but superblocks, in their order.
    bytes: Vec<u8>,
    /// The superblocks of the items, then others whose memory is reused.
    superblocks: Vec<Superblock>,
    superblocks_len: usize,
    superblock_bytes: usize,
}

/// What a [`ListSink`] takes in one call. Numbers are lengths in bytes.
enum ListItem {
    Positions(usize),
    Superblock,
    InlineList { positions: usize, list: usize },
    Term { len: usize, counts: ListCounts },
}

impl EncodedLists {
    /// Hands everything over to a sink.
    pub(super) fn send_to(&self, sink: &mut dyn ListSink) -> Result<()> {
        let (mut rest, mut superblocks) = (&self.bytes[..], self.superblocks.iter());
        let mut take = |len: usize| {
            let (bytes, others) = rest.split_at(len);
            rest = others;
            bytes
        };
        for item in &self.items {
            match *item {
                ListItem::Positions(len) => sink.add_positions(take(len))?,
                ListItem::Superblock => {
                    superblocks.next().map_or(Ok(()), |next| sink.add_superblock(next))?
                }
                ListItem::InlineList { positions, list } => {
                    sink.add_inline_list(take(positions), take(list))?
                }
                ListItem::Term { len, counts } => sink.end_list(take(len), counts)?,
            }
        }
        Ok(())
    }

    /// Removes all lists.
    pub fn clear(&mut self) {
        self.items.clear();
        self.bytes.clear();
        (self.superblocks_len, self.superblock_bytes) = (0, 0);
    }

    fn is_full(&self) -> bool {
        let items = self.items.len() * size_of::<ListItem>();
        items + self.bytes.len() + self.superblock_bytes >= LISTS_SENT_BYTES
    }
}

/// Collects encoded lists, and sends them in pieces of about [`LISTS_SENT_BYTES`].
pub struct ListsSender<'s> {
    lists: EncodedLists,
    /// Sends lists; returns lists whose memory is used for the next ones.
    send: &'s mut dyn FnMut(EncodedLists) -> Result<EncodedLists>,
}

impl<'s> ListsSender<'s> {
    /// A sender that calls `send` with each piece; `send` returns lists whose memory can be reused.
    pub fn new(send: &'s mut dyn FnMut(EncodedLists) -> Result<EncodedLists>) -> ListsSender<'s> {
        ListsSender { lists: EncodedLists::default(), send }
    }

    /// Sends what was collected.
    pub fn flush(&mut self) -> Result<()> {
        if !self.lists.items.is_empty() {
            self.lists = (self.send)(std::mem::take(&mut self.lists))?;
            self.lists.clear();
        }
        Ok(())
    }

    fn add(&mut self, item: ListItem, bytes: [&[u8]; 2]) -> Result<()> {
        self.lists.items.push(item);
        bytes.iter().for_each(|bytes| self.lists.bytes.extend_from_slice(bytes));
        if self.lists.is_full() { self.flush() } else { Ok(()) }
    }
}

impl ListSink for ListsSender<'_> {
    fn add_positions(&mut self, bytes: &[u8]) -> Result<()> {
        self.add(ListItem::Positions(bytes.len()), [bytes, &[]])
    }

    fn add_superblock(&mut self, superblock: &Superblock) -> Result<()> {
        let lists = &mut self.lists;
        if lists.superblocks.len() == lists.superblocks_len {
            lists.superblocks.push(Superblock::default());
        }
        lists.superblocks[lists.superblocks_len].copy_closed(superblock);
        lists.superblocks_len += 1;
        lists.superblock_bytes += superblock.encoded_bytes();
        self.add(ListItem::Superblock, [&[], &[]])
    }

    fn add_inline_list(&mut self, positions: &[u8], list: &[u8]) -> Result<()> {
        let item = ListItem::InlineList { positions: positions.len(), list: list.len() };
        self.add(item, [positions, list])
    }

    fn end_list(&mut self, term: &[u8], counts: ListCounts) -> Result<()> {
        self.add(ListItem::Term { len: term.len(), counts }, [term, &[]])
    }
}
