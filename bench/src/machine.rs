//! The machine that a run was measured on, as reported by Linux. Host name and addresses are left out.

use std::fs;

/// CPU, caches and memory, for reports.
pub struct Machine {
    /// CPU model.
    pub cpu: String,
    /// Hardware threads available to this process.
    pub threads: usize,
    /// CPU flags that decide which kernels can run.
    pub flags: Vec<&'static str>,
    /// Data caches of the first core, smallest first: `L1 48K`.
    pub caches: Vec<String>,
    /// Bytes of main memory, 0 if unknown.
    pub memory_bytes: u64,
}

/// CPU flags that a report shows, if the processor has them.
const REPORTED_CPU_FLAGS: &str = "\
    ssse3 sse4_1 avx2 bmi2 avx512f avx512bw avx512dq avx512vl avx512cd avx512vbmi avx512_vbmi2 \
    avx512_vpopcntdq";

impl Machine {
    /// The machine that this process runs on.
    pub fn here() -> Machine {
        let cpu = read_or_empty("/proc/cpuinfo");
        let field = |name| field_value(&cpu, name).unwrap_or_default();
        let has: Vec<&str> = field("flags").split(' ').collect();
        let model = field("model name");
        Machine {
            cpu: if model.is_empty() {
                format!("unknown {}", std::env::consts::ARCH)
            } else {
                model.to_owned()
            },
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            flags: REPORTED_CPU_FLAGS.split(' ').filter(|flag| has.contains(flag)).collect(),
            caches: data_caches(),
            memory_bytes: memory_bytes(),
        }
    }

    /// The machine as a Markdown list.
    pub fn to_markdown(&self) -> String {
        let list = |items: &[String]| if items.is_empty() { "unknown".into() } else { items.join(", ") };
        let flags: Vec<String> = self.flags.iter().map(ToString::to_string).collect();
        format!(
            "- CPU: {}; {} threads\n- flags of interest: {}\n- caches: {}\n- memory: {:.0} GiB\n",
            self.cpu,
            self.threads,
            list(&flags),
            list(&self.caches),
            self.memory_bytes as f64 / (1u64 << 30) as f64
        )
    }
}

fn data_caches() -> Vec<String> {
    let levels = (0..8).map(|number| format!("/sys/devices/system/cpu/cpu0/cache/index{number}"));
    let data = levels.filter(|at| matches!(read_or_empty(&format!("{at}/type")).trim(), "Data" | "Unified"));
    data.map(|at| {
        let (level, size) = (read_or_empty(&format!("{at}/level")), read_or_empty(&format!("{at}/size")));
        format!("L{} {}", level.trim(), size.trim())
    })
    .collect()
}

fn memory_bytes() -> u64 {
    let memory = read_or_empty("/proc/meminfo");
    let total = field_value(&memory, "MemTotal").and_then(|line| line.split(' ').next());
    total.and_then(|kib| kib.parse::<u64>().ok()).unwrap_or_default() << 10
}

/// The text of a file, empty if it cannot be read.
fn read_or_empty(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// The value of the first line `name: value`.
fn field_value<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let mut pairs = text.lines().filter_map(|line| line.split_once(':'));
    pairs.find(|(found, _)| found.trim() == name).map(|(_, value)| value.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_found_by_its_name() {
        let text = "processor\t: 0\nmodel name\t: Some CPU\nflags\t\t: avx avx2\nmodel name\t: Other\n";
        assert_eq!(field_value(text, "model name"), Some("Some CPU"));
        assert_eq!(field_value(text, "cache size"), None);
        assert!(!Machine::here().cpu.is_empty());
    }
}
