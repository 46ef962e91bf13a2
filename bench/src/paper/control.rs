//! Controls: figures that test why claims of other figures differ here.
//!
//! An expectation names a reason and the figure that tests it. The reason is confirmed if all claims of that
//! figure hold, and refuted if one does not.

use super::expectation::{Expectation, Verdict};
use std::collections::BTreeMap;

/// The verdict of each figure over all its claims.
pub(super) struct Controls(BTreeMap<String, Verdict>);

/// What is known about the reason of a claim that differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Explanation {
    /// It has a control, whose claims hold.
    Confirmed,
    /// It has a control, of which a claim differs.
    Refuted,
    /// It has no control, or one that was not measured.
    Possible,
    /// No reason is given.
    Absent,
}

impl Controls {
    /// Of figures, each with its name and the verdicts of its claims.
    pub(super) fn new(figures: impl Iterator<Item = (String, Vec<Verdict>)>) -> Controls {
        Controls(figures.map(|(name, verdicts)| (name, overall(&verdicts))).collect())
    }

    /// What is known about why an expectation differs.
    pub(super) fn explanation(&self, expected: &Expectation) -> Explanation {
        let verdict = expected.control.as_ref().and_then(|name| self.0.get(name));
        match (&expected.because, verdict) {
            (None, _) => Explanation::Absent,
            (Some(_), Some(Verdict::Agrees)) => Explanation::Confirmed,
            (Some(_), Some(Verdict::Differs)) => Explanation::Refuted,
            (Some(_), _) => Explanation::Possible,
        }
    }

    /// The reason why an expectation differs, in one line.
    pub(super) fn reason(&self, expected: &Expectation) -> String {
        let because = expected.because.as_deref().unwrap_or_default();
        let control = expected.control.as_deref().unwrap_or_default();
        match self.explanation(expected) {
            Explanation::Confirmed => format!("confirmed by {control}: {because}"),
            Explanation::Refuted => {
                format!("not explained; the claim of {control} differs too, so it is not only that {because}")
            }
            Explanation::Possible if control.is_empty() => format!("possible reason: {because}"),
            Explanation::Possible => format!("possible reason, which {control} tests: {because}"),
            Explanation::Absent => "not explained".to_string(),
        }
    }
}

/// The verdict over all claims of a figure.
fn overall(verdicts: &[Verdict]) -> Verdict {
    let any = |verdict| verdicts.contains(&verdict);
    if any(Verdict::Differs) {
        Verdict::Differs
    } else if verdicts.is_empty() || any(Verdict::NotMeasured) || any(Verdict::AgreesInPart) {
        Verdict::NotMeasured
    } else {
        Verdict::Agrees
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
        let figures =
            [("c/yes", Verdict::Agrees), ("c/no", Verdict::Differs), ("c/open", Verdict::NotMeasured)];
        let controls =
            Controls::new(figures.map(|(name, verdict)| (name.to_string(), vec![verdict])).into_iter());
        let about = |text: &str| {
            let expected = expected(text);
            (controls.explanation(&expected), controls.reason(&expected))
        };
        assert_eq!(about(""), (Explanation::Absent, "not explained".to_string()));
        assert_eq!(about("because = 'b'"), (Explanation::Possible, "possible reason: b".to_string()));
        for (control, explanation, reason) in [
            ("c/yes", Explanation::Confirmed, "confirmed by c/yes: b"),
            (
                "c/no",
                Explanation::Refuted,
                "not explained; the claim of c/no differs too, so it is not only that b",
            ),
            ("c/open", Explanation::Possible, "possible reason, which c/open tests: b"),
        ] {
            let text = format!("because = 'b'\ncontrol = '{control}'");
            assert_eq!(about(&text), (explanation, reason.to_string()));
        }
    }

    #[test]
    fn a_control_that_was_measured_in_part_confirms_nothing() {
        assert_eq!(overall(&[]), Verdict::NotMeasured);
        assert_eq!(overall(&[Verdict::Agrees, Verdict::Agrees]), Verdict::Agrees);
        assert_eq!(overall(&[Verdict::Agrees, Verdict::AgreesInPart]), Verdict::NotMeasured);
        assert_eq!(overall(&[Verdict::NotMeasured, Verdict::Differs]), Verdict::Differs);
    }
}
