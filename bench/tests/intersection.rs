//! Intersection of lists on disk: every algorithm returns the same ids as an intersection in memory and
//! reads the expected number of pages, and an error affects one call only.

use proptest::prelude::*;
use std::collections::BTreeSet;
use tierdex::{
    codec::Codec, io::Disk, io::Effect, io::FaultDisk, io::FaultPlan, io::MemDisk, io::OpClass,
    io::PosixDisk, io::ReadKind, io::ReadOptions, io::Repeat, io::errno,
};
use tierdex_bench::intersection::{
    Algorithm, Bl, CostModel, Direct, ID_MAX, Intersector, PagedList, PagedListsWriter, ReaderThreads,
};

const FILE_NAME: &str = "lists";

const READ_OPTIONS: ReadOptions = ReadOptions { kind: ReadKind::Auto, depth: 1, direct: false };

fn new_intersector(disk: &dyn Disk, threads: usize, cost: CostModel) -> Intersector {
    let mut direct = Direct::new(disk, ReadOptions { depth: 8, ..READ_OPTIONS }, 64 << 10).unwrap();
    direct.cost = cost;
    let readers = ReaderThreads::new(disk, READ_OPTIONS, threads).unwrap();
    Intersector { readers, bl: Bl::default(), direct }
}

fn write_lists(disk: &dyn Disk, lists: &[Vec<u32>], codec: Codec) -> Vec<PagedList> {
    let mut writer = PagedListsWriter::create(disk, FILE_NAME, codec).unwrap();
    lists.iter().try_for_each(|list| writer.add(list)).unwrap();
    writer.finish(disk).unwrap()
}

fn intersect_in_memory(lists: &[Vec<u32>]) -> Vec<u32> {
    let mut lists = lists.iter().map(|list| list.iter().copied().collect::<BTreeSet<u32>>());
    let first = lists.next().unwrap_or_default();
    lists.fold(first, |found, list| found.intersection(&list).copied().collect()).into_iter().collect()
}

/// Cost models that coalesce no reads, some reads, and all reads.
fn coalescing_costs() -> [CostModel; 3] {
    let default = CostModel::default();
    [
        CostModel { bytes_per_second: 1e6, ..default },
        default,
        CostModel { read_seconds: 1.0, test_seconds: 1e-12, ..default },
    ]
}

fn id_codecs() -> impl Strategy<Value = Codec> {
    let codecs = Codec::ALL.iter().copied().filter(|codec| codec.is_delta() || *codec == Codec::Raw);
    prop::sample::select(codecs.collect::<Vec<_>>())
}

/// Lists with many or few common ids: dense or sparse, at the beginning, at the end or over the whole range
/// of ids.
fn random_lists() -> impl Strategy<Value = Vec<Vec<u32>>> {
    let id = prop_oneof![
        4 => (0..6000u32).prop_map(|id| id * 3),
        4 => (0..6000u32).prop_map(|id| id * 715_827),
        1 => (0..3000u32).prop_map(|id| ID_MAX - id),
        1 => prop_oneof![Just(0), Just(1), Just(ID_MAX - 1), Just(ID_MAX)],
    ];
    let list = prop_oneof![
        1 => Just(Vec::new()),
        6 => prop::collection::vec(id, 1..5000),
        2 => (0..200_000u32, 1..40u32, 1..9000u32).prop_map(|(from, step, count)| {
            (0..count).map(|k| from + k * step).collect()
        }),
    ];
    let sorted =
        list.prop_map(|list: Vec<u32>| list.into_iter().collect::<BTreeSet<_>>().into_iter().collect());
    prop::collection::vec(sorted, 1..=8)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn every_algorithm_agrees_with_an_intersection_in_memory(
        ids in random_lists(),
        codec in id_codecs(),
        threads in 1..=8usize,
        cost in prop::sample::select(coalescing_costs().to_vec()),
        share in 0..3usize,
    ) {
        let disk = MemDisk::new();
        let mut lists = write_lists(&disk, &ids, codec);
        for (list, number) in lists.iter_mut().zip(0..) {
            prop_assert_eq!(list.len(), ids[number].len() as u64);
            list.keep_pages(|page| (page + number) % 3 < share).unwrap();
        }
        let mut engines = new_intersector(&disk, threads, cost);
        let expected = intersect_in_memory(&ids);
        for algorithm in Algorithm::ALL {
            let found = engines.intersect(algorithm, &lists).unwrap();
            prop_assert_eq!(&found.ids, &expected, "{} by {} threads", algorithm.name(), threads);
            prop_assert_eq!(found.reads.bytes, 4096 * found.reads.pages);
        }
    }
}

#[test]
fn few_lists_short_lists_and_equal_lists() {
    let full: Vec<u32> = (0..5000).map(|k| k * 7).collect();
    let ends = vec![0, ID_MAX];
    let cases: [Vec<Vec<u32>>; 9] = [
        vec![],
        vec![full.clone()],
        vec![vec![], full.clone()],
        vec![vec![], vec![]],
        vec![full.clone(); 8],
        vec![ends.clone(), ends.clone()],
        vec![ends.clone(), full.clone(), ends.clone()],
        vec![vec![ID_MAX], (ID_MAX - 9000..=ID_MAX).collect()],
        vec![(0..3000).collect(), (3000..6000).collect()],
    ];
    for ids in cases {
        let disk = MemDisk::new();
        let lists = write_lists(&disk, &ids, Codec::Raw);
        for threads in 1..=8 {
            let mut engines = new_intersector(&disk, threads, CostModel::default());
            for algorithm in Algorithm::ALL {
                let found = engines.intersect(algorithm, &lists).unwrap();
                assert_eq!(found.ids, intersect_in_memory(&ids), "{} by {threads}", algorithm.name());
            }
        }
    }
}

#[test]
fn invalid_lists_are_rejected() {
    let disk = MemDisk::new();
    let mut writer = PagedListsWriter::create(&disk, FILE_NAME, Codec::Raw).unwrap();
    for wrong in [&[1, 1][..], &[2, 1], &[0, u32::MAX]] {
        assert!(writer.add(wrong).is_err());
    }
    assert!(PagedListsWriter::create(&disk, "other", Codec::Pfor256).is_err());
}

/// A uniform list as in the paper, scaled down by ten.
fn uniform_list(count: u32, seed: u64) -> Vec<u32> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as u32 * 2
    };
    (0..count).map(|_| next()).collect::<BTreeSet<_>>().into_iter().collect()
}

/// Figure 2 of the paper, scaled down: |L1| is 1,000 and |L2| 1,000,000, in pages of 1,024.
#[test]
fn pages_read_agree_with_theory() {
    let ids = [uniform_list(1_000, 1), uniform_list(1_000_000, 2)];
    let disk = MemDisk::new();
    let lists = write_lists(&disk, &ids, Codec::Raw);
    let pages = ids[1].len().div_ceil(1024);
    assert_eq!((lists[0].pages(), lists[1].pages()), (1, pages));
    let firsts = lists[1].firsts();
    let hit = |id: &u32| firsts.partition_point(|first| first <= id).checked_sub(1);
    let in_range = ids[0].iter().filter(|id| **id <= ids[1][ids[1].len() - 1]);
    let distinct = in_range.filter_map(hit).collect::<BTreeSet<usize>>().len() as u64;
    let theory = pages as f64 * (1.0 - (-(ids[0].len() as f64) / pages as f64).exp());
    assert!((distinct as f64 / theory - 1.0).abs() < 0.05, "{distinct} pages, {theory} by theory");

    let [none, _, all] = coalescing_costs();
    let mut engines = new_intersector(&disk, 1, none);
    let mut run = |algorithm| engines.intersect(algorithm, &lists).unwrap().reads;
    let (bl, sl, zz, bf) = (run(Algorithm::Bl), run(Algorithm::Sl), run(Algorithm::Zz), run(Algorithm::Bf));
    assert_eq!((bl.pages, bl.skipped), (1 + pages as u64, 0));
    assert_eq!((sl.pages, sl.reads, sl.skipped), (1 + distinct, 1 + distinct, pages as u64 - distinct));
    assert_eq!(zz.pages, sl.pages, "two lists");
    assert!(bf.pages < sl.pages / 3 && bf.false_positives > 0, "{bf:?}");
    let direct = run(Algorithm::Direct);
    // `bf` does not test ids whose page is loaded.
    assert!(direct.pages == bf.pages && direct.false_positives >= bf.false_positives, "{direct:?} {bf:?}");
    // Testing an id takes longer than reading its page.
    engines.direct.cost = CostModel { test_seconds: 1.0, ..none };
    assert_eq!(engines.intersect(Algorithm::Direct, &lists).unwrap().reads.pages, sl.pages);
    engines.direct.cost = CostModel { test_seconds: 1.0, ..all };
    let coalesced = engines.intersect(Algorithm::Direct, &lists).unwrap().reads;
    assert!(coalesced.reads < 80 && coalesced.pages > sl.pages, "{coalesced:?}");

    engines.readers = ReaderThreads::new(&disk, READ_OPTIONS, 8).unwrap();
    let parallel = engines.intersect(Algorithm::Sl, &lists).unwrap().reads;
    // Two neighbours both read a page that they share.
    assert!((sl.pages..=sl.pages + 2 * 7).contains(&parallel.pages), "{parallel:?}");
}

/// Footnote 4 of the paper.
#[test]
fn zig_zag_reads_more_of_three_lists() {
    let ids = [uniform_list(2_000, 1), uniform_list(200_000, 2), uniform_list(2_000_000, 3)];
    let disk = MemDisk::new();
    let lists = write_lists(&disk, &ids, Codec::Raw);
    let mut engines = new_intersector(&disk, 1, CostModel::default());
    let mut run = |algorithm| engines.intersect(algorithm, &lists).unwrap().reads.pages;
    assert!(run(Algorithm::Zz) > run(Algorithm::Sl));
}

#[test]
fn pages_in_memory_cost_no_read() {
    let ids = [uniform_list(1_000, 1), uniform_list(300_000, 2)];
    let disk = MemDisk::new();
    let mut lists = write_lists(&disk, &ids, Codec::Raw);
    lists.iter_mut().for_each(|list| list.keep_pages(|_| true).unwrap());
    let mut engines = new_intersector(&disk, 3, CostModel::default());
    for algorithm in Algorithm::ALL {
        let reads = engines.intersect(algorithm, &lists).unwrap().reads;
        assert_eq!((reads.pages, reads.reads), (0, 0), "{}", algorithm.name());
        assert!(reads.resident > 0);
    }
}

/// Each read fails once, in the operating system and in the read queue: that call returns the error, later
/// calls succeed.
#[test]
fn an_error_affects_one_call_only() {
    let ids = [uniform_list(400, 1), uniform_list(60_000, 2), uniform_list(90_000, 3)];
    let disk = FaultDisk::new(MemDisk::new(), FaultPlan::none());
    let lists = write_lists(&disk, &ids, Codec::Pfor256Delta);
    let expected = intersect_in_memory(&ids);
    for threads in [1, 3] {
        let mut engines = new_intersector(&disk, threads, CostModel::default());
        for algorithm in Algorithm::ALL {
            disk.arm(FaultPlan::none());
            assert_eq!(engines.intersect(algorithm, &lists).unwrap().ids, expected);
            let reads = disk.operations(OpClass::Read);
            assert!(reads > 0);
            for at in 1..=reads {
                let effect = Effect::Error(errno::EIO);
                disk.arm(FaultPlan { class: OpClass::Read, at, effect, repeat: Repeat::Once });
                let failed = engines.intersect(algorithm, &lists);
                assert_eq!((disk.injected(), failed.is_err()), (1, true), "{} {at}", algorithm.name());
                let again = engines.intersect(algorithm, &lists).unwrap();
                assert_eq!(again.ids, expected, "{} after {at}", algorithm.name());
            }
        }
    }
}

#[test]
fn damage_is_an_error() {
    let ids = [uniform_list(5_000, 1), uniform_list(20_000, 2)];
    let disk = MemDisk::new();
    let lists = write_lists(&disk, &ids, Codec::Raw);
    let pages: usize = lists.iter().map(PagedList::pages).sum();
    let mut engines = new_intersector(&disk, 2, CostModel::default());
    // The first page of the file belongs to no list.
    for at in (4096..4096 * (1 + pages)).step_by(1001) {
        disk.corrupt(FILE_NAME, |bytes| bytes[at] ^= 16);
        for algorithm in Algorithm::ALL {
            let found = engines.intersect(algorithm, &lists);
            assert!(found.is_err_and(|error| error.is_corrupt()), "{at}");
        }
        disk.corrupt(FILE_NAME, |bytes| bytes[at] ^= 16);
    }
}

#[test]
fn files_are_read_past_the_page_cache() {
    let directory = tempfile::TempDir::new().unwrap();
    let disk = PosixDisk::open(directory.path()).unwrap();
    let ids = [uniform_list(1_000, 1), uniform_list(500_000, 2)];
    let lists = write_lists(&disk, &ids, Codec::Raw);
    let direct = disk.check_direct().is_ok();
    for kind in [ReadKind::Auto, ReadKind::Pread] {
        let reads = ReadOptions { kind, depth: 4, direct };
        let readers = ReaderThreads::new(&disk, ReadOptions { depth: 2, ..reads }, 4).unwrap();
        let direct = Direct::new(&disk, reads, 128 << 10).unwrap();
        let mut engines = Intersector { readers, bl: Bl::default(), direct };
        let cost = engines.direct.measure_cost(&lists[1], 100).unwrap();
        assert!(cost.read_seconds > 0.0 && cost.bytes_per_second > 0.0);
        for algorithm in Algorithm::ALL {
            let found = engines.intersect(algorithm, &lists).unwrap();
            assert_eq!(found.ids, intersect_in_memory(&ids), "{}", algorithm.name());
        }
    }
}
