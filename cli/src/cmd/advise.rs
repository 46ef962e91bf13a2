//! `tierdex advise`: forecasts the speed of postings caches of several sizes from a log of queries.

use super::search::{OutputFormat, QueryThreads, RankingArguments, parse_k};
use crate::failure::{Failure, Outcome, output_error, write_error};
use crate::forecast_plot::forecast_svg;
use crate::memory_flags::parse_bytes;
use crate::query_source::{FailedQueries, QueryFileArguments, QueryParser, next_query};
use crate::run_file::{are_same_file, is_in_directory};
use crate::{columns, open, progress::new_progress_bar, query_file::QueryFile, read_costs, size};
use clap::Args;
use serde_json::{Value, json};
use std::io::{Write, stdout};
use std::path::{Path, PathBuf};
use tierdex::advise::{Advice, Advisor, AdvisorOptions, CacheForecast};
use tierdex::{Index, ReadCosts, SearchOptions, io::Size};

/// Sizes of caches, at most.
const SIZES_MAX: usize = 32;

/// Width of the longest bar, in columns.
const BAR_WIDTH: usize = 30;

#[derive(Args)]
pub struct AdviseCommandArguments {
    /// Directory of the index
    pub dir: PathBuf,
    #[command(flatten)]
    queries: QueryFileArguments,
    /// Sizes of the postings cache: percentages of the postings, such as 5 or 2.5%, or bytes, such as 50M
    #[arg(
        long,
        value_name = "SIZE",
        value_delimiter = ',',
        default_value = "1,2,5,10,20,30,50,75,100",
        value_parser = parse_cache_size
    )]
    sizes: Vec<Size>,
    /// Maximum number of hits per query
    #[arg(short, default_value_t = 10, allow_negative_numbers = true, value_parser = parse_k)]
    k: usize,
    #[command(flatten)]
    ranking: RankingArguments,
    /// The application counts all matching documents of each query
    #[arg(long)]
    count: bool,
    /// The application does not read external ids of hits: their pages are not in the cache
    #[arg(long)]
    no_ids: bool,
    #[command(flatten)]
    threads: QueryThreads,
    /// Memory of this command in bytes. An index that does not fit is not measured in memory [default: half
    /// of the available memory]
    #[arg(long, value_name = "BYTES", value_parser = parse_bytes)]
    dram: Option<u64>,
    /// What reads of the device cost, as in `tierdex batch`
    #[arg(long, value_name = "NS,NS,NS,NS")]
    read_costs: Option<ReadCosts>,
    /// SVG file to write: speed and latency by the size of the cache
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t = OutputFormat::Table)]
    format: OutputFormat,
}

/// Parses a size; a number without a unit is a percentage.
fn parse_cache_size(text: &str) -> Result<Size, String> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let parsed = if is_number { format!("{text}%").parse() } else { text.parse() };
    parsed.map_err(|_| {
        "a size is a percentage of the postings such as 5 or 2.5%, or bytes such as 50M".to_string()
    })
}

impl AdviseCommandArguments {
    fn check(&self) -> Outcome {
        self.queries.check()?;
        let usage = |message: String| Err(Failure::Usage(message));
        if self.sizes.len() > SIZES_MAX {
            return usage(format!(
                "--sizes: {} sizes, and at most {SIZES_MAX} are possible",
                self.sizes.len()
            ));
        }
        let queries = &self.queries.queries;
        if queries.as_os_str() == "-" || queries.exists() && !queries.is_file() {
            return usage(format!("--queries {}: the log is read twice; give a file", queries.display()));
        }
        let plot = self.plot.as_deref();
        if plot.is_some_and(|plot| are_same_file(plot, queries)) {
            return usage("--queries and --plot name the same file".to_string());
        }
        if plot.is_some_and(|plot| is_in_directory(plot, &self.dir)) {
            return usage("--plot names a file in the directory of the index".to_string());
        }
        Ok(())
    }
}

pub fn run_advise(arguments: &AdviseCommandArguments) -> Outcome {
    arguments.check()?;
    let search = arguments.ranking.options(arguments.k, arguments.count)?;
    let search = SearchOptions { ids: !arguments.no_ids, ..search };
    let lines = count_queries(&arguments.queries.queries)?;
    let index = open::index(&arguments.dir)?;
    let advice = ask_log(&index, arguments, search, lines)?;
    if let Some(plot) = &arguments.plot {
        let svg = forecast_svg(&advice.sizes);
        std::fs::write(plot, svg).map_err(|error| write_error(plot, &error))?;
    }
    let text = match arguments.format {
        OutputFormat::Json => format!("{}\n", as_json(&advice, &index)),
        OutputFormat::Table => as_table(&advice),
    };
    stdout().write_all(text.as_bytes()).map_err(output_error)
}

/// Number of lines with a query.
fn count_queries(path: &Path) -> Outcome<u64> {
    let (mut queries, mut count) = (QueryFile::open(path)?, 0);
    while let Some(line) = queries.next()? {
        count += u64::from(line.is_ok());
    }
    if count == 0 {
        return Err(Failure::Failed(format!(
            "{}: no queries; each line is an id, a tab and the query",
            queries.name()
        )));
    }
    Ok(count)
}

/// Asks all queries, of which the second half counts, and measures.
fn ask_log(
    index: &Index,
    arguments: &AdviseCommandArguments,
    search: SearchOptions,
    lines: u64,
) -> Outcome<Advice> {
    let AdviseCommandArguments { dir, queries: file_arguments, .. } = arguments;
    // A single query is counted without a warm cache.
    let warming = lines / 2;
    let options = AdvisorOptions {
        sizes: arguments.sizes.clone(),
        threads: arguments.threads.threads.unwrap_or(0),
        search,
        counted: lines - warming,
        read_costs: arguments.read_costs.or_else(|| read_costs::stored(dir)),
        memory: arguments.dram,
    };
    let mut advisor = Advisor::new(index, options)?;
    if let Some(costs) = advisor.measured_read_costs() {
        read_costs::store(dir, costs);
    }
    let mut queries = QueryFile::open(&file_arguments.queries)?;
    let file = queries.name().to_string();
    let mut parser = QueryParser::new(file_arguments, &file, index);
    let failed = FailedQueries::new(file_arguments, &file, dir);
    let bar = new_progress_bar(lines).with_message("page requests");
    let (mut answered, mut asked) = (0, 0);
    while let Some((id, query)) = next_query(&mut queries, &mut parser, &failed)? {
        match advisor.ask(&query, asked >= warming) {
            Ok(()) => answered += 1,
            Err(error) => failed.skip_query(&id, error)?,
        }
        asked += 1;
        bar.set_position(asked);
    }
    failed.check_any_answered(answered)?;
    parser.operators.print_warning(&file);
    bar.finish_and_clear();
    let bar = new_progress_bar(100).with_message("measurements");
    let advice = advisor.advice(|share| bar.set_position((share * 100.0) as u64));
    bar.finish_and_clear();
    Ok(advice?)
}

fn as_table(advice: &Advice) -> String {
    let rows: Vec<[String; 6]> = advice.sizes.iter().map(row).collect();
    let head = ["cache", "bytes", "all memory", "misses/query", "queries/s", "p99"].map(str::to_string);
    let width = |column: usize| rows.iter().chain([&head]).map(|row| row[column].chars().count()).max();
    let line = |row: &[String; 6]| {
        let cells = (0..row.len()).map(|column| format!("{:>1$}", row[column], width(column).unwrap_or(0)));
        cells.collect::<Vec<_>>().join("  ")
    };
    let (held, kind) = match advice.memory_measured {
        true => ("an index in memory", ""),
        false => ("all pages cached", ", as the index does not fit into memory"),
    };
    let mut text = format!("{}  speed relative to {held}\n", line(&head));
    for (forecast, row) in advice.sizes.iter().zip(&rows) {
        let bar = "█".repeat((forecast.share.min(1.0) * BAR_WIDTH as f64).round() as usize);
        let bar = columns::pad_to_width(&bar, BAR_WIDTH);
        text += &format!("{}  {bar} {:.0}%\n", line(row), 100.0 * forecast.share);
    }
    let ghosts = match advice.sampled_share {
        1.0 => "of all pages".to_string(),
        share => format!("of {:.1}% of the pages", 100.0 * share),
    };
    text + &format!(
        "{held}: {} queries/s{kind}; {} counted, of which {} were measured; {:.1} pages a query; ghost caches \
         {ghosts}, {}\n",
        size::show_number(advice.memory_rate as u64),
        size::show_count(advice.queries, "query", "queries"),
        size::show_number(advice.sample as u64),
        advice.pages,
        size::show_bytes(advice.ghost_bytes),
    )
}

fn row(forecast: &CacheForecast) -> [String; 6] {
    [
        forecast.size.to_string(),
        size::show_bytes(forecast.cache_bytes),
        size::show_bytes(forecast.engine_bytes),
        format!("{:.2}", forecast.misses.misses),
        size::show_number(forecast.rate as u64),
        format!("{:.2} ms", forecast.p99.as_secs_f64() * 1e3),
    ]
}

fn as_json(advice: &Advice, index: &Index) -> Value {
    let of_size = |forecast: &CacheForecast| {
        json!({
            "size": forecast.size.to_string(),
            "cache_bytes": forecast.cache_bytes,
            "engine_bytes": forecast.engine_bytes,
            "misses_per_query": forecast.misses.misses,
            "reads_per_query": forecast.misses.reads,
            "read_cost_ns_per_query": forecast.misses.cost,
            "queries_per_second": forecast.rate,
            "share_of_memory": forecast.share,
            "p99_us": forecast.p99.as_secs_f64() * 1e6,
        })
    };
    json!({
        "queries": advice.queries,
        "sample": advice.sample,
        "pages_per_query": advice.pages,
        "postings_bytes": index.postings_bytes(),
        "memory_queries_per_second": advice.memory_rate,
        "memory_measured": advice.memory_measured,
        "sampled_share": advice.sampled_share,
        "ghost_bytes": advice.ghost_bytes,
        "sizes": advice.sizes.iter().map(of_size).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_percentages_or_bytes() {
        assert_eq!(parse_cache_size("5"), Ok(Size::BasisPoints(500)));
        assert_eq!(parse_cache_size("2.5"), Ok(Size::BasisPoints(250)));
        assert_eq!(parse_cache_size("10%"), Ok(Size::BasisPoints(1000)));
        assert_eq!(parse_cache_size("50M"), Ok(Size::Bytes(50 << 20)));
        for wrong in ["", "0", "x", "-5", "5%%", "1Q", "."] {
            assert!(parse_cache_size(wrong).unwrap_err().contains("such as 5"), "{wrong}");
        }
    }
}
