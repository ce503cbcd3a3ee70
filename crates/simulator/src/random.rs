//! The seeded generator behind every choice that hardware leaves open.

/// SplitMix64: one word of state, so that a run is a function of its seed alone.
#[derive(Debug, Clone)]
pub(crate) struct Random {
    state: u64,
}

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self { state: seed ^ 0x9e37_79b9_7f4a_7c15 }
    }

    #[inline]
    pub(crate) fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in `0..bound`; `bound` must not be zero.
    #[inline]
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (((self.next() >> 32) * bound as u64) >> 32) as usize
    }

    /// Instructions that a chosen lane group may run before the next choice: mostly long, sometimes single steps, so
    /// that both fine interleavings and long overtakes are seen.
    #[inline]
    pub(crate) fn burst(&mut self) -> u32 {
        let word = self.next();
        if word & 7 == 0 { 1 + ((word >> 8) & 3) as u32 } else { 16 + ((word >> 8) & 63) as u32 }
    }

    /// How long an asynchronous operation takes, in steps. The spread over three orders of magnitude makes operations
    /// overtake each other.
    #[inline]
    pub(crate) fn latency(&mut self) -> u64 {
        let word = self.next();
        let bits = 3 + (word & 7);
        1 + ((word >> 8) & ((1 << bits) - 1))
    }

    /// A random order of the slice's members.
    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_seed_same_sequence() {
        let (mut a, mut b) = (Random::new(7), Random::new(7));
        assert!((0..100).all(|_| a.next() == b.next()));
        assert!((0..1000).all(|_| a.below(3) < 3 && a.burst() >= 1 && a.latency() >= 1));
    }
}
