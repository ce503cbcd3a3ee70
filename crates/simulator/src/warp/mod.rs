//! One warp: its registers, its lane groups, and how it executes instructions.

mod access;
mod async_copy;
mod atomics;
mod barriers;
mod bulk;
mod collective;
mod device_memory;
mod fragment;
mod launch_control;
mod matrix;
mod mbarriers;
mod multimem;
mod poll;
mod remote_store;
mod special;
mod step;
mod tensor;
mod tensor_map;
mod wgmma;

use std::sync::Arc;

pub(crate) use fragment::{Fragment, FragmentState, Wait};
pub(crate) use step::{Burst, Context};

use crate::launch::Launch;
use crate::memory::shared_address;
use crate::program::{LaneMask, Registers, WARP_LANES};
use fragment::Convergence;

/// Names one suspension of one lane group; a later suspension of the same group has another number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WaitToken {
    pub(crate) warp: u32,
    pub(crate) fragment: u32,
    pub(crate) wait: u64,
}

/// How a suspended lane group goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Resume {
    /// Execute the instruction again.
    Retry,
    /// Go on behind it.
    Next,
    /// The barrier at which it waits is complete: execute the instruction again to take its result.
    Completed,
    /// Simulated time has passed: a bounded wait may give up.
    TimedOut,
}

/// One resident warp.
#[derive(Debug)]
pub(crate) struct Warp {
    pub(crate) slot: u32,
    pub(crate) cta: u32,
    pub(crate) index: u32,
    /// First address of its CTA's shared memory in the cluster's window.
    pub(crate) shared_base: u64,
    pub(crate) launch: Arc<Launch>,
    pub(crate) registers: Registers,
    /// Local memory, lane after lane; allocated when first touched.
    pub(crate) local: Vec<u8>,
    /// Lanes that have not exited.
    pub(crate) live: LaneMask,
    pub(crate) fragments: Vec<Fragment>,
    convergence: Vec<Convergence>,
    /// Parked lanes were released early once, so that lanes may legitimately be apart.
    pub(crate) loose: bool,
    pub(crate) wgmma: wgmma::WgmmaState,
    /// `cp.async` not waited for.
    copies: async_copy::PendingCopies,
    /// Buffer of `tcgen05.ld`.
    pub(crate) loaded: Vec<[u32; WARP_LANES]>,
}

impl Warp {
    pub(crate) fn new(cta: u32, rank: u32, index: u32, live: LaneMask, launch: Arc<Launch>) -> Self {
        let kernel = &launch.kernel;
        Self {
            slot: u32::MAX,
            cta,
            index,
            shared_base: shared_address(rank, 0).into(),
            registers: Registers::new(kernel.register_count, kernel.predicate_count),
            local: Vec::new(),
            live,
            fragments: vec![Fragment::new(0, live, None)],
            convergence: Vec::new(),
            loose: false,
            wgmma: wgmma::WgmmaState::default(),
            copies: async_copy::PendingCopies::default(),
            loaded: Vec::new(),
            launch,
        }
    }
}
