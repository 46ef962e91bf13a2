//! Counts of events, and their JSON form: `{"instructions": [count, enabled, running]}`.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The count of an event. If there are more events than counters, the kernel multiplexes them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(u64, u64, u64)", into = "(u64, u64, u64)")]
pub struct EventCount {
    /// Events while the counter was running.
    pub count: u64,
    /// Nanoseconds in which the event was to be counted.
    pub enabled: u64,
    /// Nanoseconds in which it was counted.
    pub running: u64,
}

/// Counts by the name of the event.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventCounts(BTreeMap<String, EventCount>);

impl From<(u64, u64, u64)> for EventCount {
    fn from(numbers: (u64, u64, u64)) -> EventCount {
        EventCount { count: numbers.0, enabled: numbers.1, running: numbers.2 }
    }
}

impl From<EventCount> for (u64, u64, u64) {
    fn from(one: EventCount) -> (u64, u64, u64) {
        (one.count, one.enabled, one.running)
    }
}

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
        let text = serde_json::to_string(&counts).unwrap();
        assert_eq!(text, format!(r#"{{"instructions":[{},3,2],"llc-misses":[0,0,0]}}"#, u64::MAX));
        assert_eq!(serde_json::from_str::<EventCounts>(&text).unwrap(), counts);
        assert_eq!(serde_json::from_str::<EventCounts>("{}").unwrap(), EventCounts::default());
        for wrong in ["null", r#"{"a": [1, 2]}"#, r#"{"a": [1, 2, -3]}"#] {
            assert!(serde_json::from_str::<EventCounts>(wrong).is_err(), "{wrong}");
        }
    }
}
