//! Controls: figures that test why claims of other figures differ here.
//!
//! An expectation names a reason and the figure that tests it. The reason is confirmed if all claims of that
//! figure hold, and refuted if one does not.

use super::expectation::{Expectation, FigureVerdict};
use std::collections::BTreeMap;

/// For each figure, by name, whether all its claims hold.
pub(super) struct Controls(BTreeMap<String, FigureVerdict>);

/// What is known about the reason of a claim that differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ControlExplanation {
    /// The reason is tested by a control figure, and all claims of that figure hold.
    Confirmed,
    /// The reason is tested by a control figure, but a claim of that figure differs.
    Refuted,
    /// The reason has no control figure, or that figure was not measured.
    Possible,
    /// No reason is given.
    Absent,
}

impl Controls {
    /// Summarizes figures, each given by its name and the verdicts of its claims.
    pub(super) fn new(figures: impl Iterator<Item = (String, Vec<FigureVerdict>)>) -> Controls {
        Controls(figures.map(|(name, verdicts)| (name, join_verdicts(&verdicts))).collect())
    }

    /// What the control of an expectation shows about the reason why it differs.
    pub(super) fn explanation_of(&self, expected: &Expectation) -> ControlExplanation {
        let verdict = expected.control.as_ref().and_then(|name| self.0.get(name));
        match (&expected.because, verdict) {
            (None, _) => ControlExplanation::Absent,
            (Some(_), Some(FigureVerdict::Agrees)) => ControlExplanation::Confirmed,
            (Some(_), Some(FigureVerdict::Differs)) => ControlExplanation::Refuted,
            (Some(_), _) => ControlExplanation::Possible,
        }
    }

    /// The reason why an expectation differs, in one line.
    pub(super) fn reason(&self, expected: &Expectation) -> String {
        let because = expected.because.as_deref().unwrap_or_default();
        let control = expected.control.as_deref().unwrap_or_default();
        match self.explanation_of(expected) {
            ControlExplanation::Confirmed => format!("confirmed by {control}: {because}"),
            ControlExplanation::Refuted => {
                format!("not explained; the claim of {control} differs too, so it is not only that {because}")
            }
            ControlExplanation::Possible if control.is_empty() => format!("possible reason: {because}"),
            ControlExplanation::Possible => format!("possible reason, which {control} tests: {because}"),
            ControlExplanation::Absent => "not explained".to_string(),
        }
    }
}

/// The verdict over all claims of a figure.
fn join_verdicts(verdicts: &[FigureVerdict]) -> FigureVerdict {
    let any = |verdict| verdicts.contains(&verdict);
    if any(FigureVerdict::Differs) {
        FigureVerdict::Differs
    } else if verdicts.is_empty() || any(FigureVerdict::NotMeasured) || any(FigureVerdict::AgreesInPart) {
        FigureVerdict::NotMeasured
    } else {
        FigureVerdict::Agrees
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expected(text: &str) -> Expectation {
        toml::from_str(&format!("claim = 'c'\npaper = '1'\nat-least = 1\n{text}")).unwrap()
    }

    #[test]
    fn a_reason_is_confirmed_or_refuted_by_the_figure_that_it_names() {
        let figures = [
            ("c/yes", FigureVerdict::Agrees),
            ("c/no", FigureVerdict::Differs),
            ("c/open", FigureVerdict::NotMeasured),
        ];
        let controls =
            Controls::new(figures.map(|(name, verdict)| (name.to_string(), vec![verdict])).into_iter());
        let about = |text: &str| {
            let expected = expected(text);
            (controls.explanation_of(&expected), controls.reason(&expected))
        };
        assert_eq!(about(""), (ControlExplanation::Absent, "not explained".to_string()));
        assert_eq!(about("because = 'b'"), (ControlExplanation::Possible, "possible reason: b".to_string()));
        for (control, explanation, reason) in [
            ("c/yes", ControlExplanation::Confirmed, "confirmed by c/yes: b"),
            (
                "c/no",
                ControlExplanation::Refuted,
                "not explained; the claim of c/no differs too, so it is not only that b",
            ),
            ("c/open", ControlExplanation::Possible, "possible reason, which c/open tests: b"),
        ] {
            let text = format!("because = 'b'\ncontrol = '{control}'");
            assert_eq!(about(&text), (explanation, reason.to_string()));
        }
    }

    #[test]
    fn a_control_that_was_measured_in_part_confirms_nothing() {
        assert_eq!(join_verdicts(&[]), FigureVerdict::NotMeasured);
        assert_eq!(join_verdicts(&[FigureVerdict::Agrees, FigureVerdict::Agrees]), FigureVerdict::Agrees);
        assert_eq!(
            join_verdicts(&[FigureVerdict::Agrees, FigureVerdict::AgreesInPart]),
            FigureVerdict::NotMeasured
        );
        assert_eq!(
            join_verdicts(&[FigureVerdict::NotMeasured, FigureVerdict::Differs]),
            FigureVerdict::Differs
        );
    }
}
