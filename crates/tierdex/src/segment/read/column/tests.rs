//! Columns that are written and read again, compared with the values in memory; and blocks of garbage.

use super::*;
use crate::schema::ColumnType;
use crate::segment::layout::{FileKind, file_name, identity};
use crate::segment::read::FILES;
use crate::segment::read::column_block::BlockBits;
use crate::segment::write::{ColumnBuffer, ColumnTarget, write_column};
use proptest::prelude::*;
use tierdex_io::{MemDisk, SealedFile};

/// A column of these values, ascending in each document. At least one document has a value.
fn written(documents: &[Vec<u64>], multi: bool) -> ColumnReader {
    let (disk, mut buffer) = (MemDisk::new(), ColumnBuffer::default());
    documents.iter().for_each(|values| buffer.add(values.iter().copied()));
    let column = Column { multi, ..Column::new("values", ColumnType::U64) };
    let target = ColumnTarget { disk: &disk, segment: 1, number: 3, column: &column };
    let meta = write_column(target, &mut |body| buffer.for_each(body)).unwrap().unwrap();
    let (name, identity) = (file_name(1, 3, FileKind::Column), identity(1, 3, FileKind::Column));
    let file = SealedFile::open(&disk, &name, identity, meta.seal).unwrap();
    ColumnReader::open(file, 3, &column, documents.len() as u32).unwrap()
}

/// Values of the documents of a column: how many documents there are, how many in 256 of them have values,
/// how many values these may have, and bits and factor of the values.
fn any_documents() -> impl Strategy<Value = (Vec<Vec<u64>>, bool)> {
    let documents = prop_oneof![Just(1), Just(64), 1..300usize, Just(4096), 4000..4200usize, Just(8300)];
    let shares = prop_oneof![Just(1u64), Just(10), Just(17), 1..256u64, Just(256)];
    let values_max = prop_oneof![Just(1u64), Just(3), Just(255)];
    let factors =
        prop_oneof![Just(1), Just(1_000_000), any::<u16>().prop_map(|factor| u64::from(factor) + 1)];
    (documents, shares, values_max, 0..=64u32, factors, any::<u64>()).prop_map(
        |(documents, share, values_max, bits, factor, seed)| {
            let mut state = seed | 1;
            let mut next = || {
                state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
                (state ^ state >> 29).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 8
            };
            let mut document = || {
                // Most documents with several values have few.
                let count = if values_max > 3 && next() % 64 != 0 { 2 } else { values_max };
                let count = if next() % 256 < share { 1 + next() % count } else { 0 };
                let mask = u64::MAX.checked_shr(64 - bits).unwrap_or(0);
                let value = |next: &mut dyn FnMut() -> u64| {
                    ((next() << 32 ^ next()) & mask).wrapping_mul(factor).wrapping_add(seed)
                };
                let mut values: Vec<u64> = (0..count).map(|_| value(&mut next)).collect();
                values.sort_unstable();
                values
            };
            let mut all: Vec<Vec<u64>> = (0..documents).map(|_| document()).collect();
            if all.iter().all(Vec::is_empty) {
                all[documents / 2].push(seed);
            }
            (all, values_max > 1)
        },
    )
}

/// The documents of a block with a value in one of these ranges of units.
fn marked_by_value(
    reader: &ColumnReader,
    block: usize,
    documents: &[Vec<u64>],
    ranges: &[(u64, u64)],
) -> BlockBits {
    let mut marked = [0; COLUMN_BLOCK_DOCS / 64];
    for (in_block, document) in reader.documents_of(block).enumerate() {
        let is_within = |value: &u64| {
            let unit = (value - reader.tail().minimum) / reader.tail().divisor;
            ranges.iter().any(|(low, high)| (*low..=*high).contains(&unit))
        };
        let is_marked = documents[document as usize].iter().any(is_within);
        marked[in_block / 64] |= u64::from(is_marked) << (in_block % 64);
    }
    marked
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn values_are_read_as_they_were_written(
        (documents, multi) in any_documents(),
        picks in prop::collection::vec((any::<u32>(), any::<u32>()), 1..4),
    ) {
        let reader = written(&documents, multi);
        let all: Vec<u64> = documents.concat();
        prop_assert_eq!(reader.tail().values, all.len() as u64);
        let mut read = vec![Vec::new(); documents.len()];
        let collect = |document, values: &[u64]| {
            read[document as usize] = values.to_vec();
            Ok(())
        };
        reader.for_each(&FILES, collect).unwrap();
        prop_assert!(read == documents);
        let (mut bytes, mut units) = (Vec::new(), Vec::new());
        for document in (0..documents.len()).step_by(1 + documents.len() / 50) {
            reader.values_of(document as u32, &FILES, &mut bytes, &mut units).unwrap();
            let values: Vec<u64> = units.iter().map(|unit| reader.bits(*unit)).collect();
            prop_assert_eq!(&values, &documents[document]);
        }
        // Ranges from value to value, and what is outside of a value.
        let picked = |number: u32| all[number as usize % all.len()];
        let ranges = picks.iter().filter_map(|(one, other)| {
            let (one, other) = (picked(*one), picked(*other));
            reader.units_within(one.min(other), one.max(other))
        });
        let ranges: Vec<(u64, u64)> = ranges.collect();
        prop_assert_eq!(ranges.len(), picks.len());
        let directory = reader.directory().unwrap();
        let mut scratch = vec![7; 5];
        for number in 0..reader.blocks() {
            let block = directory.read_block(number, &FILES, &mut bytes).unwrap();
            for ranges in [&ranges[..], &ranges[..1], &[]] {
                let mut marked = [0; COLUMN_BLOCK_DOCS / 64];
                // Bits that are set before are kept.
                marked[0] = 1 << 63;
                block.mark(ranges, &mut scratch, &mut marked);
                let mut expected = marked_by_value(&reader, number, &documents, ranges);
                expected[0] |= 1 << 63;
                prop_assert!(marked == expected, "block {}, {:?}", number, ranges);
            }
            let of_block = reader.documents_of(number).flat_map(|document| &documents[document as usize]);
            let units = of_block.map(|value| (value - reader.tail().minimum) / reader.tail().divisor);
            let (entry, units) = (directory.entry(number), Vec::from_iter(units));
            prop_assert_eq!(entry.minimum, units.iter().copied().min().unwrap_or(0));
            prop_assert_eq!(entry.maximum, units.iter().copied().max().unwrap_or(0));
        }
    }

    #[test]
    fn garbage_is_rejected_or_read_without_a_panic(
        documents in prop_oneof![Just(4096usize), 1..200usize],
        (present, more) in (any::<prop::sample::Index>(), 0..600usize),
        multi in any::<bool>(),
        garbage in prop::collection::vec(any::<u8>(), 0..700),
        widths in prop::collection::vec(0..67u8, 0..8),
    ) {
        let present = present.index(documents + 1);
        let values = if multi { (present + more).min(present * COLUMN_VALUES_MAX) } else { present };
        let entry = ColumnEntry {
            minimum: 0,
            maximum: u64::MAX,
            offset: 64,
            values: values as u32,
            present: present as u16,
            presence: Presence::choose(present, documents),
        };
        // Bytes of the right presence, with widths that may fit, and of the length that these need.
        let mut bytes = vec![0; entry.presence.bytes(present, documents)];
        match entry.presence {
            Presence::Sparse => (0..present).for_each(|at| bytes[2 * at] = at as u8),
            Presence::Bitmap => (0..present).for_each(|at| bytes[at / 8] |= 1 << (at % 8)),
            Presence::None | Presence::All => {}
        }
        for (at, byte) in garbage.iter().enumerate() {
            bytes.push(if at % 9 == 8 { widths.get(at / 9).copied().unwrap_or(*byte % 5) } else { *byte });
        }
        let bytes_max = BlockValues::bytes_max(&entry, documents, multi);
        for len in (0..=bytes.len().min(bytes_max)).rev().take(300) {
            let Ok(block) = BlockValues::parse(&bytes[..len], &entry, documents, multi) else { continue };
            let (mut found, mut units) = (0, Vec::new());
            block.for_each(&mut |document, values| {
                found += values.len();
                assert!(document < documents && !values.is_empty());
                Ok(())
            }).unwrap();
            prop_assert_eq!(found, values);
            (0..documents).step_by(7).for_each(|document| block.values_of(document, &mut units));
            let mut marked = [0; COLUMN_BLOCK_DOCS / 64];
            block.mark(&[(3, 1 << 60)], &mut Vec::new(), &mut marked);
            let marked: u32 = marked.iter().map(|word| word.count_ones()).sum();
            prop_assert!(marked as usize <= present);
        }
    }

    /// Bounds between two units match neither of them.
    #[test]
    fn bounds_are_divided_upwards_and_downwards(
        minimum in prop_oneof![Just(0u64), Just(1 << 63), Just(u64::MAX - 400), any::<u64>()],
        divisor in 1..20u64,
        units in 1..20u64,
        offsets in prop::collection::vec((-30..430i64, -30..430i64), 1..30),
    ) {
        let minimum = minimum.min(u64::MAX - 400);
        // Units 0 and 1 make the divisor the greatest one.
        let values: Vec<Vec<u64>> = [0, 1, units].map(|unit| vec![minimum + divisor * unit]).into();
        let reader = written(&values, false);
        prop_assert_eq!(reader.tail().divisor, divisor);
        let mut bounds: Vec<(u64, u64)> = vec![(0, u64::MAX), (u64::MAX, 0), (0, 0), (u64::MAX, u64::MAX)];
        bounds.extend(offsets.iter().map(|(low, high)| {
            (minimum.saturating_add_signed(*low), minimum.saturating_add_signed(*high))
        }));
        for (low, high) in bounds {
            let is_within = |unit: &u64| (low..=high).contains(&(minimum + divisor * unit));
            let expected: Vec<u64> = (0..=units).filter(is_within).collect();
            let found = reader.units_within(low, high);
            prop_assert_eq!(found, expected.first().map(|first| (*first, expected[expected.len() - 1])));
        }
    }
}
