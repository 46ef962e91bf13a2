//! Hit rates of eviction policies. The parameters are the flags of the experiment [`crate::policies`].

use crate::{Result, policies, policies::Flags, request::experiment::ExperimentRequest};
use serde_json::{Value, json};
use tierdex::StopSignal;

impl ExperimentRequest for Flags {
    fn answer(&self, stop: &StopSignal) -> Result<Value> {
        Ok(json!({ "rows": policies::run(self, stop)? }))
    }
}
