//! The sweeps over generated lists: each varies one parameter, the others are those of table I of the paper.

use super::lists::{intersect_in_memory, short_list, superset, uniform};
use super::measure::{SweepPoint, point};
use super::results::Results;
use super::runner::IntersectionRunner;
use super::settings::{CODECS, Settings, Sweep};
use super::work_dir::WorkDir;
use crate::intersection::{Algorithm, PagedList};
use crate::{Random, Result, status};
use tierdex::codec::Codec;

/// The lists of a query, and their intersection.
type Query = (Vec<PagedList>, Vec<u32>);

/// The generated lists of the paper.
struct SyntheticLists {
    random: Random,
    long: Vec<u32>,
    short: Vec<u32>,
    common: Vec<u32>,
}

impl SyntheticLists {
    fn new(settings: &Settings) -> SyntheticLists {
        status::show("generating lists");
        let mut random = Random::new(settings.seed);
        let long = uniform(&mut random, settings.long);
        let short = short_list(&mut random, settings.short, &long, settings.common);
        let common = intersect_in_memory(&[&long, &short]);
        SyntheticLists { random, long, short, common }
    }

    /// The default query, encoded by a codec.
    fn query(&self, work: &WorkDir, codec: Codec, filter: u32) -> Result<Query> {
        Ok((work.file(codec, filter, &[&self.short, &self.long])?, self.common.clone()))
    }

    /// The default query with another short list.
    fn with_short(&self, work: &WorkDir, filter: u32, long: &PagedList, short: &[u32]) -> Result<Query> {
        let mut lists = work.file(Codec::Raw, filter, &[short])?;
        lists.push(long.clone());
        Ok((lists, intersect_in_memory(&[short, &self.long])))
    }
}

/// All sweeps over generated lists.
pub(super) fn synthetic(work: &WorkDir, settings: &Settings, results: &mut Results) -> Result<()> {
    let mut data = SyntheticLists::new(settings);
    let query = data.query(work, Codec::Raw, settings.filter)?;
    let default = (settings.threads, settings.depth);
    let mut runner = IntersectionRunner::new(work, settings, default)?;
    let cost = runner.calibrate(&query.0)?;
    results.set_cost(cost, runner.description());
    let mut run = |runner: &mut IntersectionRunner,
                   sweep: Sweep,
                   (x, label): (f64, String),
                   query: &Query|
     -> Result<()> {
        let only = [Algorithm::Direct];
        let algorithms = if sweep == Sweep::Depth { &only[..] } else { &Algorithm::ALL };
        let queries = std::slice::from_ref(query);
        let at = SweepPoint { sweep: sweep.name(), x, label, algorithms, queries };
        results.add(point(runner, &at, settings)?);
        Ok(())
    };
    for sweep in settings.sweeps.iter().copied() {
        match sweep {
            Sweep::Threads => {
                for threads in powers(2, settings.threads as u32) {
                    let mut runner =
                        IntersectionRunner::new(work, settings, (threads as usize, settings.depth))?;
                    runner.set_cost(cost);
                    run(&mut runner, sweep, (f64::from(threads), threads.to_string()), &query)?;
                }
            }
            Sweep::Ratio => {
                for ratio in powers(10, settings.long.min(10_000)) {
                    let ids =
                        short_list(&mut data.random, settings.long / ratio, &data.long, settings.common);
                    let query = data.with_short(work, settings.filter, &query.0[1], &ids)?;
                    run(&mut runner, sweep, (f64::from(ratio), ratio.to_string()), &query)?;
                }
            }
            Sweep::Intersection => {
                for percent in [0.01, 0.1, 1.0, 10.0, 100.0] {
                    let ids = short_list(&mut data.random, settings.short, &data.long, percent / 100.0);
                    let query = data.with_short(work, settings.filter, &query.0[1], &ids)?;
                    run(&mut runner, sweep, (percent, format!("{percent}%")), &query)?;
                }
            }
            Sweep::Lists => {
                let [tenth, third] =
                    [10, 3].map(|part| superset(&mut data.random, settings.long / part, &data.common));
                let between = work.file(Codec::Raw, settings.filter, &[&tenth, &third])?;
                for count in 2..=4 {
                    let mut lists = query.0.clone();
                    lists.extend_from_slice(&between[..count - 2]);
                    let query = (lists, data.common.clone());
                    run(&mut runner, sweep, (count as f64, count.to_string()), &query)?;
                }
            }
            Sweep::Codec => {
                for (number, codec) in CODECS.into_iter().enumerate() {
                    let query = data.query(work, codec, settings.filter)?;
                    run(&mut runner, sweep, (number as f64, codec.name().to_string()), &query)?;
                }
            }
            Sweep::Depth => {
                for depth in powers(2, 128) {
                    let mut runner = IntersectionRunner::new(work, settings, (1, depth as usize))?;
                    let cost = runner.calibrate(&query.0)?;
                    let (us, rate) = (1e6 * cost.read_seconds, cost.bytes_per_second / 1e9);
                    let label = format!("{depth} ({us:.1} us per read, {rate:.2} GB/s)");
                    run(&mut runner, sweep, (f64::from(depth), label), &query)?;
                }
            }
            Sweep::Memory => {
                for percent in [0, 25, 50, 75, 100] {
                    let mut query = query.clone();
                    let mut random = Random::new(settings.seed);
                    for list in &mut query.0 {
                        list.keep(|_| random.below(100) < percent)?;
                    }
                    run(&mut runner, sweep, (f64::from(percent), format!("{percent}%")), &query)?;
                }
            }
            Sweep::Real => {}
        }
    }
    Ok(())
}

/// The powers of `base` from 1 to `most`.
fn powers(base: u32, most: u32) -> impl Iterator<Item = u32> {
    std::iter::successors(Some(1u32), move |power| power.checked_mul(base))
        .take_while(move |power| *power <= most)
}
