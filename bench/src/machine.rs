//! The machine that figures were taken on, as far as Linux says; no name and no address of it.

use std::fs;

/// CPU, caches and memory, for reports.
pub struct Machine {
    /// Model of the CPU.
    pub cpu: String,
    /// Threads that run at once.
    pub threads: usize,
    /// Instruction sets that decide which loops run, as far as the CPU has them.
    pub flags: Vec<&'static str>,
    /// Data caches of the first core from the smallest on: `L1 48K`.
    pub caches: Vec<String>,
    /// Bytes of memory, 0 if unknown.
    pub memory_bytes: u64,
}

/// Flags of interest.
const FLAGS: &[&str] = &[
    "ssse3",
    "sse4_1",
    "avx2",
    "bmi2",
    "avx512f",
    "avx512bw",
    "avx512dq",
    "avx512vl",
    "avx512cd",
    "avx512vbmi",
    "avx512_vbmi2",
    "avx512_vpopcntdq",
];

impl Machine {
    /// The machine that this runs on.
    pub fn here() -> Machine {
        let cpu = read("/proc/cpuinfo");
        let member = |name| member(&cpu, name).unwrap_or_default();
        let has: Vec<&str> = member("flags").split(' ').collect();
        let model = member("model name");
        Machine {
            cpu: if model.is_empty() {
                format!("unknown {}", std::env::consts::ARCH)
            } else {
                model.to_owned()
            },
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            flags: FLAGS.iter().copied().filter(|flag| has.contains(flag)).collect(),
            caches: caches(),
            memory_bytes: memory_bytes(),
        }
    }

    /// Lines of a Markdown list.
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

fn caches() -> Vec<String> {
    let levels = (0..8).map(|number| format!("/sys/devices/system/cpu/cpu0/cache/index{number}"));
    let data = levels.filter(|at| matches!(read(&format!("{at}/type")).trim(), "Data" | "Unified"));
    data.map(|at| {
        let (level, size) = (read(&format!("{at}/level")), read(&format!("{at}/size")));
        format!("L{} {}", level.trim(), size.trim())
    })
    .collect()
}

fn memory_bytes() -> u64 {
    let memory = read("/proc/meminfo");
    let total = member(&memory, "MemTotal").and_then(|line| line.split(' ').next());
    total.and_then(|kib| kib.parse::<u64>().ok()).unwrap_or_default() << 10
}

/// Text of a file, nothing if there is none.
fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// What stands behind `name` and a colon in the first such line.
fn member<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let mut pairs = text.lines().filter_map(|line| line.split_once(':'));
    pairs.find(|(found, _)| found.trim() == name).map(|(_, value)| value.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_found() {
        let text = "processor\t: 0\nmodel name\t: Some CPU\nflags\t\t: avx avx2\nmodel name\t: Other\n";
        assert_eq!(member(text, "model name"), Some("Some CPU"));
        assert_eq!(member(text, "cache size"), None);
        assert!(!Machine::here().cpu.is_empty());
    }
}
