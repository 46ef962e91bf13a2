//! The indexes that a path names: a name, a pattern, or a list of both.

use super::error::{argument_error, no_such_index};
use super::members::{NAMES_MAX, check_names, matches_pattern};
use crate::api_error::ApiError;
use crate::catalog::ServedIndex;
use crate::state::ServerState;
use std::sync::Arc;

/// Indexes that a message names.
const NAMED_MAX: usize = 3;

/// All indexes of an expression; all of the server if there is none.
pub(super) fn indices_of(
    state: &ServerState,
    expression: Option<&str>,
) -> Result<Vec<Arc<ServedIndex>>, ApiError> {
    let all = state.catalog.indexes();
    let Some(expression) = expression else { return Ok(all) };
    let pattern_of = |name| if name == "_all" { "*" } else { name };
    // One more than the limit shows that there are too many.
    let patterns: Vec<&str> = expression.split(',').take(NAMES_MAX + 1).map(pattern_of).collect();
    check_names(&patterns, "index")?;
    for pattern in &patterns {
        if pattern.starts_with(['_', '-', '<']) || pattern.contains(':') {
            let name = pattern.escape_debug();
            return Err(argument_error(format!("[{name}] is not supported by this server")));
        }
        if !pattern.contains('*') && state.catalog.index(pattern).is_none() {
            return Err(no_such_index(pattern));
        }
    }
    let is_named =
        |index: &Arc<ServedIndex>| patterns.iter().any(|pattern| matches_pattern(pattern, &index.name));
    Ok(all.into_iter().filter(is_named).collect())
}

/// The only index of an expression.
pub(super) fn one_index(state: &ServerState, expression: Option<&str>) -> Result<Arc<ServedIndex>, ApiError> {
    let mut found = indices_of(state, expression)?;
    match found.len() {
        0 => Err(no_such_index(expression.unwrap_or("_all"))),
        1 => Ok(found.remove(0)),
        count => {
            let names: Vec<&str> = found.iter().take(NAMED_MAX).map(|index| &*index.name).collect();
            Err(argument_error(format!(
                "[{}] stands for {count} indices ({}{}); a request is of one index",
                expression.unwrap_or("_all").escape_debug(),
                names.join(", "),
                if count > NAMED_MAX { ", ..." } else { "" }
            )))
        }
    }
}
