//! The machine of a measurement, as reported by Linux. Host name and addresses are left out.

use std::fs;

/// Processor and memory.
pub struct Machine {
    /// CPU model.
    pub cpu: String,
    /// Hardware threads available to this process.
    pub threads: usize,
    /// Bytes of main memory, 0 if unknown.
    pub memory_bytes: u64,
}

impl Machine {
    /// The machine that this process runs on.
    pub fn here() -> Machine {
        let cpu = read_or_empty("/proc/cpuinfo");
        let field = |name| field_value(&cpu, name).unwrap_or_default();
        let model = field("model name");
        Machine {
            cpu: if model.is_empty() {
                format!("unknown {}", std::env::consts::ARCH)
            } else {
                model.to_owned()
            },
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            memory_bytes: memory_bytes(),
        }
    }
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
