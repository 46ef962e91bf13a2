//! Opens events for this process and all threads that it starts, and counts between start and stop.

use crate::counters::{event::CounterEvent, event::CounterSet, event::Selector, processor::Processor};
use crate::{Error, Result, counters::count::EventCount, counters::count::EventCounts};
use perf_event::{Builder, Counter, events::Hardware, events::Raw};

/// Open counters, disabled until the start.
pub(crate) struct CounterRecorder {
    counters: Vec<(&'static str, Counter)>,
    /// Index of the counter that leads the group of fixed metrics.
    leader: Option<usize>,
}

impl CounterRecorder {
    /// Opens all events of a set. Threads that exist are not counted, except that of the caller.
    ///
    /// # Errors
    /// If the machine has no such counters or does not permit their use.
    pub(crate) fn open(set: CounterSet) -> Result<CounterRecorder> {
        let missing = |why: String| {
            Error::Failed(format!("performance counters: not available on this machine: {why}"))
        };
        let events = Processor::here().events(set).map_err(missing)?;
        let mut recorder = CounterRecorder { counters: Vec::with_capacity(events.len()), leader: None };
        for event in events {
            let opened = recorder.open_event(event);
            opened.map_err(|error| missing(format!("the event {}: {error}", event.name)))?;
        }
        Ok(recorder)
    }

    fn open_event(&mut self, event: CounterEvent) -> std::io::Result<()> {
        let mut builder = match event.selector {
            Selector::Instructions => Builder::new(Hardware::INSTRUCTIONS),
            Selector::Cycles => Builder::new(Hardware::CPU_CYCLES),
            Selector::CacheMisses => Builder::new(Hardware::CACHE_MISSES),
            Selector::Raw(code) | Selector::Fixed(code) => Builder::new(Raw::new(code)),
        };
        builder.inherit(true);
        let fixed = matches!(event.selector, Selector::Fixed(_));
        let counter = match self.leader.filter(|_| fixed) {
            Some(leader) => builder.build_with_group(&mut self.counters[leader].1)?,
            None => builder.build()?,
        };
        if fixed && self.leader.is_none() {
            self.leader = Some(self.counters.len());
        }
        self.counters.push((event.name, counter));
        Ok(())
    }

    /// Starts to count.
    ///
    /// # Errors
    /// If the kernel rejects it.
    pub(crate) fn start(&mut self) -> Result<()> {
        // A group counts while its leader is enabled: the leader, which was opened first, is enabled last and
        // disabled first, so that all its events count the same time.
        for (name, counter) in self.counters.iter_mut().rev() {
            counter.reset().and_then(|()| counter.enable()).map_err(|error| counter_error(name, &error))?;
        }
        Ok(())
    }

    /// Ends counting and reads the counts.
    ///
    /// # Errors
    /// If the kernel rejects it.
    pub(crate) fn stop(&mut self) -> Result<EventCounts> {
        for (name, counter) in &mut self.counters {
            counter.disable().map_err(|error| counter_error(name, &error))?;
        }
        let mut counts = EventCounts::default();
        for (name, counter) in &mut self.counters {
            let read = counter.read_count_and_time().map_err(|error| counter_error(name, &error))?;
            let (count, enabled, running) = (read.count, read.time_enabled, read.time_running);
            counts.insert(name, EventCount { count, enabled, running });
        }
        Ok(counts)
    }
}

fn counter_error(name: &str, error: &std::io::Error) -> Error {
    Error::Failed(format!("cannot count the event {name}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Virtual machines often have no counters; then the reason is one line.
    #[test]
    fn instructions_are_counted_or_the_reason_is_given() {
        match CounterRecorder::open(CounterSet::Cache) {
            Ok(mut recorder) => {
                recorder.start().unwrap();
                let sum: u64 = (0..std::hint::black_box(100_000u64)).map(std::hint::black_box).sum();
                assert_eq!(sum, 4_999_950_000);
                let counted = recorder.stop().unwrap().get("instructions");
                assert!(counted.is_none_or(|count| count > 100_000.0), "{counted:?}");
            }
            Err(error) => {
                let text = error.to_string();
                assert!(text.contains("not available on this machine") && !text.contains('\n'), "{text}");
            }
        }
    }
}
