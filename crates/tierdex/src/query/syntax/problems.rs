//! Faults of a query: strict parsing ends at the first, lenient parsing records all. Both record notes.

use crate::{Error, Result, limits::QUERY_WARNINGS_MAX};

/// Collects the faults and notes of a query while it is parsed.
pub struct Problems {
    /// Whether faults are only recorded.
    pub(in crate::query) is_lenient: bool,
    warnings: Vec<Error>,
    /// Whether there are more faults than are recorded.
    unlisted: bool,
}

impl Problems {
    /// The first fault is an error.
    pub fn strict() -> Problems {
        Problems { is_lenient: false, warnings: Vec::new(), unlisted: false }
    }

    /// Faults are recorded as warnings.
    pub fn lenient() -> Problems {
        Problems { is_lenient: true, ..Problems::strict() }
    }

    /// Reports a fault. After `Ok` the caller continues without the faulty part.
    ///
    /// # Errors
    /// The fault itself, in strict parsing.
    pub fn report(&mut self, fault: Error) -> Result<()> {
        if !self.is_lenient {
            return Err(fault);
        }
        self.warn(fault);
        Ok(())
    }

    /// Records a warning or note, unless there are too many.
    pub(in crate::query) fn warn(&mut self, warning: Error) {
        if self.warnings.len() < QUERY_WARNINGS_MAX {
            self.warnings.push(warning);
        } else if !self.unlisted {
            self.unlisted = true;
            self.warnings.push(Error::query("it has further faults, which are not listed"));
        }
    }

    /// Reports a fault at byte `at` of the query.
    pub fn report_at(&mut self, at: usize, message: impl Into<String>) -> Result<()> {
        self.report(Error::Query { at: Some(at), message: message.into() })
    }

    /// Records that a part of the query is read as text though it looks like an operator: not an error.
    pub fn warn_at(&mut self, at: usize, message: impl Into<String>) {
        self.warn(Error::Query { at: Some(at), message: message.into() });
    }

    /// The recorded faults and notes in order.
    pub fn into_warnings(self) -> Vec<Error> {
        self.warnings
    }
}
