//! A block of a column: which of its documents have values, and the values.
//!
//! The documents with values in some ranges are found in three steps: the values within a range as bits, 256
//! at a time; of a multi-valued column the documents that have one of them; and the places of these documents
//! among all documents of the block.

use crate::Result;
use crate::limits::{BLOCK, COLUMN_BLOCK_DOCS, COLUMN_VALUES_MAX};
use crate::segment::layout::{CHUNK_HEADER_BYTES, ColumnEntry, Presence};
use tierdex_codec::{WideBlock, WideView};

/// Number of words of a bitset of the documents of a block.
const WORDS: usize = COLUMN_BLOCK_DOCS / u64::BITS as usize;

/// A bitset of the documents of a block: bit `i mod 64` of word `i div 64` is that of document `i`.
pub type BlockBits = [u64; WORDS];

/// The values of a block, in borrowed bytes that were checked. They are in the unit of the file.
pub struct BlockValues<'b> {
    present: PresentDocuments<'b>,
    /// Of a multi-valued column: of each document with a value, the number of its values less 1.
    counts: Option<PackedValues<'b>>,
    values: PackedValues<'b>,
}

/// Which documents of a block have a value.
enum PresentDocuments<'b> {
    /// The first ones, which are all of the block, or none.
    First(usize),
    Bitmap(&'b [[u8; 8]]),
    Sparse(&'b [[u8; 2]]),
}

/// Values in chunks of 256.
struct PackedValues<'b> {
    count: usize,
    headers: &'b [[u8; CHUNK_HEADER_BYTES]],
    bits: &'b [u8],
}

/// Why a block was rejected.
type Defect = &'static str;

const ENDS_EARLY: Defect = "a block ends early";

impl<'b> BlockValues<'b> {
    /// Upper bound of the bytes of a block with these numbers of documents and values.
    pub(super) fn bytes_max(entry: &ColumnEntry, documents: usize, multi: bool) -> usize {
        let (present, values) = (usize::from(entry.present), entry.values as usize);
        let packed = |count: usize| count.div_ceil(BLOCK) * CHUNK_HEADER_BYTES + size_of::<u64>() * count;
        entry.presence.bytes(present, documents) + packed(values) + if multi { packed(present) } else { 0 }
    }

    pub(super) fn parse(
        bytes: &'b [u8],
        entry: &ColumnEntry,
        documents: usize,
        multi: bool,
    ) -> std::result::Result<BlockValues<'b>, Defect> {
        let (present, values) = (usize::from(entry.present), entry.values as usize);
        let len = entry.presence.bytes(present, documents);
        let (of_presence, mut rest) = bytes.split_at_checked(len).ok_or(ENDS_EARLY)?;
        let of_block = PresentDocuments::parse(of_presence, entry.presence, present, documents)?;
        let counts = multi.then(|| PackedValues::parse(&mut rest, present)).transpose()?;
        let values = PackedValues::parse(&mut rest, values)?;
        if !rest.is_empty() {
            return Err("bytes follow the values of a block");
        }
        let block = BlockValues { present: of_block, counts, values };
        let (mut sum, mut is_valid) = (0, true);
        block.for_each_count(&mut |count| {
            is_valid &= count <= COLUMN_VALUES_MAX;
            sum += count.min(COLUMN_VALUES_MAX);
        });
        let is_valid = is_valid && (!multi || sum == block.values.count);
        is_valid.then_some(block).ok_or("impossible numbers of values of documents")
    }

    /// Calls `body` with the number of values of each document that has some, in a multi-valued column.
    fn for_each_count(&self, body: &mut dyn FnMut(usize)) {
        if let Some(counts) = &self.counts {
            counts.for_each(&mut |less_one| body((less_one as usize).saturating_add(1)));
        }
    }

    /// Calls `body` with each document of the block that has values, by its number in it, and its values in
    /// ascending order.
    pub fn for_each(&self, body: &mut dyn FnMut(usize, &[u64]) -> Result<()>) -> Result<()> {
        let (mut values, mut counts) = (Vec::with_capacity(self.values.count), Vec::new());
        self.values.for_each(&mut |value| values.push(value));
        self.for_each_count(&mut |count| counts.push(count));
        let (mut at, mut rank) = (0, 0);
        self.present.for_each(&mut |document| {
            let count = counts.get(rank).copied().unwrap_or(1);
            let of_document = &values[at..at + count];
            (at, rank) = (at + count, rank + 1);
            body(document, of_document)
        })
    }

    /// Replaces `out` by the values of a document, by its number in the block.
    pub fn values_of(&self, document: usize, out: &mut Vec<u64>) {
        out.clear();
        let Some(rank) = self.present.rank(document) else { return };
        let (mut range, mut next) = (rank..rank + 1, 0);
        if self.counts.is_some() {
            let mut at = 0;
            self.for_each_count(&mut |count| {
                if next == rank {
                    range = at..at + count;
                }
                (at, next) = (at + count, next + 1);
            });
        }
        out.extend(range.map(|index| self.values.get(index)));
    }

    /// Adds the documents with a value in one of `ranges`, both ends included, to `out`. `scratch` is any
    /// buffer.
    pub fn mark(&self, ranges: &[(u64, u64)], scratch: &mut Vec<u64>, out: &mut BlockBits) {
        scratch.clear();
        for (_, chunk) in self.values.chunks() {
            let mut within = [0; BLOCK / u64::BITS as usize];
            for (low, high) in ranges {
                let of_range = chunk.between(*low, *high);
                within.iter_mut().zip(of_range).for_each(|(word, of_range)| *word |= of_range);
            }
            scratch.extend(within);
        }
        if self.counts.is_some() {
            self.mark_ranks(scratch);
        }
        self.present.scatter(scratch, out);
    }

    /// Replaces the bits of values by those of the documents that have one of them, by their rank among those
    /// with values.
    fn mark_ranks(&self, bits: &mut Vec<u64>) {
        let (mut at, mut rank) = (0, 0);
        let mut of_documents = [0; WORDS];
        self.for_each_count(&mut |count| {
            let is_marked = (at..at + count).any(|index| bits[index / 64] >> (index % 64) & 1 != 0);
            of_documents[rank / 64] |= u64::from(is_marked) << (rank % 64);
            (at, rank) = (at + count, rank + 1);
        });
        bits.clear();
        bits.extend(of_documents);
    }
}

impl<'b> PresentDocuments<'b> {
    fn parse(
        bytes: &'b [u8],
        presence: Presence,
        present: usize,
        documents: usize,
    ) -> std::result::Result<PresentDocuments<'b>, Defect> {
        Ok(match presence {
            Presence::None | Presence::All => PresentDocuments::First(present),
            Presence::Bitmap => {
                let words = bytes.as_chunks().0;
                let count: u32 = words.iter().map(|word| u64::from_le_bytes(*word).count_ones()).sum();
                let last = words.last().map_or(0, |word| u64::from_le_bytes(*word));
                let unused = words.len() * u64::BITS as usize - documents;
                if count as usize != present || last.leading_zeros() < unused as u32 {
                    return Err("a bitmap does not have the documents with values");
                }
                PresentDocuments::Bitmap(words)
            }
            Presence::Sparse => {
                let numbers = bytes.as_chunks().0;
                let number = |bytes: &[u8; 2]| usize::from(u16::from_le_bytes(*bytes));
                let is_sorted = numbers.is_sorted_by(|a, b| number(a) < number(b));
                if !is_sorted || numbers.last().map(number) >= Some(documents) {
                    return Err("documents with values are not in order");
                }
                PresentDocuments::Sparse(numbers)
            }
        })
    }

    fn for_each(&self, body: &mut dyn FnMut(usize) -> Result<()>) -> Result<()> {
        match self {
            PresentDocuments::First(count) => (0..*count).try_for_each(body),
            PresentDocuments::Sparse(numbers) => {
                numbers.iter().try_for_each(|number| body(usize::from(u16::from_le_bytes(*number))))
            }
            PresentDocuments::Bitmap(words) => words.iter().enumerate().try_for_each(|(at, word)| {
                let mut left = u64::from_le_bytes(*word);
                while left != 0 {
                    body(64 * at + left.trailing_zeros() as usize)?;
                    left &= left - 1;
                }
                Ok(())
            }),
        }
    }

    /// The number of documents with values before this one; `None` if it has none.
    fn rank(&self, document: usize) -> Option<usize> {
        match self {
            PresentDocuments::First(count) => (document < *count).then_some(document),
            PresentDocuments::Sparse(numbers) => {
                numbers.binary_search_by_key(&document, |number| u16::from_le_bytes(*number).into()).ok()
            }
            PresentDocuments::Bitmap(words) => {
                let word = |at: usize| u64::from_le_bytes(words[at]);
                let (at, bit) = (document / 64, 1 << (document % 64));
                let before = (0..at).map(|at| word(at).count_ones()).sum::<u32>();
                (word(at) & bit != 0).then(|| (before + (word(at) & (bit - 1)).count_ones()) as usize)
            }
        }
    }

    /// Adds the documents to `out` whose ranks among those with values are marked.
    fn scatter(&self, ranks: &[u64], out: &mut BlockBits) {
        match self {
            PresentDocuments::First(_) => out.iter_mut().zip(ranks).for_each(|(out, ranks)| *out |= ranks),
            PresentDocuments::Sparse(numbers) => {
                for (rank, number) in numbers.iter().enumerate() {
                    let document = usize::from(u16::from_le_bytes(*number));
                    out[document / 64] |= (ranks[rank / 64] >> (rank % 64) & 1) << (document % 64);
                }
            }
            PresentDocuments::Bitmap(words) => {
                let mut rank = 0;
                for (out, word) in out.iter_mut().zip(*words) {
                    let word = u64::from_le_bytes(*word);
                    *out |= deposit(bits_at(ranks, rank), word);
                    rank += word.count_ones() as usize;
                }
            }
        }
    }
}

/// 64 bits of a bitset from this one on; zeros follow its end.
fn bits_at(bits: &[u64], from: usize) -> u64 {
    let word = |at: usize| bits.get(at).copied().unwrap_or(0);
    let (at, shift) = (from / 64, from % 64);
    word(at) >> shift | word(at + 1).checked_shl(64 - shift as u32).unwrap_or(0)
}

/// The low bits of `bits`, in the places of the bits of `mask`.
fn deposit(bits: u64, mask: u64) -> u64 {
    let all = u64::MAX.checked_shr(u64::BITS - mask.count_ones()).unwrap_or(0);
    if bits & all == all {
        return mask;
    }
    let (mut deposited, mut left, mut bits) = (0, mask, bits & all);
    while bits != 0 {
        deposited |= (left & left.wrapping_neg()) * (bits & 1);
        left &= left - 1;
        bits >>= 1;
    }
    deposited
}

impl<'b> PackedValues<'b> {
    /// Takes the chunks of `count` values from the front of `rest`.
    fn parse(rest: &mut &'b [u8], count: usize) -> std::result::Result<PackedValues<'b>, Defect> {
        let chunks = count.div_ceil(BLOCK);
        let (headers, after) = rest.split_at_checked(CHUNK_HEADER_BYTES * chunks).ok_or(ENDS_EARLY)?;
        let headers = headers.as_chunks().0;
        let packed = PackedValues { count, headers, bits: &[] };
        let mut len = 0;
        for number in 0..chunks {
            let chunk = packed.chunk(number);
            if u32::from(chunk.width) > u64::BITS {
                return Err("impossible width of values");
            }
            len += chunk.byte_len();
        }
        let (bits, after) = after.split_at_checked(len).ok_or(ENDS_EARLY)?;
        *rest = after;
        Ok(PackedValues { bits, ..packed })
    }

    fn chunk(&self, number: usize) -> WideBlock {
        let header = &self.headers[number];
        let smallest = u64::from_le_bytes(*header.first_chunk().expect("a header has nine bytes"));
        WideBlock { smallest, width: header[8], len: BLOCK.min(self.count - BLOCK * number) }
    }

    /// The chunks, each with its number of values.
    fn chunks(&self) -> impl Iterator<Item = (usize, WideView<'b>)> {
        let mut at = 0;
        (0..self.headers.len()).map(move |number| {
            let chunk = self.chunk(number);
            let bytes = &self.bits[at..at + chunk.byte_len()];
            at += chunk.byte_len();
            (chunk.len, chunk.view(bytes).expect("headers and lengths were checked"))
        })
    }

    fn for_each(&self, body: &mut dyn FnMut(u64)) {
        let mut buffer = [0; BLOCK];
        for (len, chunk) in self.chunks() {
            chunk.decode(&mut buffer[..len]);
            buffer[..len].iter().for_each(|value| body(*value));
        }
    }

    fn get(&self, index: usize) -> u64 {
        let at: usize = (0..index / BLOCK).map(|number| self.chunk(number).byte_len()).sum();
        let chunk = self.chunk(index / BLOCK);
        let view = chunk.view(&self.bits[at..at + chunk.byte_len()]);
        view.expect("headers and lengths were checked").value(index % BLOCK)
    }
}
