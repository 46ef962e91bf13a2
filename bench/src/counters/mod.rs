//! Performance counters of the processor, through perf events.
//!
//! *Input*: a [`CounterSet`]. *Output*: [`EventCounts`], and from them the `metrics` of a measurement.
//!
//! 1. `processor` selects the top-down events that this processor has (`event`).
//! 2. `Recorder` opens the events for this process and counts between start and stop.
//! 3. `metrics` is a pure function from counts to the metrics of Yasin's top-down method (A Top-Down Method
//!    for Performance Analysis and Counters Architecture, 2014), as in table 5.1 of the APCache thesis and
//!    table 5.3 of Chilukuri's.

mod count;
mod event;
mod metrics;
mod processor;
mod recorder;

pub use count::{EventCount, EventCounts};
pub use event::CounterSet;
pub(crate) use metrics::metrics;
pub(crate) use recorder::CounterRecorder;
