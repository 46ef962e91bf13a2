//! Expands a figure into its cells: all combinations of the values of its settings.

use crate::paper::definition::{CellGroup, FigureDefinition, PaperDefinition};
use crate::{Error, Result, paper::cell::FigureCell, paper::cell::flag_text, paper::scale::Scale};
use std::collections::BTreeMap;
use toml::{Table, Value};

/// A cell of a figure, and how often the figure needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FigurePlannedCell {
    pub(super) cell: FigureCell,
    pub(super) rounds: usize,
}

/// Name of the setting with the number of rounds. It is not a setting of the cell itself.
const ROUNDS_SETTING: &str = "rounds";

/// The cells of a figure at a scale; none if it is unavailable.
///
/// # Errors
/// If a definition is malformed.
pub(super) fn figure_cells(
    paper: &PaperDefinition,
    figure: &FigureDefinition,
    scale: Scale,
) -> Result<Vec<FigurePlannedCell>> {
    let Some(experiment) = figure.experiment else { return Ok(Vec::new()) };
    let single = [CellGroup::default()];
    let groups = if figure.cells.is_empty() { &single[..] } else { &figure.cells };
    let mut cells = Vec::new();
    for group in groups {
        let layers = [
            &paper.settings,
            paper.scale.at(scale),
            &figure.settings,
            figure.scale.at(scale),
            &group.settings,
            group.scale.at(scale),
        ];
        let settings = merge_layers(layers).map_err(|why| malformed_figure(paper, figure, &why))?;
        for mut settings in setting_combinations(&settings) {
            let rounds = settings.remove(ROUNDS_SETTING).map_or(Ok(1), |rounds| rounds.parse::<usize>());
            let rounds = rounds.map_err(|_| malformed_figure(paper, figure, "`rounds` is not a number"))?;
            let cell = FigureCell { experiment, settings };
            match cells.iter_mut().find(|planned: &&mut FigurePlannedCell| planned.cell == cell) {
                Some(planned) => planned.rounds = planned.rounds.max(rounds),
                None => cells.push(FigurePlannedCell { cell, rounds }),
            }
        }
    }
    Ok(cells)
}

fn malformed_figure(paper: &PaperDefinition, figure: &FigureDefinition, why: &str) -> Error {
    Error::Failed(format!("definition of {}/{}: {why}", paper.name, figure.name))
}

/// The values of each setting: those of the last layer that has the setting.
fn merge_layers<'a>(
    layers: impl IntoIterator<Item = &'a Table>,
) -> std::result::Result<BTreeMap<String, Vec<String>>, String> {
    let mut settings = BTreeMap::new();
    for (name, value) in layers.into_iter().flatten() {
        let values = match value {
            Value::Array(values) => values.iter().map(flag_text).collect::<Option<Vec<String>>>(),
            value => flag_text(value).map(|text| vec![text]),
        };
        let values = values.ok_or_else(|| format!("`{name}` is neither a value nor a list of values"))?;
        settings.insert(name.clone(), values);
    }
    Ok(settings)
}

/// All combinations of the values. A setting without values is left out.
fn setting_combinations(settings: &BTreeMap<String, Vec<String>>) -> Vec<BTreeMap<String, String>> {
    let mut all = vec![BTreeMap::new()];
    for (name, values) in settings.iter().filter(|(_, values)| !values.is_empty()) {
        let extended = all.iter().flat_map(|one| {
            values.iter().map(move |value| {
                let mut one: BTreeMap<String, String> = one.clone();
                one.insert(name.clone(), value.clone());
                one
            })
        });
        all = extended.collect();
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paper(text: &str) -> PaperDefinition {
        toml::from_str(text).unwrap()
    }

    const TEST_DEFINITION: &str = r#"
        name = "paper"
        title = "title"
        settings = { k = 10, codec = "raw" }
        scale.small = { docs = 100, rounds = 1 }
        scale.full = { docs = 1000, rounds = 3 }
        [[figure]]
        name = "fig-1"
        title = "title"
        found = "something"
        experiment = "cache"
        scale.full = { sizes = [5, 10, 20] }
        [[figure.cells]]
        settings = { modes = "base", sizes = [5, 10] }
        [[figure.cells]]
        settings = { modes = ["direct", "base"], sizes = 5, exhaustive = true, codec = [] }
    "#;

    #[test]
    fn cells_are_all_combinations_of_merged_settings() {
        let paper = paper(TEST_DEFINITION);
        let small = figure_cells(&paper, &paper.figures[0], Scale::Small).unwrap();
        let names: Vec<String> = small.iter().map(|planned| planned.cell.to_string()).collect();
        let expected = [
            "cache codec=raw docs=100 k=10 modes=base sizes=5",
            "cache codec=raw docs=100 k=10 modes=base sizes=10",
            "cache docs=100 exhaustive=true k=10 modes=direct sizes=5",
            "cache docs=100 exhaustive=true k=10 modes=base sizes=5",
        ];
        assert_eq!(names, expected);
        // Settings of a group replace those of a scale of its figure.
        let full = figure_cells(&paper, &paper.figures[0], Scale::Full).unwrap();
        assert_eq!((full.len(), full[0].rounds, small[0].rounds), (4, 3, 1));
    }

    #[test]
    fn a_table_as_a_value_is_an_error() {
        let paper = paper(&TEST_DEFINITION.replace("k = 10", "k = { a = 1 }"));
        let error = figure_cells(&paper, &paper.figures[0], Scale::Small).unwrap_err().to_string();
        assert!(error.contains("paper/fig-1") && error.contains("`k`"), "{error}");
    }
}
