//! The sweeps over generated lists: each varies one parameter, the others are those of table I of the paper.

use crate::intersect::lists::{intersect_in_memory, short_list, superset_ids, uniform_ids};
use crate::intersect::settings::{COMPARED_CODECS, Settings, Sweep};
use crate::intersect::{row::SweepRow, runner::IntersectionRunner, work_dir::WorkDir};
use crate::intersection::{Algorithm, CostModel, PagedList};
use crate::{Random, Result, intersect::measure::SweepPoint, intersect::measure::measure_point};
use tierdex::codec::Codec;

/// A query: its lists on disk, and the ids that an intersection must find.
type SweepQuery = (Vec<PagedList>, Vec<u32>);

/// The generated lists of the paper.
struct SyntheticLists {
    random: Random,
    long: Vec<u32>,
    short: Vec<u32>,
    common: Vec<u32>,
}

impl SyntheticLists {
    fn new(settings: &Settings) -> SyntheticLists {
        let mut random = Random::new(settings.seed);
        let long = uniform_ids(&mut random, settings.long);
        let short = short_list(&mut random, settings.short, &long, settings.common);
        let common = intersect_in_memory(&[&long, &short]);
        SyntheticLists { random, long, short, common }
    }

    /// The default query, encoded by a codec.
    fn query(&self, work: &WorkDir, codec: Codec, filter: u32) -> Result<SweepQuery> {
        Ok((work.write(codec, filter, &[&self.short, &self.long])?, self.common.clone()))
    }

    /// The default query with another short list.
    fn with_short(&self, work: &WorkDir, filter: u32, long: &PagedList, short: &[u32]) -> Result<SweepQuery> {
        let mut lists = work.write(Codec::Raw, filter, &[short])?;
        lists.push(long.clone());
        Ok((lists, intersect_in_memory(&[short, &self.long])))
    }
}

/// All sweeps over generated lists.
pub(super) fn run_sweeps(work: &WorkDir, settings: &Settings, rows: &mut Vec<SweepRow>) -> Result<()> {
    let data = SyntheticLists::new(settings);
    let query = data.query(work, Codec::Raw, settings.filter)?;
    let mut runner = IntersectionRunner::new(work, settings, settings.threads, settings.depth)?;
    let cost = runner.calibrate(&query.0)?;
    let mut sweeps = SyntheticSweeps { work, settings, rows, data, query, runner, cost };
    settings.sweeps.iter().try_for_each(|sweep| sweeps.run_sweep(*sweep))
}

/// Runs the sweeps over generated lists.
struct SyntheticSweeps<'a> {
    work: &'a WorkDir,
    settings: &'a Settings,
    rows: &'a mut Vec<SweepRow>,
    data: SyntheticLists,
    /// The default query.
    query: SweepQuery,
    runner: IntersectionRunner,
    cost: CostModel,
}

impl SyntheticSweeps<'_> {
    fn run_sweep(&mut self, sweep: Sweep) -> Result<()> {
        match sweep {
            Sweep::Threads => self.sweep_threads(),
            Sweep::Ratio => self.sweep_ratios(),
            Sweep::Intersection => self.sweep_intersections(),
            Sweep::Lists => self.sweep_lists(),
            Sweep::Codec => self.sweep_codecs(),
            Sweep::Depth => self.sweep_depths(),
            Sweep::Memory => self.sweep_memory(),
            Sweep::Real => Ok(()),
        }
    }

    /// Measures `query` with another runner, or with the default one, and adds the point at `x`.
    fn measure(
        &mut self,
        runner: Option<&mut IntersectionRunner>,
        sweep: Sweep,
        x: f64,
        label: String,
        query: &SweepQuery,
    ) -> Result<()> {
        let only = [Algorithm::Direct];
        let algorithms = if sweep == Sweep::Depth { &only[..] } else { &Algorithm::ALL };
        let queries = std::slice::from_ref(query);
        let at = SweepPoint { sweep: sweep.name(), x, label, algorithms, queries };
        let measured = measure_point(runner.unwrap_or(&mut self.runner), &at, self.settings)?;
        self.rows.extend(measured);
        Ok(())
    }

    fn sweep_threads(&mut self) -> Result<()> {
        for threads in powers_of(2, self.settings.threads as u32) {
            let depth = self.settings.depth;
            let mut runner = IntersectionRunner::new(self.work, self.settings, threads as usize, depth)?;
            runner.algorithms.direct.set_cost(self.cost);
            let query = self.query.clone();
            self.measure(Some(&mut runner), Sweep::Threads, f64::from(threads), threads.to_string(), &query)?;
        }
        Ok(())
    }

    /// The default query with a short list of these ids.
    fn with_short(&self, ids: &[u32]) -> Result<SweepQuery> {
        self.data.with_short(self.work, self.settings.filter, &self.query.0[1], ids)
    }

    fn sweep_ratios(&mut self) -> Result<()> {
        let Settings { long, common, .. } = *self.settings;
        for ratio in powers_of(10, long.min(10_000)) {
            let ids = short_list(&mut self.data.random, long / ratio, &self.data.long, common);
            let query = self.with_short(&ids)?;
            self.measure(None, Sweep::Ratio, f64::from(ratio), ratio.to_string(), &query)?;
        }
        Ok(())
    }

    fn sweep_intersections(&mut self) -> Result<()> {
        for percent in [0.01, 0.1, 1.0, 10.0, 100.0] {
            let short = self.settings.short;
            let ids = short_list(&mut self.data.random, short, &self.data.long, percent / 100.0);
            let query = self.with_short(&ids)?;
            self.measure(None, Sweep::Intersection, percent, format!("{percent}%"), &query)?;
        }
        Ok(())
    }

    fn sweep_lists(&mut self) -> Result<()> {
        let (long, filter) = (self.settings.long, self.settings.filter);
        let data = &mut self.data;
        let [tenth, third] = [10, 3].map(|part| superset_ids(&mut data.random, long / part, &data.common));
        let between = self.work.write(Codec::Raw, filter, &[&tenth, &third])?;
        for count in 2..=4 {
            let mut lists = self.query.0.clone();
            lists.extend_from_slice(&between[..count - 2]);
            let query = (lists, self.data.common.clone());
            self.measure(None, Sweep::Lists, count as f64, count.to_string(), &query)?;
        }
        Ok(())
    }

    fn sweep_codecs(&mut self) -> Result<()> {
        for (number, codec) in COMPARED_CODECS.into_iter().enumerate() {
            let query = self.data.query(self.work, codec, self.settings.filter)?;
            self.measure(None, Sweep::Codec, number as f64, codec.name().to_string(), &query)?;
        }
        Ok(())
    }

    fn sweep_depths(&mut self) -> Result<()> {
        for depth in powers_of(2, 128) {
            let mut runner = IntersectionRunner::new(self.work, self.settings, 1, depth as usize)?;
            let query = self.query.clone();
            let cost = runner.calibrate(&query.0)?;
            let (us, rate) = (1e6 * cost.read_seconds, cost.bytes_per_second / 1e9);
            let label = format!("{depth} ({us:.1} us per read, {rate:.2} GB/s)");
            self.measure(Some(&mut runner), Sweep::Depth, f64::from(depth), label, &query)?;
        }
        Ok(())
    }

    fn sweep_memory(&mut self) -> Result<()> {
        for percent in [0, 25, 50, 75, 100] {
            let mut query = self.query.clone();
            let mut random = Random::new(self.settings.seed);
            for list in &mut query.0 {
                list.keep_pages(|_| random.below(100) < percent)?;
            }
            self.measure(None, Sweep::Memory, f64::from(percent), format!("{percent}%"), &query)?;
        }
        Ok(())
    }
}

/// The powers of `base` from 1 to `most`.
fn powers_of(base: u32, most: u32) -> impl Iterator<Item = u32> {
    std::iter::successors(Some(1u32), move |power| power.checked_mul(base))
        .take_while(move |power| *power <= most)
}
