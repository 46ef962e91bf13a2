//! Upper bounds of the shares of a list's blocks: the share of a posting is `f / (f + k)`, its score divided
//! by the weight of the term.

use crate::error::Result;
use crate::limits::SUPERBLOCK;
use crate::rank::TermScorer;
use crate::segment::read::BlockList;
use crate::transform::impact::Impact;
use std::ops::RangeInclusive;

/// Above this ratio of average lengths the bound by the stored share is so loose that impacts are worth their
/// decoding.
const FACTOR_MAX: f64 = 1.2;

/// Where upper bounds come from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bounds {
    /// The shares that are stored for the default parameters and the segment's own average length, times this
    /// factor, at least 1.
    Stored(f32),
    /// The (frequency, norm) pairs that are stored: decoded when a block is first asked for.
    Impacts,
}

impl Bounds {
    /// For default parameters, if the average length in the segment is `stored`, and `ranking` that of the
    /// collection.
    ///
    /// `k(l)` falls when the average rises from `a` to `a'`, at most by the factor `a / a'`. So the ratio of
    /// shares, `(f + k) / (f + k')`, is at most `k / k' <= a' / a`, and the stored share times `a' / a` is an
    /// upper bound. When the average falls, every share falls.
    pub fn for_average(stored: f64, ranking: f64) -> Bounds {
        let factor = ranking / stored;
        match factor {
            _ if factor <= 1.0 => Bounds::Stored(1.0),
            _ if factor <= FACTOR_MAX => Bounds::Stored((factor * (1.0 + 1e-6)) as f32),
            _ => Bounds::Impacts,
        }
    }
}

/// Upper bounds by impacts, of the blocks and superblocks that were asked for.
#[derive(Default)]
pub struct ImpactShares {
    /// 0 where none was asked for: a share is greater.
    blocks: Vec<f32>,
    superblocks: Vec<f32>,
    impacts: Vec<Impact>,
}

impl ImpactShares {
    pub(super) fn restart(&mut self, list: Option<&BlockList<'_>>) {
        for (shares, len) in [
            (&mut self.blocks, list.map_or(0, BlockList::blocks)),
            (&mut self.superblocks, list.map_or(0, BlockList::superblocks)),
        ] {
            shares.clear();
            shares.resize(len, 0.0);
        }
    }

    pub(super) fn block(&mut self, list: &BlockList<'_>, scorer: &TermScorer, block: usize) -> Result<f32> {
        if self.blocks[block] == 0.0 {
            list.impacts(block, &mut self.impacts)?;
            self.blocks[block] = scorer.max_share(&self.impacts);
        }
        Ok(self.blocks[block])
    }

    pub(super) fn superblock(
        &mut self,
        list: &BlockList<'_>,
        scorer: &TermScorer,
        superblock: usize,
    ) -> Result<f32> {
        if self.superblocks[superblock] == 0.0 {
            list.super_impacts(superblock, &mut self.impacts)?;
            self.superblocks[superblock] = scorer.max_share(&self.impacts);
        }
        Ok(self.superblocks[superblock])
    }

    /// The largest of some blocks; whole superblocks by their own impacts.
    pub(super) fn range(
        &mut self,
        list: &BlockList<'_>,
        scorer: &TermScorer,
        blocks: RangeInclusive<usize>,
    ) -> Result<f32> {
        let (mut block, end, mut max) = (*blocks.start(), *blocks.end(), 0.0f32);
        while block <= end {
            if block.is_multiple_of(SUPERBLOCK) && block + SUPERBLOCK - 1 <= end {
                max = max.max(self.superblock(list, scorer, block / SUPERBLOCK)?);
                block += SUPERBLOCK;
            } else {
                max = max.max(self.block(list, scorer, block)?);
                block += 1;
            }
        }
        Ok(max)
    }
}
