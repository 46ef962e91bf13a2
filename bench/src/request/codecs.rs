//! Sizes and speeds of codecs. The parameters are the flags of the experiment [`crate::codecs`].

use crate::{Result, codecs, codecs::Flags, request::experiment::ExperimentRequest};
use serde_json::{Value, json};
use tierdex::StopSignal;

impl ExperimentRequest for Flags {
    /// A row for each codec, kernel and length of lists, without sums over all lengths and copies of
    /// uncompressed values.
    fn answer(&self, stop: &StopSignal) -> Result<Value> {
        let mut rows = codecs::run(self, Vec::new(), stop)?.rows().to_json();
        if let Value::Array(rows) = &mut rows {
            rows.retain(|row| !row["k"].is_null() && row["codec"] != "memcpy");
        }
        Ok(json!({ "rows": rows }))
    }
}
