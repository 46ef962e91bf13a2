//! The summary: every claim of every figure, the paper's figure for it, and ours.

use crate::paper::{
    control::ControlExplanation, control::Controls, expectation::FigureVerdict, scale::Scale,
};
use crate::{Machine, Table, paper::result::FigureResult};
use std::collections::BTreeSet;

/// Result of a figure that this machine cannot measure.
const NOT_MEASURABLE_TEXT: &str = "not measurable here";

/// The reasons why claims do not hold or figures were not made, each once. Rows of the table refer to them by
/// numbers.
#[derive(Default)]
struct NumberedReasons(Vec<String>);

impl NumberedReasons {
    /// The numbers of reasons: `[1], [3]`.
    fn numbers(&mut self, reasons: &[String]) -> String {
        let numbers = reasons.iter().map(|reason| {
            let found = self.0.iter().position(|one| one == reason).unwrap_or_else(|| {
                self.0.push(reason.clone());
                self.0.len() - 1
            });
            format!("[{}]", found + 1)
        });
        numbers.collect::<Vec<_>>().join(", ")
    }

    fn markdown(&self) -> String {
        let lines = self.0.iter().enumerate().map(|(number, why)| format!("- [{}] {why}\n", number + 1));
        if self.0.is_empty() {
            String::new()
        } else {
            format!("## Reasons\n\n{}\n", lines.collect::<String>())
        }
    }
}

/// The summary of all figures. Figures that were not run are listed as such.
pub(super) fn markdown(results: &[FigureResult<'_>], controls: &Controls, scale: Scale) -> String {
    let mut table = Table::new(6, &["figure", "claim", "paper", "here", "result", "reason"]);
    let mut notes = NumberedReasons::default();
    let mut row = |cells: [&str; 5], reasons: &[String]| {
        let reasons = notes.numbers(reasons);
        table.row(cells.into_iter().chain([reasons.as_str()]).map(str::to_string).collect());
    };
    for result in results {
        let (name, figure) = (result.figure.name(), result.figure.figure);
        if let Some(why) = &figure.unavailable {
            row([&name, &figure.found, "", "-", NOT_MEASURABLE_TEXT], std::slice::from_ref(why));
        } else if figure.expect.is_empty() || result.rows.is_empty() {
            row([&name, &figure.found, "", "-", measured_text(result)], &result.reasons());
        } else {
            for (number, expected) in figure.expect.iter().enumerate() {
                let (verdict, reasons) = result.verdict(number, controls);
                let here = &result.checks[number].here;
                row([&name, &expected.claim, &expected.paper, here, verdict], &reasons);
            }
        }
    }
    let small = "The indexes of scale small fit into the caches of a processor, and every cell is measured once: this run \
                 shows that all figures can be made, and nothing about the claims.\n\n";
    let stopped: BTreeSet<String> =
        results.iter().flat_map(|result| &result.stopped).map(ToString::to_string).collect();
    let stopped = match stopped.len() {
        0 => String::new(),
        cells => format!(
            "The run was stopped: {cells} cells have fewer rounds than their definition. The same command continues it.\n\n"
        ),
    };
    format!(
        "# Summary at scale {scale}\n\n{}\n\n{stopped}{}`here` has ratios of medians; the report of a figure has the exact \
         condition of each claim.\n\n{}\n{}## Machine\n\n{}",
        counts_text(results, controls),
        if scale == Scale::Small { small } else { "" },
        table.to_markdown(),
        notes.markdown(),
        Machine::here().to_markdown()
    )
}

/// Whether a figure without checked claims was measured.
fn measured_text(result: &FigureResult<'_>) -> &'static str {
    match &result.unmeasured[..] {
        _ if !result.rows.is_empty() => "see the report",
        [] => "not measured",
        all if all.iter().all(|one| one.unavailable) => NOT_MEASURABLE_TEXT,
        _ => "not measured",
    }
}

/// How many tables and figures of the papers were made, how many of their claims hold, and for how many
/// others a control confirms the reason.
pub(super) fn counts_text(results: &[FigureResult<'_>], controls: &Controls) -> String {
    let figures = || results.iter().filter(|result| !result.figure.paper.controls);
    let unavailable = figures()
        .filter(|one| one.figure.figure.unavailable.is_some() || measured_text(one) == NOT_MEASURABLE_TEXT);
    let made = || figures().filter(|result| !result.rows.is_empty());
    let claims = || made().flat_map(|result| result.figure.figure.expect.iter().zip(&result.checks));
    let count = |verdict| claims().filter(|(_, check)| check.verdict == verdict).count();
    let differ = || claims().filter(|(_, check)| check.verdict == FigureVerdict::Differs);
    let explained = |explanation| {
        differ().filter(|(expected, _)| controls.explanation_of(expected) == explanation).count()
    };
    format!(
        "{} of {} tables and figures measured, {} not measurable; of {} claims {} agree, {} agree in \
         part, {} differ ({} for a reason that a control confirms, {} for a possible reason, {} not explained), {} are \
         not measured.",
        made().count(),
        figures().count(),
        unavailable.count(),
        claims().count(),
        count(FigureVerdict::Agrees),
        count(FigureVerdict::AgreesInPart),
        differ().count(),
        explained(ControlExplanation::Confirmed),
        explained(ControlExplanation::Possible),
        explained(ControlExplanation::Refuted) + explained(ControlExplanation::Absent),
        count(FigureVerdict::NotMeasured)
    )
}
