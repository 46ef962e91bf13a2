//! The four forms of a PFor block: each is written and read, and no block is longer than the plain form.

mod samples;

use samples::values_of_gaps;
use tierdex_codec::Codec;

/// The codecs that write PFor blocks.
const PFOR_CODECS: [Codec; 4] = [Codec::Pfor, Codec::PforDelta, Codec::Pfor256, Codec::Pfor256Delta];

/// The names of the forms, by the two high bits of the first byte.
const FORM_NAMES: [&str; 4] = ["plain", "sparse", "bitmap", "constant"];

fn form_of_block(block: &[u8]) -> usize {
    usize::from(block[0] >> 6)
}

#[test]
fn the_encoder_writes_and_reads_every_form_in_both_layouts() {
    for codec in PFOR_CODECS {
        let (mut tails, mut full) = ([0; 4], [0; 4]);
        for gaps in samples::sample_blocks() {
            let values = values_of_gaps(codec, &gaps);
            let block = samples::encode(codec, &values);
            let (back, used) = samples::decode(codec, &block, samples::VALUE_BEFORE_LIST, values.len());
            assert_eq!((back, used), (values, block.len()));
            let counts = if gaps.len() == 256 { &mut full } else { &mut tails };
            counts[form_of_block(&block)] += 1;
        }
        for (k, name) in FORM_NAMES.iter().enumerate() {
            println!("{} {name}: {} full, {} shorter", codec.name(), full[k], tails[k]);
            assert!(full[k] > 0 && tails[k] > 0, "{} wrote no {name} block", codec.name());
        }
    }
}

#[test]
fn no_form_is_longer_than_the_plain_one() {
    for values in samples::sample_blocks() {
        let widest = values.iter().map(|value| 32 - value.leading_zeros()).max().unwrap_or(0);
        let plain = 1 + (values.len() * widest as usize).div_ceil(8);
        assert!(samples::encode(Codec::Pfor256, &values).len() <= plain);
        assert!(samples::encode(Codec::Pfor, &values).len() <= plain);
    }
}

#[test]
fn exceptions_need_not_be_equally_wide() {
    // One full-width value among many of one byte: the bitmap would give all of them 32 bits.
    let mut values = [0; 256];
    values.iter_mut().step_by(3).for_each(|value| *value = 100);
    values[100] = u32::MAX;
    values[101] = 0x0012_3456;
    for codec in PFOR_CODECS {
        let values = values_of_gaps(codec, &values);
        let block = samples::encode(codec, &values);
        assert_eq!(FORM_NAMES[form_of_block(&block)], "sparse");
        assert_eq!(samples::decode(codec, &block, samples::VALUE_BEFORE_LIST, 256).0, values);
    }
}
