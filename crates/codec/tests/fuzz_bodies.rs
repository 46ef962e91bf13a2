//! The bodies of the fuzz targets, run on pseudorandom inputs with fixed seeds, without a fuzzer.

#[path = "../../../fuzz/src/lib.rs"]
mod bodies;
mod samples;

use samples::{Random, Seed};
use tierdex_codec::{BLOCK, Codec, Kernel};

/// Inputs per test.
const INPUTS: u64 = 20_000;

/// Bytes of which about half are small, so that short steps and valid headers are likely.
fn input(random: &mut Random) -> Vec<u8> {
    let len = random.below(700);
    (0..len).map(|_| random.next() as u8 >> (random.below(2) * random.below(8))).collect()
}

#[test]
fn hostile() {
    let mut good = 0;
    for seed in 0..INPUTS {
        let _seed = Seed(seed);
        good += u64::from(bodies::hostile(&input(&mut Random(seed))));
    }
    println!("{good} of {INPUTS} were blocks");
    assert!((INPUTS / 20..INPUTS).contains(&good), "{good} of {INPUTS} were blocks");
}

#[test]
fn hostile_accepts_encoded_blocks() {
    let mut random = Random(40);
    for (k, codec) in Codec::ALL.iter().enumerate() {
        for gaps in samples::blocks() {
            let (values, prev) = (samples::as_input(*codec, &gaps), random.next() as u32);
            let mut data = vec![k as u8, (gaps.len() - 1) as u8];
            data.extend(prev.to_le_bytes());
            codec.encode_with(Kernel::SCALAR, &values, prev, &mut data);
            assert!(bodies::hostile(&data), "{} of {values:?}", codec.name());
        }
    }
}

#[test]
fn round_trip() {
    let (mut full, mut shorter) = (0, 0);
    for seed in 0..INPUTS {
        let _seed = Seed(seed);
        match bodies::round_trip(&input(&mut Random(seed))) {
            BLOCK => full += 1,
            _ => shorter += 1,
        }
    }
    println!("{full} full blocks, {shorter} shorter ones");
    assert!(full > INPUTS / 10 && shorter > INPUTS / 10, "{full} full blocks, {shorter} shorter ones");
}
