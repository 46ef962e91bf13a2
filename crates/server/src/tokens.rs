//! The tokens of a text, within the memory of answers.

use crate::api_error::{ApiError, ApiErrorKind};
use crate::record::AnswerMemory;
use crate::search::{answer_memory, blocking};
use crate::state::ServerState;
use std::sync::Arc;
use tierdex::Snapshot;
use tierdex::analysis::{Analyzer, Token};

/// Bytes of a text that is analysed, at most, and bytes of the answer for each.
const TEXT_MAX: usize = 16 << 10;
const TOKEN_BYTES: usize = 96;

/// Analyses a text as a field does, and makes `T` of each token. Returns these with the memory of the answer.
pub(crate) async fn tokens_of<T: Send + 'static>(
    state: &Arc<ServerState>,
    snapshot: Arc<Snapshot>,
    field: usize,
    text: String,
    mut of_token: impl FnMut(&str, Token<'_>) -> T + Send + 'static,
) -> Result<(Vec<T>, AnswerMemory), ApiError> {
    if text.len() > TEXT_MAX {
        let message = format!("text has {} bytes; at most {TEXT_MAX} are allowed", text.len());
        return Err(ApiError::new(ApiErrorKind::Limit, message));
    }
    let memory = answer_memory(state, (1 + text.len()) * TOKEN_BYTES).await?;
    let tokens = blocking(state, move || {
        let mut tokens = Vec::new();
        let mut analyzer = Analyzer::new(&snapshot.schema().fields[field].analysis);
        analyzer.analyze(&text, 0, |token| tokens.push(of_token(&text, token)));
        Ok(tokens)
    });
    Ok((tokens.await?, memory))
}
