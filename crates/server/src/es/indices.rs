//! The indexes that a path names: a name, a pattern, or a list of both.

use super::error::{argument_error, no_such_index};
use super::members::matches_pattern;
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
    let mut found: Vec<Arc<ServedIndex>> = Vec::new();
    for name in expression.split(',') {
        let pattern = if name == "_all" { "*" } else { name };
        if pattern.starts_with(['_', '-', '<']) || pattern.contains(':') {
            return Err(argument_error(format!("[{}] is not supported by this server", name.escape_debug())));
        }
        let matching = all.iter().filter(|index| matches_pattern(pattern, &index.name));
        let before = found.len();
        found.extend(
            matching
                .filter(|index| !found.iter().any(|known| known.name == index.name))
                .cloned()
                .collect::<Vec<_>>(),
        );
        if found.len() == before && !pattern.contains('*') && state.catalog.index(pattern).is_none() {
            return Err(no_such_index(name));
        }
    }
    Ok(found)
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
