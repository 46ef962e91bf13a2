//! The plot of bits and speed by list length: for each dataset of ids a panel of speed above a panel of
//! bits, with a line for every delta codec of one kernel.

use crate::codecs::{list_group::ValueKind, own::MEMCPY, rows::CodecRow, rows::CodecRows};
use crate::{Result, plot, plot::AxisScale, plot::Panel, plot::Series};

/// What the vertical axis of a panel shows of a measurement.
struct CodecMeasure {
    name: &'static str,
    of: fn(&CodecRow) -> f64,
}

const PANEL_MEASURES: [CodecMeasure; 2] = [
    CodecMeasure { name: "decoded into L1, billions per second", of: CodecRow::decode_l1 },
    CodecMeasure { name: "bits per id", of: CodecRow::bits },
];

/// Draws the codecs of `kernel`.
pub(super) fn svg(rows: &CodecRows, kernel: &str) -> Result<String> {
    let ids = rows.datasets().into_iter().filter(|(_, kind)| *kind == ValueKind::Ids);
    let datasets: Vec<&str> = ids.map(|(dataset, _)| dataset).collect();
    let panels = PANEL_MEASURES
        .iter()
        .flat_map(|measure| datasets.iter().map(move |dataset| codec_panel(rows, dataset, kernel, measure)));
    plot::svg(&panels.collect::<Vec<_>>(), datasets.len(), &format!("kernel {kernel}"))
}

fn codec_panel(rows: &CodecRows, dataset: &str, kernel: &str, measure: &CodecMeasure) -> Panel {
    let classes = rows.classes(dataset);
    let line = |codec: String| {
        let value =
            |&k: &u32| rows.class(dataset, k, &codec, kernel).map(|row| (f64::from(k), (measure.of)(row)));
        let points = classes.iter().filter_map(value).collect();
        Series { name: codec, points }
    };
    Panel {
        title: dataset.to_string(),
        x: "K: lists of 2^K to 2^(K+1) - 1 ids".to_string(),
        scale: AxisScale::Linear,
        y: measure.name.to_string(),
        series: codecs_of_kernel(rows, dataset, kernel).into_iter().map(line).collect(),
    }
}

/// The measured codecs of `kernel`.
fn codecs_of_kernel(rows: &CodecRows, dataset: &str, kernel: &str) -> Vec<String> {
    let totals = rows.totals(dataset).into_iter();
    totals.filter(|row| row.kernel == kernel && row.codec != MEMCPY).map(|row| row.codec).collect()
}

#[cfg(test)]
mod tests {
    use super::{super::rows::tests::rows, *};

    #[test]
    fn one_panel_per_dataset_and_figure_and_one_name_per_codec() {
        let svg = svg(&rows(), "avx2").unwrap();
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
        assert_eq!((svg.matches("uniform").count(), svg.matches("bits per id").count()), (2, 1));
        assert_eq!((svg.matches("vbyte-delta").count(), svg.matches("kernel avx2").count()), (1, 1));
        assert!(!svg.contains("memcpy") && !svg.contains("zipf"));
    }

    #[test]
    fn no_rows_give_an_empty_plot() {
        assert!(svg(&CodecRows::default(), "scalar").unwrap().starts_with("<svg"));
    }
}
