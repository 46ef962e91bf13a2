//! Multiplies a file of tokens, one document per line, with similar statistics: a document of a copy
//! consists of halves of two documents. Also counts the document frequency of each token. Of n documents,
//! number i of copy c is the first half of document i and the second half of document (7,919 i + 104,729 c)
//! mod n, by tokens; copy 0 is the file as it is.

use crate::tools::{say, unreadable};
use std::{collections::HashMap, fs::File, path::Path};
use std::io::{BufWriter, Write};
use tierdex_bench::{Error, Result};

/// Primes, so that each copy combines different halves.
const DOCUMENT_STEP: u64 = 7919;
const COPY_STEP: u64 = 104_729;

/// Writes `copies` recombined copies of `input` to `output`. Returns the tokens and their document
/// frequencies.
///
/// # Errors
/// If a file cannot be read or written.
pub fn write(input: &Path, output: &Path, copies: u32) -> Result<Vec<(String, u32)>> {
    let text = std::fs::read_to_string(input).map_err(|error| unreadable(input, &error))?;
    let text = Text::of(&text);
    let unwritable = |error| Error::Failed(format!("cannot write {}: {error}", output.display()));
    let mut out = BufWriter::with_capacity(1 << 20, File::create(output).map_err(unwritable)?);
    let mut counts = Counts { counts: vec![0; text.tokens.len()], last: vec![0; text.tokens.len()] };
    let mut number = 0;
    for copy in 0..copies {
        say(&format!("copying the tokens, {} of {copies}", copy + 1));
        for document in 0..text.documents.len() {
            let (first, second) = text.halves(document, copy);
            number += 1;
            counts.add(number, &text.ids[first.ids()]);
            counts.add(number, &text.ids[second.ids()]);
            let blank = if first.is_empty() || second.is_empty() { "" } else { " " };
            for part in [&text.text[first.bytes()], blank, &text.text[second.bytes()], "\n"] {
                out.write_all(part.as_bytes()).map_err(unwritable)?;
            }
        }
    }
    out.flush().map_err(unwritable)?;
    let named = text.tokens.iter().zip(counts.counts).map(|(token, count)| (token.to_string(), count));
    Ok(named.filter(|(_, count)| *count > 0).collect())
}

/// A file of tokens, with a number for each token.
struct Text<'a> {
    text: &'a str,
    tokens: Vec<&'a str>,
    ids: Vec<u32>,
    /// The halves of each document.
    documents: Vec<[Half; 2]>,
}

/// Tokens side by side: their bytes in the text without blanks around them, and their places among the ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Half {
    bytes: (usize, usize),
    ids: (usize, usize),
}

impl Half {
    fn bytes(self) -> std::ops::Range<usize> {
        self.bytes.0..self.bytes.1
    }

    fn ids(self) -> std::ops::Range<usize> {
        self.ids.0..self.ids.1
    }

    fn is_empty(self) -> bool {
        self.ids().is_empty()
    }
}

impl<'a> Text<'a> {
    fn of(text: &'a str) -> Text<'a> {
        let mut known: HashMap<&str, u32> = HashMap::new();
        let (mut tokens, mut ids, mut documents, mut at) = (Vec::new(), Vec::new(), Vec::new(), 0);
        for line in text.lines() {
            let (first, middle) = (ids.len(), middle(line));
            for token in line.split(' ') {
                let id = *known.entry(token).or_insert_with(|| {
                    tokens.push(token);
                    tokens.len() as u32 - 1
                });
                ids.push(id);
            }
            let half = first + (ids.len() - first).div_ceil(2);
            let one = Half { bytes: (at, at + middle), ids: (first, half) };
            let other = Half {
                bytes: ((at + middle + 1).min(at + line.len()), at + line.len()),
                ids: (half, ids.len()),
            };
            documents.push([one, other]);
            at += line.len() + 1;
        }
        Text { text, tokens, ids, documents }
    }

    fn halves(&self, document: usize, copy: u32) -> (Half, Half) {
        let other = match copy {
            0 => document as u64,
            copy => document as u64 * DOCUMENT_STEP + u64::from(copy) * COPY_STEP,
        };
        let other = (other % self.documents.len() as u64) as usize;
        (self.documents[document][0], self.documents[other][1])
    }
}

/// Where the first half of a line's tokens ends; of an odd number it has one more.
fn middle(line: &str) -> usize {
    let blanks = line.bytes().filter(|&byte| byte == b' ').count();
    line.match_indices(' ').nth(blanks / 2).map_or(line.len(), |(at, _)| at)
}

/// For each token the number of documents that hold it, and the last of them.
struct Counts {
    counts: Vec<u32>,
    last: Vec<u32>,
}

impl Counts {
    fn add(&mut self, document: u32, ids: &[u32]) {
        for &id in ids {
            if self.last[id as usize] != document {
                self.last[id as usize] = document;
                self.counts[id as usize] += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_halves_of_two() {
        let folder = std::env::temp_dir().join(format!("tierdex-copies-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (input, output) = (folder.join("tokens"), folder.join("copies"));
        std::fs::write(&input, "a b c\nd\ne f\n").unwrap();
        let mut terms = write(&input, &output, 2).unwrap();
        // 7,919 is 2 and 104,729 is 2 modulo 3: the second halves of copy 1 are those of 2, 1, 0.
        assert_eq!(std::fs::read_to_string(&output).unwrap(), "a b c\nd\ne f\na b f\nd\ne c\n");
        terms.sort();
        let counts: Vec<String> = terms.iter().map(|(term, count)| format!("{term}{count}")).collect();
        assert_eq!(counts.join(" "), "a2 b2 c2 d2 e2 f2");
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_line_is_cut_behind_its_middle_token() {
        assert_eq!(["a", "a b", "a b c", "aa b c d"].map(middle), [1, 1, 3, 4]);
    }
}
