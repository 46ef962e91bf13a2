//! CPU time of the calling thread.

use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// User and system time that the calling thread has used so far.
pub fn thread_cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}
