//! The control block: the flags of one rank, at the same offsets on every rank of the workspace.
//!
//! ```text
//! offset            words                      written by
//! 0                 epoch, finished, slot_ticket[SLOTS]   the rank itself
//! DONE_OFFSET       done[source rank]          each source, into every rank's block
//! READY_OFFSET      ready[tile][source rank]   each source, into the blocks of the ranks that own rows of the tile
//! ```
//! All words start at zero, which is the ticket before the first launch.

use crate::MAX_RANKS;

/// Bytes of one word.
pub const WORD_BYTES: u32 = 4;
/// Ticket of the last launch that completed on this rank.
pub const EPOCH_OFFSET: u32 = 0;
/// CTAs of the running launch that have finished their communication; the last one resets it.
pub const FINISHED_OFFSET: u32 = 4;
/// Ticket of the launch that last used each slot.
pub const SLOT_TICKET_OFFSET: u32 = 8;
/// `done[source]`, one 128-byte line away from the words that the rank itself polls.
pub const DONE_OFFSET: u32 = 128;
/// `ready[tile][source]`: one 64-byte row per tile.
pub const READY_OFFSET: u32 = 256;

/// Offset of `slot_ticket[slot]`.
#[inline(always)]
pub const fn slot_ticket_offset(slot: u32) -> u32 {
    SLOT_TICKET_OFFSET + slot * WORD_BYTES
}

/// Offset of `done[source]`.
#[inline(always)]
pub const fn done_offset(source: u32) -> u32 {
    DONE_OFFSET + source * WORD_BYTES
}

/// Offset of `ready[tile][source]`.
#[inline(always)]
pub const fn ready_offset(tile: u32, source: u32) -> u32 {
    READY_OFFSET + (tile * MAX_RANKS + source) * WORD_BYTES
}

/// Bytes of a control block that can hold `tiles` tiles.
pub const fn control_bytes(tiles: u32) -> u64 {
    READY_OFFSET as u64 + tiles as u64 * (MAX_RANKS * WORD_BYTES) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_do_not_overlap() {
        assert!(slot_ticket_offset(crate::SLOTS) <= DONE_OFFSET);
        assert!(done_offset(MAX_RANKS) <= READY_OFFSET);
        assert_eq!(u64::from(ready_offset(3, 0)), control_bytes(3));
    }
}
