//! The parameters that are varied, one at a time, the others as in table I of the paper.

use super::flags::Settings;
use super::lists::{around, in_memory, short, uniform};
use super::measure::{Point, point};
use super::results::Results;
use super::room::Room;
use super::work::Work;
use crate::intersection::{Algorithm, PagedList};
use crate::{Random, Result};
use tierdex::codec::Codec;

/// What is varied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sweep {
    Threads,
    Ratio,
    Intersection,
    Lists,
    Codec,
    Depth,
    Memory,
    Device,
    /// Not varied: queries of an index.
    Real,
}

impl Sweep {
    /// Those that can be asked for by name.
    pub(super) const ALL: [Sweep; 8] = [
        Sweep::Threads,
        Sweep::Ratio,
        Sweep::Intersection,
        Sweep::Lists,
        Sweep::Codec,
        Sweep::Depth,
        Sweep::Memory,
        Sweep::Device,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Sweep::Threads => "threads",
            Sweep::Ratio => "ratio",
            Sweep::Intersection => "intersection",
            Sweep::Lists => "lists",
            Sweep::Codec => "codec",
            Sweep::Depth => "depth",
            Sweep::Memory => "memory",
            Sweep::Device => "device",
            Sweep::Real => "real",
        }
    }

    pub(super) fn from_name(name: &str) -> Option<Sweep> {
        Sweep::ALL.into_iter().find(|sweep| sweep.name() == name)
    }

    pub(super) fn names() -> String {
        Sweep::ALL.map(Sweep::name).join(", ")
    }
}

/// The codecs that are compared.
pub(super) const CODECS: [Codec; 3] = [Codec::Raw, Codec::Pfor256Delta, Codec::Bp256Delta];

/// Lists of a query, and what stands in all of them.
type Query = (Vec<PagedList>, Vec<u32>);

/// The paper's lists.
struct Data {
    random: Random,
    long: Vec<u32>,
    short: Vec<u32>,
    common: Vec<u32>,
}

impl Data {
    fn new(settings: &Settings) -> Data {
        super::say("making lists");
        let mut random = Random::new(settings.seed);
        let long = uniform(&mut random, settings.long);
        let short = short(&mut random, settings.short, &long, settings.common);
        let common = in_memory(&[&long, &short]);
        Data { random, long, short, common }
    }

    /// The default lists by a codec.
    fn query(&self, work: &Work, codec: Codec, filter: u32) -> Result<Query> {
        Ok((work.file(codec, filter, &[&self.short, &self.long])?, self.common.clone()))
    }

    /// Lists of a query whose shortest is another one.
    fn with_short(&self, work: &Work, filter: u32, long: &PagedList, short: &[u32]) -> Result<Query> {
        let mut lists = work.file(Codec::Raw, filter, &[short])?;
        lists.push(long.clone());
        Ok((lists, in_memory(&[short, &self.long])))
    }
}

/// All sweeps over made lists.
pub(super) fn synthetic(work: &Work, settings: &Settings, results: &mut Results) -> Result<()> {
    let mut data = Data::new(settings);
    let query = data.query(work, Codec::Raw, settings.filter)?;
    let default = (settings.threads, settings.depth);
    let mut room = Room::new(work, settings, default)?;
    let cost = room.calibrate(&query.0)?;
    results.set_cost(cost, room.description());
    let mut run = |room: &mut Room, sweep: Sweep, (x, label): (f64, String), query: &Query| -> Result<()> {
        let only = [Algorithm::Direct];
        let algorithms = if sweep == Sweep::Depth { &only[..] } else { &Algorithm::ALL };
        let queries = std::slice::from_ref(query);
        let at = Point { sweep: sweep.name(), x, label, algorithms, queries };
        results.add(point(room, &at, settings.rounds)?);
        Ok(())
    };
    for sweep in settings.sweeps.iter().copied() {
        match sweep {
            Sweep::Threads => {
                for threads in powers(2, settings.threads as u32) {
                    let mut room = Room::new(work, settings, (threads as usize, settings.depth))?;
                    room.set_cost(cost);
                    run(&mut room, sweep, (f64::from(threads), threads.to_string()), &query)?;
                }
            }
            Sweep::Ratio => {
                for ratio in powers(10, settings.long.min(10_000)) {
                    let ids = short(&mut data.random, settings.long / ratio, &data.long, settings.common);
                    let query = data.with_short(work, settings.filter, &query.0[1], &ids)?;
                    run(&mut room, sweep, (f64::from(ratio), ratio.to_string()), &query)?;
                }
            }
            Sweep::Intersection => {
                for percent in [0.01, 0.1, 1.0, 10.0, 100.0] {
                    let ids = short(&mut data.random, settings.short, &data.long, percent / 100.0);
                    let query = data.with_short(work, settings.filter, &query.0[1], &ids)?;
                    run(&mut room, sweep, (percent, format!("{percent}%")), &query)?;
                }
            }
            Sweep::Lists => {
                let [tenth, third] =
                    [10, 3].map(|part| around(&mut data.random, settings.long / part, &data.common));
                let between = work.file(Codec::Raw, settings.filter, &[&tenth, &third])?;
                for count in 2..=4 {
                    let mut lists = query.0.clone();
                    lists.extend_from_slice(&between[..count - 2]);
                    let query = (lists, data.common.clone());
                    run(&mut room, sweep, (count as f64, count.to_string()), &query)?;
                }
            }
            Sweep::Codec => {
                for (number, codec) in CODECS.into_iter().enumerate() {
                    let query = data.query(work, codec, settings.filter)?;
                    run(&mut room, sweep, (number as f64, codec.name().to_string()), &query)?;
                }
            }
            Sweep::Depth => {
                for depth in powers(2, 128) {
                    let mut room = Room::new(work, settings, (1, depth as usize))?;
                    let cost = room.calibrate(&query.0)?;
                    let (us, rate) = (1e6 * cost.read_seconds, cost.bytes_per_second / 1e9);
                    let label = format!("{depth} ({us:.1} us a read, {rate:.2} GB/s)");
                    run(&mut room, sweep, (f64::from(depth), label), &query)?;
                }
            }
            Sweep::Memory => {
                for percent in [0, 25, 50, 75, 100] {
                    let mut query = query.clone();
                    let mut random = Random::new(settings.seed);
                    for list in &mut query.0 {
                        list.keep(|_| random.below(100) < percent)?;
                    }
                    run(&mut room, sweep, (f64::from(percent), format!("{percent}%")), &query)?;
                }
            }
            Sweep::Device | Sweep::Real => {}
        }
    }
    Ok(())
}

/// 1, `base`, `base` squared and so on, as far as `most`.
fn powers(base: u32, most: u32) -> impl Iterator<Item = u32> {
    std::iter::successors(Some(1u32), move |power| power.checked_mul(base))
        .take_while(move |power| *power <= most)
}

/// The default lists, all sizes divided by ten, for a slow device.
pub(super) fn small(work: &Work, settings: &Settings) -> Result<Query> {
    let small = Settings {
        short: (settings.short / 10).max(1),
        long: (settings.long / 10).max(1),
        ..settings.clone()
    };
    Data::new(&small).query(work, Codec::Raw, settings.filter)
}
