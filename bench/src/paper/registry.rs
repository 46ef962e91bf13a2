//! All definitions, and their selection by name.

use crate::paper::definition::{FigureDefinition, PaperDefinition};
use crate::{Error, Result, paper::cell::Experiment};

/// The definitions, in the order of the list.
const DEFINITION_FILES: [(&str, &str); 7] = [
    ("space-time.toml", include_str!("../../definitions/space-time.toml")),
    ("masked-vbyte.toml", include_str!("../../definitions/masked-vbyte.toml")),
    ("apcache-codecs.toml", include_str!("../../definitions/apcache-codecs.toml")),
    ("apcache-cache.toml", include_str!("../../definitions/apcache-cache.toml")),
    ("fast-scalable.toml", include_str!("../../definitions/fast-scalable.toml")),
    ("ssd-intersection.toml", include_str!("../../definitions/ssd-intersection.toml")),
    ("controls.toml", include_str!("../../definitions/controls.toml")),
];

/// All papers.
pub(super) struct Registry {
    papers: Vec<PaperDefinition>,
}

/// A figure and its paper.
#[derive(Clone, Copy)]
pub(super) struct Figure<'a> {
    pub(super) paper: &'a PaperDefinition,
    pub(super) figure: &'a FigureDefinition,
}

impl Figure<'_> {
    /// The name on the command line: `apcache/fig-8.3`.
    pub(super) fn name(&self) -> String {
        format!("{}/{}", self.paper.name, self.figure.name)
    }

    /// Checks that the figure either can be made or says why not, and that its expectations name its fields.
    ///
    /// # Errors
    /// One line, if not.
    pub(super) fn check_definition(&self) -> Result<()> {
        let figure = self.figure;
        let problem = match (&figure.unavailable, &figure.experiment, &figure.plot) {
            (Some(_), None, None) => None,
            (None, Some(_), Some(plot)) => figure.expect.iter().find_map(|expected| expected.problem(plot)),
            _ => Some("it has neither a reason nor an experiment with a plot, or both".to_string()),
        };
        let error = |why| Error::Failed(format!("definition of {}: {why}", self.name()));
        problem.map_or(Ok(()), |why| Err(error(why)))
    }
}

impl Registry {
    /// Parses all definitions.
    ///
    /// # Errors
    /// If one is malformed.
    pub(super) fn new() -> Result<Registry> {
        Registry::parse(&DEFINITION_FILES)
    }

    /// Parses files of definitions, each with its name.
    pub(super) fn parse(files: &[(&str, &str)]) -> Result<Registry> {
        let parse = |(name, text): &(&str, &str)| {
            toml::from_str(text).map_err(Error::failed(format!("definition {name}")))
        };
        let registry = Registry { papers: files.iter().map(parse).collect::<Result<_>>()? };
        let figures = registry.figures();
        let controls =
            figures.iter().flat_map(|figure| &figure.figure.expect).filter_map(|one| one.control.as_ref());
        for control in controls {
            if !figures.iter().any(|figure| figure.name() == *control) {
                return Err(Error::Failed(format!(
                    "definitions: there is no figure `{control}`, which is named as a control"
                )));
            }
        }
        Ok(registry)
    }

    /// Replaces performance counters by a simulation, in the figures that have one.
    pub(super) fn simulate(&mut self) {
        for figure in self.papers.iter_mut().flat_map(|paper| &mut paper.figures) {
            let Some(plot) = &mut figure.plot else { continue };
            let Some(simulated) = plot.simulated.take() else { continue };
            plot.y = simulated.y;
            plot.y_label = simulated.y_label;
            plot.factor = simulated.factor;
            figure.experiment = Some(Experiment::Callgrind);
            figure.simulated = true;
        }
    }

    /// All figures.
    pub(super) fn figures(&self) -> Vec<Figure<'_>> {
        let papers = self.papers.iter();
        papers.flat_map(|paper| paper.figures.iter().map(move |figure| Figure { paper, figure })).collect()
    }

    /// The figures of `names`: names of figures, of papers, or `all`.
    ///
    /// # Errors
    /// [`Error::Usage`] if a name is unknown.
    pub(super) fn select(&self, names: &[String]) -> Result<Vec<Figure<'_>>> {
        let all = self.figures();
        let named = |figure: &Figure<'_>, name: &str| {
            name == "all" || name == figure.paper.name || name == figure.name()
        };
        if let Some(unknown) = names.iter().find(|name| !all.iter().any(|figure| named(figure, name))) {
            return Err(Error::Usage(format!(
                "`{unknown}` is no table or figure; `tierdex-bench paper --list` names all of them"
            )));
        }
        Ok(all.into_iter().filter(|figure| names.iter().any(|name| named(figure, name))).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::{super::expand, super::runner::FigureRunPlan, super::scale::Scale, *};
    use clap::ValueEnum;

    /// The numbers of the tables and figures with results, for each paper.
    const FIGURE_NUMBERS: [(&str, &str); 5] = [
        ("space-time", "f6 t2 f7 t3 f8 f9 f10 t4"),
        ("masked-vbyte", "f2"),
        (
            "apcache",
            "f6.1 f6.2 f6.3 f6.4 f6.5 f6.6 f6.7 f6.8 f6.9 f6.10 f6.11 f6.12 f6.13 f6.14 t6.1 t6.2 t6.3 \
             f8.1 f8.2 f8.3 f8.4 f8.5 f8.6 f8.7 f8.8 f8.9 f8.10 f8.11 f8.12 f8.13 f8.14 f8.15 f8.16 \
             t8.1 t8.2 t8.3 t8.4",
        ),
        (
            "fast-scalable",
            "t4.1 f4.2 f4.3 f4.4 f5.2 f5.3 t5.2 f5.8 f5.9 f5.10 f5.11 f6.1 f6.2 f6.3 f6.4 t6.2 ta.1 ta.2",
        ),
        ("ssd-intersection", "f2a f2b f3 f4 f5a f5b"),
    ];

    #[test]
    fn every_table_and_figure_of_the_papers_has_a_definition() {
        let registry = Registry::new().unwrap();
        let of_papers = registry.figures().into_iter().filter(|figure| !figure.paper.controls);
        let mut found: Vec<String> = of_papers.map(|figure| figure.name()).collect();
        let expected = FIGURE_NUMBERS.iter().flat_map(|(paper, numbers)| {
            let kind = |number: &str| if number.starts_with('f') { "fig" } else { "table" };
            numbers.split_whitespace().map(move |number| format!("{paper}/{}-{}", kind(number), &number[1..]))
        });
        let mut expected: Vec<String> = expected.collect();
        assert_eq!(expected.len(), 70);
        found.sort();
        expected.sort();
        assert_eq!(found, expected);
    }

    fn assert_accepted(registry: &Registry) {
        for &scale in Scale::value_variants() {
            FigureRunPlan::new(&registry.figures(), scale).unwrap();
        }
    }

    #[test]
    fn all_definitions_are_accepted_at_every_scale() {
        assert_accepted(&Registry::new().unwrap());
    }

    #[test]
    fn every_claim_has_cells_to_compare_at_every_scale() {
        let registry = Registry::new().unwrap();
        for &scale in Scale::value_variants() {
            for figure in registry.figures() {
                let cells = expand::figure_cells(figure.paper, figure.figure, scale).unwrap();
                for expected in &figure.figure.expect {
                    let sides = cells.iter().map(|planned| expected.sides(&planned.cell));
                    let both = sides.fold([false; 2], |[of, to], side| [of || side[0], to || side[1]]);
                    assert_eq!(both, [true; 2], "{} at {scale}: {}", figure.name(), expected.claim);
                }
            }
        }
    }

    #[test]
    fn figures_with_counters_are_simulated_and_others_measured() {
        let mut registry = Registry::new().unwrap();
        let counted = |figure: &&Figure<'_>| figure.figure.settings.contains_key("counters");
        let names: Vec<String> = registry.figures().iter().filter(counted).map(Figure::name).collect();
        registry.simulate();
        let simulated = registry.figures().into_iter().filter(|one| one.figure.simulated);
        assert_eq!(simulated.map(|one| one.name()).collect::<Vec<_>>(), names);
        assert_eq!(names.len(), 18);
        assert_accepted(&registry);
    }

    #[test]
    fn figures_are_selected_by_name_paper_or_all() {
        let registry = Registry::new().unwrap();
        let count = |name: &str| registry.select(&[name.to_string()]).map(|figures| figures.len());
        let controls = count("controls").unwrap();
        assert_eq!((count("all").unwrap() - controls, count("apcache").unwrap()), (70, 37));
        assert_eq!(count("apcache/fig-8.3").unwrap(), 1);
        for wrong in ["", "fig-8.3", "apcache/", "lucene"] {
            assert!(
                matches!(count(wrong), Err(Error::Usage(message)) if message.contains("--list")),
                "{wrong}"
            );
        }
    }

    #[test]
    fn a_control_that_is_no_figure_is_an_error() {
        let (_, text) = DEFINITION_FILES[6];
        let named =
            text.replacen("at-least = 0.95", "at-least = 0.95\nbecause = 'b'\ncontrol = 'controls/x'", 1);
        let error = Registry::parse(&[("controls.toml", &named)]).err().unwrap().to_string();
        assert!(error.contains("`controls/x`"), "{error}");
    }

    #[test]
    fn a_definition_with_an_unknown_member_is_an_error() {
        let text = "name = 'p'\ntitle = 't'\ncolor = 'red'\nfigure = []";
        let error = Registry::parse(&[("p.toml", text)]).err().unwrap().to_string();
        assert!(error.contains("p.toml") && error.contains("color"), "{error}");
    }
}
