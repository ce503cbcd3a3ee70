//! When the fused kernel is worth it.

/// Fewest rows from which the fused kernel is used unless told otherwise, as the reference module ships. Where it
/// really pays depends on the machine and on what it is compared with, so it is a setting.
pub const DEFAULT_MIN_ROWS: u64 = 128;

/// A threshold on M, the same on every rank: ranks that decided differently would wait for each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// Fewest rows.
    pub min_rows: u64,
}

impl Default for Policy {
    fn default() -> Self {
        Self { min_rows: DEFAULT_MIN_ROWS }
    }
}

impl Policy {
    /// Whether a call of `m` rows should be fused.
    pub fn should_run(self, m: u64) -> bool {
        m >= self.min_rows
    }
}
