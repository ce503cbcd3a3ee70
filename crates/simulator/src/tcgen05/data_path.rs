//! Where D, and A if it is in tensor memory, lie: the data-path layouts A, B, D and F (PTX ISA, "Data Path Layout
//! Organization"). C, E and G are for sparse and weight-stationary instructions.

use std::ops::Range;

use super::InstructionDescriptor;

/// Rows of one CTA's part of D that lie in neighbouring lanes, with the columns of D that lie there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Strip {
    /// Tensor-memory lane of `rows.start`, relative to the accumulator's address.
    pub first_lane: u32,
    /// Rows of D, counted within the CTA.
    pub rows: Range<u32>,
    /// Columns of D; the first is at the accumulator's column.
    pub columns: Range<u32>,
}

/// The strips that make up one CTA's part of D, and rules for addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataPath {
    /// The ISA's letter.
    pub layout: char,
    /// Lanes at which the accumulator (and A) may start.
    pub start_lanes: &'static [u32],
    /// Rows of D in each CTA.
    pub rows: u32,
    strips: [Strip; 4],
    strip_count: usize,
}

impl DataPath {
    /// The layout of a legal dense instruction.
    pub fn of(instruction: &InstructionDescriptor, cta_group: u8) -> Self {
        let InstructionDescriptor { m, n, .. } = *instruction;
        let strip = |first_lane, rows, columns| Strip { first_lane, rows, columns };
        let unused = || strip(0, 0..0, 0..0);
        match (cta_group, m) {
            // Layout F: rows in the lower or upper half of each warp's lanes.
            (1, 64) => Self {
                layout: 'F',
                start_lanes: &[0, 16],
                rows: 64,
                strips: [0, 1, 2, 3].map(|warp| strip(warp * 32, warp * 16..warp * 16 + 16, 0..n)),
                strip_count: 4,
            },
            // Layout B: 64 rows per CTA; the right half of D lies below the left half.
            (2, 128) => Self {
                layout: 'B',
                start_lanes: &[0],
                rows: 64,
                strips: [strip(0, 0..64, 0..n / 2), strip(64, 0..64, n / 2..n), unused(), unused()],
                strip_count: 2,
            },
            // Layouts D and A: row i of the CTA in lane i.
            _ => Self {
                layout: if cta_group == 1 { 'D' } else { 'A' },
                start_lanes: &[0],
                rows: 128,
                strips: [strip(0, 0..128, 0..n), unused(), unused(), unused()],
                strip_count: 1,
            },
        }
    }

    /// The strips, which cover the CTA's part of D once.
    pub fn strips(&self) -> &[Strip] {
        &self.strips[..self.strip_count]
    }
}
