//! Queries of a log over the lists of an index (section V): each query is the intersection of the lists of
//! its terms.

use crate::intersect::lists::intersect_in_memory;
use crate::intersect::measure::{COMPARED_CODECS, IntersectRun, SweepQuery};
use crate::{Error, Result, held_index::open_index, intersect::request::Sweep, postings::read_postings};
use std::{collections::BTreeMap, fs, path::Path};
use tierdex::{Index, analysis::Analyzer, internal::segment::read::FILES};

/// The field whose lists are used: the first of the index.
const QUERY_FIELD: usize = 0;

/// The lists of all terms of a log, and its queries as numbers of lists.
#[derive(Default)]
struct QueryLog {
    lists: Vec<Vec<u32>>,
    queries: Vec<Vec<usize>>,
}

/// Runs the queries of a file over the lists of an index, with each codec.
pub(super) fn run_query_log(run: &mut IntersectRun<'_>, index: &Path, queries: &Path) -> Result<()> {
    let index = open_index(index)?;
    let log = QueryLog::read(run, &index, queries)?;
    let all: Vec<&[u32]> = log.lists.iter().map(Vec::as_slice).collect();
    let intersect =
        |query: &Vec<usize>| intersect_in_memory(&query.iter().map(|list| all[*list]).collect::<Vec<_>>());
    let expected: Vec<Vec<u32>> = log.queries.iter().map(intersect).collect();
    for (number, codec) in COMPARED_CODECS.into_iter().enumerate() {
        let lists = run.write(codec, &all)?;
        let of = |query: &Vec<usize>| query.iter().map(|at| lists[*at].clone()).collect::<Vec<_>>();
        let queries: Vec<SweepQuery> = log.queries.iter().map(of).zip(expected.iter().cloned()).collect();
        run.calibrate(&lists)?;
        run.measure(Sweep::Queries, number as f64, codec.name(), &queries)?;
    }
    Ok(())
}

impl QueryLog {
    /// Takes lines of a file at even distances, so that there are at most as many as the request says, and
    /// keeps those with at least two different terms all of which are in the index.
    fn read(run: &IntersectRun<'_>, index: &Index, path: &Path) -> Result<QueryLog> {
        let name = path.display();
        let text = fs::read_to_string(path).map_err(Error::failed(format!("cannot read {name}")))?;
        let lines: Vec<&str> = text.lines().collect();
        let mut analyzer = Analyzer::new(&index.schema().fields[QUERY_FIELD].analysis);
        // The number of the list of each term; `None` for a term that is not in the index.
        let mut numbers: BTreeMap<String, Option<usize>> = BTreeMap::new();
        let mut log = QueryLog::default();
        for line in lines.iter().step_by(lines.len().div_ceil(run.request.limit).max(1)) {
            run.stop.check()?;
            let words = line.split_once('\t').map_or(*line, |(_, words)| words);
            let mut found = Vec::new();
            for term in analyzer.terms(words) {
                found.push(match numbers.get(&term) {
                    Some(number) => *number,
                    None => {
                        let list = documents_of_term(index, &term)?;
                        let number = (!list.is_empty()).then_some(log.lists.len());
                        log.lists.extend(number.map(|_| list));
                        numbers.insert(term, number);
                        number
                    }
                });
            }
            found.sort_unstable();
            found.dedup();
            let query = found.into_iter().collect::<Option<Vec<usize>>>();
            log.queries.extend(query.filter(|query| query.len() > 1));
        }
        match log.queries.is_empty() {
            true => Err(Error::Failed(format!("{name}: no query has two terms that are in the index"))),
            false => Ok(log),
        }
    }
}

/// The documents of a term over all segments.
fn documents_of_term(index: &Index, term: &str) -> Result<Vec<u32>> {
    let (mut list, mut base) = (Vec::new(), 0);
    for segment in index.segments() {
        let field = segment.field_of_term(QUERY_FIELD);
        if let Some(info) = field.terms().get(term.as_bytes(), &FILES)? {
            list.extend(read_postings(field, info)?.documents.iter().map(|document| base + document));
        }
        base += segment.documents();
    }
    Ok(list)
}
