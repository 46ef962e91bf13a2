//! What is encoded: groups of lists, one after another.
//!
//! You have flags; you get every [`Group`] of every dataset in turn, the same for the same seed and index. Only one
//! group of generated lists is in memory at a time.

use super::flags::Flags;
use super::real::RealLists;
use super::synthetic;
use crate::{Random, Result};

/// What the values of a list are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Strictly increasing.
    Ids,
    /// In any order, most of them small.
    Frequencies,
}

/// Lists of one dataset and one length class.
pub struct Group {
    /// Name of the dataset.
    pub dataset: &'static str,
    /// What its values are.
    pub kind: Kind,
    /// Lists have `2^k` to `2^(k+1) - 1` values; `None` if lengths are mixed.
    pub k: Option<u32>,
    /// The lists, none of them empty.
    pub lists: Vec<Vec<u32>>,
}

impl Group {
    /// Values of all lists.
    pub fn ints(&self) -> u64 {
        self.lists.iter().map(|list| list.len() as u64).sum()
    }
}

/// How much is measured, and how often.
#[derive(Clone, Copy)]
struct Scale {
    /// A generated group has at least so many values.
    group_ints: usize,
    /// Of longer indexes only every so many-th term is taken that there are at most about so many.
    real_ints: u64,
    rounds: usize,
}

const WHOLE: Scale = Scale { group_ints: 1 << 22, real_ints: 1 << 26, rounds: 9 };
const QUICK: Scale = Scale { group_ints: 1 << 19, real_ints: 1 << 22, rounds: 5 };

/// The group of generated frequencies has so many times the values of a group of ids: it is the only one.
const ZIPF_GROUPS: usize = 4;

/// Length classes of the generated ids.
const CLASSES: std::ops::RangeInclusive<u32> = 10..=22;

/// Which groups there are.
pub(super) struct Plan {
    scale: Scale,
    seed: u64,
    real: Option<RealLists>,
}

impl Plan {
    /// Reads the lists of the index, if there is one.
    pub(super) fn new(flags: &Flags) -> Result<Plan> {
        let scale = if flags.quick { QUICK } else { WHOLE };
        let real = flags.index.as_deref().map(|dir| RealLists::read(dir, scale.real_ints)).transpose()?;
        Ok(Plan { scale, seed: flags.seed, real })
    }

    /// Rounds of timing.
    pub(super) fn rounds(&self) -> usize {
        self.scale.rounds
    }

    /// A generated group has at least so many values.
    pub(super) fn group_ints(&self) -> usize {
        self.scale.group_ints
    }

    /// The lists of the index.
    pub(super) fn real(&self) -> Option<&RealLists> {
        self.real.as_ref()
    }

    /// Makes one group after another of the kinds that are `wanted`.
    pub(super) fn groups(
        &self,
        wanted: impl Fn(Kind) -> bool,
        each: &mut dyn FnMut(&Group) -> Result<()>,
    ) -> Result<()> {
        if wanted(Kind::Ids) {
            self.ids("uniform", synthetic::uniform_list, each)?;
            self.ids("clustered", synthetic::clustered_list, each)?;
        }
        if wanted(Kind::Frequencies) {
            let mut random = self.random("zipf-freq", 0);
            let lists = fill(ZIPF_GROUPS * self.scale.group_ints, || synthetic::zipf_list(&mut random));
            each(&Group { dataset: "zipf-freq", kind: Kind::Frequencies, k: None, lists })?;
        }
        self.real.as_ref().map_or(Ok(()), |real| real.groups(wanted, each))
    }

    /// The groups of all length classes of a dataset.
    fn ids(
        &self,
        dataset: &'static str,
        list: fn(&mut Random, u32) -> Vec<u32>,
        each: &mut dyn FnMut(&Group) -> Result<()>,
    ) -> Result<()> {
        for k in CLASSES {
            let mut random = self.random(dataset, k);
            let lists = fill(self.scale.group_ints, || list(&mut random, k));
            each(&Group { dataset, kind: Kind::Ids, k: Some(k), lists })?;
        }
        Ok(())
    }

    /// Numbers that are a group's own, so that no group depends on those before it.
    fn random(&self, dataset: &str, k: u32) -> Random {
        let name = dataset.bytes().fold(u64::from(k), |sum, byte| sum * 31 + u64::from(byte));
        Random::new(Random::new(self.seed).bits() ^ name)
    }
}

/// Lists until there are `ints` values, at least one.
fn fill(ints: usize, mut list: impl FnMut() -> Vec<u32>) -> Vec<Vec<u32>> {
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
    fn groups_are_large_enough_and_of_their_class() {
        let plan = Plan::new(&Flags { quick: true, ..Flags::default() }).unwrap();
        let mut seen = Vec::new();
        let mut look = |group: &Group| {
            assert!(group.ints() >= plan.group_ints() as u64 && !group.lists.is_empty());
            if let Some(k) = group.k {
                assert!(group.lists.iter().all(|list| list.len().ilog2() == k));
            }
            seen.push((group.dataset, group.k));
            Ok(())
        };
        plan.groups(|kind| kind == Kind::Frequencies, &mut look).unwrap();
        plan.ids("uniform", synthetic::uniform_list, &mut look).unwrap();
        assert_eq!(seen[0], ("zipf-freq", None));
        assert_eq!(seen[1..], CLASSES.map(|k| ("uniform", Some(k))).collect::<Vec<_>>());
    }
}
