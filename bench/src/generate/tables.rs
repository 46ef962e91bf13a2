//! Distributions as tables, so that a number is drawn by looking it up. Only sums, products and quotients are taken,
//! which are the same on every machine.

/// Intervals of the exponential law, each as likely as the others.
const STEPS: usize = 1 << STEP_BITS;
const STEP_BITS: u32 = 10;

/// What 1 is in the exponential law's table.
const ONE: f64 = 65_536.0;

/// Numbers that are drawn from a table of frequencies.
const DRAWS: usize = 1 << 12;

/// Classes of lists by the share of documents that they hold, the last one for all.
const CLASSES: usize = 32;

/// Tables of all laws.
pub(super) struct Tables {
    exponential: Box<Gaps>,
    /// Of each class.
    frequencies: Vec<Box<Frequencies>>,
}

/// Quantiles of the exponential law, and their distances to the next ones.
pub(super) type Gaps = [(u32, u32); STEPS];

/// Frequencies, each as often as it is likely.
pub(super) type Frequencies = [u8; DRAWS];

impl Tables {
    pub(super) fn new() -> Tables {
        Tables { exponential: exponential(), frequencies: (0..=CLASSES).map(frequencies).collect() }
    }

    /// The exponential law.
    pub(super) fn exponential(&self) -> &Gaps {
        &self.exponential
    }

    /// The frequencies of a list that holds `postings` of `documents` documents.
    pub(super) fn frequencies(&self, postings: u32, documents: u32) -> &Frequencies {
        let class = u64::from(postings) * CLASSES as u64 / u64::from(documents);
        &self.frequencies[class as usize]
    }
}

/// A number of the exponential law by 20 random bits, at least 1; its mean is about 65,536.
#[inline]
pub(super) fn gap(table: &Gaps, bits: u32) -> u32 {
    let (from, distance) = table[(bits >> STEP_BITS) as usize % STEPS];
    from + ((distance * (bits % STEPS as u32)) >> STEP_BITS)
}

/// A frequency by 12 random bits.
#[inline]
pub(super) fn frequency(table: &Frequencies, bits: u32) -> u32 {
    u32::from(table[bits as usize % DRAWS])
}

fn exponential() -> Box<Gaps> {
    let mut quantiles = vec![1];
    let mut sum = 0.0;
    for step in 1..STEPS {
        sum += logarithm_of_quotient((STEPS - step) as f64);
        quantiles.push((sum * ONE) as u32);
    }
    // Behind the last quantile the mean is 1 more.
    quantiles.push(((sum + 2.0) * ONE) as u32);
    let mut steps = Box::new([(0, 0); STEPS]);
    for (step, pair) in steps.iter_mut().zip(quantiles.windows(2)) {
        *step = (pair[0], pair[1] - pair[0]);
    }
    steps
}

/// ln((n + 1) / n) = 2 artanh(1 / (2 n + 1)), by its series.
fn logarithm_of_quotient(n: f64) -> f64 {
    let z = 1.0 / (2.0 * n + 1.0);
    let (mut power, mut sum) = (z, 0.0);
    for odd in (1..60).step_by(2) {
        sum += power / f64::from(odd);
        power *= z * z;
    }
    2.0 * sum
}

/// Frequencies of lists that hold a share `p` of the documents: one, and a number of the negative binomial law with
/// mean 0.2 + 4 p² and shape 0.35 + 8 p². Mosteller and Wallace found that law for words in texts of one length
/// (Inference and Disputed Authorship, 1964): rare words come in bursts, frequent ones nearly at random.
fn frequencies(class: usize) -> Box<Frequencies> {
    let share = class as f64 / CLASSES as f64;
    let (mean, shape) = (0.2 + 4.0 * share * share, 0.35 + 8.0 * share * share);
    let ratio = mean / (mean + shape);
    let mut weights = vec![1.0];
    for more in 1..255u8 {
        let last = weights[usize::from(more) - 1];
        weights.push(last * ratio * (f64::from(more) - 1.0 + shape) / f64::from(more));
    }
    let total: f64 = weights.iter().sum();
    let mut table = Box::new([0; DRAWS]);
    let (mut frequency, mut up_to) = (0, weights[0]);
    for (at, slot) in table.iter_mut().enumerate() {
        let middle = (at as f64 + 0.5) / DRAWS as f64 * total;
        while up_to <= middle && frequency < 254 {
            frequency += 1;
            up_to += weights[frequency];
        }
        *slot = frequency as u8 + 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exponential_law_has_its_mean_and_its_median() {
        let tables = Tables::new();
        let drawn = |bits| gap(tables.exponential(), bits);
        let all = (0..1 << 20).map(|bits| f64::from(drawn(bits)) / ONE);
        let mean = all.sum::<f64>() / f64::from(1 << 20);
        assert!((mean - 1.0).abs() < 0.002, "{mean}");
        let median = f64::from(drawn(1 << 19)) / ONE;
        assert!((median - std::f64::consts::LN_2).abs() < 1e-4, "{median}");
        assert!((0..STEPS as u32).all(|bits| drawn(bits) >= 1));
    }

    #[test]
    fn frequent_terms_stand_more_often_in_a_document() {
        let tables = Tables::new();
        for (postings, wanted) in [(1, 1.2), (50, 2.2), (75, 3.45)] {
            let table = tables.frequencies(postings, 100);
            let mean = table.iter().map(|&frequency| f64::from(frequency)).sum::<f64>() / DRAWS as f64;
            assert!((mean - wanted).abs() < 0.06, "{postings} of 100: {mean}");
            assert_eq!(table[0], 1);
        }
        let ones = tables.frequencies(1, 100).iter().filter(|&&frequency| frequency == 1).count();
        assert!((0.8..0.9).contains(&(ones as f64 / DRAWS as f64)));
    }
}
