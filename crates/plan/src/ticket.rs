//! Launch tickets: the values that ready and done words carry.

/// A launch's number, the same on every rank. The epoch is counted in device memory, so a replayed graph advances it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub struct Ticket(pub u32);

impl Ticket {
    /// The ticket of the launch after this one.
    #[inline(always)]
    pub const fn next(self) -> Self {
        Self(self.0.wrapping_add(1))
    }

    /// Whether a word that holds `self` has reached `wanted`. A fast source may already be a launch further, and then
    /// the whole of its previous launch is done, so "at or past" is the condition and "equal" would deadlock. The
    /// difference is taken modulo 2^32: ranks are never half the number space apart.
    #[inline(always)]
    pub const fn is_at_or_past(self, wanted: Self) -> bool {
        (self.0.wrapping_sub(wanted.0) as i32) >= 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comparison_survives_the_wrap() {
        let last = Ticket(u32::MAX);
        assert_eq!(last.next(), Ticket(0));
        assert!(last.next().is_at_or_past(last));
        assert!(!last.is_at_or_past(last.next()));
        assert!(last.is_at_or_past(last));
    }
}
