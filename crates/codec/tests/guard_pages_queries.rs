//! The functions that queries use access nothing outside their slices, and all kernels give the same
//! results.
//!
//! Slices of many lengths are adjacent to a guard page before or after them. These functions use the kernel
//! of the process, so each kernel runs in a child process that prints a digest of each result; the digests
//! are compared with those of the scalar kernel.

mod pages;
mod samples;

use pages::{Guarded, Pages, Side};
use samples::{Random, VALUE_BEFORE_LIST};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::{collections::BTreeMap, env, fmt::Debug, process::Command};
use tierdex_codec::{
    BLOCK, CodeTable, Codec, Intersection, Kernel, RUN_SLACK, RunPair, Saturation, Selection, Survivors,
    ValueRun, add_one, collect_bits, copy_marked, copy_runs, count_ones, drain_at_least, intersect,
    intersect_runs, is_increasing, keep_at_least, keep_marked, largest, mark_positive, values_at_least,
};

#[global_allocator]
static ALLOCATOR: Guarded = Guarded;

/// Lengths of slices: those of vectors, one less and one more.
const SLICE_LENGTHS: [usize; 14] = [0, 1, 7, 8, 9, 15, 16, 17, 63, 64, 65, 127, 255, BLOCK];

/// Number of further, random lengths, unless `TIERDEX_TEST_BLOCKS` sets another one.
const RANDOM_LENGTH_COUNT: usize = 100;

/// Maximum length of a slice, in numbers: the marks of the longest bitmap.
const LEN_MAX: usize = 8 * BLOCK;

/// Environment variable that makes the test print digests, in a child process.
const PRINT_VARIABLE: &str = "TIERDEX_TEST_PRINT";

/// The name of the test that the child process runs.
const TEST_NAME: &str = "every_kernel_stays_between_guard_pages";

/// The name of a function of the crate, and a test function that returns a digest of its result.
type TestedFunction = (&'static str, fn(&mut GuardedCase) -> String);

const TESTED_FUNCTIONS: [TestedFunction; 18] = [
    ("score", digest_score),
    ("values_at_least", digest_values_at_least),
    ("drain_at_least", digest_drain_at_least),
    ("keep_at_least", digest_keep_at_least),
    ("largest", digest_largest),
    ("count_ones", digest_count_ones),
    ("mark_positive", digest_mark_positive),
    ("keep_marked", digest_keep_marked),
    ("copy_marked", digest_copy_marked),
    ("add_bits", digest_add_bits),
    ("add_bits of too few frequencies", digest_add_bits_too_few),
    ("find", digest_find),
    ("intersect", digest_intersect),
    ("rises", digest_rises),
    ("add_one", digest_add_one),
    ("collect_bits", digest_collect_bits),
    ("copy_runs", digest_copy_runs),
    ("intersect_runs", digest_intersect_runs),
];

/// The input of a test function: the length of the slices, all adjacent to a guard on the same side, and
/// random numbers.
struct GuardedCase<'a> {
    pages: &'a mut [Pages; 4],
    side: Side,
    n: usize,
    random: Random,
}

impl GuardedCase<'_> {
    /// A score below 12, possibly 0.
    fn score(&mut self) -> u32 {
        self.random.below(12) as u32
    }

    fn scores(&mut self, n: usize) -> Vec<u32> {
        (0..n).map(|_| self.score()).collect()
    }

    fn values(&mut self, n: usize, width: u32) -> Vec<u32> {
        (0..n).map(|_| self.random.value(width)).collect()
    }

    /// `n` random bits, in as few bytes as possible.
    fn bits(&mut self) -> Vec<u8> {
        let random = &mut self.random;
        (0..self.n.div_ceil(8)).map(|_| random.next() as u8).collect()
    }

    /// `n` increasing values with gaps of 1 to `gap`.
    fn rising(&mut self, n: usize, gap: u64) -> Vec<u32> {
        let mut last = VALUE_BEFORE_LIST;
        let next = |_| {
            last = last.wrapping_add(1 + self.random.below(gap) as u32);
            last
        };
        (0..n).map(next).collect()
    }
}

/// Copies the values to the pages.
fn copy_values<'a>(pages: &'a mut Pages, side: Side, from: &[u32]) -> &'a mut [u32] {
    let copy = pages.values(side, from.len());
    copy.copy_from_slice(from);
    copy
}

/// Copies the bytes to the pages.
fn copy_bytes<'a>(pages: &'a mut Pages, side: Side, from: &[u8]) -> &'a mut [u8] {
    let copy = pages.bytes(side, from.len());
    copy.copy_from_slice(from);
    copy
}

/// A table of `k` for each code.
fn k_of_codes() -> CodeTable {
    CodeTable::new(std::array::from_fn(|code| 0.3 + code as f32 * 0.0117))
}

/// One of the values has the last code.
fn digest_score(case: &mut GuardedCase) -> String {
    let (n, side) = (case.n, case.side);
    let codes: Vec<u8> = case.values(n.max(1), 8).iter().map(|value| *value as u8).collect();
    let mut all: Vec<u32> = (0..n).map(|_| case.random.below(n as u64) as u32).collect();
    all.iter_mut().take(1).for_each(|value| *value = n as u32 - 1);
    let frequencies = case.values(n, 4);
    let k = k_of_codes();
    let [a, b, c, d] = case.pages;
    let of = Saturation { weight: 3700.0, k: &k, codes: copy_bytes(a, side, &codes) };
    let found = d.values(side, n);
    of.score(copy_values(b, side, &all), copy_values(c, side, &frequencies), found);
    digest_of(found)
}

fn digest_values_at_least(case: &mut GuardedCase) -> String {
    let (all, threshold) = (case.scores(case.n), case.score());
    let mut found = Selection::new();
    values_at_least(copy_values(&mut case.pages[0], case.side, &all), threshold, &mut found);
    digest_of(found.positions())
}

/// The output vectors end at a guard too.
fn digest_drain_at_least(case: &mut GuardedCase) -> String {
    let (sums, threshold) = (case.scores(case.n), case.score());
    let sums = copy_values(&mut case.pages[0], case.side, &sums);
    let survivors = Guarded::vectors(|| {
        let mut survivors = Survivors::default();
        drain_at_least(sums, 70, threshold, &mut survivors);
        survivors
    });
    assert!(
        Guarded::holds(survivors.values()) && Guarded::holds(survivors.sums()),
        "a vector was not guarded"
    );
    digest_of((survivors.values(), survivors.sums(), survivors.positive(), sums))
}

fn digest_keep_at_least(case: &mut GuardedCase) -> String {
    let (n, side) = (case.n, case.side);
    let (all, all_scores) = (case.values(n, 32), case.scores(n));
    let (threshold, from) = (case.score(), case.random.below(n as u64 / 2 + 1));
    let [a, b, ..] = case.pages;
    let (kept, kept_scores) = (copy_values(a, side, &all), copy_values(b, side, &all_scores));
    let k = keep_at_least(kept, kept_scores, from as usize, threshold);
    digest_of((&kept[..k], &kept_scores[..k]))
}

/// The keys fill `n` numbers, two each, and the scratch buffer ends at a guard.
fn digest_largest(case: &mut GuardedCase) -> String {
    let n = case.n / 2;
    let keys: Vec<u64> = (0..n).map(|_| case.random.next() >> (8 * case.n % 64)).collect();
    let k = case.random.below(n as u64 + 1) as usize;
    let copy = case.pages[0].keys(case.side, n);
    copy.copy_from_slice(&keys);
    let smallest = Guarded::vectors(|| largest(copy, k, &mut Vec::new()));
    copy[..k].sort_unstable();
    copy[k..].sort_unstable();
    digest_of((smallest, copy))
}

fn digest_count_ones(case: &mut GuardedCase) -> String {
    let all: Vec<u8> = case.values(case.n, 8).iter().map(|byte| *byte as u8).collect();
    digest_of(count_ones(copy_bytes(&mut case.pages[0], case.side, &all)))
}

fn digest_mark_positive(case: &mut GuardedCase) -> String {
    let (sums, there, side) = (case.scores(case.n), case.bits(), case.side);
    let [a, b, ..] = case.pages;
    let bits = copy_bytes(b, side, &there);
    mark_positive(copy_values(a, side, &sums), bits);
    digest_of(bits)
}

fn digest_keep_marked(case: &mut GuardedCase) -> String {
    let (sums, there, side) = (case.scores(case.n), case.bits(), case.side);
    let [a, b, ..] = case.pages;
    let sums = copy_values(a, side, &sums);
    keep_marked(sums, copy_bytes(b, side, &there));
    digest_of(sums)
}

fn digest_copy_marked(case: &mut GuardedCase) -> String {
    let (bits, side) = (vec![0b0110_1011; 8 * case.n.div_ceil(64)], case.side);
    let values: Vec<u32> = (0..case.n).map(|_| case.random.below(2 * case.n as u64) as u32).collect();
    let [a, b, c, ..] = case.pages;
    let (values, bits) = (copy_values(a, side, &values), copy_bytes(b, side, &bits));
    let out = copy_values(c, side, &vec![0; values.len()]);
    let copied = copy_marked(values, bits, out);
    digest_of(&out[..copied])
}

fn digest_add_bits(case: &mut GuardedCase) -> String {
    digest_of(add_bits_to_sums(case, 0))
}

/// The result is unspecified, so that the digest is only its length.
fn digest_add_bits_too_few(case: &mut GuardedCase) -> String {
    let missing = 1 + case.random.below(20) as usize;
    add_bits_to_sums(case, missing).len().to_string()
}

/// Adds the scores of `n` bytes of bits, the last `missing` without frequencies, to sums that may end before
/// the bits.
fn add_bits_to_sums(case: &mut GuardedCase, missing: usize) -> Vec<u32> {
    let (n, side, first) = (case.n, case.side, 8 * case.random.below(9) as u32);
    let sums = 8 * n - case.random.below(8 * n.min(3) as u64 + 1) as usize;
    let bits: Vec<u8> = (0..n).map(|_| (case.random.next() & case.random.next()) as u8).collect();
    let set = bits.iter().map(|byte| byte.count_ones() as usize).sum::<usize>();
    let frequencies: Vec<u32> =
        case.values(set.saturating_sub(missing), 4).iter().map(|value| value + 1).collect();
    let codes: Vec<u8> = case.values(first as usize + sums, 8).iter().map(|value| *value as u8).collect();
    let k = k_of_codes();
    let before = case.scores(sums);
    let [a, b, c, d] = case.pages;
    let of = Saturation { weight: 3700.0, k: &k, codes: copy_bytes(a, side, &codes) };
    let sums = copy_values(d, side, &before);
    of.add_bits(copy_bytes(b, side, &bits), first, copy_values(c, side, &frequencies), sums);
    sums.to_vec()
}

/// The block has as many values as are searched in it, but at least one.
fn digest_find(case: &mut GuardedCase) -> String {
    let (n, gap) = (case.n, 2 + case.random.below(12));
    let (block, all) = (case.rising(n.max(1), gap), case.rising(n, gap));
    let mut encoded = Vec::new();
    Codec::Bitmap.encode(&block, VALUE_BEFORE_LIST, &mut encoded);
    let [a, b, ..] = case.pages;
    let encoded = copy_bytes(a, case.side, &encoded);
    let view = Codec::Bitmap
        .bitmap(encoded, VALUE_BEFORE_LIST, block.len())
        .expect("the block is good")
        .expect("dense");
    let mut shared = Intersection::new();
    view.find(copy_values(b, case.side, &all), &mut shared);
    digest_of((shared.first(), shared.second()))
}

fn digest_intersect(case: &mut GuardedCase) -> String {
    let (n, gap) = (case.random.below(BLOCK as u64 + 1) as usize, 2 + case.random.below(12));
    let (first, second) = (case.rising(case.n, gap), case.rising(n, gap));
    let [a, b, ..] = case.pages;
    let mut shared = Intersection::new();
    intersect(copy_values(a, case.side, &first), copy_values(b, case.side, &second), &mut shared);
    digest_of((shared.first(), shared.second()))
}

/// Each of up to three values in turn is not increasing, among them the last one.
fn digest_rises(case: &mut GuardedCase) -> String {
    let mut all = case.rising(case.n, 1 << 20);
    let mut seen = vec![is_increasing(copy_values(&mut case.pages[0], case.side, &all))];
    for back in 1..all.len().min(4) {
        let position =
            if back == 1 { all.len() - 1 } else { 1 + case.random.below(all.len() as u64 - 1) as usize };
        let value = std::mem::replace(&mut all[position], 0);
        seen.push(is_increasing(copy_values(&mut case.pages[0], case.side, &all)));
        all[position] = value;
    }
    assert!(seen[0] && seen[1..].iter().all(|rises| !rises), "{seen:?}");
    digest_of(seen)
}

fn digest_add_one(case: &mut GuardedCase) -> String {
    let all = case.values(case.n, 32);
    let sums = copy_values(&mut case.pages[0], case.side, &all);
    let largest = add_one(sums);
    digest_of((largest, sums))
}

fn digest_collect_bits(case: &mut GuardedCase) -> String {
    let (n, side) = (case.n, case.side);
    let marked: Vec<u8> = case.values(8 * n, 1).iter().map(|mark| *mark as u8).collect();
    let there: Vec<u8> = case.values(n, 8).iter().map(|byte| *byte as u8).collect();
    let [a, b, ..] = case.pages;
    let (marks, bits) = (copy_bytes(a, side, &marked), copy_bytes(b, side, &there));
    collect_bits(marks, bits);
    digest_of((marks, bits))
}

/// Runs up to the end of the block; only the slack follows the copied values.
fn digest_copy_runs(case: &mut GuardedCase) -> String {
    let block = case.values(BLOCK + RUN_SLACK, 32);
    let (mut runs, mut total) = (Vec::new(), 0);
    while total < case.n {
        let len = 1 + case.random.below((case.n - total).min(40) as u64) as usize;
        let start = (BLOCK - len) as u64 - if runs.is_empty() { 0 } else { case.random.below(200) };
        runs.push(ValueRun { start: start as u16, len: len as u16, add: case.random.next() as u32 });
        total += len;
    }
    let [a, b, ..] = case.pages;
    let block = copy_values(a, case.side, &block);
    let out = b.values(case.side, total + RUN_SLACK);
    let copied = copy_runs(block.first_chunk().expect("a block"), &runs, out);
    digest_of((&out[..copied], copied))
}

/// Runs up to the ends of their blocks; only the slack follows the shared values.
fn digest_intersect_runs(case: &mut GuardedCase) -> String {
    let gap = 2 + case.random.below(3);
    let (all, others) = (case.rising(BLOCK + RUN_SLACK, gap), case.rising(BLOCK + RUN_SLACK, gap));
    let most = [5, 20, BLOCK as u64][case.random.below(3) as usize];
    let (mut pairs, mut at) = (Vec::new(), BLOCK - case.n);
    while at < BLOCK {
        let first_len = (1 + case.random.below(most) as usize).min(BLOCK - at);
        let start =
            if pairs.is_empty() { BLOCK - first_len } else { case.random.below(BLOCK as u64) as usize };
        let len = (1 + case.random.below(2 * most) as usize).min(BLOCK - start);
        let add = all[at].wrapping_sub(others[start]);
        let second = ValueRun { start: start as u16, len: len as u16, add };
        pairs.push(RunPair { first: at as u16, first_len: first_len as u16, second, shared: 0 });
        at += first_len;
    }
    let [a, b, c, _] = case.pages;
    let (first, second) = (copy_values(a, case.side, &all), copy_values(b, case.side, &others));
    let (first, second) = (first.first_chunk().expect("a block"), second.first_chunk().expect("a block"));
    let out = c.values(case.side, case.n + RUN_SLACK);
    let margin = case.random.below(4) as u32;
    let n = intersect_runs(first, second, margin, &mut pairs, out);
    digest_of((&out[..n], pairs))
}

/// A digest of a result.
fn digest_of(result: impl Debug) -> String {
    let mut hasher = DefaultHasher::new();
    format!("{result:?}").hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

/// The fixed lengths, and then the random ones.
fn tested_lengths() -> impl Iterator<Item = usize> {
    let mut random = Random(40);
    let count = env::var("TIERDEX_TEST_BLOCKS").map(|text| text.parse().expect("a number"));
    let others =
        (0..count.unwrap_or(RANDOM_LENGTH_COUNT)).map(move |_| random.below(BLOCK as u64 + 1) as usize);
    SLICE_LENGTHS.into_iter().chain(others)
}

/// Prints one line per case. After a fault, the last line names the case that was begun.
fn print_digests() {
    let mut pages = std::array::from_fn(|_| Pages::new(size_of::<u32>() * LEN_MAX));
    println!("\nkernel: {}", Kernel::active().name());
    for (name, function) in TESTED_FUNCTIONS {
        for (number, n) in tested_lengths().enumerate() {
            for side in Side::ALL {
                let mut case = GuardedCase { pages: &mut pages, side, n, random: Random(number as u64) };
                println!("begun: {name}, {n}, {side:?}");
                println!("case {name}, number {number}, {n}, {side:?}: {}", function(&mut case));
            }
        }
    }
}

/// The digest of each case, by a child process with this kernel.
fn digests_of(kernel: Kernel) -> BTreeMap<String, String> {
    let mut command = Command::new(env::current_exe().expect("the test is a program"));
    command
        .args(["--exact", TEST_NAME, "--nocapture"])
        .env(PRINT_VARIABLE, "")
        .env("TIERDEX_KERNEL", kernel.name());
    let output = command.output().expect("the test starts");
    let text = String::from_utf8_lossy(&output.stdout);
    let last = text.lines().rfind(|line| line.starts_with("begun: "));
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{kernel:?}: {}, last {last:?}\n{error}", output.status);
    assert!(text.lines().any(|line| line == format!("kernel: {}", kernel.name())), "{text}");
    let cases = text.lines().filter_map(|line| line.strip_prefix("case ")?.rsplit_once(": "));
    cases.map(|(case, result)| (case.to_string(), result.to_string())).collect()
}

#[test]
fn every_kernel_stays_between_guard_pages() {
    if env::var_os(PRINT_VARIABLE).is_some() {
        return print_digests();
    }
    let expected = digests_of(Kernel::SCALAR);
    assert_eq!(expected.len(), TESTED_FUNCTIONS.len() * tested_lengths().count() * Side::ALL.len());
    for kernel in Kernel::available() {
        let found = digests_of(kernel);
        for (case, result) in &expected {
            assert_eq!(found.get(case), Some(result), "{kernel:?}: {case}");
        }
    }
}
