//! What a tensor-core operation touches, for race checks.

use std::ops::Range;

use crate::shared::SharedRange;
use crate::tensor_memory::TensorRange;

/// What an operation touches in one CTA.
#[derive(Debug, Clone, Default)]
pub struct Footprint {
    /// Shared bytes read.
    pub shared_reads: Vec<SharedRange>,
    /// Tensor memory read.
    pub tensor_reads: Vec<TensorRange>,
    /// Tensor memory written.
    pub tensor_writes: Vec<TensorRange>,
}

impl Footprint {
    /// Empties the lists and keeps their memory.
    pub fn clear(&mut self) {
        self.shared_reads.clear();
        self.tensor_reads.clear();
        self.tensor_writes.clear();
    }

    /// Adds a range read from shared memory; one that continues the previous is merged with it.
    pub(super) fn add_shared_read(&mut self, range: Range<u32>) {
        match self.shared_reads.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => self.shared_reads.push(range),
        }
    }
}
