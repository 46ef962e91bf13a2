//! Queries. Input: query text. Output: a [`QueryPlan`], whose terms are looked up and weighted.
//!
//! 1. [`syntax`] parses the text into a syntax tree and reports faults with their offsets.
//! 2. `analyse` converts its words to terms with the analysis chain of the field: a [`Query`], as it was
//!    written.
//! 3. `bind` looks up the terms in all segments and weights them by global statistics; `expand` expands
//!    prefixes and fuzzy words.
//! 4. `rewrite` turns the [`QueryPlan`] into an equivalent one that is cheaper to evaluate.
//!
//! The score of a document is the sum of the scores of the scored clauses of the rewritten plan that match
//! it. Terms and phrases score by the scorer of the search, other clauses as [`Query`] states. Scores are
//! integers ([`crate::rank::ScoreScale`]).

mod analyse;
mod bind;
mod check;
mod clauses;
mod collect;
mod collection;
pub mod column_clause;
mod date_math;
mod expand;
pub mod fuzzy;
mod lists;
mod marks;
mod plan;
pub(crate) mod plan_node;
mod rewrite;
mod suggest;
mod synonyms;
pub mod syntax;
pub mod tree;
mod typed;
mod words;

pub(crate) use clauses::Clauses;
pub(crate) use collect::{collect_statistics, collecting_bytes};
pub use collection::SegmentLists;
pub(crate) use collection::{PrefixStore, RankingInputs};
pub use expand::TermStats;
pub(crate) use expand::{for_each_term_with_prefix, terms_after};
pub use lists::{FileRange, QueryList};
pub use marks::Marks;
pub use plan::QueryPlan;
pub(crate) use rewrite::PlanRewriter;
pub use suggest::Suggestions;
pub(crate) use suggest::suggest;
pub use tree::Query;
