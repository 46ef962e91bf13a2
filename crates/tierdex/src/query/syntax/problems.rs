//! Faults of a query: strict parsing ends at the first one, lenient parsing records them as warnings.

use crate::error::{Error, Result};
use crate::limits::QUERY_WARNINGS_MAX;

/// Collects the faults of a query.
pub struct Problems {
    lenient: bool,
    warnings: Vec<Error>,
    unlisted: bool,
}

impl Problems {
    /// The first fault is an error.
    pub fn strict() -> Problems {
        Problems { lenient: false, warnings: Vec::new(), unlisted: false }
    }

    /// Faults are recorded as warnings.
    pub fn lenient() -> Problems {
        Problems { lenient: true, ..Problems::strict() }
    }

    /// Whether faults are only recorded.
    pub fn is_lenient(&self) -> bool {
        self.lenient
    }

    /// Reports a fault. After `Ok` the caller continues without the faulty part.
    ///
    /// # Errors
    /// The fault itself, in strict parsing.
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

    /// Reports a fault at byte `at` of the query.
    pub fn at(&mut self, at: usize, message: impl Into<String>) -> Result<()> {
        self.report(Error::Query { at: Some(at), message: message.into() })
    }

    /// The recorded faults in order.
    pub fn into_warnings(self) -> Vec<Error> {
        self.warnings
    }
}
