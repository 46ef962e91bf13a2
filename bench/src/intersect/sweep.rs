//! The sweeps over generated lists: each varies one parameter, the others are those of table I of the paper.

use crate::intersect::lists::{intersect_in_memory, short_list, superset_ids, uniform_ids};
use crate::intersect::measure::{COMPARED_CODECS, IntersectRun, SweepQuery};
use crate::{Random, Result, intersect::request::Sweep};
use std::slice::from_ref;
use tierdex::codec::Codec;

/// Seed of the generated lists.
const SEED: u64 = 1;

/// Share of the shorter list that is in both.
const COMMON_SHARE: f64 = 0.01;

/// Runs the sweep that the request names.
pub(super) fn run_sweep(run: &mut IntersectRun<'_>) -> Result<()> {
    let sweep = run.request.sweep;
    let (short_ids, long_ids) = run.request.lengths();
    let mut random = Random::new(SEED);
    let long = uniform_ids(&mut random, long_ids);
    let short = short_list(&mut random, short_ids, &long, COMMON_SHARE);
    let common = intersect_in_memory(&[&long, &short]);
    let query: SweepQuery = (run.write(Codec::Raw, &[&short, &long])?, common);
    let with_short = |run: &IntersectRun<'_>, ids: &[u32]| -> Result<SweepQuery> {
        let mut lists = run.write(Codec::Raw, &[ids])?;
        lists.push(query.0[1].clone());
        Ok((lists, intersect_in_memory(&[ids, &long])))
    };
    run.calibrate(&query.0)?;
    match sweep {
        Sweep::Threads => {
            for threads in powers_of(2, run.request.threads as u32) {
                run.set_threads(threads as usize)?;
                run.measure(sweep, f64::from(threads), &threads.to_string(), from_ref(&query))?;
            }
        }
        Sweep::Ratio => {
            for ratio in powers_of(10, long_ids.min(10_000)) {
                let ids = short_list(&mut random, long_ids / ratio, &long, COMMON_SHARE);
                let query = with_short(run, &ids)?;
                run.measure(sweep, f64::from(ratio), &ratio.to_string(), &[query])?;
            }
        }
        Sweep::Intersection => {
            for percent in [0.01, 0.1, 1.0, 10.0, 100.0] {
                let ids = short_list(&mut random, short_ids, &long, percent / 100.0);
                let query = with_short(run, &ids)?;
                run.measure(sweep, percent, &format!("{percent}%"), &[query])?;
            }
        }
        Sweep::Lists => {
            let [tenth, third] = [10, 3].map(|part| superset_ids(&mut random, long_ids / part, &query.1));
            let between = run.write(Codec::Raw, &[&tenth, &third])?;
            for count in 2..=4 {
                let lists = [&query.0[..], &between[..count - 2]].concat();
                run.measure(sweep, count as f64, &count.to_string(), &[(lists, query.1.clone())])?;
            }
        }
        Sweep::Codec => {
            for (number, codec) in COMPARED_CODECS.into_iter().enumerate() {
                let lists = run.write(codec, &[&short, &long])?;
                run.measure(sweep, number as f64, codec.name(), &[(lists, query.1.clone())])?;
            }
        }
        Sweep::Memory => {
            for percent in [0, 25, 50, 75, 100] {
                let (mut query, mut random) = (query.clone(), Random::new(SEED));
                for list in &mut query.0 {
                    list.keep_pages(|_| random.below(100) < percent)?;
                }
                run.measure(sweep, f64::from(percent), &format!("{percent}%"), &[query])?;
            }
        }
        Sweep::Queries => {}
    }
    Ok(())
}

/// The powers of `base` from 1 to `most`.
fn powers_of(base: u32, most: u32) -> impl Iterator<Item = u32> {
    std::iter::successors(Some(1u32), move |power| power.checked_mul(base))
        .take_while(move |power| *power <= most)
}
