//! `tierdex eval`: measures of a TREC run from relevance judgments, and the comparison of two runs.

use super::search::OutputFormat;
use crate::effectiveness::{
    JudgedRanking, Judgments, Measure, PairedComparison, TrecRun, read_judgments, read_run,
};
use crate::failure::{Failure, Outcome, output_error};
use crate::{messages, size};
use clap::Args;
use serde_json::{Map, Value, json};
use std::io::{BufWriter, Write, stdout};
use std::path::PathBuf;

#[derive(Args)]
pub struct EvalCommandArguments {
    /// TREC run, or two to compare; each line is: query Q0 document rank score tag
    #[arg(required = true, num_args = 1..=2, value_name = "RUN")]
    runs: Vec<PathBuf>,
    /// Relevance judgments (qrels); each line is: query 0 document relevance. Lines that begin with # are
    /// comments
    qrels: PathBuf,
    /// Measures by their names in ir_measures: nDCG, AP, P, R, RR, Rprec and Success with a cutoff, such as
    /// RR@10, and a smallest relevant grade, such as AP(rel=2)@1000
    #[arg(long, value_name = "MEASURE,...", value_delimiter = ',', default_value = "nDCG@10,AP@1000,R@100")]
    measures: Vec<Measure>,
    /// Print the values of each query, in columns separated by tabs
    #[arg(long)]
    per_query: bool,
    /// Means over the judged queries that the run has, as of trec_eval without -c [default: over all judged
    /// queries; those that the run lacks count 0, as of ir_measures and trec_eval -c]
    #[arg(long)]
    common: bool,
    /// Number of decimal places
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u8).range(1..=12))]
    digits: u8,
    /// Output format
    #[arg(long, value_enum, default_value_t = OutputFormat::Table)]
    format: OutputFormat,
}

/// The values of a run: one list for each measure, with one value for each query.
struct RunValues {
    name: String,
    values: Vec<Vec<f64>>,
}

impl RunValues {
    fn mean_of_measure(&self, measure: usize) -> f64 {
        self.values[measure].iter().sum::<f64>() / self.values[measure].len().max(1) as f64
    }
}

pub fn run_eval(arguments: &EvalCommandArguments) -> Outcome {
    let judgments = read_judgments(&arguments.qrels)?;
    let runs = arguments.runs.iter().map(|path| read_run(path)).collect::<Outcome<Vec<TrecRun>>>()?;
    let queries = select_queries(arguments, &judgments, &runs)?;
    if judgments.fractions > 0 {
        let lines = size::show_count(judgments.fractions, "relevance has", "relevances have");
        let file = arguments.qrels.display();
        messages::print_message(format_args!(
            "{file}: {lines} a fraction, which is cut off, as by trec_eval"
        ));
    }
    let evaluate = |(path, run): (&PathBuf, &TrecRun)| {
        let of = |query: &&str| JudgedRanking::new(run.ranking(query), &judgments.grades[*query]);
        let rankings: Vec<JudgedRanking> = queries.iter().map(of).collect();
        let values = |measure: &Measure| rankings.iter().map(|ranking| measure.evaluate(ranking)).collect();
        let values = arguments.measures.iter().map(values).collect();
        RunValues { name: path.display().to_string(), values }
    };
    let evaluations: Vec<RunValues> = arguments.runs.iter().zip(&runs).map(evaluate).collect();
    let written = match (arguments.format, &evaluations[..]) {
        (OutputFormat::Json, _) => write_json(arguments, &queries, &evaluations),
        (OutputFormat::Table, [first, second]) => write_comparison(arguments, &queries, first, second),
        (OutputFormat::Table, _) => write_means(arguments, &queries, &evaluations[0]),
    };
    written.map_err(output_error)
}

/// The ids of the queries over which means are computed, sorted. Prints which judged queries the runs lack.
fn select_queries<'j>(
    arguments: &EvalCommandArguments,
    judgments: &'j Judgments,
    runs: &[TrecRun],
) -> Outcome<Vec<&'j str>> {
    let judged: Vec<&str> = judgments.grades.keys().map(String::as_str).collect();
    for (path, run) in arguments.runs.iter().zip(runs) {
        let missing = judged.iter().filter(|query| !run.has_query(query)).count();
        let path = path.display();
        if missing == judged.len() {
            return Err(Failure::Failed(format!(
                "{path}: none of its {} is judged in {}",
                size::show_count(run.query_count() as u64, "query", "queries"),
                arguments.qrels.display()
            )));
        }
        if missing > 0 {
            let judged = size::show_count(judged.len() as u64, "judged query", "judged queries");
            let effect = match arguments.common {
                true => "not counted",
                false => "counted as 0; --common leaves them out",
            };
            messages::print_message(format_args!("{path}: no results for {missing} of {judged}, {effect}"));
        }
    }
    let counts = |query: &&str| !arguments.common || runs.iter().all(|run| run.has_query(query));
    let counted: Vec<&str> = judged.into_iter().filter(counts).collect();
    match counted.is_empty() {
        true => Err(Failure::Failed("the runs have no judged query in common".to_string())),
        false => Ok(counted),
    }
}

fn write_means(arguments: &EvalCommandArguments, queries: &[&str], run: &RunValues) -> std::io::Result<()> {
    let mut out = BufWriter::new(stdout().lock());
    let digits = usize::from(arguments.digits);
    if arguments.per_query {
        write_query_lines(&mut out, arguments, queries, std::slice::from_ref(run))?;
    }
    let means = arguments.measures.iter().enumerate();
    let means: Vec<String> = means
        .map(|(number, measure)| format!("{measure} {:.digits$}", run.mean_of_measure(number)))
        .collect();
    writeln!(out, "{}: {}", size::show_count(queries.len() as u64, "query", "queries"), means.join(", "))?;
    out.flush()
}

/// Writes a header and a line for each query: its id, and the values of each run.
fn write_query_lines(
    out: &mut impl Write,
    arguments: &EvalCommandArguments,
    queries: &[&str],
    runs: &[RunValues],
) -> std::io::Result<()> {
    let digits = usize::from(arguments.digits);
    write!(out, "query")?;
    for run in runs {
        for measure in &arguments.measures {
            let name = if runs.len() > 1 { format!(" of {}", run.name) } else { String::new() };
            write!(out, "\t{measure}{name}")?;
        }
    }
    writeln!(out)?;
    for (number, query) in queries.iter().enumerate() {
        write!(out, "{query}")?;
        for values in runs.iter().flat_map(|run| &run.values) {
            write!(out, "\t{:.digits$}", values[number])?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// Writes a line for each measure: the means of both runs, their difference, wins, losses, ties and p-value.
fn write_comparison(
    arguments: &EvalCommandArguments,
    queries: &[&str],
    first: &RunValues,
    second: &RunValues,
) -> std::io::Result<()> {
    let mut out = BufWriter::new(stdout().lock());
    let digits = usize::from(arguments.digits);
    if arguments.per_query {
        let runs =
            [first, second].map(|run| RunValues { name: run.name.clone(), values: run.values.clone() });
        write_query_lines(&mut out, arguments, queries, &runs)?;
    }
    writeln!(
        out,
        "{}: {} beside {}",
        size::show_count(queries.len() as u64, "query", "queries"),
        first.name,
        second.name
    )?;
    for (number, measure) in arguments.measures.iter().enumerate() {
        let PairedComparison { difference, wins, losses, ties, p } =
            PairedComparison::new(&first.values[number], &second.values[number]);
        let p = p.map_or(String::new(), |p| format!(", p {p:.4} (paired t-test)"));
        writeln!(
            out,
            "{measure} {:.digits$} {:.digits$}, difference {difference:+.digits$}, {} better, {} worse, {} equal{p}",
            first.mean_of_measure(number),
            second.mean_of_measure(number),
            size::show_number(wins),
            size::show_number(losses),
            size::show_number(ties)
        )?;
    }
    out.flush()
}

/// Writes the means, and with `--per-query` the values, as one JSON object.
fn write_json(arguments: &EvalCommandArguments, queries: &[&str], runs: &[RunValues]) -> std::io::Result<()> {
    let object = |value: &dyn Fn(usize) -> Value| -> Value {
        let members = arguments.measures.iter().enumerate();
        members.map(|(number, measure)| (measure.to_string(), value(number))).collect::<Map<_, _>>().into()
    };
    let of_run = |run: &RunValues| {
        let mut value =
            json!({ "run": run.name, "measures": object(&|number| run.mean_of_measure(number).into()) });
        if arguments.per_query {
            let query = |(at, query): (usize, &&str)| {
                (query.to_string(), object(&|number| run.values[number][at].into()))
            };
            value["per_query"] = queries.iter().enumerate().map(query).collect::<Map<_, _>>().into();
        }
        value
    };
    let mut value = json!({
        "queries": queries.len(),
        "runs": runs.iter().map(of_run).collect::<Vec<Value>>(),
    });
    if let [first, second] = runs {
        value["comparison"] = object(&|number| {
            let paired = PairedComparison::new(&first.values[number], &second.values[number]);
            let PairedComparison { difference, wins, losses, ties, p } = paired;
            json!({ "difference": difference, "wins": wins, "losses": losses, "ties": ties, "p": p })
        });
    }
    writeln!(stdout(), "{value}")
}
