//! The nodes of a query in a segment: lists of terms, phrases, sets of documents, and groups of these.

pub(in crate::eval) mod bounds;
pub(in crate::eval) mod document_set;
pub(in crate::eval) mod group;
pub(in crate::eval) mod node;
pub(in crate::eval) mod occurrences;
pub(in crate::eval) mod phrase;
pub(in crate::eval) mod slop;
pub(in crate::eval) mod term;
