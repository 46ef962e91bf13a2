//! Measurements, one row per contender and group, and sums over a dataset.

use super::list_group::ValueKind;
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
    /// Kind of the values.
    pub kind: ValueKind,
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

    /// Names and value kinds of the datasets, in the order of the run.
    pub fn datasets(&self) -> Vec<(&'static str, ValueKind)> {
        let mut datasets = Vec::new();
        for row in &self.rows {
            if !datasets.contains(&(row.dataset, row.kind)) {
                datasets.push((row.dataset, row.kind));
            }
        }
        datasets
    }

    /// The length classes of a dataset.
    pub fn classes(&self, dataset: &str) -> Vec<u32> {
        let mut classes: Vec<u32> = self.of(dataset).filter_map(|row| row.k).collect();
        classes.dedup();
        classes
    }

    /// The row of a contender for one length class.
    pub fn class(&self, dataset: &str, k: u32, codec: &str, kernel: &str) -> Option<&CodecRow> {
        self.of(dataset).find(|row| row.k == Some(k) && row.is(codec, kernel))
    }

    /// The sums over all length classes of a dataset, per contender, in the order of the run.
    pub fn totals(&self, dataset: &str) -> Vec<CodecRow> {
        let mut totals: Vec<CodecRow> = Vec::new();
        for row in self.of(dataset) {
            match totals.iter_mut().find(|total| total.is(&row.codec, &row.kernel)) {
                Some(total) => total.add(row),
                None => totals.push(CodecRow { k: None, ..row.clone() }),
            }
        }
        totals
    }

    /// The sum of a contender over all length classes of all `datasets`; `None` if one of them was not
    /// measured.
    pub fn total(&self, datasets: &[&str], codec: &str, kernel: &str) -> Option<CodecRow> {
        let mut parts = datasets
            .iter()
            .map(|dataset| self.totals(dataset).into_iter().find(|total| total.is(codec, kernel)));
        let first = parts.next()??;
        parts.try_fold(first, |mut sum, part| {
            sum.add(&part?);
            Some(sum)
        })
    }

    /// For each dataset the sums with `k` null, one per contender, then the rows of its length classes.
    pub fn to_json(&self) -> Value {
        let mut rows = Vec::new();
        for (dataset, _) in self.datasets() {
            rows.extend(self.totals(dataset).iter().map(CodecRow::to_json));
            rows.extend(self.of(dataset).filter(|row| row.k.is_some()).map(CodecRow::to_json));
        }
        Value::Array(rows)
    }

    fn of(&self, dataset: &str) -> impl Iterator<Item = &CodecRow> {
        self.rows.iter().filter(move |row| row.dataset == dataset)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A row of a million values; bits and milliseconds grow with the length class.
    pub(in super::super) fn row(
        dataset: &'static str,
        k: Option<u32>,
        codec: &str,
        kernel: &str,
    ) -> CodecRow {
        let step = f64::from(k.unwrap_or_default());
        CodecRow {
            codec: codec.to_string(),
            kernel: kernel.to_string(),
            dataset,
            kind: if dataset.contains("freq") { ValueKind::Frequencies } else { ValueKind::Ids },
            k,
            lists: 10,
            ints: 1_000_000,
            bytes: 125_000 * u64::from(k.unwrap_or(8)),
            l1_seconds: 1e-3 * (1.0 + step),
            ram_seconds: 2e-3 * (1.0 + step),
            encode_seconds: 4e-3 * (1.0 + step),
        }
    }

    pub(in super::super) fn rows() -> CodecRows {
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
        let rows = rows();
        let total = rows.total(&["uniform"], "vbyte-delta", "avx2").unwrap();
        assert_eq!((total.k, total.lists, total.ints), (None, 20, 2_000_000));
        assert_eq!(total.bits(), 11.0);
        assert!((total.decode_l1() - 2e-3 / 24e-3).abs() < 1e-9);
        assert!(rows.total(&["uniform", "zipf-freq"], "vbyte-delta", "avx2").is_none());
        assert_eq!(rows.classes("uniform"), [10, 12]);
        assert_eq!(rows.classes("zipf-freq"), [0; 0]);
    }

    #[test]
    fn json_rows_have_eight_members_and_sums_come_first() {
        let json = rows().to_json();
        let rows = json.as_array().unwrap();
        assert_eq!(rows.len(), 3 + 6 + 1);
        let members = [
            "codec",
            "kernel",
            "dataset",
            "k",
            "bits_per_int",
            "decode_l1_gips",
            "decode_ram_gips",
            "encode_gips",
        ];
        for row in rows {
            let found: Vec<&String> = row.as_object().unwrap().keys().collect();
            assert_eq!(found, members);
        }
        assert_eq!(rows[0]["k"], Value::Null);
        assert_eq!((&rows[3]["k"], &rows[3]["bits_per_int"]), (&json!(10), &json!(10.0)));
        assert_eq!((&rows[9]["dataset"], &rows[9]["k"]), (&json!("zipf-freq"), &Value::Null));
    }
}
