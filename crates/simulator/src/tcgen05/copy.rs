//! `tcgen05.cp`: shared to tensor memory, optionally to several warps' lanes at once (PTX ISA, "tcgen05.cp").
//!
//! The source is a K-major matrix of rows of 16 or 32 bytes. Row r goes to
//!
//! | shape | lanes |
//! |---|---|
//! | 128x256b, 128x128b | r |
//! | 4x256b | 32r |
//! | 64x128b.warpx2::02_13 | r, r + 64 |
//! | 64x128b.warpx2::01_23 | r%32 + 64 * (r/32), and 32 further |
//! | 32x128b.warpx4 | r, r + 32, r + 64, r + 96 |

use super::{
    Footprint, Major, MatrixDescriptor, MatrixDescriptorError, OperandError, OperandField, OperandFormat, SharedOperand,
};
use crate::program::Tcgen05CopyShape;
use crate::shared::{SharedReadError, SharedReader};
use crate::tensor_memory::{TensorAddress, TensorMemory, TensorMemoryError, TensorMemoryOwner, TensorRange};

/// Why a copy was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CopyError {
    /// The source's matrix descriptor.
    #[error(transparent)]
    MatrixDescriptor(#[from] MatrixDescriptorError),
    /// A source layout that a copy cannot read.
    #[error(transparent)]
    Operand(#[from] OperandError),
    /// Lane of the destination.
    #[error("{shape:?} to lane {lane}; legal: {legal}")]
    Lane {
        /// Shape.
        shape: Tcgen05CopyShape,
        /// Given.
        lane: u32,
        /// What would be legal.
        legal: &'static str,
    },
    /// Tensor memory refused it.
    #[error(transparent)]
    TensorMemory(#[from] TensorMemoryError),
    /// Shared memory refused it.
    #[error(transparent)]
    Shared(#[from] SharedReadError),
}

/// A checked `tcgen05.cp`. With `cta_group::2` the machine executes it once per CTA of the pair, each from its own shared
/// to its own tensor memory.
#[derive(Debug, Clone)]
pub struct SharedCopy {
    shape: Tcgen05CopyShape,
    source: SharedOperand,
    destination: TensorAddress,
}

/// Where the rows of a shape go: row r to lane `r % group * row_step + r / group * group_step`, and to so many copies,
/// `copy_step` lanes apart.
struct Placement {
    rows: u32,
    row_bytes: u32,
    group: u32,
    row_step: u32,
    group_step: u32,
    copies: u32,
    copy_step: u32,
}

impl Placement {
    fn of(shape: Tcgen05CopyShape) -> Self {
        let whole = |rows, row_bytes| Self {
            rows,
            row_bytes,
            group: rows,
            row_step: 1,
            group_step: 0,
            copies: 1,
            copy_step: 0,
        };
        match shape {
            Tcgen05CopyShape::Lanes128x256b => whole(128, 32),
            Tcgen05CopyShape::Lanes128x128b => whole(128, 16),
            Tcgen05CopyShape::Lanes4x256b => Self { row_step: 32, ..whole(4, 32) },
            Tcgen05CopyShape::Lanes64x128bWarpx2At0213 => Self { copies: 2, copy_step: 64, ..whole(64, 16) },
            Tcgen05CopyShape::Lanes64x128bWarpx2At0123 => {
                Self { group: 32, group_step: 64, copies: 2, copy_step: 32, ..whole(64, 16) }
            }
            Tcgen05CopyShape::Lanes32x128bWarpx4 => Self { copies: 4, copy_step: 32, ..whole(32, 16) },
        }
    }

    fn lanes(&self, row: u32) -> impl Iterator<Item = u32> + use<> {
        let first = row % self.group * self.row_step + row / self.group * self.group_step;
        let copy_step = self.copy_step;
        (0..self.copies).map(move |copy| first + copy * copy_step)
    }
}

impl SharedCopy {
    /// Decodes and checks.
    pub fn new(shape: Tcgen05CopyShape, destination: u32, source: u64) -> Result<Self, CopyError> {
        let Placement { rows, row_bytes, .. } = Placement::of(shape);
        let bytes = OperandField { format: OperandFormat::U8, negate: false, major: Major::K, scale_id: 0 };
        let source = SharedOperand::new(MatrixDescriptor::decode(source)?, bytes, rows, row_bytes)?;
        let destination = TensorAddress::decode(destination);
        let TensorAddress { lane, .. } = destination;
        let (is_legal, legal) = match shape {
            Tcgen05CopyShape::Lanes4x256b => (lane < 32, "0 to 31"),
            _ => (lane == 0, "0"),
        };
        if is_legal { Ok(Self { shape, source, destination }) } else { Err(CopyError::Lane { shape, lane, legal }) }
    }

    /// What it touches, in each CTA.
    pub fn footprint(&self) -> Footprint {
        let mut footprint = Footprint::default();
        self.footprint_into(&mut footprint);
        footprint
    }

    /// As [`Self::footprint`], into a footprint that is reused.
    pub fn footprint_into(&self, footprint: &mut Footprint) {
        footprint.clear();
        self.source.for_each_range(|range| footprint.add_shared_read(range));
        self.for_each_destination(|range| footprint.tensor_writes.push(range));
    }

    /// Copies.
    pub fn execute<S: SharedReader + ?Sized>(
        &self,
        shared: &S,
        memory: &mut TensorMemory,
        owner: TensorMemoryOwner,
    ) -> Result<(), CopyError> {
        let mut checked = Ok(());
        self.for_each_destination(|range| {
            if checked.is_ok() {
                checked = memory.check(owner, &range);
            }
        });
        checked?;
        let placement = Placement::of(self.shape);
        self.source.for_each_unit(shared, |row, first_byte, unit| {
            let column = self.destination.column + first_byte / 4;
            for lane in placement.lanes(row) {
                let cells = memory.row_mut(self.destination.lane + lane, column..column + 4);
                for (cell, bytes) in cells.iter_mut().zip(unit.chunks_exact(4)) {
                    *cell = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
                }
            }
        })?;
        Ok(())
    }

    /// Visits the rectangles written.
    fn for_each_destination(&self, mut visit: impl FnMut(TensorRange)) {
        let TensorAddress { lane: first_lane, column } = self.destination;
        let columns = column..column + Placement::of(self.shape).row_bytes / 4;
        match self.shape {
            Tcgen05CopyShape::Lanes4x256b => (0..4)
                .map(|row| first_lane + row * 32)
                .for_each(|lane| visit(TensorRange { lanes: lane..lane + 1, columns: columns.clone() })),
            // The others write every lane: their rows times their copies make 128.
            _ => visit(TensorRange { lanes: 0..128, columns }),
        }
    }
}
