//! CPU time of this process.

use std::fs;

/// CPU seconds of all living threads so far; 0 if the kernel does not report them.
pub(super) fn cpu_seconds() -> f64 {
    let Ok(threads) = fs::read_dir("/proc/self/task") else { return 0.0 };
    let of = |path: std::path::PathBuf| {
        let text = fs::read_to_string(path.join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<u64>().ok()
    };
    threads.flatten().filter_map(|thread| of(thread.path())).sum::<u64>() as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::cpu_seconds;

    #[test]
    fn work_takes_time() {
        let start = cpu_seconds();
        let sum = (0..20_000_000u64).fold(0, |sum: u64, k| std::hint::black_box(sum ^ k.wrapping_mul(k)));
        assert!(cpu_seconds() > start, "{sum}");
    }
}
