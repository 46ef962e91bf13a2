//! Cells of the experiment [`crate::cache`] whose process runs under callgrind: instructions and cache misses
//! of the first repetition, in place of performance counters. Times are left out.

use crate::paper::measure::{cache::flags_of, context::Context, settings::index_of, settings::members_of};
use crate::paper::{cell::FigureCell, cell::Row, measure::sizes};
use crate::temporary_dir::TemporaryDir;
use crate::{Error, Result, cache, cache::Flags, callgrind, callgrind::Simulation};
use serde_json::json;
use std::fs;

/// Most queries of a simulated cell, because a query takes fifty times as long in the simulator.
pub(in super::super) const SIMULATED_QUERIES_MAX: usize = 20;

/// Fields of a row that a simulation does not change, unlike times.
const TIMELESS_FIELDS: [&str; 12] = [
    "name",
    "mode",
    "class",
    "shape",
    "repeats_percent",
    "size_percent",
    "queries",
    "k",
    "exhaustive",
    "matches",
    "hits",
    "checksum",
];

/// Measures a cell; `None` if the stop signal was raised.
pub(super) fn measure(cell: &FigureCell, context: &Context<'_>) -> Result<Option<Result<Vec<Row>>>> {
    let spec = index_of(cell)?;
    let path = context.data.path(&spec);
    let flags = flags_of(cell, &path.display().to_string(), "dram", None, None, false)?;
    let count = flags.count.min(SIMULATED_QUERIES_MAX);
    let flags = Flags { count, counters: None, ..flags };
    let work = TemporaryDir::new(&context.data.dir, "callgrind")?;
    let failed = Error::failed(format!("cannot create {}", work.path().display()));
    fs::create_dir(work.path()).map_err(failed)?;
    let counts = work.path().join("callgrind.out");
    let launch = match callgrind::launch_simulated(context.launch, &counts) {
        Ok(launch) => launch,
        Err(error) => return Ok(Some(Err(error))),
    };
    let rows = match cache::measure(&flags, &[path], false, &launch, context.stop) {
        Ok(Some(rows)) => rows,
        Ok(None) => return Ok(None),
        Err(error) => return Ok(Some(Err(error))),
    };
    let Some(row) = rows.first() else { return Ok(Some(Ok(Vec::new()))) };
    if let Err(why) = &row.outcome {
        return Ok(Some(Err(Error::Failed(why.clone()))));
    }
    let mut all = members_of(row.to_json());
    all.retain(|name, _| TIMELESS_FIELDS.contains(&name.as_str()));
    Ok(Some(callgrind::read_simulation(&counts).and_then(|simulation| {
        all.extend(simulated_fields(&simulation, count));
        all.extend(sizes::sizes_row(&spec, context)?);
        Ok(vec![all])
    })))
}

/// Amounts per query, and misses per 1000 instructions.
fn simulated_fields(simulation: &Simulation, queries: usize) -> Row {
    let Simulation { instructions, l1_misses, ll_misses, .. } = *simulation;
    let per_query = |count: u64| count as f64 / queries.max(1) as f64;
    let per_1000 = |misses: u64| 1000.0 * misses as f64 / instructions.max(1) as f64;
    members_of(json!({
        "simulated_instructions": per_query(instructions),
        "simulated_l1_misses": per_query(l1_misses),
        "simulated_ll_misses": per_query(ll_misses),
        "simulated_l1_mpki": per_1000(l1_misses),
        "simulated_ll_mpki": per_1000(ll_misses),
        "simulated_caches": simulation.caches,
        "simulator": simulation.simulator,
        "kernel": callgrind::fastest_simulated_kernel().name(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_per_query_and_misses_per_1000_instructions() {
        let simulation =
            Simulation { instructions: 50_000, l1_misses: 100, ll_misses: 10, ..Simulation::default() };
        let row = simulated_fields(&simulation, 20);
        let get = |name: &str| row[name].as_f64().unwrap();
        assert_eq!((get("simulated_instructions"), get("simulated_l1_misses")), (2500.0, 5.0));
        assert_eq!((get("simulated_l1_mpki"), get("simulated_ll_mpki")), (2.0, 0.2));
        assert_eq!(simulated_fields(&Simulation::default(), 0)["simulated_ll_mpki"], 0.0);
    }
}
