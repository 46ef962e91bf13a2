//! What is wrong with a query: the first fault ends strict reading; lenient reading notes it and goes on.

use crate::error::{Error, Result};
use crate::limits::QUERY_WARNINGS_MAX;

/// Takes faults as they are found.
pub struct Problems {
    lenient: bool,
    warnings: Vec<Error>,
    unlisted: bool,
}

impl Problems {
    /// The first fault is the end.
    pub fn strict() -> Problems {
        Problems { lenient: false, warnings: Vec::new(), unlisted: false }
    }

    /// Faults are noted.
    pub fn lenient() -> Problems {
        Problems { lenient: true, ..Problems::strict() }
    }

    /// Whether faults are only noted.
    pub fn are_noted(&self) -> bool {
        self.lenient
    }

    /// Takes a fault. If this returns, the caller goes on as if it had not been there.
    pub fn report(&mut self, fault: Error) -> Result<()> {
        if !self.lenient {
            return Err(fault);
        }
        if self.warnings.len() < QUERY_WARNINGS_MAX {
            self.warnings.push(fault);
        } else if !self.unlisted {
            self.unlisted = true;
            self.warnings.push(Error::query("it has further faults, which are not listed"));
        }
        Ok(())
    }

    /// The same, for a fault at a place in the query's text.
    pub fn at(&mut self, at: usize, message: impl Into<String>) -> Result<()> {
        self.report(Error::Query { at: Some(at), message: message.into() })
    }

    /// The faults that were noted, in the order in which they were found.
    pub fn into_warnings(self) -> Vec<Error> {
        self.warnings
    }
}
