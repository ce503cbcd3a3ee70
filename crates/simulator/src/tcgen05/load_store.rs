//! `tcgen05.ld` and `tcgen05.st`: registers of a warp and its quarter of tensor memory (PTX ISA, "Data Movement Shape",
//! "Memory Layout", "Access restrictions", "Packing and Unpacking").
//!
//! Lane t of the warp, in terms of rows and 32-bit columns of the rectangle:
//!
//! | shape | register | row | column |
//! |---|---|---|---|
//! | 32x32b | i | t | i |
//! | 16x64b | i | t/4 + 8 * (t%2) | 2i + t/2%2 |
//! | 16x128b | 2i + h | t/4 + 8h | 4i + t%4 |
//! | 16x256b | 4i + 2h + j | t/4 + 8h | 8i + 2 * (t%4) + j |
//! | 16x32bx2 | i | t%16 | i, and as many columns further as the instruction says for t >= 16 |
//!
//! With `.pack::16b` and `.unpack::16b` the columns of the table are pairs of columns with 16 bits each.

use std::ops::Range;

use crate::program::{Tcgen05Shape, WARP_LANES};
use crate::tensor_memory::{TensorAddress, TensorMemory, TensorMemoryError, TensorMemoryOwner, TensorRange};

/// Most registers of one instruction.
const MAX_REGISTERS: usize = 128;

/// Why a register transfer was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RegisterTransferError {
    /// Tensor memory refused it.
    #[error(transparent)]
    TensorMemory(#[from] TensorMemoryError),
    /// A repeat that the shape does not have.
    #[error("{shape:?} with .x{repeat}: repeats are powers of two with at most 128 registers in all")]
    Repeat {
        /// Shape.
        shape: Tcgen05Shape,
        /// Given.
        repeat: u8,
    },
    /// Registers given.
    #[error("{shape:?} with .x{repeat} moves {wanted} registers per lane, not {given}")]
    RegisterCount {
        /// Shape.
        shape: Tcgen05Shape,
        /// Repeat.
        repeat: u8,
        /// Registers that makes.
        wanted: usize,
        /// Given.
        given: usize,
    },
    /// A lane outside the warp's quarter, or inside it at a place where the shape cannot start.
    #[error(
        "{shape:?} at {address} by warp {warp} of its warpgroup: the warp owns lanes {}..{}; the address names them \
         absolutely or from 0, and a rectangle starts at a multiple of its height", .window.start, .window.end
    )]
    Lane {
        /// Shape.
        shape: Tcgen05Shape,
        /// Given.
        address: TensorAddress,
        /// Warp's index modulo 4.
        warp: u32,
        /// Lanes it may access.
        window: Range<u32>,
    },
}

/// One `tcgen05.ld` or `tcgen05.st`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RegisterTransfer {
    /// Shape.
    pub shape: Tcgen05Shape,
    /// `.x1` to `.x128`.
    pub repeat: u8,
    /// `.pack::16b` / `.unpack::16b`.
    pub packed: bool,
    /// Tensor-memory address.
    pub address: u32,
    /// Warp's index in the CTA, modulo 4: its lane window.
    pub warp_in_warpgroup: u32,
}

impl RegisterTransfer {
    /// 32-bit registers per lane.
    pub fn registers(&self) -> usize {
        let per_repeat = match self.shape {
            Tcgen05Shape::Lanes32x32b | Tcgen05Shape::Lanes16x64b | Tcgen05Shape::Lanes16x32b { .. } => 1,
            Tcgen05Shape::Lanes16x128b => 2,
            Tcgen05Shape::Lanes16x256b => 4,
        };
        per_repeat * usize::from(self.repeat)
    }

    /// The rectangle touched.
    pub fn footprint(&self) -> Result<TensorRange, RegisterTransferError> {
        let Self { shape, repeat, .. } = *self;
        if !repeat.is_power_of_two() || self.registers() > MAX_REGISTERS {
            return Err(RegisterTransferError::Repeat { shape, repeat });
        }
        let first_lane = self.first_lane()?;
        let first_column = TensorAddress::decode(self.address).column;
        let columns = self.columns() * if self.packed { 2 } else { 1 };
        Ok(TensorRange { lanes: first_lane..first_lane + self.rows(), columns: first_column..first_column + columns })
    }

    /// `ld`: fills `registers` (register, then lane).
    pub fn load(
        &self,
        memory: &TensorMemory,
        owner: TensorMemoryOwner,
        registers: &mut [[u32; WARP_LANES]],
    ) -> Result<(), RegisterTransferError> {
        let TensorRange { lanes, columns } = self.check(memory, owner, registers.len())?;
        for (row, lane) in lanes.enumerate() {
            let cells = memory.row(lane, columns.clone())?;
            if self.packed {
                for (column, pair) in cells.chunks_exact(2).enumerate() {
                    let (register, thread) = self.holder(row, column);
                    registers[register][thread] = pair[0] & 0xffff | pair[1] << 16;
                }
            } else {
                for (column, &cell) in cells.iter().enumerate() {
                    let (register, thread) = self.holder(row, column);
                    registers[register][thread] = cell;
                }
            }
        }
        Ok(())
    }

    /// `st`. Unpacked halves are zero-extended.
    pub fn store(
        &self,
        memory: &mut TensorMemory,
        owner: TensorMemoryOwner,
        registers: &[[u32; WARP_LANES]],
    ) -> Result<(), RegisterTransferError> {
        let TensorRange { lanes, columns } = self.check(memory, owner, registers.len())?;
        for (row, lane) in lanes.enumerate() {
            let cells = memory.row_mut(lane, columns.clone());
            if self.packed {
                for (column, pair) in cells.chunks_exact_mut(2).enumerate() {
                    let (register, thread) = self.holder(row, column);
                    let value = registers[register][thread];
                    (pair[0], pair[1]) = (value & 0xffff, value >> 16);
                }
            } else {
                for (column, cell) in cells.iter_mut().enumerate() {
                    let (register, thread) = self.holder(row, column);
                    *cell = registers[register][thread];
                }
            }
        }
        Ok(())
    }

    fn check(
        &self,
        memory: &TensorMemory,
        owner: TensorMemoryOwner,
        given: usize,
    ) -> Result<TensorRange, RegisterTransferError> {
        let range = self.footprint()?;
        let wanted = self.registers();
        if given != wanted {
            let Self { shape, repeat, .. } = *self;
            return Err(RegisterTransferError::RegisterCount { shape, repeat, wanted, given });
        }
        memory.check(owner, &range)?;
        Ok(range)
    }

    fn rows(&self) -> u32 {
        match self.shape {
            Tcgen05Shape::Lanes32x32b => 32,
            _ => 16,
        }
    }

    /// 32-bit columns, or pairs of 16-bit ones.
    fn columns(&self) -> u32 {
        let per_repeat = match self.shape {
            Tcgen05Shape::Lanes32x32b | Tcgen05Shape::Lanes16x32b { .. } => 1,
            Tcgen05Shape::Lanes16x64b => 2,
            Tcgen05Shape::Lanes16x128b => 4,
            Tcgen05Shape::Lanes16x256b => 8,
        };
        per_repeat * u32::from(self.repeat)
    }

    /// Programs name the warp's lanes both absolutely and relative to its window, and both work on hardware.
    fn first_lane(&self) -> Result<u32, RegisterTransferError> {
        let warp = self.warp_in_warpgroup % 4;
        let window = warp * 32..warp * 32 + 32;
        let address = TensorAddress::decode(self.address);
        let lane = if address.lane < 32 { window.start + address.lane } else { address.lane };
        if window.contains(&lane) && (lane - window.start) % self.rows() == 0 {
            Ok(lane)
        } else {
            Err(RegisterTransferError::Lane { shape: self.shape, address, warp, window })
        }
    }

    /// Register and lane that hold a row and column of the rectangle: the inverse of the table above.
    #[inline]
    fn holder(&self, row: usize, column: usize) -> (usize, usize) {
        let (half, row_in_half) = (row / 8, row % 8);
        match self.shape {
            Tcgen05Shape::Lanes32x32b => (column, row),
            Tcgen05Shape::Lanes16x32b { upper } => (column, row + 16 * usize::from(upper)),
            Tcgen05Shape::Lanes16x64b => (column / 2, row_in_half * 4 + column % 2 * 2 + half),
            Tcgen05Shape::Lanes16x128b => (column / 4 * 2 + half, row_in_half * 4 + column % 4),
            Tcgen05Shape::Lanes16x256b => (column / 8 * 4 + half * 2 + column % 2, row_in_half * 4 + column % 8 / 2),
        }
    }
}
