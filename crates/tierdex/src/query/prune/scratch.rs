//! Memory that one query after the other uses, so that none asks the system for it.

use super::batch::Batch;
use super::count::Marks;
use super::scored::Room;
use super::sums::Sums;
use crate::cursor::AtHand;
use crate::query::ops::Pool;

/// Rooms that are kept by who plans: what a query with many lists needs is not kept beside that of who answers.
const FEW: usize = 4;

/// Rooms for the lists of a query, and what the ways of evaluation note on the way.
#[derive(Default)]
pub struct Scratch {
    /// Windows of operators.
    pub pool: Pool,
    #[allow(clippy::vec_box, reason = "a list takes one without a copy")]
    pub(super) at_hand: Vec<Box<AtHand>>,
    #[allow(clippy::vec_box, reason = "a list takes one without a copy")]
    pub(super) rooms: Vec<Box<Room>>,
    /// Blocks with their bounds.
    pub(super) keys: Vec<u64>,
    /// Room to select among them.
    pub(super) room: Vec<u64>,
    /// Bounds of superblocks, and of terms.
    pub(super) bounds: Vec<f32>,
    /// Sums of bounds.
    pub(super) rests: Vec<f32>,
    /// Terms in some order.
    pub(super) order: Vec<usize>,
    pub(super) sums: Box<Sums>,
    /// Without a mark: who takes some gives them back once it has none, and after an error not at all.
    pub(super) marks: Vec<Marks>,
    pub(super) batches: [Batch; 3],
}

impl Scratch {
    /// Gives all but a little back.
    pub fn shrink(&mut self) {
        self.at_hand.truncate(FEW);
        self.rooms.truncate(FEW);
        self.batches.iter_mut().for_each(Batch::shrink);
    }
}
