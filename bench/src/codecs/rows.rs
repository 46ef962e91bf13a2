//! Measurements, one row per contender and group, and sums over a dataset.

use serde_json::{Value, json};

/// One contender on one group, or on all groups of a dataset.
#[derive(Clone, Debug)]
pub struct CodecRow {
    /// Name of the codec.
    pub codec: String,
    /// Name of the kernel.
    pub kernel: String,
    /// Name of the dataset.
    pub dataset: &'static str,
    /// Length class; `None` for the whole dataset.
    pub k: Option<u32>,
    /// Number of lists.
    pub lists: u64,
    /// Number of values of all lists.
    pub ints: u64,
    /// Encoded bytes of all lists.
    pub bytes: u64,
    /// Seconds to decode all lists into a buffer of one block.
    pub l1_seconds: f64,
    /// Seconds to decode all lists into main memory.
    pub ram_seconds: f64,
    /// Seconds to encode all lists.
    pub encode_seconds: f64,
}

impl CodecRow {
    /// Bits per value.
    pub fn bits(&self) -> f64 {
        8.0 * self.bytes as f64 / self.ints as f64
    }

    /// Billions of values per second, decoded into a buffer of one block.
    pub fn decode_l1(&self) -> f64 {
        self.gips(self.l1_seconds)
    }

    /// Billions of values per second, decoded into main memory.
    pub fn decode_ram(&self) -> f64 {
        self.gips(self.ram_seconds)
    }

    /// Billions of values per second, encoded.
    pub fn encode(&self) -> f64 {
        self.gips(self.encode_seconds)
    }

    fn gips(&self, seconds: f64) -> f64 {
        self.ints as f64 / 1e9 / seconds.max(1e-9)
    }

    fn is(&self, codec: &str, kernel: &str) -> bool {
        self.codec == codec && self.kernel == kernel
    }

    fn add(&mut self, other: &CodecRow) {
        self.k = None;
        self.lists += other.lists;
        self.ints += other.ints;
        self.bytes += other.bytes;
        self.l1_seconds += other.l1_seconds;
        self.ram_seconds += other.ram_seconds;
        self.encode_seconds += other.encode_seconds;
    }

    fn to_json(&self) -> Value {
        let round = |number: f64| (number * 1e4).round() / 1e4;
        json!({
            "codec": self.codec,
            "kernel": self.kernel,
            "dataset": self.dataset,
            "k": self.k,
            "bits_per_int": round(self.bits()),
            "decode_l1_gips": round(self.decode_l1()),
            "decode_ram_gips": round(self.decode_ram()),
            "encode_gips": round(self.encode()),
        })
    }
}

/// All rows of a run, by group.
#[derive(Default)]
pub struct CodecRows {
    rows: Vec<CodecRow>,
}

impl CodecRows {
    pub(super) fn add(&mut self, rows: Vec<CodecRow>) {
        self.rows.extend(rows);
    }

    /// Names of the datasets, in the order of the run.
    fn datasets(&self) -> Vec<&'static str> {
        let mut datasets: Vec<&'static str> = self.rows.iter().map(|row| row.dataset).collect();
        datasets.dedup();
        datasets
    }

    /// The sums over all length classes of a dataset, per contender, in the order of the run.
    fn totals(&self, dataset: &str) -> Vec<CodecRow> {
        let mut totals: Vec<CodecRow> = Vec::new();
        for row in self.of(dataset) {
            match totals.iter_mut().find(|total| total.is(&row.codec, &row.kernel)) {
                Some(total) => total.add(row),
                None => totals.push(CodecRow { k: None, ..row.clone() }),
            }
        }
        totals
    }

    /// A row for each contender and length class; if `sums`, for each contender and dataset. Frequencies have
    /// no length classes.
    pub fn to_json(&self, sums: bool) -> Value {
        let mut rows = Vec::new();
        for dataset in self.datasets() {
            match sums {
                true => rows.extend(self.totals(dataset).iter().map(CodecRow::to_json)),
                false => rows.extend(self.of(dataset).filter(|row| row.k.is_some()).map(CodecRow::to_json)),
            }
        }
        Value::Array(rows)
    }

    fn of(&self, dataset: &str) -> impl Iterator<Item = &CodecRow> {
        self.rows.iter().filter(move |row| row.dataset == dataset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A row of a million values; bits and milliseconds grow with the length class.
    fn row(dataset: &'static str, k: Option<u32>, codec: &str, kernel: &str) -> CodecRow {
        let step = f64::from(k.unwrap_or_default());
        CodecRow {
            codec: codec.to_string(),
            kernel: kernel.to_string(),
            dataset,
            k,
            lists: 10,
            ints: 1_000_000,
            bytes: 125_000 * u64::from(k.unwrap_or(8)),
            l1_seconds: 1e-3 * (1.0 + step),
            ram_seconds: 2e-3 * (1.0 + step),
            encode_seconds: 4e-3 * (1.0 + step),
        }
    }

    fn rows() -> CodecRows {
        let mut rows = CodecRows::default();
        for k in [10, 12] {
            let contenders = [("memcpy", "-"), ("vbyte-delta", "scalar"), ("vbyte-delta", "avx2")];
            rows.add(contenders.map(|(codec, kernel)| row("uniform", Some(k), codec, kernel)).to_vec());
        }
        rows.add(vec![row("zipf-freq", None, "vbyte", "scalar")]);
        rows
    }

    #[test]
    fn sums_add_values_and_times() {
        let totals = rows().totals("uniform");
        let total = totals.iter().find(|total| total.is("vbyte-delta", "avx2")).unwrap();
        assert_eq!((total.k, total.lists, total.ints), (None, 20, 2_000_000));
        assert_eq!(total.bits(), 11.0);
        assert!((total.decode_l1() - 2e-3 / 24e-3).abs() < 1e-9);
    }

    #[test]
    fn rows_are_those_of_length_classes_or_sums() {
        let count = |sums| {
            let json = rows().to_json(sums);
            let rows = json.as_array().unwrap();
            (rows.len(), rows.iter().filter(|row| row["k"].is_null()).count())
        };
        assert_eq!((count(false), count(true)), ((6, 0), (3 + 1, 4)));
    }
}
