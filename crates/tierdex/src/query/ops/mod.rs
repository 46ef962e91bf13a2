//! Operators: each adds its matches and their scores, in a window of documents, to what is there.

mod boolean;
mod constant;
mod phrase;
mod slop;
mod term;
mod window;

pub use boolean::BoolOp;
pub use constant::{ConstantOp, Documents};
pub use phrase::PhraseOp;
pub use slop::Alignments;
pub use term::TermOp;
pub use window::{Pool, WINDOW, Window};

use crate::cursor::PostingsCursor;
use crate::error::Result;

/// An operator over one segment. It moves forward only.
pub enum Op<'a> {
    /// One term.
    Term(Box<TermOp<'a>>),
    /// A phrase.
    Phrase(PhraseOp<'a>),
    /// Documents that score the same.
    Constant(ConstantOp),
    /// Clauses.
    Bool(BoolOp<'a>),
    /// No document.
    Nothing,
}

impl Op<'_> {
    /// A document that is at least `from` and not greater than the first match that is; `None` when no match
    /// follows.
    pub fn next(&self, from: u32) -> Option<u32> {
        match self {
            Op::Term(op) => op.next(from),
            Op::Phrase(op) => op.next(from),
            Op::Constant(op) => op.next(from),
            Op::Bool(op) => op.next(from),
            Op::Nothing => None,
        }
    }

    /// Calls `body` with the cursor of each term, clauses in order, the terms of a phrase by rising document frequency.
    pub fn each_cursor(&mut self, body: &mut dyn FnMut(&mut PostingsCursor<'_>)) {
        match self {
            Op::Term(op) => body(op.cursor()),
            Op::Phrase(op) => op.cursors().for_each(body),
            Op::Bool(op) => op.clauses().for_each(|clause| clause.each_cursor(body)),
            Op::Constant(_) | Op::Nothing => {}
        }
    }

    /// Adds the matches in `window`.
    pub fn accumulate(&mut self, window: &mut Window, pool: &mut Pool) -> Result<()> {
        match self {
            Op::Term(op) => op.accumulate(window),
            Op::Phrase(op) => op.accumulate(window),
            Op::Constant(op) => {
                op.accumulate(window);
                Ok(())
            }
            Op::Bool(op) => op.accumulate(window, pool),
            Op::Nothing => Ok(()),
        }
    }
}
