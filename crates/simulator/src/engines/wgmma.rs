//! Warpgroup products under way: each warp's share is computed in order of issue, at seeded later times.
//!
//! A `mma_async` is one operation of four warps. Its shares are computed apart, but it is complete only when all are.

use crate::fault::FaultCause;
use crate::machine::Machine;
use crate::program::WARP_LANES;
use crate::warp::{Resume, WaitToken};
use crate::wgmma::WarpProduct;

/// Warps of a warpgroup.
pub(crate) const GROUP_WARPS: u32 = 4;

/// Accumulators of one `mma_async` and those that add to them, register by register.
pub(crate) type Accumulators = Vec<[u32; WARP_LANES]>;

/// The products of one warp.
#[derive(Debug, Default)]
pub(crate) struct WgmmaPipe {
    /// Products computed.
    pub(crate) done: u32,
    accumulators: Vec<Accumulators>,
    free: Vec<u32>,
    /// Lane groups of the warpgroup that wait for it.
    pub(crate) waiters: Vec<WaitToken>,
}

impl WgmmaPipe {
    /// A buffer for accumulators; its contents are those of an earlier use.
    pub(crate) fn take_slot(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.accumulators.push(Vec::new());
            self.accumulators.len() as u32 - 1
        })
    }

    pub(crate) fn release_slot(&mut self, slot: u32) {
        self.free.push(slot);
    }

    pub(crate) fn slot(&self, slot: u32) -> &Accumulators {
        &self.accumulators[slot as usize]
    }

    pub(crate) fn slot_mut(&mut self, slot: u32) -> &mut Accumulators {
        &mut self.accumulators[slot as usize]
    }
}

impl Machine {
    /// Computes a warp's share of a product.
    pub(super) fn step_wgmma(
        &mut self,
        gpu: u32,
        cta: u32,
        warp: u32,
        product: &WarpProduct,
        slot: u32,
    ) -> Result<(), FaultCause> {
        let state = self.ctas.get_mut(cta);
        let pipe = &mut state.wgmma[warp as usize];
        let mut accumulators = std::mem::take(pipe.slot_mut(slot));
        let result = product.execute(&state.shared, &mut self.wgmma_scratch, &mut accumulators);
        let pipe = &mut state.wgmma[warp as usize];
        *pipe.slot_mut(slot) = accumulators;
        pipe.done += 1;
        for token in std::mem::take(&mut pipe.waiters) {
            self.wake(token, Resume::Retry);
        }
        self.counters[gpu as usize].tensor_macs += product.macs();
        Ok(result?)
    }
}
