//! `tierdex suggest`: completes the last word of a text, and corrects words that no document contains.

use super::search::OutputFormat;
use crate::failure::{Failure, Outcome, output_error};
use crate::{messages::make_printable, open, size};
use clap::Args;
use serde_json::json;
use std::io::{Write, stdout};
use std::path::PathBuf;
use tierdex::{Engine, EngineOptions};

#[derive(Args)]
#[command(after_help = "\
Suggestions are terms of the index; a field with a stemmer has none, because
stems are no words. Words of fewer than four letters are not corrected.
")]
pub struct SuggestCommandArguments {
    /// Directory of the index
    pub dir: PathBuf,
    /// Beginning of a query; several arguments are joined by blanks
    #[arg(required = true, value_name = "TEXT")]
    text: Vec<String>,
    /// Name of the field [default: the first one]
    #[arg(long, value_name = "NAME")]
    field: Option<String>,
    /// Maximum number of completions
    #[arg(short, default_value_t = 10)]
    k: usize,
    /// Output format
    #[arg(long, value_enum, default_value_t = OutputFormat::Table)]
    format: OutputFormat,
}

pub fn run_suggest(arguments: &SuggestCommandArguments) -> Outcome {
    let index = open::index(&arguments.dir)?;
    let field = match &arguments.field {
        None => 0,
        Some(name) => index.schema().field(name).ok_or_else(|| {
            let names: Vec<&str> = index.schema().fields.iter().map(|field| &*field.name).collect();
            Failure::Usage(format!("the index has no field `{name}`; it has {}", names.join(", ")))
        })?,
    };
    let text = arguments.text.join(" ");
    let engine = Engine::new(&index, &EngineOptions::new().on_demand().threads(1))?;
    let found = engine.snapshot().suggest(field, &text, arguments.k)?;
    let mut out = stdout().lock();
    let written = match arguments.format {
        OutputFormat::Json => {
            let terms = found.completions.iter();
            let terms = terms.map(|term| json!({ "word": term.term, "documents": term.documents }));
            let terms: Vec<_> = terms.collect();
            writeln!(out, "{}", json!({ "completions": terms, "correction": found.correction }))
        }
        OutputFormat::Table => {
            let lines = found.completions.iter().map(|term| {
                let documents = size::show_count(term.documents, "document", "documents");
                format!("{}  ({documents})\n", make_printable(&term.term))
            });
            let correction = found.correction.iter();
            let lines =
                lines.chain(correction.map(|text| format!("did you mean: {}\n", make_printable(text))));
            write!(out, "{}", lines.collect::<String>())
        }
    };
    written.map_err(output_error)
}
