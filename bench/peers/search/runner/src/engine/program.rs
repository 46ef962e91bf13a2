//! The program of an engine: the words that index, serve and print its release.

use super::{kind::Kind, variant::Variant};
use crate::flags::{Flags, Norms};
use crate::{tokens::Parts, tools};
use std::{ffi::OsString, fs, time::SystemTime};
use std::path::{Path, PathBuf};

/// An engine that is ready to run.
#[derive(Clone)]
pub struct Engine {
    /// Which it is.
    pub kind: Kind,
    /// Its release, as it says itself.
    pub version: String,
    /// The first words of every call.
    program: Vec<OsString>,
    /// Those of a call that is to take little memory, where they are others.
    pub(super) small: Option<Vec<OsString>>,
    /// When the newest of its files was written.
    built: Option<SystemTime>,
}

impl Engine {
    pub(super) fn new(kind: Kind, program: Vec<OsString>, files: &[PathBuf]) -> std::result::Result<Engine, String> {
        let ask = if kind == Kind::Tierdex { "--version" } else { "version" };
        let words: Vec<OsString> = program.iter().cloned().chain([ask.into()]).collect();
        let said = tools::output(&mut tools::command(&words))?;
        let version = said.lines().last().unwrap_or_default().trim().to_string();
        let times = files.iter().filter_map(|file| fs::metadata(file).and_then(|data| data.modified()).ok());
        Ok(Engine { kind, version, program, small: None, built: times.max() })
    }

    /// What its index in a variant is called.
    pub fn index_name(&self, flags: &Flags, variant: &Variant) -> String {
        let exact = if self.kind == Kind::Tierdex && flags.norms == Norms::Exact { "-exact" } else { "" };
        // It always keeps positions.
        let tail = if self.kind == Kind::Seekstorm { String::new() } else { variant.index_tail() };
        format!("{}{exact}{tail}", self.kind.name())
    }

    /// Directory of its index in a variant.
    pub fn index_dir(&self, flags: &Flags, variant: &Variant) -> PathBuf {
        flags.data_dir().join("indexes").join(self.index_name(flags, variant))
    }

    /// Whether it was built after a time.
    pub fn built_after(&self, time: SystemTime) -> bool {
        self.built.is_some_and(|built| built > time)
    }

    /// The command lines that index `parts`, of a given number of documents each, into `dir`: one a part.
    pub fn index_words(
        &self,
        flags: &Flags,
        variant: &Variant,
        parts: &Parts,
        dir: &Path,
    ) -> Vec<Vec<OsString>> {
        if self.kind == Kind::Tierdex {
            let parts = parts.paths.iter().enumerate();
            return parts.map(|(place, part)| self.part_words(flags, variant, place, part, dir)).collect();
        }
        let mut words = self.program.clone();
        let bytes = (flags.memory << 20).to_string();
        words.extend([
            "index".into(),
            parts.whole.clone().into(),
            dir.into(),
            "--memory".into(),
            bytes.into(),
        ]);
        words.extend(variant.positions.then(|| "--positions".into()));
        if variant.segments > 1 {
            words.extend(["--commit-every".into(), parts.documents.to_string().into()]);
        }
        vec![words]
    }

    /// tierdex: the words that index a part; those behind the first are added to the index that is there.
    fn part_words(
        &self,
        flags: &Flags,
        variant: &Variant,
        place: usize,
        part: &Path,
        dir: &Path,
    ) -> Vec<OsString> {
        let mut words = self.program.clone();
        words.extend(["index".into(), part.into(), "--out".into(), dir.into()]);
        let norms = if flags.norms == Norms::Exact { "exact" } else { "byte" };
        let memory = format!("{}M", flags.memory);
        let merge = if variant.segments > 1 { "none" } else { "one" };
        let always = [
            ["--format", "tsv"],
            ["--columns", "text"],
            ["--threads", "1"],
            ["--merge", merge],
            ["--memory", &memory],
        ];
        words.extend(always.into_iter().flatten().map(OsString::from));
        if place > 0 {
            words.push("--append".into());
            return words;
        }
        let first = [["--tokenizer", "whitespace"], ["--store", "none"], ["--norms", norms]];
        words.extend(first.into_iter().flatten().map(OsString::from));
        words.extend(variant.positions.then(|| "--positions".into()));
        words
    }

    /// The words that serve the index in `dir`.
    pub fn serve_words(&self, variant: &Variant, dir: &Path) -> Vec<OsString> {
        let mut words = self.program.clone();
        if self.kind == Kind::Tierdex {
            // It is built beside the other.
            words[0] = Path::new(&words[0]).with_file_name("tierdex-bench").into();
        }
        words.extend(["serve".into(), dir.into()]);
        if let Some((k1, b)) = variant.bm25 {
            words.extend(["--k1".into(), k1.to_string().into(), "--b".into(), b.to_string().into()]);
        }
        words
    }

    /// The words that serve the index of a peer in `dir` from mapped files, with little memory.
    pub fn map_words(&self, dir: &Path, advice: Advice) -> Vec<OsString> {
        let mut words = self.small.as_ref().unwrap_or(&self.program).clone();
        words.extend(["serve".into(), dir.into(), "--advice".into(), advice.name().into()]);
        words
    }

    /// The program of its process.
    pub fn file(&self) -> &Path {
        Path::new(&self.program[0])
    }
}

/// How a peer reads its files when they are mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// As the library comes.
    Normal,
    /// The system is told to read nothing ahead.
    Random,
}

impl Advice {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Advice::Normal => "normal",
            Advice::Random => "random",
        }
    }
}
