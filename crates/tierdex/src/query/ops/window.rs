//! A window of documents: which of them match, and their scores.

/// Documents in a window: scores and bits stay in the first-level cache.
pub const WINDOW: usize = 4096;

/// Matches and scores of the documents from `base` on. The score of a document that does not match is 0.
pub struct Window {
    base: u32,
    bits: [u64; WINDOW / 64],
    scores: [f32; WINDOW],
}

impl Window {
    fn new() -> Box<Window> {
        Box::new(Window { base: 0, bits: [0; WINDOW / 64], scores: [0.0; WINDOW] })
    }

    /// First document.
    pub fn base(&self) -> u32 {
        self.base
    }

    /// The document behind the last.
    pub fn end(&self) -> u32 {
        self.base.saturating_add(WINDOW as u32)
    }

    /// Moves to `base`, with no matches.
    pub fn reset(&mut self, base: u32) {
        self.base = base;
        self.bits.fill(0);
        self.scores.fill(0.0);
    }

    /// Adds a match.
    #[inline]
    pub fn add(&mut self, document: u32, score: f32) {
        let place = (document - self.base) as usize;
        self.bits[place / 64] |= 1 << (place % 64);
        self.scores[place] += score;
    }

    /// Makes all documents below `documents` match.
    pub fn add_all(&mut self, documents: u32) {
        for place in 0..WINDOW.min(documents.saturating_sub(self.base) as usize) {
            self.bits[place / 64] |= 1 << (place % 64);
        }
    }

    /// Whether nothing matches.
    pub fn is_empty(&self) -> bool {
        self.bits.iter().all(|&word| word == 0)
    }

    /// Number of matches.
    pub fn matches(&self) -> u64 {
        self.bits.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    /// Adds the matches of `other`.
    pub fn union(&mut self, other: &Window) {
        for (word, other) in self.bits.iter_mut().zip(&other.bits) {
            *word |= other;
        }
        self.add_scores(other);
    }

    /// Keeps the matches that are in `other` too, and adds its scores to theirs.
    pub fn intersect(&mut self, other: &Window) {
        for (i, other_bits) in other.bits.iter().enumerate() {
            self.keep(i, *other_bits);
        }
        for place in ones(&self.bits) {
            self.scores[place] += other.scores[place];
        }
    }

    /// Adds the scores of `other` to the matches that are in both.
    pub fn reward(&mut self, other: &Window) {
        let both: [u64; WINDOW / 64] = std::array::from_fn(|i| self.bits[i] & other.bits[i]);
        for place in ones(&both) {
            self.scores[place] += other.scores[place];
        }
    }

    /// Drops the matches that are in `other`.
    pub fn subtract(&mut self, other: &Window) {
        for (i, other_bits) in other.bits.iter().enumerate() {
            self.keep(i, !other_bits);
        }
    }

    /// Keeps the matches that are in `other` too.
    pub fn restrict(&mut self, other: &Window) {
        for (i, other_bits) in other.bits.iter().enumerate() {
            self.keep(i, *other_bits);
        }
    }

    /// Makes all scores 0.
    pub fn forget_scores(&mut self) {
        self.scores.fill(0.0);
    }

    /// Adds one to the count of each match, by its place.
    pub fn count(&self, counts: &mut [u16]) {
        for place in ones(&self.bits) {
            counts[place] = counts[place].saturating_add(1);
        }
    }

    /// Keeps the matches whose place `wanted` wants.
    pub fn retain(&mut self, wanted: impl Fn(usize) -> bool) {
        for i in 0..self.bits.len() {
            let places = (0..64).filter(|bit| self.bits[i] >> bit & 1 == 1 && wanted(64 * i + bit));
            self.keep(i, places.fold(0, |bits, bit| bits | 1 << bit));
        }
    }

    /// Calls `body` with each match and its score, in order.
    pub fn for_each(&self, mut body: impl FnMut(u32, f32)) {
        for place in ones(&self.bits) {
            body(self.base + place as u32, self.scores[place]);
        }
    }

    fn keep(&mut self, i: usize, bits: u64) {
        let mut dropped = self.bits[i] & !bits;
        self.bits[i] &= bits;
        while dropped != 0 {
            self.scores[64 * i + dropped.trailing_zeros() as usize] = 0.0;
            dropped &= dropped - 1;
        }
    }

    fn add_scores(&mut self, other: &Window) {
        for (score, other) in self.scores.iter_mut().zip(&other.scores) {
            *score += other;
        }
    }
}

fn ones(bits: &[u64; WINDOW / 64]) -> impl Iterator<Item = usize> + '_ {
    bits.iter().enumerate().flat_map(|(i, &word)| {
        let mut rest = word;
        std::iter::from_fn(move || {
            let place = (rest != 0).then(|| 64 * i + rest.trailing_zeros() as usize);
            rest &= rest.wrapping_sub(1);
            place
        })
    })
}

/// Windows that operators borrow while they work; their number is the depth of the query.
#[derive(Default)]
pub struct Pool {
    free: Vec<Box<Window>>,
}

impl Pool {
    /// A window at `base` without matches.
    pub fn take(&mut self, base: u32) -> Box<Window> {
        let mut window = self.free.pop().unwrap_or_else(Window::new);
        window.reset(base);
        window
    }

    /// Gives a window back.
    pub fn give(&mut self, window: Box<Window>) {
        self.free.push(window);
    }
}
