//! The text as every engine gets it: tokens with a blank between them, one document a line.
//!
//! A document's tokens are the maximal runs of letters and digits of its title and text, in lower case.
//! Tokens of more than [`TOKEN_BYTES_MAX`] bytes are left out, because engines differ in what they make of
//! them, and so are documents without tokens, because some engines number them and others do not. Engines
//! split at blanks and do nothing else.

use crate::{copies, flags::Flags};
use crate::tools::{self, say, unreadable};

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use tierdex_bench::{Error, Result};

/// Longest token that is indexed.
const TOKEN_BYTES_MAX: usize = 200;

/// The tokenized text, and the document frequency of each token.
pub struct Corpus {
    /// File of the tokens.
    pub path: PathBuf,
    /// Its bytes.
    pub bytes: u64,
    /// Its lines.
    pub documents: u64,
    /// Tokens with the number of documents that hold them; sorted.
    pub terms: Vec<(String, u32)>,
}

/// The tokens in parts of equally many documents; the last may have fewer.
pub struct Parts {
    /// The file of all.
    pub whole: PathBuf,
    /// Files of the parts, that of all if it is the only one.
    pub paths: Vec<PathBuf>,
    /// Documents of a part.
    pub documents: u64,
    /// Directory that goes with this.
    folder: Option<PathBuf>,
}

impl Parts {
    /// Sizes of the parts into which a corpus is divided, without a file for each.
    pub fn unwritten(corpus: &Corpus, count: u32) -> Parts {
        let documents = corpus.documents.div_ceil(u64::from(count)).max(1);
        Parts { whole: corpus.path.clone(), paths: vec![corpus.path.clone()], documents, folder: None }
    }

    /// Parts of a corpus; those of several are files that stand below `place` as long as this lives.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn of(corpus: &Corpus, count: u32, place: &Path) -> Result<Parts> {
        let mut parts = Parts::unwritten(corpus, count);
        if count == 1 {
            return Ok(parts);
        }
        let documents = parts.documents;
        parts.paths.clear();
        let folder = place.join("parts");
        tools::make_folder(&folder)?;
        parts.folder = Some(folder.clone());
        let file = File::open(&corpus.path).map_err(|error| unreadable(&corpus.path, &error))?;
        let mut lines = BufReader::with_capacity(1 << 20, file);
        let mut line = Vec::new();
        for part in 0..corpus.documents.div_ceil(documents) {
            let path = folder.join(format!("{part}.txt"));
            let unwritable = |error| Error::Failed(format!("cannot write {}: {error}", path.display()));
            let mut out = BufWriter::with_capacity(1 << 20, File::create(&path).map_err(unwritable)?);
            for _ in 0..documents {
                line.clear();
                let read = lines.read_until(b'\n', &mut line);
                read.map_err(|error| unreadable(&corpus.path, &error))?;
                out.write_all(&line).map_err(unwritable)?;
            }
            out.flush().map_err(unwritable)?;
            parts.paths.push(path);
        }
        Ok(parts)
    }
}

impl Drop for Parts {
    fn drop(&mut self) {
        if let Some(folder) = &self.folder {
            let _ = fs::remove_dir_all(folder);
        }
    }
}

/// Cuts the input into tokens, or takes those that are there.
///
/// # Errors
/// If the input cannot be read, has a malformed line, or if the tokens cannot be written.
pub fn prepare(flags: &Flags) -> Result<Corpus> {
    let identity = identity(&flags.input)?;
    make(&flags.work, &identity, |path| {
        say("cutting the text into tokens");
        let terms = write_tokens(&flags.input, path)?;
        Ok(terms.into_iter().map(|(term, (count, _))| (term, count)).collect())
    })?;
    if flags.copies > 1 {
        let (input, place) = (path(&flags.work), flags.data_dir());
        tools::make_folder(&place)?;
        make(&place, &identity, |path| copies::write(&input, path, flags.copies))?;
    }
    load(&flags.data_dir())
}

/// Has the tokens of `input` in a directory: those that are there, or new ones, and no index of the old
/// ones.
fn make(dir: &Path, input: &str, write: impl FnOnce(&Path) -> Result<Vec<(String, u32)>>) -> Result<()> {
    let mark = dir.join("tokens.done");
    if fs::read_to_string(&mark).is_ok_and(|found| found == input) {
        return Ok(());
    }
    let _ = fs::remove_file(&mark);
    tools::remove_folder(&dir.join("indexes"))?;
    let mut terms = write(&path(dir))?;
    terms.sort_unstable();
    let text: String = terms.iter().map(|(term, count)| format!("{term}\t{count}\n")).collect();
    tools::write(&dir.join("terms.tsv"), &text)?;
    tools::write(&mark, input)
}

fn path(work: &Path) -> PathBuf {
    work.join("tokens.txt")
}

/// What tells one input from another: its name, size and time.
fn identity(input: &Path) -> Result<String> {
    let data = fs::metadata(input).map_err(|error| unreadable(input, &error))?;
    let time = data.modified().ok().and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
    let name = input.file_name().unwrap_or_default().to_string_lossy();
    Ok(format!("{name} {} {}\n", data.len(), time.unwrap_or_default().as_nanos()))
}

fn load(work: &Path) -> Result<Corpus> {
    let path = path(work);
    let file = File::open(&path).map_err(|error| unreadable(&path, &error))?;
    let (mut documents, mut bytes) = (0, 0);
    let mut lines = BufReader::with_capacity(1 << 20, file);
    loop {
        let block = lines.fill_buf().map_err(|error| unreadable(&path, &error))?;
        let len = block.len();
        if len == 0 {
            break;
        }
        documents += block.iter().filter(|&&byte| byte == b'\n').count() as u64;
        bytes += len as u64;
        lines.consume(len);
    }
    let terms = tools::read(&work.join("terms.tsv"))?;
    let term = |line: &str| {
        let (term, count) = line.split_once('\t')?;
        Some((term.to_string(), count.parse().ok()?))
    };
    let terms = terms.lines().filter_map(term).collect();
    Ok(Corpus { path, bytes, documents, terms })
}

/// For each term the number of documents that hold it, and the last of them.
type Terms = HashMap<String, (u32, u32)>;

fn write_tokens(input: &Path, output: &Path) -> Result<Terms> {
    let unwritable = |error| Error::Failed(format!("cannot write {}: {error}", output.display()));
    let mut out = BufWriter::with_capacity(1 << 20, File::create(output).map_err(unwritable)?);
    let mut lines = open(input)?;
    let (mut bytes, mut tokens, mut terms) = (Vec::new(), String::new(), Terms::new());
    let (mut number, mut document) = (0u64, 0);
    loop {
        bytes.clear();
        number += 1;
        if lines.read_until(b'\n', &mut bytes).map_err(|error| unreadable(input, &error))? == 0 {
            break;
        }
        if bytes.trim_ascii().is_empty() {
            continue;
        }
        tokens.clear();
        add_document(&bytes, &mut tokens)
            .map_err(|why| Error::Failed(format!("{}:{number}: {why}", input.display())))?;
        if tokens.is_empty() {
            continue;
        }
        document += 1;
        count(&tokens, document, &mut terms);
        tokens.push('\n');
        out.write_all(tokens.as_bytes()).map_err(unwritable)?;
    }
    out.flush().map_err(unwritable)?;
    Ok(terms)
}

fn count(tokens: &str, document: u32, terms: &mut Terms) {
    for token in tokens.split(' ') {
        match terms.get_mut(token) {
            Some((_, last)) if *last == document => {}
            Some((count, last)) => (*count, *last) = (*count + 1, document),
            None => {
                terms.insert(token.to_string(), (1, document));
            }
        }
    }
}

/// The lines of a file, unpacked if it begins as zstd's files do.
fn open(input: &Path) -> Result<Box<dyn BufRead>> {
    const ZSTD: [u8; 4] = [0x28, 0xB5, 0x2F, 0xFD];
    const WINDOW_LOG_MAX: u32 = 31;
    let failed = |error| unreadable(input, &error);
    let mut head = Vec::new();
    File::open(input).and_then(|file| file.take(4).read_to_end(&mut head)).map_err(failed)?;
    let file = File::open(input).map_err(failed)?;
    if head != ZSTD {
        return Ok(Box::new(BufReader::with_capacity(1 << 20, file)));
    }
    let mut unpacked = zstd::Decoder::new(file).map_err(failed)?;
    unpacked.window_log_max(WINDOW_LOG_MAX).map_err(failed)?;
    Ok(Box::new(BufReader::with_capacity(1 << 20, unpacked)))
}

fn add_document(line: &[u8], tokens: &mut String) -> std::result::Result<(), String> {
    let document: serde_json::Value = serde_json::from_slice(line).map_err(|error| error.to_string())?;
    let mut found = false;
    for member in ["title", "text"] {
        if let Some(text) = document.get(member).and_then(serde_json::Value::as_str) {
            found = true;
            add_tokens(text, tokens);
        }
    }
    if found { Ok(()) } else { Err("has neither a title nor a text".to_string()) }
}

/// Adds the tokens of a text, each with a blank before it unless it is the first.
pub fn add_tokens(text: &str, tokens: &mut String) {
    for run in text.split(|c: char| !c.is_alphanumeric()) {
        let start = tokens.len();
        if start > 0 {
            tokens.push(' ');
        }
        let from = tokens.len();
        if run.is_ascii() {
            tokens.push_str(run);
            tokens[from..].make_ascii_lowercase();
        } else {
            *tokens += &run.to_lowercase();
        }
        if !(1..=TOKEN_BYTES_MAX).contains(&(tokens.len() - from)) {
            tokens.truncate(start);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_lower_case_runs_with_blanks_between() {
        let mut tokens = String::new();
        add_document(br#"{"title":"The Oath", "text":"don't  \u00c9T\u00c9, 12\n"}"#, &mut tokens).unwrap();
        assert_eq!(tokens, "the oath don t été 12");
        tokens.clear();
        add_tokens(&format!("{} b", "a".repeat(TOKEN_BYTES_MAX + 1)), &mut tokens);
        assert_eq!(tokens, "b");
        assert!(add_document(b"{}", &mut tokens).is_err());
    }

    #[test]
    fn parts_hold_all_documents_in_order() {
        let place = std::env::temp_dir().join(format!("tierdex-parts-{}", std::process::id()));
        fs::create_dir_all(&place).unwrap();
        let path = place.join("tokens");
        fs::write(&path, "a\nb\nc\nd\ne\n").unwrap();
        let corpus = Corpus { path: path.clone(), bytes: 10, documents: 5, terms: Vec::new() };
        let parts = Parts::of(&corpus, 2, &place).unwrap();
        let texts: Vec<String> = parts.paths.iter().map(|path| fs::read_to_string(path).unwrap()).collect();
        assert_eq!((texts, parts.documents), (vec!["a\nb\nc\n".to_string(), "d\ne\n".to_string()], 3));
        drop(parts);
        assert!(!place.join("parts").exists());
        assert_eq!(Parts::of(&corpus, 1, &place).unwrap().paths, [path]);
        fs::remove_dir_all(&place).unwrap();
    }

    #[test]
    fn terms_count_once_a_document() {
        let mut terms = Terms::new();
        count("a b a", 1, &mut terms);
        count("a c", 2, &mut terms);
        assert_eq!((terms["a"].0, terms["b"].0, terms["c"].0), (2, 1, 1));
    }
}
