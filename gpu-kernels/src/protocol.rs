//! The words through which ranks and CTAs tell each other how far they are.
//!
//! Ready words say that a source has stored a tile of its partial; done words say that a rank has read its last slice,
//! so that the slot may be written again. Both carry tickets and are never reset.

use plan::arguments::GemmArguments;
use plan::control;
use plan::ticket::Ticket;

use crate::gemm::Launch;
use crate::ptx::{fence, global, special, warp};

/// The control block of a rank, as mapped here.
#[inline(always)]
fn control_of(arguments: &GemmArguments, rank: u32) -> u64 {
    // SAFETY: every rank number in the kernel is below `ranks`, which the host keeps within the array. A checked index
    // would bring a panic path into the kernel.
    unsafe { *arguments.control.get_unchecked(rank as usize) }
}

/// The tickets that a launch goes by.
#[derive(Clone, Copy)]
pub struct Tickets {
    /// This launch's.
    pub launch: Ticket,
    /// That of the launch that last used this launch's slot.
    pub slot: Ticket,
}

/// Reads this rank's tickets. Every thread of a CTA does so before the barrier behind set-up, because the rank's last
/// CTA to finish its communication advances both words, perhaps while another CTA's epilogue has yet to begin: read any
/// later, the slot's ticket could be this launch's own, and waiting for that would never end.
#[inline(always)]
pub fn read_tickets(arguments: &GemmArguments) -> Tickets {
    let own = control_of(arguments, arguments.rank);
    // SAFETY: the words lie in the rank's control block; the previous launch on this rank wrote them.
    let word = |offset: u32| Ticket(unsafe { global::load_relaxed_gpu(own + u64::from(offset)) });
    Tickets { launch: word(control::EPOCH_OFFSET).next(), slot: word(control::slot_ticket_offset(arguments.slot)) }
}

impl Launch<'_> {
    /// This rank's own control block.
    #[inline(always)]
    fn own_control(&self) -> u64 {
        control_of(self.arguments, self.arguments.rank)
    }

    /// Waits, one lane per rank, until this rank's words at `offset(rank)` have all reached `ticket`.
    ///
    /// # Safety
    /// All lanes of a warp call it.
    #[inline(always)]
    unsafe fn wait_for_ranks(&self, ticket: Ticket, offset: impl Fn(u32) -> u32) {
        let lane = special::lane_index();
        if lane < self.arguments.ranks {
            let word = self.own_control() + u64::from(offset(lane));
            // SAFETY: the word lies in the rank's control block.
            while !Ticket(unsafe { global::load_acquire_sys(word) }).is_at_or_past(ticket) {}
        }
        warp::sync();
        // The acquires order this warp behind the sources, but what they wrote through their unicast address is read
        // here through the multicast address, or the other way round: a different proxy each.
        fence::proxy_alias();
    }

    /// Waits until the launch's slot may be written: every rank is done with the launch that last used it.
    ///
    /// # Safety
    /// All lanes of a warp call it, before the CTA's first store to the slot.
    #[inline(always)]
    pub unsafe fn wait_for_slot(&self) {
        // SAFETY: the caller's promise.
        unsafe { self.wait_for_ranks(self.tickets.slot, control::done_offset) }
    }

    /// Waits until every rank has stored its partial of the tile.
    ///
    /// # Safety
    /// All lanes of a warp call it.
    #[inline(always)]
    pub unsafe fn wait_for_tile(&self, tile_index: u32) {
        // SAFETY: the caller's promise.
        unsafe { self.wait_for_ranks(self.tickets.launch, |source| control::ready_offset(tile_index, source)) }
    }

    /// Waits until every rank has finished its part of an all-reduce, so that this rank's slot holds the result.
    ///
    /// # Safety
    /// All lanes of a warp call it.
    #[inline(always)]
    pub unsafe fn wait_for_all_done(&self) {
        // SAFETY: the caller's promise.
        unsafe { self.wait_for_ranks(self.tickets.launch, control::done_offset) }
    }

    /// Tells the ranks that own rows of a tile that this rank's partial of it is stored.
    ///
    /// # Safety
    /// All lanes of a warp call it, behind a barrier with the threads that stored the tile.
    #[inline(always)]
    pub unsafe fn publish_tile(&self, tile_index: u32) {
        let (first, end) = self.tiles.tile_owners(self.tiles.tile(tile_index), self.arguments.ranks);
        let owner = first + special::lane_index();
        if owner < end {
            // The stores went through the unicast address and will be read through the multicast one.
            fence::proxy_alias();
            let word =
                control_of(self.arguments, owner) + u64::from(control::ready_offset(tile_index, self.arguments.rank));
            // SAFETY: the word lies in the owner's control block. Release is cumulative: it covers the stores of the
            // threads that met this one at the barrier.
            unsafe { global::store_release_sys(word, self.tickets.launch.0) }
        }
    }

    /// Reports this CTA's communication as finished. True on the rank's last CTA, which then has the duties of
    /// [`Self::finish_rank`].
    ///
    /// # Safety
    /// All lanes of one warp call it, once per CTA, behind a barrier with the CTA's communication warps.
    #[inline(always)]
    pub unsafe fn finish_cta(&self) -> bool {
        let mut is_last = 0;
        if special::lane_index() == 0 {
            let word = self.own_control() + u64::from(control::FINISHED_OFFSET);
            // SAFETY: the word lies in the rank's control block. Acquire and release chain the CTAs' reads and stores
            // to the last one.
            let before = unsafe { global::add_acquire_release_gpu(word, 1) };
            is_last = (before + 1 == special::cta_count()) as u32;
        }
        warp::broadcast_first(is_last) != 0
    }

    /// Closes the launch on this rank: advances the epoch and tells every rank that this one has read its last slice.
    ///
    /// # Safety
    /// All lanes of one warp of the rank's last CTA call it.
    #[inline(always)]
    pub unsafe fn finish_rank(&self) {
        let lane = special::lane_index();
        if lane == 0 {
            let own = self.own_control();
            // SAFETY: the words lie in the rank's control block, and every other CTA is past its last use of them.
            unsafe {
                global::store_relaxed_gpu(own + u64::from(control::FINISHED_OFFSET), 0);
                global::store_relaxed_gpu(
                    own + u64::from(control::slot_ticket_offset(self.arguments.slot)),
                    self.tickets.launch.0,
                );
                global::store_relaxed_gpu(own + u64::from(control::EPOCH_OFFSET), self.tickets.launch.0);
            }
        }
        if lane < self.arguments.ranks {
            // An all-reduce stored through the multicast address what peers will read through their unicast ones.
            fence::proxy_alias();
            let word = control_of(self.arguments, lane) + u64::from(control::done_offset(self.arguments.rank));
            // SAFETY: the word lies in that rank's control block.
            unsafe { global::store_release_sys(word, self.tickets.launch.0) }
        }
    }
}
