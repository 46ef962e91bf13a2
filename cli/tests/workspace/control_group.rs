//! Memory control groups, which enforce a limit from outside.

use super::program_command;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A memory control group, version 1 or 2; removed on drop.
pub struct ControlGroup {
    folder: PathBuf,
    events: &'static str,
}

impl ControlGroup {
    /// `None`, with a message that the test is skipped, if the system does not permit it.
    pub fn new(name: &str, limit: u64) -> Option<ControlGroup> {
        let name = format!("tierdex-{name}-{}", std::process::id());
        let versions = [
            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.oom_control"),
            ("/sys/fs/cgroup", "memory.max", "memory.events"),
        ];
        let created = versions.into_iter().find_map(|(root, file, events)| {
            let folder = Path::new(root).join(&name);
            fs::create_dir(&folder).ok()?;
            let group = ControlGroup { folder, events };
            fs::write(group.folder.join(file), limit.to_string()).ok()?;
            Some(group)
        });
        if created.is_none() {
            eprintln!("skipped: no permission to create a memory control group");
        }
        created
    }

    /// Runs the command in the group.
    pub fn run(&self, arguments: &[impl AsRef<str>]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// The command, which joins the group when it is started.
    pub fn command(&self, arguments: &[impl AsRef<str>]) -> Command {
        let script = format!("echo $$ > {}/cgroup.procs && exec \"$@\"", self.folder.display());
        let mut command = Command::new("sh");
        let program = program_command(arguments.iter().map(AsRef::as_ref));
        command.args(["-c", &script, "sh"]).arg(program.get_program()).args(program.get_args());
        command
    }

    /// Number of processes that were killed for exceeding the limit.
    pub fn kills(&self) -> u64 {
        let text = fs::read_to_string(self.folder.join(self.events)).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
        line.map_or(0, |number| number.trim().parse().unwrap())
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.folder);
    }
}
