//! Queries of a log over the lists of an index (section V): each query is the intersection of the lists of
//! its terms.

use crate::intersect::lists::intersect_in_memory;
use crate::intersect::measure::{SweepPoint, measure_point};
use crate::intersect::settings::{COMPARED_CODECS, Settings, Sweep};
use crate::intersect::{row::SweepRow, runner::IntersectionRunner, work_dir::WorkDir};
use crate::{Error, Result, intersection::Algorithm, intersection::PagedList, postings::read_postings};
use std::{collections::BTreeMap, fs, path::Path, sync::Arc};
use tierdex::{Index, analysis::Analyzer, internal::segment::read::FILES, io::PosixDisk};

/// The field whose lists are used: the first of the index.
const QUERY_FIELD: usize = 0;

/// Runs the queries of a file over the lists of an index, with each codec.
pub(super) fn run_query_log(
    work: &WorkDir,
    settings: &Settings,
    index: &Path,
    queries: &Path,
    rows: &mut Vec<SweepRow>,
) -> Result<()> {
    let index = Index::open_on(Arc::new(PosixDisk::open(index)?))?;
    let (terms, queries) = QueryTerms::read(&index, queries, settings)?;
    let all: Vec<&[u32]> = terms.lists.iter().map(Vec::as_slice).collect();
    let expected: Vec<Vec<u32>> = queries
        .iter()
        .map(|query| intersect_in_memory(&query.iter().map(|term| all[*term]).collect::<Vec<_>>()))
        .collect();
    for (number, codec) in COMPARED_CODECS.into_iter().enumerate() {
        let lists = work.write(codec, settings.filter, &all)?;
        let of = |query: &Vec<usize>| query.iter().map(|at| lists[*at].clone()).collect::<Vec<PagedList>>();
        let queries: Vec<_> = queries.iter().map(of).zip(expected.iter().cloned()).collect();
        let mut runner = IntersectionRunner::new(work, settings, settings.threads, settings.depth)?;
        runner.calibrate(&lists)?;
        let at = SweepPoint {
            sweep: Sweep::Real.name(),
            x: number as f64,
            label: codec.name().to_string(),
            algorithms: &Algorithm::ALL,
            queries: &queries,
        };
        rows.extend(measure_point(&mut runner, &at, settings)?);
    }
    Ok(())
}

/// The lists of all terms of the queries.
struct QueryTerms {
    numbers: BTreeMap<String, Option<usize>>,
    lists: Vec<Vec<u32>>,
}

impl QueryTerms {
    /// Reads the terms, and the queries as term numbers. Takes lines at even distances, so that there are at
    /// most `settings.limit` queries, and keeps those with at least two different terms all of which are in
    /// the index.
    fn read(index: &Index, path: &Path, settings: &Settings) -> Result<(QueryTerms, Vec<Vec<usize>>)> {
        let name = path.display();
        let text = fs::read_to_string(path).map_err(Error::failed(format!("cannot read {name}")))?;
        let lines: Vec<&str> = text.lines().collect();
        let mut analyzer = Analyzer::new(&index.schema().fields[QUERY_FIELD].analysis);
        let mut terms = QueryTerms { numbers: BTreeMap::new(), lists: Vec::new() };
        let mut queries = Vec::new();
        for line in lines.iter().step_by(lines.len().div_ceil(settings.limit).max(1)) {
            settings.stop.check().map_err(|_| Error::Interrupted)?;
            let words = line.split_once('\t').map_or(*line, |(_, words)| words);
            let mut found = Vec::new();
            for term in analyzer.terms(words) {
                found.push(terms.number(index, term)?);
            }
            found.sort_unstable();
            found.dedup();
            queries.extend(found.into_iter().collect::<Option<Vec<usize>>>().filter(|query| query.len() > 1));
        }
        if queries.is_empty() {
            return Err(Error::Failed(format!("{name}: no query has two terms that are in the index")));
        }
        Ok((terms, queries))
    }

    /// The number of a term, `None` if it is not in the index. Reads the list of a new term.
    fn number(&mut self, index: &Index, term: String) -> Result<Option<usize>> {
        if let Some(known) = self.numbers.get(&term) {
            return Ok(*known);
        }
        let list = documents_of_term(index, &term)?;
        let number = (!list.is_empty()).then_some(self.lists.len());
        self.lists.extend(number.map(|_| list));
        self.numbers.insert(term, number);
        Ok(number)
    }
}

/// The documents of a term over all segments.
fn documents_of_term(index: &Index, term: &str) -> Result<Vec<u32>> {
    let (mut list, mut base) = (Vec::new(), 0);
    for segment in index.segments() {
        let field = segment.field(QUERY_FIELD);
        if let Some(info) = field.terms().get(term.as_bytes(), &FILES)? {
            list.extend(read_postings(field, info)?.documents.iter().map(|document| base + document));
        }
        base += segment.documents();
    }
    Ok(list)
}
