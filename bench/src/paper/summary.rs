//! The summary: every claim of every figure, the paper's figure for it, and ours.

use super::expectation::Verdict;
use super::result::FigureResult;
use super::scale::Scale;
use crate::{Machine, Table};

/// The summary of all figures. Figures that were not run are listed as such.
pub(super) fn markdown(results: &[FigureResult<'_>], scale: Scale) -> String {
    let mut table = Table::new(6, &["figure", "claim", "paper", "here", "result", "reason"]);
    let mut row = |cells: [&str; 6]| table.row(cells.map(str::to_string).into());
    for result in results {
        let (name, figure) = (result.figure.name(), result.figure.figure);
        if let Some(why) = &figure.unavailable {
            row([&name, &figure.found, "", "-", "not measurable here", why]);
        } else if figure.expect.is_empty() || result.rows.is_empty() {
            let made = if result.rows.is_empty() { "not measured" } else { "see the report" };
            row([&name, &figure.found, "", "-", made, &result.reasons()]);
        } else {
            for (number, expected) in figure.expect.iter().enumerate() {
                let (verdict, reason) = result.verdict(number);
                let here = &result.checks[number].here;
                row([&name, &expected.claim, &expected.paper, here, verdict, &reason]);
            }
        }
    }
    let small = "The indexes of scale small fit into the caches of a processor, and every cell is measured once: this run \
                 shows that all figures can be made, and nothing about the claims.\n\n";
    format!(
        "# Summary at scale {scale}\n\n{}\n\n{}`here` has ratios of medians; the report of a figure has the exact \
         condition of each claim.\n\n{}\n## Machine\n\n{}",
        counts(results),
        if scale == Scale::Small { small } else { "" },
        table.to_markdown(),
        Machine::here().to_markdown()
    )
}

/// How many figures were made, and how many claims hold.
pub(super) fn counts(results: &[FigureResult<'_>]) -> String {
    let unavailable = results.iter().filter(|result| result.figure.figure.unavailable.is_some()).count();
    let made = results.iter().filter(|result| !result.rows.is_empty()).count();
    let checks = || results.iter().filter(|result| !result.rows.is_empty()).flat_map(|result| &result.checks);
    let claims = |verdict| checks().filter(|check| check.verdict == verdict).count();
    format!(
        "{made} of {} tables and figures measured, {unavailable} not measurable; of {} claims {} agree, {} differ, {} \
         are not measured.",
        results.len(),
        checks().count(),
        claims(Verdict::Agrees),
        claims(Verdict::Differs),
        claims(Verdict::NotMeasured)
    )
}
