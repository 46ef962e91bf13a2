//! Binds phrases: their terms, and the terms that a cluster at the end stands for.

use super::{Binder, WrittenPhrase, any_of};
use crate::query::expand::{ExpandedTerm, terms_with_prefix};
use crate::query::plan_node::{InfoBySegment, PlanNode, TermPrefix};
use crate::{Error, Result, limits::PHRASE_EXPANSIONS_MAX, query::Query};

/// What follows from the terms of a phrase that have been bound so far.
#[derive(Clone, Default)]
struct PhraseParts {
    /// Distances from the first term, and terms.
    leaves: Vec<(u32, usize)>,
    /// Sum of the inverse document frequencies.
    idf: f64,
    frequency_max: u32,
    /// Whether one of the terms is in no document.
    is_impossible: bool,
}

impl Binder<'_> {
    pub(super) fn bind_phrase(&mut self, phrase: WrittenPhrase<'_>) -> Result<PlanNode> {
        let parts = self.fixed_terms(phrase)?;
        Ok(self.phrase_node(parts, phrase))
    }

    /// Looks up the terms of a phrase, and adds them to the leaves of the plan.
    fn fixed_terms(&mut self, phrase: WrittenPhrase<'_>) -> Result<PhraseParts> {
        let mut parts = PhraseParts { frequency_max: u32::MAX, ..PhraseParts::default() };
        for (distance, term) in phrase.terms {
            let infos = self.look_up_term(phrase.field, term)?;
            let document_frequency = self.document_frequency(phrase.field, term, &infos);
            let leaf = (term.clone(), infos);
            self.add_to_phrase(&mut parts, phrase, *distance, leaf, document_frequency)?;
        }
        Ok(parts)
    }

    /// A phrase with `last` behind its terms, a cluster: the alternatives of the phrase with each term that
    /// begins with the cluster. All score with the largest of the document frequencies of these terms.
    pub(super) fn bind_open_phrase(
        &mut self,
        phrase: WrittenPhrase<'_>,
        last: &(u32, String),
    ) -> Result<PlanNode> {
        let (field, cluster) = (phrase.field, &last.1);
        let prefix = TermPrefix { text: cluster, whole_clusters: true };
        let given = self.ranking.statistics.and_then(|given| given.cluster(field, cluster));
        let matches = match given {
            Some(Some(terms)) => Some(self.look_up_all(field, terms.keys().map(|term| (&**term, 1.0)))?),
            Some(None) => None,
            None => terms_with_prefix(self.lists, field, prefix, PHRASE_EXPANSIONS_MAX)?,
        };
        let Some(matches) = matches else { return self.phrase_and_cluster(phrase, cluster) };
        let fixed = self.fixed_terms(phrase)?;
        let document_frequency = self.largest_document_frequency(field, &matches);
        let mut should = Vec::with_capacity(matches.len());
        for ExpandedTerm { term, infos, .. } in matches {
            let mut parts = fixed.clone();
            self.add_to_phrase(&mut parts, phrase, last.0, (term, infos), document_frequency)?;
            should.push(self.phrase_node(parts, phrase));
        }
        Ok(any_of(should))
    }

    /// A phrase whose last cluster begins too many terms: the cluster is required at any position.
    fn phrase_and_cluster(&mut self, phrase: WrittenPhrase<'_>, cluster: &str) -> Result<PlanNode> {
        let WrittenPhrase { field, terms, slop, boost } = phrase;
        if self.in_exclusion {
            return Err(Error::query(format!(
                "`{cluster}` at the end of an excluded phrase begins more than {PHRASE_EXPANSIONS_MAX} terms"
            )));
        }
        let fixed = match terms {
            [(_, term)] => Query::Term { field, term: term.clone(), boost },
            _ => Query::Phrase { field, terms: terms.to_vec(), slop, open_end: false, boost },
        };
        let cluster = Query::Prefix { field, prefix: cluster.to_string(), whole_clusters: true, boost };
        let (must, filter) = (vec![fixed], vec![cluster]);
        self.bind_node(&Query::Bool { must, filter, should: vec![], must_not: vec![], minimum: 0 })
    }

    fn add_to_phrase(
        &mut self,
        parts: &mut PhraseParts,
        phrase: WrittenPhrase<'_>,
        distance: u32,
        term: (String, InfoBySegment),
        document_frequency: u64,
    ) -> Result<()> {
        let idf = self.idf(phrase.field, document_frequency);
        parts.idf += idf;
        parts.is_impossible |= document_frequency == 0;
        parts.frequency_max = parts.frequency_max.min(self.frequency_max(phrase.field, &term.0, &term.1)?);
        let leaf = self.add_leaf(phrase.field, term.0, term.1, self.weight(idf, phrase.boost))?;
        parts.leaves.push((distance, leaf));
        Ok(())
    }

    /// With BM25 the weight of a phrase is the sum of the weights of its terms, with `Scorer::Dot` its boost.
    fn phrase_node(&mut self, parts: PhraseParts, phrase: WrittenPhrase<'_>) -> PlanNode {
        if parts.is_impossible {
            return PlanNode::Nothing;
        }
        self.phrases.push(self.new_scorer(phrase.field, parts.frequency_max));
        PlanNode::Phrase {
            field: phrase.field,
            leaves: parts.leaves.into(),
            phrase: self.phrases.len() - 1,
            slop: phrase.slop,
            weight: self.weight(parts.idf, phrase.boost),
        }
    }
}
