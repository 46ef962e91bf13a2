//! Runs the body of the fuzz target for queries with seeded random inputs, without a fuzzer.

#[path = "../../../../fuzz/src/queries.rs"]
mod body;

use crate::support::random::Random;

/// Number of random inputs.
const INPUT_COUNT: u64 = 3000;

#[test]
fn queries_of_random_bytes() {
    let (mut matching, mut longest) = (0, 0);
    for seed in 0..INPUT_COUNT {
        let mut random = Random::new(seed);
        let most = if random.one_in(8) { 300 } else { 24 };
        let len = 2 + random.below(most);
        let data: Vec<u8> = (0..len).map(|_| random.next() as u8).collect();
        matching += u64::from(body::queries(&data));
        longest = longest.max(len);
    }
    println!("{matching} of {INPUT_COUNT} matched");
    assert!(
        (INPUT_COUNT / 4..INPUT_COUNT).contains(&matching) && longest > 200,
        "{matching} of {INPUT_COUNT} matched"
    );
}

/// Valid queries, which random bytes seldom are.
#[test]
fn queries_of_text() {
    let texts = "\
        a b; +a +b -k; \"a b\"~3 every; (a b k every)~2^0; k^1e-300 a; k^1e-300; \
        +a^1e-320 k^1e-320 *:*^1e-320; \"a b\"~3^1e-310; *:* -*:*; ü*; \0";
    for text in texts.split("; ") {
        for (k, kind) in [(0, 8), (9, 9), (255, 14), (40, 11)] {
            let data = [&[k, kind], text.as_bytes()].concat();
            assert_eq!(body::queries(&data), !matches!(text, "*:* -*:*" | "ü*" | "\0"), "{text}");
        }
    }
}
