//! Parses the command line. A usage error is one line.

use crate::failure::{Failure, Outcome, output_error};
use crate::messages;
use clap::Parser;
use clap::error::{Error, ErrorKind};

/// Parses the arguments of the process. Prints help or version if asked for, and returns `None` then.
pub fn parse_arguments<A: Parser>() -> Outcome<Option<A>> {
    let error = match A::try_parse() {
        Ok(arguments) => return Ok(Some(arguments)),
        Err(error) => error,
    };
    if !error.use_stderr() {
        return error.print().map(|()| None).map_err(output_error);
    }
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        messages::print_lines(&error.render().to_string());
        return Err(Failure::Usage("a subcommand is missing".to_string()));
    }
    Err(Failure::Usage(format_as_one_line::<A>(&error)))
}

/// Joins the paragraphs of clap's message and appends the help command.
fn format_as_one_line<A: Parser>(error: &Error) -> String {
    let text = error.render().to_string();
    let (message, rest) = text.split_once("\nUsage: ").unwrap_or((&text, ""));
    let command = rest.split_whitespace().take_while(|word| !word.starts_with(['[', '<', '-']));
    let command = command.collect::<Vec<_>>().join(" ");
    let has_query = ["tierdex search", "tierdex explain"].contains(&&*command);
    let mut line = String::new();
    for part in message.lines().map(str::trim).filter(|part| !part.is_empty()) {
        let part = part.strip_prefix("error: ").unwrap_or(part);
        // clap's tip is wrong for a query: it would put only its first letter after `--`.
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
