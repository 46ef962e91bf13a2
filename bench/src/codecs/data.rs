//! The data: generates or reads every [`ListGroup`] of every dataset, one after another.
//!
//! The groups depend only on the index. At most one generated group is in memory at a time.

use crate::codecs::{index_lists::IndexLists, list_group::ListGroup, list_group::ValueKind};
use crate::{Error, Random, Result, codecs::request::CodecsRequest, codecs::synthetic};
use tierdex::StopSignal;

/// How many values a run has in each group, and in how many rounds it measures them.
#[derive(Clone, Copy)]
pub(super) struct DataScale {
    /// Smallest number of values of a generated group.
    pub(super) group_ints: usize,
    /// Approximate largest number of values from an index; of a larger index every n-th term is taken.
    index_ints: u64,
    /// Number of timed rounds.
    pub(super) rounds: usize,
}

const WHOLE_RUN: DataScale = DataScale { group_ints: 1 << 22, index_ints: 1 << 26, rounds: 9 };
const QUICK_RUN: DataScale = DataScale { group_ints: 1 << 19, index_ints: 1 << 22, rounds: 5 };

/// The group of generated frequencies has this many times as many values as a group of ids, because there is
/// only one.
const FREQUENCY_GROUP_FACTOR: usize = 4;

/// Length classes K of generated lists of ids: from 2^10 to 2^23 - 1 ids.
const LENGTH_CLASSES: std::ops::RangeInclusive<u32> = 10..=22;

/// Seed of the generated lists.
const SEED: u64 = 1;

/// The groups of a run.
pub(super) struct DataPlan {
    pub(super) scale: DataScale,
    one_byte: Option<u32>,
    /// The lists of the index, if the request names one.
    index: Option<IndexLists>,
}

impl DataPlan {
    /// The groups that the request selects. Reads the lists of the index, if one is named.
    pub(super) fn new(request: &CodecsRequest, stop: &StopSignal) -> Result<DataPlan> {
        if request.one_byte.is_some_and(|percent| percent > 100) {
            return Err(Error::Usage("`one-byte` must be 0 to 100 percent".to_string()));
        }
        let scale = if request.quick { QUICK_RUN } else { WHOLE_RUN };
        let read = |dir| IndexLists::read(dir, scale.index_ints, stop);
        let index = request.index.as_deref().map(read).transpose()?;
        Ok(DataPlan { scale, one_byte: request.one_byte, index })
    }

    /// Passes each group of the `selected` kinds to `each`.
    pub(super) fn for_each_group(
        &self,
        selected: impl Fn(ValueKind) -> bool,
        each: &mut dyn FnMut(&ListGroup) -> Result<()>,
    ) -> Result<()> {
        if let Some(percent) = self.one_byte {
            return if selected(ValueKind::Ids) { self.generate_one_byte(percent, each) } else { Ok(()) };
        }
        if selected(ValueKind::Ids) {
            self.generate_id_groups("uniform", synthetic::uniform_list, each)?;
            self.generate_id_groups("clustered", synthetic::clustered_list, each)?;
        }
        if selected(ValueKind::Frequencies) {
            let mut random = group_random("zipf-freq", 0);
            let lists = lists_with_ints(FREQUENCY_GROUP_FACTOR * self.scale.group_ints, || {
                synthetic::zipf_list(&mut random)
            });
            each(&ListGroup { dataset: "zipf-freq", kind: ValueKind::Frequencies, k: None, lists })?;
        }
        self.index.as_ref().map_or(Ok(()), |lists| lists.for_each_group(selected, each))
    }

    /// Generates one group for each of [`LENGTH_CLASSES`] by the function `list`, and passes it to `each`.
    fn generate_id_groups(
        &self,
        dataset: &'static str,
        list: fn(&mut Random, u32) -> Vec<u32>,
        each: &mut dyn FnMut(&ListGroup) -> Result<()>,
    ) -> Result<()> {
        for k in LENGTH_CLASSES {
            let mut random = group_random(dataset, k);
            let lists = lists_with_ints(self.scale.group_ints, || list(&mut random, k));
            each(&ListGroup { dataset, kind: ValueKind::Ids, k: Some(k), lists })?;
        }
        Ok(())
    }

    /// Generates the group of lists with `percent` one-byte differences.
    fn generate_one_byte(&self, percent: u32, each: &mut dyn FnMut(&ListGroup) -> Result<()>) -> Result<()> {
        let (dataset, k) = ("one-byte", synthetic::ONE_BYTE_LENGTH_CLASS);
        let mut random = group_random(dataset, percent);
        let lists =
            lists_with_ints(self.scale.group_ints, || synthetic::one_or_two_byte_list(&mut random, percent));
        each(&ListGroup { dataset, kind: ValueKind::Ids, k: Some(k), lists })
    }
}

/// A generator for one group, so that no group depends on those before it.
fn group_random(dataset: &str, k: u32) -> Random {
    let name = dataset.bytes().fold(u64::from(k), |sum, byte| sum * 31 + u64::from(byte));
    Random::new(Random::new(SEED).bits() ^ name)
}

/// Lists from `list` until they have at least `ints` values in all.
fn lists_with_ints(ints: usize, mut list: impl FnMut() -> Vec<u32>) -> Vec<Vec<u32>> {
    let (mut lists, mut sum) = (Vec::new(), 0);
    while sum < ints {
        let list = list();
        sum += list.len();
        lists.push(list);
    }
    lists
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_have_enough_values_of_their_length_class() {
        let request = CodecsRequest { quick: true, ..CodecsRequest::default() };
        let plan = DataPlan::new(&request, &StopSignal::default()).unwrap();
        let mut seen = Vec::new();
        let mut check = |group: &ListGroup| {
            assert!(group.ints() >= plan.scale.group_ints as u64 && !group.lists.is_empty());
            if let Some(k) = group.k {
                assert!(group.lists.iter().all(|list| list.len().ilog2() == k));
            }
            seen.push((group.dataset, group.k));
            Ok(())
        };
        plan.for_each_group(|kind| kind == ValueKind::Frequencies, &mut check).unwrap();
        plan.generate_id_groups("uniform", synthetic::uniform_list, &mut check).unwrap();
        assert_eq!(seen[0], ("zipf-freq", None));
        assert_eq!(seen[1..], LENGTH_CLASSES.map(|k| ("uniform", Some(k))).collect::<Vec<_>>());
    }
}
