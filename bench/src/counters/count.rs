//! Counts of events, and their JSON form: `{"instructions": [count, enabled, running]}`.

use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The count of an event. If there are more events than counters, the kernel multiplexes them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventCount {
    /// Events while the counter was running.
    pub count: u64,
    /// Nanoseconds in which the event was to be counted.
    pub enabled: u64,
    /// Nanoseconds in which it was counted.
    pub running: u64,
}

/// Counts by the name of the event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventCounts(BTreeMap<String, EventCount>);

impl EventCount {
    /// The count, extrapolated to the whole time; `None` if the counter never ran.
    pub fn scaled(self) -> Option<f64> {
        let share = self.enabled as f64 / self.running as f64;
        (self.running > 0).then_some(self.count as f64 * share)
    }
}

impl EventCounts {
    /// Adds an event.
    pub(super) fn insert(&mut self, name: &str, count: EventCount) {
        self.0.insert(name.to_string(), count);
    }

    /// The scaled count of an event; `None` if it was not counted.
    pub(super) fn get(&self, name: &str) -> Option<f64> {
        self.0.get(name)?.scaled()
    }

    pub(crate) fn to_json(&self) -> Value {
        self.0
            .iter()
            .map(|(name, one)| (name.clone(), json!([one.count, one.enabled, one.running])))
            .collect()
    }

    /// Parses the output of [`EventCounts::to_json`]; `None` if it is malformed.
    pub(crate) fn from_json(value: &Value) -> Option<EventCounts> {
        let count = |value: &Value| {
            let number = |at: usize| value.get(at)?.as_u64();
            Some(EventCount { count: number(0)?, enabled: number(1)?, running: number(2)? })
        };
        let counts = value.as_object()?.iter().map(|(name, value)| Some((name.clone(), count(value)?)));
        Some(EventCounts(counts.collect::<Option<_>>()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_that_took_turns_is_extrapolated() {
        let count = |count, enabled, running| EventCount { count, enabled, running }.scaled();
        assert_eq!(count(30, 1000, 1000), Some(30.0));
        assert_eq!(count(30, 1000, 250), Some(120.0));
        assert_eq!((count(0, 1000, 500), count(0, 1000, 0)), (Some(0.0), None));
    }

    #[test]
    fn counts_round_trip_through_json() {
        let mut counts = EventCounts::default();
        counts.insert("instructions", EventCount { count: u64::MAX, enabled: 3, running: 2 });
        counts.insert("llc-misses", EventCount::default());
        assert_eq!(EventCounts::from_json(&counts.to_json()), Some(counts));
        assert_eq!(EventCounts::from_json(&json!({})), Some(EventCounts::default()));
        for wrong in [json!(null), json!({ "a": [1, 2] }), json!({ "a": [1, 2, -3] })] {
            assert_eq!(EventCounts::from_json(&wrong), None, "{wrong}");
        }
    }
}
