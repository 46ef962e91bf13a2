//! The nodes of a query in a segment: its clauses with their opened lists. A node is a term, a phrase, a set
//! of documents, or a conjunction or disjunction of nodes.

pub mod all_of;
pub mod any_of;
pub mod bounds;
pub mod column_set;
pub mod document_set;
pub mod node;
pub mod occurrences;
pub mod phrase;
pub mod prefix_set;
pub mod slop;
pub mod term;

pub use bounds::ShareBounds;
pub use column_set::ColumnSet;
pub use document_set::{DocumentSet, SetNode};
pub use node::{AllOf, AnyOf, Node, RefiningClause};
pub use phrase::Phrase;
pub use prefix_set::PrefixSet;
pub use slop::Alignments;
pub use term::Term;
