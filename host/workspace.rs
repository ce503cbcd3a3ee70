//! The workspace of a group of ranks: the slots that partial sums are reduced in, and the control block.
//!
//! ```text
//! slot 0        max_m x max_n BF16       a launch's rows are its own N elements apart
//! ...
//! slot SLOTS-1
//! control       see plan::control
//! ```
//! It is the same on every rank and belongs to no mode: reduce-scatter and all-reduce, and any N up to the capacity,
//! take turns on it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use plan::control::control_bytes;
use plan::{MAX_RANKS, MIN_RANKS, SLOTS};

use crate::checks::{BF16_BYTES, COLUMN_MULTIPLE};
use crate::driver::{Device, DevicePtr};
use crate::error::ConfigError;
use crate::kernels::max_tiles;
use crate::symmetric::{Rendezvous, SymmetricError, SymmetricMemory};

/// Slots and the control block start at multiples of this, so that no two share a line of any cache.
const REGION_ALIGN: u64 = 1024;

/// The largest call that a workspace takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capacity {
    /// Rows.
    pub max_m: u32,
    /// Columns, a multiple of 128.
    pub max_n: u32,
}

impl Capacity {
    /// Checks a capacity. The product is limited because the kernels count elements of a slot in 32 bits; that also
    /// keeps `ranks * ceil(m / ranks)` within them.
    pub fn new(max_m: u64, max_n: u64) -> Result<Self, ConfigError> {
        if max_m == 0 {
            return Err(ConfigError::NoRows);
        }
        if max_n == 0 || !max_n.is_multiple_of(COLUMN_MULTIPLE) {
            return Err(ConfigError::ColumnsNotMultiple { given: max_n, wanted: COLUMN_MULTIPLE });
        }
        let limit = u64::from(u32::MAX);
        match max_m.checked_mul(max_n) {
            Some(elements) if elements <= limit => Ok(Self { max_m: max_m as u32, max_n: max_n as u32 }),
            _ => Err(ConfigError::CapacityTooLarge { max_m, max_n, limit }),
        }
    }
}

/// Checks the size of a group and a rank's place in it.
pub(crate) fn check_group(rank: u32, ranks: u32) -> Result<(), ConfigError> {
    if ranks < MIN_RANKS {
        return Err(ConfigError::TooFewRanks { given: ranks, min: MIN_RANKS, max: MAX_RANKS });
    }
    if ranks > MAX_RANKS {
        return Err(ConfigError::TooManyRanks { given: ranks, min: MIN_RANKS, max: MAX_RANKS });
    }
    if rank >= ranks {
        return Err(ConfigError::RankOutOfRange { given: rank, ranks });
    }
    Ok(())
}

/// Where the regions lie, as offsets into each rank's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Layout {
    slot_bytes: u64,
    control_bytes: u64,
}

impl Layout {
    fn new(capacity: Capacity) -> Self {
        let elements = u64::from(capacity.max_m) * u64::from(capacity.max_n);
        let tiles = max_tiles(capacity.max_m, capacity.max_n);
        Self { slot_bytes: (elements * BF16_BYTES).next_multiple_of(REGION_ALIGN), control_bytes: control_bytes(tiles) }
    }

    fn slot(self, slot: u32) -> u64 {
        u64::from(slot) * self.slot_bytes
    }

    fn control(self) -> u64 {
        self.slot(SLOTS)
    }

    fn bytes(self) -> u64 {
        self.control() + self.control_bytes
    }
}

/// Symmetric memory with its regions, and the turn of the slots.
pub struct Workspace {
    memory: SymmetricMemory,
    capacity: Capacity,
    layout: Layout,
    rank: u32,
    ranks: u32,
    launches: AtomicU32,
}

impl Workspace {
    /// Creates the workspace. Collective, with the same `capacity` on every rank.
    pub fn new(
        device: &Arc<dyn Device>,
        rendezvous: &dyn Rendezvous,
        capacity: Capacity,
    ) -> Result<Self, SymmetricError> {
        let layout = Layout::new(capacity);
        let control = layout.control()..layout.bytes();
        let memory = SymmetricMemory::allocate(device, rendezvous, layout.bytes(), control)?;
        let (rank, ranks) = (rendezvous.rank(), rendezvous.world_size());
        Ok(Self { memory, capacity, layout, rank, ranks, launches: AtomicU32::new(0) })
    }

    /// The largest call.
    pub fn capacity(&self) -> Capacity {
        self.capacity
    }

    /// This rank.
    pub fn rank(&self) -> u32 {
        self.rank
    }

    /// Number of ranks.
    pub fn ranks(&self) -> u32 {
        self.ranks
    }

    /// Bytes of device memory that it takes on each rank.
    pub fn bytes(&self) -> u64 {
        self.memory.bytes()
    }

    /// The slot of the next launch. Slots take turns, and every rank makes the same launches, so that every rank
    /// chooses the same.
    pub(crate) fn next_slot(&self) -> u32 {
        self.launches.fetch_add(1, Ordering::Relaxed) % SLOTS
    }

    /// This rank's memory of a slot.
    pub(crate) fn slot(&self, slot: u32) -> DevicePtr {
        self.memory.own() + self.layout.slot(slot)
    }

    /// Every rank's memory of a slot.
    pub(crate) fn slot_multicast(&self, slot: u32) -> DevicePtr {
        self.memory.multicast() + self.layout.slot(slot)
    }

    /// Each rank's control block as mapped here; zero past the last rank.
    pub(crate) fn control(&self) -> [DevicePtr; MAX_RANKS as usize] {
        let mut control = [0; MAX_RANKS as usize];
        for (address, rank) in control.iter_mut().zip(0..self.ranks) {
            *address = self.memory.of_rank(rank).map_or(0, |start| start + self.layout.control());
        }
        control
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_do_not_overlap_and_hold_the_largest_call() {
        for (m, n) in [(1, 128), (173, 384), (8192, 7168)] {
            let capacity = Capacity::new(m, n).unwrap();
            let layout = Layout::new(capacity);
            assert!(layout.slot_bytes >= m * n * 2);
            assert_eq!(layout.slot(1) % REGION_ALIGN, 0);
            assert_eq!(layout.control(), u64::from(SLOTS) * layout.slot_bytes);
            assert!(layout.bytes() > layout.control());
        }
    }

    #[test]
    fn a_capacity_that_overflows_is_refused() {
        let error = Capacity::new(1 << 25, 128).unwrap_err().to_string();
        assert_eq!(
            error,
            "max_m * max_n is 33554432 * 128; at most 4294967295 elements are wanted: make max_m smaller and split \
             larger calls by rows"
        );
        assert!(Capacity::new(u64::MAX, 1 << 40).is_err());
        assert_eq!(Capacity::new(0, 128), Err(ConfigError::NoRows));
        assert!(Capacity::new(1, 64).is_err());
    }
}
