//! Crate `fastpfor`: `FastPFor` over blocks of 256 values, by its scalar and its SIMD loops.
//!
//! The format keeps the exceptions of a page of up to 65,536 values together, so a call takes a whole page
//! here, not a block, and its decoded values fill 256 KiB and not a buffer in L1. The words of a page follow
//! their number. The crate does not compute differences and decodes into a vector of its own, so differences
//! are computed before, and prefix sums or a copy after it.

use crate::plain::{OWN, differences, initial, sums};
use fastpfor::{AnyLenCodec, FastPFor256, FastPForSimd256};
use std::cell::RefCell;
use tierdex_bench::codecs::{Contender, ContenderInfo, Peer, ValueKind};

/// Both loops for both kinds of values.
pub fn all() -> Vec<Box<dyn Peer>> {
    vec![
        Paged::<FastPFor256>::boxed("fastpfor256-delta", ValueKind::Ids),
        Paged::<FastPForSimd256>::boxed("fastpfor-simd256-delta", ValueKind::Ids),
        Paged::<FastPFor256>::boxed("fastpfor256", ValueKind::Frequencies),
        Paged::<FastPForSimd256>::boxed("fastpfor-simd256", ValueKind::Frequencies),
    ]
}

/// Values of a page.
const PAGE: usize = 1 << 16;

struct Paged<C> {
    name: &'static str,
    kind: ValueKind,
    state: RefCell<PageState<C>>,
}

/// The codec and a page of plain values; both keep their memory from call to call.
#[derive(Default)]
struct PageState<C> {
    codec: C,
    page: Vec<u32>,
}

impl<C: AnyLenCodec<Elem = u32> + 'static> Paged<C> {
    fn boxed(name: &'static str, kind: ValueKind) -> Box<dyn Peer> {
        Box::new(Paged::<C> { name, kind, state: RefCell::default() })
    }
}

impl<C: AnyLenCodec<Elem = u32> + 'static> Contender for Paged<C> {
    type Word = u32;

    fn info(&self) -> ContenderInfo {
        ContenderInfo { codec: self.name.to_string(), kernel: OWN, kind: Some(self.kind) }
    }

    fn block(&self) -> usize {
        PAGE
    }

    fn encode(&self, values: &[u32], prev: u32, out: &mut Vec<u32>) {
        let PageState { codec, page } = &mut *self.state.borrow_mut();
        let at = out.len();
        out.push(0);
        let written = match self.kind {
            ValueKind::Ids => {
                differences(values, initial(prev), page);
                codec.encode(page, out)
            }
            ValueKind::Frequencies => codec.encode(values, out),
        };
        // A failed page has no words, so its round trip fails.
        out[at] = if written.is_ok() { (out.len() - at - 1) as u32 } else { 0 };
    }

    fn decode(&self, words: &[u32], prev: u32, out: &mut [u32]) -> Option<usize> {
        let PageState { codec, page } = &mut *self.state.borrow_mut();
        let (&len, words) = words.split_first()?;
        page.clear();
        codec.decode(words.get(..len as usize)?, page, u32::try_from(out.len()).ok()).ok()?;
        match self.kind {
            ValueKind::Ids => sums(page.get(..out.len())?, initial(prev), out),
            ValueKind::Frequencies => out.copy_from_slice(page.get(..out.len())?),
        }
        Some(1 + len as usize)
    }
}
