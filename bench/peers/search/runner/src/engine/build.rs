//! Building the engines: cargo for tierdex, Tantivy and SeekStorm, Maven for Lucene, pip for PISA.

use super::{kind::Kind, program::Engine};
use crate::tools;
use std::{ffi::OsString, process::Command};
use std::path::{Path, PathBuf};

/// An engine, or one line that says why there is none.
type Built = Result<Engine, String>;

/// Oldest release of Java that has what the peer uses.
const JAVA_MIN: u32 = 25;
/// The release of PISA's binding that was tried.
const PISA: &str = "pyterrier_pisa==0.4.9";

/// tierdex, from the project that contains this workspace.
pub fn tierdex() -> Built {
    let project = workspace().join("../../..");
    let program = cargo(&project, "tierdex-cli", "tierdex")?;
    // The server, in the same folder.
    cargo(&project, "tierdex-bench", "tierdex-bench")?;
    Engine::new(Kind::Tierdex, vec![program.clone().into()], &[program])
}

/// Tantivy, from this workspace.
pub fn tantivy() -> Built {
    let program = cargo(&workspace(), "tierdex-peer-tantivy", "tierdex-peer-tantivy")?;
    Engine::new(Kind::Tantivy, vec![program.clone().into()], &[program])
}

/// SeekStorm, from this workspace.
pub fn seekstorm() -> Built {
    let program = cargo(&workspace(), "tierdex-peer-seekstorm", "tierdex-peer-seekstorm")?;
    Engine::new(Kind::Seekstorm, vec![program.clone().into()], &[program])
}

/// Lucene: Maven packs the server and gathers the jars that it needs.
pub fn lucene() -> Built {
    let home = java_home().ok_or(format!(
        "no Java of release {JAVA_MIN} or later was found; install a JDK and set JAVA_HOME to it"
    ))?;
    let folder = workspace().join("lucene");
    let target = folder.join("target");
    let maven = ["-q", "-B", "-DskipTests", "package"];
    tools::output(Command::new("mvn").args(maven).current_dir(&folder).env("JAVA_HOME", &home))?;
    let jar = target.join("tierdex-peer-lucene.jar");
    let mut path = jar.clone().into_os_string();
    path.push(":");
    path.push(target.join("dependency"));
    path.push("/*");
    let program = |flags: &[&str]| {
        let mut words: Vec<OsString> = vec![home.join("bin/java").into()];
        words.extend(JAVA_FLAGS.iter().chain(flags).map(OsString::from));
        words.extend(["-cp".into(), path.clone(), "org.tierdex.peer.lucene.Main".into()]);
        words
    };
    let mut engine = Engine::new(Kind::Lucene, program(JAVA_LARGE), &[jar])?;
    engine.small = Some(program(JAVA_SMALL));
    Ok(engine)
}

/// Flags of the virtual machine: the vector module.
const JAVA_FLAGS: &[&str] = &["--add-modules=jdk.incubator.vector", "--enable-native-access=ALL-UNNAMED"];

/// A heap that is large enough for few collections.
const JAVA_LARGE: &[&str] = &["-Xmx1g", "-XX:+UseParallelGC"];

/// A heap of 16 MB, and a collector and threads that take little beside it.
pub const JAVA_SMALL: &[&str] =
    &["-Xms16m", "-Xmx16m", "-XX:+UseSerialGC", "-Xss512k", "-XX:ReservedCodeCacheSize=16m"];

/// PISA: its binding in a virtual environment below the work directory.
pub fn pisa(work: &Path) -> Built {
    let environment = work.join("pisa-venv");
    let python = environment.join("bin/python");
    let ready = tools::output(Command::new(&python).args(["-c", "import pyterrier_pisa"]));
    if ready.is_err() {
        tools::output(Command::new("python3").args(["-m", "venv"]).arg(&environment))?;
        tools::output(Command::new(&python).args(["-m", "pip", "install", "-q", PISA]))?;
    }
    let script = workspace().join("pisa/peer.py");
    Engine::new(Kind::Pisa, vec![python.into(), script.clone().into()], &[script])
}

/// The workspace of this program.
fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map(Path::to_path_buf).unwrap_or_default()
}

/// Builds a package of the workspace in `folder`; returns the path of one of its programs.
fn cargo(folder: &Path, package: &str, program: &str) -> Result<PathBuf, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let words = ["build", "--release", "--quiet", "-p", package, "--message-format", "json"];
    let said = tools::output(Command::new(cargo).args(words).current_dir(folder))?;
    let mut programs = said.lines().filter_map(|line| {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        Some(PathBuf::from(message.get("executable")?.as_str()?))
    });
    let found = programs.find(|path| path.file_stem().is_some_and(|name| name == program));
    found.ok_or_else(|| format!("cargo built no program {program} of {package}"))
}

/// The first of JAVA_HOME, the `java` of the path, and the usual folder that is new enough.
fn java_home() -> Option<PathBuf> {
    let named = std::env::var_os("JAVA_HOME").map(PathBuf::from);
    let on_path = std::env::var_os("PATH").and_then(|path| {
        let mut programs = std::env::split_paths(&path).map(|folder| folder.join("java"));
        let found = programs.find(|program| program.exists())?.canonicalize().ok()?;
        Some(found.parent()?.parent()?.to_path_buf())
    });
    let mut usual: Vec<PathBuf> = std::fs::read_dir("/usr/lib/jvm")
        .map(|entries| entries.flatten().map(|entry| entry.path()).collect())
        .unwrap_or_default();
    usual.sort();
    named.into_iter().chain(on_path).chain(usual).find(|home| java_release(home) >= Some(JAVA_MIN))
}

/// The release of the JDK in a folder: it must have a compiler, too.
fn java_release(home: &Path) -> Option<u32> {
    let said = tools::output(Command::new(home.join("bin/javac")).arg("-version")).ok()?;
    said.trim().strip_prefix("javac ")?.split(['.', '-', '+']).next()?.parse().ok()
}
