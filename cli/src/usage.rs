//! The command line as it was typed: what it asks for, or one line on why it cannot be read.

use crate::failure::{Failure, Outcome, output};
use crate::messages;
use clap::Parser;
use clap::error::{Error, ErrorKind};

/// Reads the arguments of the process; none if it asked for help or the version, which are printed.
pub fn parse<A: Parser>() -> Outcome<Option<A>> {
    let error = match A::try_parse() {
        Ok(arguments) => return Ok(Some(arguments)),
        Err(error) => error,
    };
    if !error.use_stderr() {
        return error.print().map(|()| None).map_err(output);
    }
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        messages::report(&error.render().to_string());
        return Err(Failure::Usage("a subcommand is missing".to_string()));
    }
    Err(Failure::Usage(one_line::<A>(&error)))
}

/// Paragraphs of the parser's message behind one another, and where the help is.
fn one_line<A: Parser>(error: &Error) -> String {
    let text = error.render().to_string();
    let (message, rest) = text.split_once("\nUsage: ").unwrap_or((&text, ""));
    let command = rest.split_whitespace().take_while(|word| !word.starts_with(['[', '<', '-']));
    let command = command.collect::<Vec<_>>().join(" ");
    let has_query = ["tierdex search", "tierdex explain"].contains(&&*command);
    let mut line = String::new();
    for part in message.lines().map(str::trim).filter(|part| !part.is_empty()) {
        let part = part.strip_prefix("error: ").unwrap_or(part);
        // Of a query the parser would have the first letter alone behind `--`.
        if part.starts_with("For more information") || has_query && part.starts_with("tip: to pass") {
            continue;
        }
        let joint = match line.chars().last() {
            None => "",
            Some(':') => " ",
            Some(_) if part.starts_with('[') => " ",
            Some(_) => "; ",
        };
        line = line + joint + part;
    }
    let command = if command.is_empty() { A::command().get_name().to_string() } else { command };
    if error.kind() == ErrorKind::UnknownArgument && has_query {
        line += "; put -- before a query that begins with -";
    }
    format!("{line}; see `{command} --help`")
}
