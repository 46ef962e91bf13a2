//! The line protocol: one line of answer per line `COMMAND<TAB>QUERY`.
//!
//! | command | how it is answered |
//! |---|---|
//! | `COUNT` | `Query::count`: document frequency of one term, else documents by block, no scores |
//! | `TOP_k` | `TopDocs` by score alone, which prunes by block-max bounds |
//! | `TOP_k_COUNT` | `TopDocs` and `Count` together, which scores every match |
//! | `DOCS_k` | as `TOP_k`, and the ordinals of the hits from their column |

use crate::index::{ORDINAL, TOKENS, register};
use crate::query;
use clap::ValueEnum;
use std::{fs, io::BufRead, io::Write, net::SocketAddr, path::Path};
use tantivy::collector::{Count, TopDocs};
use tantivy::directory::{self, Directory, MmapDirectory, RamDirectory};
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{DocAddress, Index, ReloadPolicy, Searcher, columnar::Column};
use tierdex_bench_protocol::{Answer, LineCommand, LineServer, Result, serve};
use tierdex_peer_http::serve_http;

/// Advice to the system about reads of mapped files.
#[derive(Clone, Copy, ValueEnum)]
pub enum Advice {
    /// No advice, the default of the library
    Normal,
    /// Random access: no read-ahead
    Random,
}

/// The index behind the protocol.
struct Server {
    searcher: Searcher,
    field: Field,
    /// Whether the index has positions, for phrases.
    positions: bool,
    /// Per segment.
    ordinals: Vec<Column<u64>>,
}

/// Answers the lines of `input` until it ends.
pub fn run(
    dir: &Path,
    advice: Option<Advice>,
    input: &mut dyn BufRead,
    output: &mut dyn Write,
) -> Result<()> {
    serve(&Server::open(dir, advice)?, input, output).map_err(|error| error.to_string())
}

/// Answers requests at `address`.
pub fn run_http(dir: &Path, advice: Option<Advice>, address: SocketAddr) -> Result<()> {
    serve_http(Server::open(dir, advice)?, address)
}

impl Server {
    fn open(dir: &Path, advice: Option<Advice>) -> Result<Server> {
        let failed = |error: tantivy::TantivyError| format!("cannot open {}: {error}", dir.display());
        let index = match advice {
            Some(advice) => Index::open(mapped(dir, advice)?),
            None => Index::open(in_memory(dir)?),
        };
        let index = index.map_err(failed)?;
        register(&index);
        let reader = index.reader_builder().reload_policy(ReloadPolicy::Manual).try_into().map_err(failed)?;
        let searcher = reader.searcher();
        let columns = searcher.segment_readers().iter().map(|segment| segment.fast_fields().u64(ORDINAL));
        let ordinals = columns.collect::<tantivy::Result<_>>().map_err(failed)?;
        let field = index.schema().get_field(TOKENS).map_err(failed)?;
        let record = index.schema().get_field_entry(field).field_type().get_index_record_option();
        let positions = record.is_some_and(IndexRecordOption::has_positions);
        Ok(Server { searcher, field, positions, ordinals })
    }
}

impl LineServer for Server {
    fn answer(&self, line: &str) -> Result<Answer> {
        let Some((command, text)) = LineCommand::parse(line) else { return Ok(Answer::Unsupported) };
        let Some(query) = query::parse(text, self.field, self.positions) else {
            return Ok(Answer::Unsupported);
        };
        let top = |k| TopDocs::with_limit(k).order_by_score();
        let answer = match command {
            LineCommand::Count => query.count(&self.searcher).map(|count| Answer::Number(count as u64)),
            LineCommand::Top(k) => {
                self.searcher.search(&*query, &top(k)).map(|hits| Answer::Number(hits.len() as u64))
            }
            LineCommand::TopCount(k) => {
                self.searcher.search(&*query, &(top(k), Count)).map(|(_, count)| Answer::Number(count as u64))
            }
            LineCommand::Docs(k) => self.searcher.search(&*query, &top(k)).map(|hits| {
                let name = |hit: DocAddress| {
                    self.ordinals[hit.segment_ord as usize].first(hit.doc_id).unwrap_or(u64::MAX)
                };
                Answer::Documents(hits.into_iter().map(|(score, hit)| (name(hit), score)).collect())
            }),
        };
        answer.map_err(|error| error.to_string())
    }
}

/// The files of the index, mapped.
fn mapped(dir: &Path, advice: Advice) -> Result<MmapDirectory> {
    let opened = match advice {
        Advice::Normal => MmapDirectory::open(dir),
        Advice::Random => MmapDirectory::open_with_madvice(dir, directory::Advice::Random),
    };
    opened.map_err(|error| format!("cannot open {}: {error}", dir.display()))
}

/// A copy of all files of the index in memory, except its locks, which would look like those of another
/// process.
fn in_memory(dir: &Path) -> Result<RamDirectory> {
    let failed = |error: &dyn std::fmt::Display| format!("cannot read the index {}: {error}", dir.display());
    let memory = RamDirectory::create();
    for entry in fs::read_dir(dir).map_err(|error| failed(&error))? {
        let path = entry.map_err(|error| failed(&error))?.path();
        if path.extension().is_some_and(|extension| extension == "lock") {
            continue;
        }
        let bytes = fs::read(&path).map_err(|error| failed(&error))?;
        let name = path.file_name().map(Path::new).unwrap_or(&path);
        memory.atomic_write(name, &bytes).map_err(|error| failed(&error))?;
    }
    Ok(memory)
}
