//! The words of a report: what was done, and how each engine was used.

use super::limit;
use crate::{engine::Kind, results::Results};
use crate::flags::{Flags, Norms};
use crate::sets::{Group, Set, recipe::Recipe};

/// The method, in sentences.
pub fn text(flags: &Flags, results: &Results) -> String {
    let corpus = &results.corpus;
    let (k1, b) = flags.bm25().unwrap_or((1.2, 0.75));
    let mut text = format!(
        "{} documents, {:.1} MB of tokens, {} different ones. Every engine reads the same file, one document a line, and \
         splits it at blanks: tokens are the runs of letters and digits of title and text, in lower case. Ids and \
         frequencies are indexed, no text, and positions only in an index of its own for phrases; {}; BM25 with k1 {k1} \
         and b {b}. Indexing: one thread, {} MB for postings that wait; CPU time is that of all threads of the process, \
         user and system.\n\n",
        corpus.documents,
        corpus.bytes as f64 / 1e6,
        corpus.terms.len(),
        segments(flags),
        flags.memory,
    );
    if flags.copies > 1 {
        text += &format!(
            "The text is contained {} times: of n documents, number i of copy c > 0 is the first half of document i and the second \
             half of document (7,919 i + 104,729 c) mod n.\n\n",
            flags.copies
        );
    }
    text += &flags.limit.map_or_else(|| in_memory(flags), |limit| limit::method(flags, limit));
    text += COMMANDS;
    text += SETS;
    text += &shapes(results);
    text += "Engines:\n\n";
    let mut known = Vec::new();
    for row in &results.indexing {
        if known.contains(&row.kind) {
            continue;
        }
        known.push(row.kind);
        text += &format!("- {}: {}. {}\n", row.kind.name(), row.version, about(row.kind, flags));
    }
    for line in results.left_out.iter().chain(&results.unanswered()) {
        text += &format!("- {line}\n");
    }
    text
}

fn segments(flags: &Flags) -> String {
    match flags.segments {
        1 => "one segment".to_string(),
        count => format!("{count} segments of equally many documents, a commit each, never merged"),
    }
}

fn in_memory(flags: &Flags) -> String {
    format!(
        "Each engine is a process that has its index in memory and answers the same file of queries in one batch; the \
         clock is its own, from the first query to the last, its reading of the query's text included. Engines take \
         turns, another one first in each round; {} rounds are thrown away, for Lucene three at least, {} count, and a \
         figure is the median of those. A set has up to {} queries; they are repeated, equally for all engines, until a batch of the fastest \
         takes some {} ms. Queries hold no term twice, but for phrases.\n\n",
        flags.warm(),
        flags.rounds(),
        flags.count(),
        flags.batch_ns() / 1_000_000
    )
}

const COMMANDS: &str = "Commands: `COUNT` the number of matches; `TOP_k` the best k hits, documents that cannot be among \
    them may be passed over; `TOP_k_COUNT` the best k hits and the number of all matches.\n\n";

const SETS: &str = "Sets. By document frequency: H more than 1% of the documents, M 0.001% to 1%, L less and at least two. \
    `single-h`: one term; `and-hh`, `or-hh`: two of one class; `and-3-5`, `or-3-5`: three to five, equally often, the \
    class of each H or M with equal odds (suffix `-h`: all H). Terms of a class are in a shuffled queue from which the \
    next is popped; with the probability of repeats (`-rp25`: 25%) a random one of the last hundred is asked instead. \
    `game`: the conjunctions and unions of the search-benchmark-game; `questions`: questions of MS MARCO passage, dev; \
    `terabyte`: TREC Terabyte 2005, efficiency; a seeded choice of each. Of alternatives, terms that no document holds are \
    left out; conjunctions with such a term are left out, and so is what has fewer than two terms. Mixed queries are named \
    by their clauses: `must-m-filter-h` is a required term of class M and a filter of class H, which is required and does not \
    score; `not`: excluded; `should`: adds to the score, as alternatives where nothing is required. M are there only terms of \
    at least 200 documents. `phrase-2`, `phrase-3`, `phrase-4`: words in a row from random places of the text.\n\n";

const SHAPES: &str = "Shapes: patterns in which h and m are a term of class H or M, x one of these with equal odds, of letters \
    only and at least 4 or 6 of them before `~1` or `~2`, and p the first 3 to 5 characters of such a term, at least one \
    less than it has. M are only terms of at least 200 documents. `slop-2`, `slop-3`: different words near each other in the \
    text, in another order or with one between them left out, with slop 3 and 4. Engines expand fuzzy words to different \
    terms, so matches of these are not counted.";

/// How the measured shapes are made; empty if there are none.
fn shapes(results: &Results) -> String {
    let pattern = |set: &Set| match set.recipe {
        Recipe::Pattern { group: Group::Shapes, pattern, .. } => Some(format!("`{}` is `{pattern}`", set.name)),
        _ => None,
    };
    let patterns: Vec<String> = results.sets.iter().filter_map(pattern).collect();
    if results.sets.iter().all(|set| set.recipe.group() != Group::Shapes) {
        return String::new();
    }
    format!("{SHAPES} {}\n\n", patterns.join(", "))
}

fn about(kind: Kind, flags: &Flags) -> &'static str {
    match kind {
        Kind::Tierdex if flags.norms == Norms::Exact => {
            "Lengths exact; analysis `whitespace`, `--store none`."
        }
        Kind::Tierdex => {
            "Lengths in one byte, exact below 128 tokens; analysis `whitespace`, `--store none`, `--threads 1`. Blocks \
             are decoded anew for each query."
        }
        Kind::Tantivy => {
            "Lengths in one byte, exact below 40 tokens; a column of ordinals names the hits; RamDirectory, or MmapDirectory under a limit; compiled for \
             this CPU. `COUNT` by `Query::count`, `TOP_k` by `TopDocs` (block-max WAND), `TOP_k_COUNT` by `TopDocs` and \
             `Count` together. Queries are built from the words, not by its parser. A filter is a required `ConstScoreQuery` of \
             score 0; filters and excluded terms ask for no frequencies. A group is a `BooleanQuery`, a prefix an \
             `InvertedIndexRangeQuery`, a fuzzy word a `FuzzyTermQuery` (each document scores 1), slop that of `PhraseQuery`."
        }
        Kind::Lucene => {
            "Lengths in one byte, exact below 40 tokens; MMapDirectory, without a limit all files are read before; the vector module is on; no query cache. \
             `COUNT` by `IndexSearcher.count`, `TOP_k` with a threshold of k hits, `TOP_k_COUNT` with no limit to \
             counting. Queries are built from the words, not by its parser: a `BooleanQuery` of `MUST`, `SHOULD`, `FILTER` and \
             `MUST_NOT`, `PhraseQuery`, `PrefixQuery` and `FuzzyQuery` with their default rewrites."
        }
        Kind::Pisa => {
            "By its Python binding, in few calls a batch; making the hits' names as Python objects is part of the time. \
             `ranked_and`; `maxscore` from six words on; else `block_max_maxscore`, or for k up to 100 `wand` and for one \
             word `block_max_wand`. It does not count. Lengths exact. Words in more than half of the documents weigh next \
             to nothing in its BM25. It takes documents from Python: its time of indexing says nothing."
        }
        Kind::Seekstorm => {
            "One shard, `AccessType::Ram`, tokenizer `Whitespace`, no stop words, no n-grams, `Bm25f`; positions are \
             always kept. It has no filters, and where a word is required all are. Phrases it scores otherwise, and it counts \
             some of them otherwise, such as those with a word twice."
        }
    }
}
