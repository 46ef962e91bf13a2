//! Query sets: drawn from the terms of the corpus by document frequency, cut from its text, or real.
//!
//! Classes of terms: H occur in more than 1% of the documents, M in 0.001% to 1%, L in less and at least
//! two. A set's name says what its queries are: `single-h` one term of class H, `and-mm` two different terms
//! of class M that are both required, `or-3-5` three to five different terms as alternatives, the class of
//! each H or M with equal odds (`or-3-5-h`: all H). Mixed queries have clauses of different kinds:
//! `must-m-filter-h` is `+m #h`, a required term of class M and a filter of class H, and `should-hh-not-h`
//! is `h h -h`; M are there only terms of at least two hundred documents. `phrase-3` are three adjacent
//! words somewhere. Shapes are nested groups, minimum match, prefixes, fuzzy words, and phrases with slop.
//!
//! [`draw`] draws terms, [`pattern`] has the patterns of mixed queries and shapes, [`phrases`] cuts phrases,
//! [`real`] reads the queries that people asked.

mod draw;
mod pattern;
mod phrases;
mod real;
pub mod recipe;

use crate::{flags::Flags, tokens::Corpus};
use crate::tools::{self, say};
use draw::{Classes, Queues};
use recipe::Recipe;
pub use recipe::{Group, JUDGED};
use std::path::PathBuf;
use tierdex_bench::{Random, Result};

/// Queries of one kind, as the protocol writes them.
pub struct Set {
    /// Its name, with the probability of repeats if there is one.
    pub name: String,
    /// How its queries are made.
    pub recipe: Recipe,
    /// Its queries.
    pub queries: Vec<String>,
}

/// Makes the sets that are wanted, and writes each below the work directory. Sets without queries are left
/// out.
///
/// # Errors
/// If real queries cannot be read or a set cannot be written.
pub fn make(flags: &Flags, corpus: &Corpus) -> Result<Vec<Set>> {
    let recipes = flags.recipes()?;
    let classes = Classes::of(corpus);
    let mut sets = Vec::new();
    for recipe in recipes {
        if let Recipe::Real(source, join) = recipe {
            let queries = real::queries(flags, corpus, source, join)?;
            sets.push(Set { name: recipe.name(), recipe, queries });
            continue;
        }
        if let Recipe::Phrase { words, slop } = recipe {
            let mut random = Random::new(flags.seed);
            let queries = phrases::queries(corpus, words, slop, flags.count(), &mut random)?;
            sets.push(Set { name: recipe.name(), recipe, queries });
            continue;
        }
        for &percent in &flags.repeat {
            let tail = if percent == 0 { String::new() } else { format!("-rp{percent}") };
            let mut queues = Queues::new(&classes, percent, Random::new(flags.seed));
            let queries = (0..flags.count()).map_while(|_| queues.query(recipe)).collect();
            sets.push(Set { name: recipe.name() + &tail, recipe, queries });
        }
    }
    let folder = folder(flags);
    tools::make_folder(&folder)?;
    for set in &sets {
        if set.queries.is_empty() {
            say(&format!("set {} is left out: there are no such queries", set.name));
        }
        let text: String = set.queries.iter().map(|query| format!("{query}\n")).collect();
        tools::write(&folder.join(format!("{}.txt", set.name)), &text)?;
    }
    sets.retain(|set| !set.queries.is_empty());
    Ok(sets)
}

/// Where sets and batches are written.
pub fn folder(flags: &Flags) -> PathBuf {
    flags.data_dir().join("sets")
}
