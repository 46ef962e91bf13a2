//! Measurements, one row per contender and group, and sums over a dataset.

use crate::codecs::contender::ContenderInfo;
use serde_json::{Value, json};

/// One contender on one group, or on all groups of a dataset.
#[derive(Clone, Debug)]
pub(super) struct CodecRow {
    pub(super) contender: ContenderInfo,
    /// Name of the dataset.
    pub(super) dataset: &'static str,
    /// Length class; `None` for the whole dataset.
    pub(super) k: Option<u32>,
    /// Number of values of all lists.
    pub(super) ints: u64,
    /// Encoded bytes of all lists.
    pub(super) bytes: u64,
    /// Seconds to decode all lists into a buffer of one block.
    pub(super) l1_seconds: f64,
    /// Seconds to decode all lists into main memory.
    pub(super) ram_seconds: f64,
    /// Seconds to encode all lists.
    pub(super) encode_seconds: f64,
}

impl CodecRow {
    fn add(&mut self, other: &CodecRow) {
        self.ints += other.ints;
        self.bytes += other.bytes;
        self.l1_seconds += other.l1_seconds;
        self.ram_seconds += other.ram_seconds;
        self.encode_seconds += other.encode_seconds;
    }

    /// Speeds are in billions of values per second.
    fn to_json(&self) -> Value {
        let round = |number: f64| (number * 1e4).round() / 1e4;
        let speed = |seconds: f64| round(self.ints as f64 / 1e9 / seconds.max(1e-9));
        json!({
            "codec": self.contender.codec,
            "kernel": self.contender.kernel,
            "dataset": self.dataset,
            "k": self.k,
            "bits_per_int": round(8.0 * self.bytes as f64 / self.ints as f64),
            "decode_l1_gips": speed(self.l1_seconds),
            "decode_ram_gips": speed(self.ram_seconds),
            "encode_gips": speed(self.encode_seconds),
        })
    }
}

/// A row for each contender and length class; if `sums`, for each contender and dataset. Frequencies have no
/// length classes.
pub(super) fn rows_to_json(mut rows: Vec<CodecRow>, sums: bool) -> Value {
    match sums {
        true => rows = sum_datasets(rows),
        false => rows.retain(|row| row.k.is_some()),
    }
    rows.iter().map(CodecRow::to_json).collect()
}

/// The sums over all length classes of a dataset, per contender, in the order of the run.
fn sum_datasets(rows: Vec<CodecRow>) -> Vec<CodecRow> {
    let mut sums: Vec<CodecRow> = Vec::new();
    for row in rows {
        let of_same = |sum: &&mut CodecRow| (&sum.contender, sum.dataset) == (&row.contender, row.dataset);
        match sums.iter_mut().find(of_same) {
            Some(sum) => sum.add(&row),
            None => sums.push(CodecRow { k: None, ..row }),
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A row of a million values; bits and milliseconds grow with the length class.
    fn row(dataset: &'static str, k: Option<u32>, codec: &str, kernel: &'static str) -> CodecRow {
        let step = f64::from(k.unwrap_or_default());
        CodecRow {
            contender: ContenderInfo { codec: codec.to_string(), kernel, kind: None },
            dataset,
            k,
            ints: 1_000_000,
            bytes: 125_000 * u64::from(k.unwrap_or(8)),
            l1_seconds: 1e-3 * (1.0 + step),
            ram_seconds: 2e-3 * (1.0 + step),
            encode_seconds: 4e-3 * (1.0 + step),
        }
    }

    #[test]
    fn rows_are_those_of_length_classes_or_sums() {
        let mut rows = vec![row("zipf-freq", None, "vbyte", "scalar")];
        for k in [10, 12] {
            let contenders = [("memcpy", "-"), ("vbyte-delta", "scalar"), ("vbyte-delta", "avx2")];
            rows.extend(contenders.map(|(codec, kernel)| row("uniform", Some(k), codec, kernel)));
        }
        let classes = rows_to_json(rows.clone(), false);
        assert!(classes.as_array().unwrap().iter().all(|row| row["k"].is_number()));
        let sums = rows_to_json(rows, true);
        assert_eq!((classes.as_array().unwrap().len(), sums.as_array().unwrap().len()), (6, 1 + 3));
        // Two million values in 24 milliseconds.
        let sum = &sums[3];
        assert_eq!((&sum["codec"], &sum["kernel"]), (&"vbyte-delta".into(), &"avx2".into()));
        assert_eq!((&sum["k"], &sum["bits_per_int"]), (&Value::Null, &11.0.into()));
        assert_eq!((&sum["decode_l1_gips"], &sum["encode_gips"]), (&0.0833.into(), &0.0208.into()));
    }
}
