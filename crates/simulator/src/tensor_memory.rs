//! Tensor memory of one SM: 128 lanes x 512 columns x 32 bit, and its column allocator (PTX ISA, "Tensor Memory").
//!
//! Every cell remembers whether it was written since its column was allocated, so that a kernel that reads what it
//! never wrote is told so instead of computing with leftovers.

use std::fmt;
use std::ops::Range;

/// Who allocated columns: a CTA. The machine chooses the numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TensorMemoryOwner(pub u32);

/// Lanes.
pub const LANES: u32 = 128;
/// 32-bit columns.
pub const COLUMNS: u32 = 512;
/// Columns are allocated in units of this many.
pub const ALLOCATION_UNIT: u32 = 32;

const UNITS: usize = (COLUMNS / ALLOCATION_UNIT) as usize;
const WORDS_PER_LANE: usize = (COLUMNS / 64) as usize;

/// A tensor-memory address: lane in the upper half, column in the lower.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TensorAddress {
    /// Lane.
    pub lane: u32,
    /// Column.
    pub column: u32,
}

impl TensorAddress {
    /// Splits the 32-bit form; the halves may be out of range, which the access then refuses.
    pub const fn decode(address: u32) -> Self {
        Self { lane: address >> 16, column: address & 0xffff }
    }

    /// The 32-bit form.
    pub const fn encode(self) -> u32 {
        self.lane << 16 | self.column
    }
}

impl fmt::Display for TensorAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "lane {}, column {}", self.lane, self.column)
    }
}

/// A rectangle of tensor memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorRange {
    /// Lanes.
    pub lanes: Range<u32>,
    /// Columns.
    pub columns: Range<u32>,
}

/// Why an access to tensor memory, or an allocation, was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TensorMemoryError {
    /// Outside the SM's tensor memory.
    #[error("tensor memory lanes {lanes:?}, columns {columns:?} reach outside 128 lanes x 512 columns")]
    OutOfBounds {
        /// Lanes.
        lanes: Range<u32>,
        /// Columns.
        columns: Range<u32>,
    },
    /// Columns that the CTA has not allocated.
    #[error("tensor memory column {column} is used without being allocated by this CTA (it is {})", holder(.held_by))]
    NotAllocated {
        /// The first such column.
        column: u32,
        /// Who holds it instead.
        held_by: Option<TensorMemoryOwner>,
    },
    /// Read before written.
    #[error("tensor memory lane {lane}, column {column} is read before it was written")]
    Uninitialised {
        /// Lane.
        lane: u32,
        /// Column.
        column: u32,
    },
    /// A column count that cannot be allocated.
    #[error("{columns} columns: tensor memory is allocated in powers of two from 32 to 512")]
    IllegalColumnCount {
        /// What was asked for.
        columns: u32,
    },
    /// Deallocation of something that was not allocated like that.
    #[error("deallocation of {columns} columns at {address}, which is no allocation of this CTA (it holds {held:?})")]
    NoSuchAllocation {
        /// Address given.
        address: TensorAddress,
        /// Columns given.
        columns: u32,
        /// What the CTA does hold.
        held: Vec<Range<u32>>,
    },
    /// [`TensorMemory::allocate_at`] of columns that are not free.
    #[error("columns {base}..{} are not free", .base + .columns)]
    NotFree {
        /// First column.
        base: u32,
        /// Columns.
        columns: u32,
    },
}

fn holder(held_by: &Option<TensorMemoryOwner>) -> String {
    held_by.map_or_else(|| "free".into(), |owner| format!("held by CTA {}", owner.0))
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Allocation {
    owner: TensorMemoryOwner,
    columns: Range<u32>,
}

/// 128 lanes x 512 columns x 32 bit, with the column allocator.
#[derive(Debug, Clone)]
pub struct TensorMemory {
    /// Lane-major, so that an accumulator row is contiguous.
    cells: Vec<u32>,
    /// One bit per cell, same order.
    initialised: Vec<u64>,
    /// Index into `allocations` per unit of columns.
    units: [Option<TensorMemoryOwner>; UNITS],
    allocations: Vec<Allocation>,
}

impl Default for TensorMemory {
    fn default() -> Self {
        Self::new()
    }
}

impl TensorMemory {
    /// Empty: nothing allocated, nothing initialised.
    pub fn new() -> Self {
        Self {
            cells: vec![0; (LANES * COLUMNS) as usize],
            initialised: vec![0; LANES as usize * WORDS_PER_LANE],
            units: [None; UNITS],
            allocations: Vec::new(),
        }
    }

    /// Allocates columns for `owner` at the lowest base where they fit; `None` when they are not free now (the
    /// instruction then blocks). `columns` must be a power of two, 32 to 512.
    pub fn allocate(&mut self, owner: TensorMemoryOwner, columns: u32) -> Result<Option<u32>, TensorMemoryError> {
        let base = self.find_free(columns)?;
        if let Some(base) = base {
            self.allocate_at(owner, base, columns)?;
        }
        Ok(base)
    }

    /// Lowest base column at which `columns` are free.
    pub fn find_free(&self, columns: u32) -> Result<Option<u32>, TensorMemoryError> {
        check_column_count(columns)?;
        Ok((0..=COLUMNS - columns).step_by(ALLOCATION_UNIT as usize).find(|&base| self.is_free(base, columns)))
    }

    /// True when that many columns from `base` on are free: the pair's two SMs need a common base.
    pub fn is_free(&self, base: u32, columns: u32) -> bool {
        base + columns <= COLUMNS && self.units[units(&(base..base + columns))].iter().all(Option::is_none)
    }

    /// Allocates at a base found before.
    pub fn allocate_at(&mut self, owner: TensorMemoryOwner, base: u32, columns: u32) -> Result<(), TensorMemoryError> {
        check_column_count(columns)?;
        if !base.is_multiple_of(ALLOCATION_UNIT) || !self.is_free(base, columns) {
            return Err(TensorMemoryError::NotFree { base, columns });
        }
        let columns = base..base + columns;
        self.units[units(&columns)].fill(Some(owner));
        self.allocations.push(Allocation { owner, columns });
        Ok(())
    }

    /// Frees an allocation; its contents become uninitialised.
    pub fn deallocate(
        &mut self,
        owner: TensorMemoryOwner,
        address: u32,
        columns: u32,
    ) -> Result<(), TensorMemoryError> {
        check_column_count(columns)?;
        let address = TensorAddress::decode(address);
        let wanted = address.column..address.column + columns;
        let found = self.allocations.iter().position(|held| held.owner == owner && held.columns == wanted);
        let Some(index) = found.filter(|_| address.lane == 0) else {
            return Err(TensorMemoryError::NoSuchAllocation { address, columns, held: self.allocations(owner) });
        };
        self.allocations.swap_remove(index);
        self.units[units(&wanted)].fill(None);
        for lane in 0..LANES {
            self.for_each_mask(lane, &wanted, |word, mask| *word &= !mask);
        }
        Ok(())
    }

    /// Allocations that `owner` still holds, as column ranges.
    pub fn allocations(&self, owner: TensorMemoryOwner) -> Vec<Range<u32>> {
        let mut held: Vec<_> =
            self.allocations.iter().filter(|held| held.owner == owner).map(|held| held.columns.clone()).collect();
        held.sort_by_key(|columns| columns.start);
        held
    }

    /// Refuses a rectangle that is out of bounds or not wholly allocated by `owner`.
    pub fn check(&self, owner: TensorMemoryOwner, range: &TensorRange) -> Result<(), TensorMemoryError> {
        if range.lanes.end > LANES || range.columns.end > COLUMNS {
            return Err(TensorMemoryError::OutOfBounds { lanes: range.lanes.clone(), columns: range.columns.clone() });
        }
        if range.columns.is_empty() {
            return Ok(());
        }
        for unit in units(&range.columns) {
            if self.units[unit] != Some(owner) {
                let column = range.columns.start.max(unit as u32 * ALLOCATION_UNIT);
                return Err(TensorMemoryError::NotAllocated { column, held_by: self.units[unit] });
            }
        }
        Ok(())
    }

    /// Cells of one lane, all of them written before. The rectangle must have passed [`Self::check`].
    #[inline]
    pub fn row(&self, lane: u32, columns: Range<u32>) -> Result<&[u32], TensorMemoryError> {
        let words = &self.initialised[lane as usize * WORDS_PER_LANE..][..WORDS_PER_LANE];
        for (index, mask) in masks(&columns) {
            let missing = !words[index] & mask;
            if missing != 0 {
                return Err(TensorMemoryError::Uninitialised {
                    lane,
                    column: index as u32 * 64 + missing.trailing_zeros(),
                });
            }
        }
        Ok(&self.cells[cells(lane, &columns)])
    }

    /// Cells of one lane, to be overwritten as a whole: they count as initialised from now on. The rectangle must have
    /// passed [`Self::check`].
    #[inline]
    pub fn row_mut(&mut self, lane: u32, columns: Range<u32>) -> &mut [u32] {
        self.for_each_mask(lane, &columns, |word, mask| *word |= mask);
        &mut self.cells[cells(lane, &columns)]
    }

    /// One cell, written before.
    #[inline]
    pub fn cell(&self, lane: u32, column: u32) -> Result<u32, TensorMemoryError> {
        Ok(self.row(lane, column..column + 1)?[0])
    }

    #[inline]
    fn for_each_mask(&mut self, lane: u32, columns: &Range<u32>, mut apply: impl FnMut(&mut u64, u64)) {
        let words = &mut self.initialised[lane as usize * WORDS_PER_LANE..][..WORDS_PER_LANE];
        for (index, mask) in masks(columns) {
            apply(&mut words[index], mask);
        }
    }
}

fn check_column_count(columns: u32) -> Result<(), TensorMemoryError> {
    if columns.is_power_of_two() && (ALLOCATION_UNIT..=COLUMNS).contains(&columns) {
        Ok(())
    } else {
        Err(TensorMemoryError::IllegalColumnCount { columns })
    }
}

#[inline]
fn cells(lane: u32, columns: &Range<u32>) -> Range<usize> {
    let row = (lane * COLUMNS) as usize;
    row + columns.start as usize..row + columns.end as usize
}

/// Allocation units that a non-empty column range touches.
fn units(columns: &Range<u32>) -> Range<usize> {
    (columns.start / ALLOCATION_UNIT) as usize..columns.end.div_ceil(ALLOCATION_UNIT) as usize
}

/// Words of a lane's initialisation bits that a column range touches, each with the bits it covers.
#[inline]
fn masks(columns: &Range<u32>) -> impl Iterator<Item = (usize, u64)> + use<> {
    let Range { start, end } = columns.clone();
    (start / 64..end.div_ceil(64)).map(move |index| {
        let low = start.saturating_sub(index * 64);
        let high = (end - index * 64).min(64);
        (index as usize, (u64::MAX >> (64 - high)) & (u64::MAX << low))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: TensorMemoryOwner = TensorMemoryOwner(1);
    const B: TensorMemoryOwner = TensorMemoryOwner(2);

    fn all_lanes(columns: Range<u32>) -> TensorRange {
        TensorRange { lanes: 0..LANES, columns }
    }

    #[test]
    fn allocates_the_lowest_free_columns_and_blocks_when_full() {
        let mut memory = TensorMemory::new();
        assert_eq!(memory.allocate(A, 256), Ok(Some(0)));
        assert_eq!(memory.allocate(B, 128), Ok(Some(256)));
        assert_eq!(memory.allocate(A, 256), Ok(None));
        assert_eq!(memory.allocate(A, 32), Ok(Some(384)));
        memory.deallocate(A, 0, 256).unwrap();
        assert_eq!(memory.allocate(B, 256), Ok(Some(0)));
        assert_eq!(memory.allocations(A), vec![384..416u32; 1]);
        assert_eq!(memory.allocations(B), [0..256, 256..384]);
    }

    #[test]
    fn refuses_illegal_column_counts() {
        let mut memory = TensorMemory::new();
        for columns in [0, 1, 16, 33, 48, 96, 513, 1024] {
            assert_eq!(memory.allocate(A, columns), Err(TensorMemoryError::IllegalColumnCount { columns }));
        }
    }

    #[test]
    fn deallocation_must_match_an_allocation() {
        let mut memory = TensorMemory::new();
        memory.allocate(A, 64).unwrap();
        for (owner, address, columns) in [(B, 0, 64), (A, 0, 32), (A, 32, 32), (A, 1 << 16, 64), (A, 64, 64)] {
            let refused = memory.deallocate(owner, address, columns);
            assert!(matches!(refused, Err(TensorMemoryError::NoSuchAllocation { .. })), "{address:#x} {columns}");
        }
        memory.deallocate(A, 0, 64).unwrap();
        assert!(memory.deallocate(A, 0, 64).is_err());
    }

    #[test]
    fn access_is_bounded_and_owned() {
        let mut memory = TensorMemory::new();
        memory.allocate(A, 32).unwrap();
        memory.allocate(B, 32).unwrap();
        assert_eq!(memory.check(A, &all_lanes(0..32)), Ok(()));
        assert_eq!(
            memory.check(A, &all_lanes(0..33)),
            Err(TensorMemoryError::NotAllocated { column: 32, held_by: Some(B) })
        );
        assert_eq!(
            memory.check(A, &all_lanes(70..71)),
            Err(TensorMemoryError::NotAllocated { column: 70, held_by: None })
        );
        assert!(matches!(memory.check(A, &all_lanes(500..513)), Err(TensorMemoryError::OutOfBounds { .. })));
        let outside = TensorRange { lanes: 96..129, columns: 0..1 };
        assert!(matches!(memory.check(A, &outside), Err(TensorMemoryError::OutOfBounds { .. })));
    }

    #[test]
    fn knows_which_cells_were_written_since_allocation() {
        let mut memory = TensorMemory::new();
        memory.allocate(A, 256).unwrap();
        memory.row_mut(3, 60..130).fill(7);
        assert_eq!(memory.row(3, 60..130).unwrap(), [7; 70]);
        assert_eq!(memory.row(3, 60..131), Err(TensorMemoryError::Uninitialised { lane: 3, column: 130 }));
        assert_eq!(memory.row(3, 59..61), Err(TensorMemoryError::Uninitialised { lane: 3, column: 59 }));
        assert_eq!(memory.row(4, 60..61), Err(TensorMemoryError::Uninitialised { lane: 4, column: 60 }));
        memory.deallocate(A, 0, 256).unwrap();
        memory.allocate(A, 256).unwrap();
        assert!(memory.row(3, 60..61).is_err());
    }

    #[test]
    fn addresses_are_lane_and_column() {
        let address = TensorAddress::decode(0x0060_0123);
        assert_eq!(address, TensorAddress { lane: 0x60, column: 0x123 });
        assert_eq!(address.encode(), 0x0060_0123);
    }
}
