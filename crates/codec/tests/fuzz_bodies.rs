//! The bodies of the fuzz targets, run on pseudorandom inputs with fixed seeds, without a fuzzer.

#[path = "../../../fuzz/src/lib.rs"]
mod bodies;
mod samples;

use samples::{Random, Seed};
use tierdex_codec::{BLOCK, Codec, Kernel};

/// Number of random inputs of each test.
const INPUT_COUNT: u64 = 20_000;

/// Random bytes of which about half are small, so that valid headers are likely.
fn random_input(random: &mut Random) -> Vec<u8> {
    let len = random.below(700);
    (0..len).map(|_| random.next() as u8 >> (random.below(2) * random.below(8))).collect()
}

#[test]
fn hostile_bytes_are_decoded_alike() {
    let mut good = 0;
    for seed in 0..INPUT_COUNT {
        let _seed = Seed(seed);
        good += u64::from(bodies::check_hostile_bytes(&random_input(&mut Random(seed))));
    }
    println!("{good} of {INPUT_COUNT} were blocks");
    assert!((INPUT_COUNT / 20..INPUT_COUNT).contains(&good), "{good} of {INPUT_COUNT} were blocks");
}

#[test]
fn the_hostile_target_accepts_encoded_blocks() {
    let mut random = Random(40);
    for (k, codec) in Codec::ALL.iter().enumerate() {
        for gaps in samples::sample_blocks() {
            let (values, prev) = (samples::values_of_gaps(*codec, &gaps), random.next() as u32);
            let mut data = vec![k as u8, (gaps.len() - 1) as u8];
            data.extend(prev.to_le_bytes());
            codec.encode_with(Kernel::SCALAR, &values, prev, &mut data);
            assert!(bodies::check_hostile_bytes(&data), "{} of {values:?}", codec.name());
        }
    }
}

#[test]
fn any_bytes_of_wide_blocks_are_read_alike() {
    let mut good = 0;
    for seed in 0..INPUT_COUNT {
        let _seed = Seed(seed);
        let mut random = Random(seed);
        let len = random.below(2200);
        let data: Vec<u8> = (0..len).map(|_| random.next() as u8).collect();
        good += u64::from(bodies::check_wide_bytes(&data));
    }
    assert!((INPUT_COUNT / 3..INPUT_COUNT).contains(&good), "{good} of {INPUT_COUNT} were blocks");
}

#[test]
fn random_values_come_back() {
    let (mut full, mut shorter) = (0, 0);
    for seed in 0..INPUT_COUNT {
        let _seed = Seed(seed);
        match bodies::check_round_trip(&random_input(&mut Random(seed))) {
            BLOCK => full += 1,
            _ => shorter += 1,
        }
    }
    println!("{full} full blocks, {shorter} shorter ones");
    assert!(
        full > INPUT_COUNT / 10 && shorter > INPUT_COUNT / 10,
        "{full} full blocks, {shorter} shorter ones"
    );
}
