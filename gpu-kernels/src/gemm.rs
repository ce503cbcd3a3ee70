//! The fused kernel: one persistent CTA per SM, a role per warp.

use plan::arguments::GemmArguments;
use plan::kernels::roles;
use plan::schedule::{TileGrid, owned_rows};
use plan::shared_memory::STAGE_ALIGN;

use crate::epilogue;
use crate::mainloop::tcgen05 as mainloop;
use crate::protocol::{self, Tickets};
use crate::ptx::tma::TensorMap;
use crate::ptx::{barrier, cluster, fence, mbarrier, shared, special, tcgen05, tma, warp};
use crate::reduce::{self, multimem::Multicast};
use crate::variant::Variant;

/// Numbers of the CTA's named barriers.
pub struct NamedBarrier;

impl NamedBarrier {
    /// All threads, once, after set-up.
    pub const CTA: u32 = 0;
    /// The epilogue warps, after each tile's stores.
    pub const EPILOGUE: u32 = 1;
    /// The communication warps, after their last slice.
    pub const COMMUNICATION: u32 = 2;
    /// Epilogue and MMA warps, before tensor memory is freed.
    pub const DRAINED: u32 = 3;
}

/// Threads that meet at [`NamedBarrier::DRAINED`].
const DRAINED_THREADS: u32 = epilogue::THREADS + plan::WARP_LANES;

/// What every role knows of the launch.
pub struct Launch<'a> {
    /// The kernel's arguments.
    pub arguments: &'a GemmArguments,
    /// The problem's tiles.
    pub tiles: TileGrid,
    /// This launch's tickets.
    pub tickets: Tickets,
    /// Aligned start of dynamic shared memory.
    pub shared_base: u32,
    /// The same in the cluster's first CTA, as a shared-cluster address.
    pub leader_base: u32,
    /// This CTA's number in its cluster.
    pub cluster_rank: u32,
}

/// The tensor maps of a launch.
pub struct Operands {
    /// Operand A: boxes of 128 rows of one stage.
    pub a: *const TensorMap,
    /// Operand B: boxes of one stage and the rows that a CTA loads.
    pub b: *const TensorMap,
    /// A's scales: boxes of one group. Null if there are none.
    pub scale_a: *const TensorMap,
    /// B's scales: boxes of a tile's groups. Null if there are none.
    pub scale_b: *const TensorMap,
    /// The slot of the partial buffer: boxes of the epilogue's stores.
    pub partial: *const TensorMap,
}

impl Launch<'_> {
    /// The tiles of this CTA, as indices into [`Self::tiles`].
    #[inline(always)]
    pub fn tile_indices(&self) -> TileIndices {
        TileIndices { next: special::cta_index(), stride: special::cta_count(), end: self.tiles.len() }
    }

    /// First row that this rank owns.
    #[inline(always)]
    pub fn first_owned_row(&self) -> u32 {
        owned_rows(self.arguments.m, self.arguments.ranks, self.arguments.rank).start
    }
}

/// Iterator over a CTA's tiles. Its own type, because `step_by` checks its step for zero with a panic.
pub struct TileIndices {
    next: u32,
    stride: u32,
    end: u32,
}

impl Iterator for TileIndices {
    type Item = u32;

    #[inline(always)]
    fn next(&mut self) -> Option<u32> {
        if self.next >= self.end {
            return None;
        }
        let index = self.next;
        self.next += self.stride;
        Some(index)
    }
}

/// The kernel body.
///
/// # Safety
/// As the exported kernels state.
#[inline(always)]
pub unsafe fn run<V: Variant>(operands: &Operands, arguments: &GemmArguments) {
    let map = V::SPEC.shared;
    let shared_base = shared::dynamic_base().next_multiple_of(STAGE_ALIGN);
    let address_word = shared_base + map.tensor_memory_address();
    let cluster_rank = if V::PAIR { special::cluster_cta_rank() } else { 0 };
    // Uniform over the warp, which the broadcast lets the compiler see.
    let warp_index = warp::broadcast_first(special::thread_index() / plan::WARP_LANES);

    if warp_index == roles::MMA_WARP {
        // SAFETY: the whole warp is here; the word is the allocation's own.
        unsafe { alloc::<V>(address_word) };
    } else if warp_index == roles::TMA_WARP && warp::elect() {
        // SAFETY: one thread, before any use; the maps are kernel parameters.
        unsafe {
            mainloop::init_barriers(map, shared_base, roles::EPILOGUE_WARPS * V::SPEC.cluster);
            tma::prefetch(operands.a);
            tma::prefetch(operands.b);
            if V::SCALED {
                tma::prefetch(operands.scale_a);
                tma::prefetch(operands.scale_b);
            }
            tma::prefetch(operands.partial);
        }
        fence::mbarrier_init();
    }
    let tickets = protocol::read_tickets(arguments);
    if V::PAIR {
        // The peer's barriers must be initialised before anything arrives there.
        cluster::sync();
    } else {
        barrier::sync::<{ NamedBarrier::CTA }, { roles::WARPS * plan::WARP_LANES }>();
    }
    // SAFETY: the allocation wrote the word before the barrier.
    let tensor_memory = unsafe { shared::load(address_word) };

    let launch = Launch {
        arguments,
        tiles: V::SPEC.tiles(arguments.m, arguments.n),
        tickets,
        shared_base,
        leader_base: if V::PAIR { cluster::map_shared(shared_base, 0) } else { shared_base },
        cluster_rank,
    };
    // SAFETY: each role is run by the warps that the plan gives it, and set-up is done.
    unsafe {
        if warp_index < roles::FIRST_COMMUNICATION_WARP {
            epilogue::drain::<V>(&launch, operands, tensor_memory, warp_index);
            barrier::sync::<{ NamedBarrier::DRAINED }, DRAINED_THREADS>();
        } else if warp_index < roles::MMA_WARP {
            reduce::communicate::<V, Multicast>(&launch, warp_index - roles::FIRST_COMMUNICATION_WARP);
        } else if warp_index == roles::MMA_WARP {
            // Elected once for the whole loop: a vote around every MMA would cost an issue slot each.
            if cluster_rank == 0 && warp::elect() {
                mainloop::multiply::<V>(&launch, tensor_memory);
            }
            warp::sync();
            barrier::sync::<{ NamedBarrier::DRAINED }, DRAINED_THREADS>();
            if V::PAIR {
                wait_for_peer::<V>(&launch);
            }
            dealloc::<V>(tensor_memory);
        } else if warp::elect() {
            mainloop::produce::<V>(&launch, operands);
        }
    }
}

/// Waits until the pair's other CTA has drained its accumulators as well, and so has seen every commit: tensor memory is
/// freed by both, and neither may end while the other can still arrive on its barriers.
///
/// # Safety
/// All lanes of the MMA warp call it, once, in both CTAs.
#[inline(always)]
unsafe fn wait_for_peer<V: Variant>(launch: &Launch) {
    let barrier = launch.shared_base + V::SPEC.shared.peer_done();
    // SAFETY: the barrier is initialised and expects one arrival, the peer's.
    unsafe {
        if special::lane_index() == 0 {
            mbarrier::arrive_cluster(cluster::map_shared(barrier, launch.cluster_rank ^ 1));
        }
        mbarrier::wait_parity_cluster(barrier, 0);
    }
    warp::sync();
}

/// Tensor-memory sizes are immediates of the instruction, so a size that depends on the variant picks one of them.
macro_rules! with_columns {
    ($variant:ty, $function:ident($argument:expr)) => {
        match (<$variant>::PAIR, <$variant>::SPEC.tensor.columns) {
            (false, 64) => tcgen05::$function::<1, 64>($argument),
            (false, 128) => tcgen05::$function::<1, 128>($argument),
            (false, 256) => tcgen05::$function::<1, 256>($argument),
            (false, _) => tcgen05::$function::<1, 512>($argument),
            (true, 256) => tcgen05::$function::<2, 256>($argument),
            (true, _) => tcgen05::$function::<2, 512>($argument),
        }
    };
}

#[inline(always)]
unsafe fn alloc<V: Variant>(address_word: u32) {
    // SAFETY: the caller's promise.
    unsafe {
        with_columns!(V, alloc(address_word));
        if V::PAIR {
            tcgen05::relinquish_alloc_permit::<2>();
        } else {
            tcgen05::relinquish_alloc_permit::<1>();
        }
    }
}

#[inline(always)]
unsafe fn dealloc<V: Variant>(tensor_memory: u32) {
    // SAFETY: the caller's promise.
    unsafe { with_columns!(V, dealloc(tensor_memory)) }
}
