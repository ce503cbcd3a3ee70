//! Where the scale factors of an MXFP8 operand lie in memory: the 128x4 layout that `tcgen05.cp` and the block-scaled
//! MMA want.
//!
//! An operand `[rows, k]` has one E8M0 byte for every [`SCALE_ELEMENTS`] elements along K, a *k group*. The bytes come
//! in atoms of 128 rows by 4 k groups, [`SCALE_GROUP_BYTES`] each, and the whole is `[rows / 128, k / 128, 32, 4, 4]`:
//! atoms follow each other along K, and inside an atom a byte is at `row % 32 * 16 + row / 32 % 4 * 4 + k_group % 4`.
//!
//! # Tiles that are not 128 rows
//! A tile's scales are whole atoms, so a tile has to begin where an atom does. That holds for tiles of 128 and 256 rows
//! in the dense layout. For tiles of 224, [`ScaleLayout::grouped`] gives every tile atoms of its own: 224 rows take 256
//! rows of scales, of which the last 32 are padding, and so does what is left for the last tile.
//!
//! # Padding
//! Scales of rows that do not exist are [`PADDING_SCALE`], zero. The operand's rows that they belong to are zeros too,
//! filled in by TMA past the matrix, so any finite scale gives zeros, which nobody stores; the one value that must not
//! be there is E8M0's NaN, 0xff. Of the finite ones zero is what a row of zeros quantises to, what TMA fills in past
//! the end of a scale tensor, and what a buffer holds that was zeroed once, so that none of the three can differ. (1.0,
//! 0x7f, would be the other candidate: it has none of these, and no advantage to set against them.)

use crate::kernels::SCALE_ROWS;
use crate::schedule::{ceil_div, div_rem};
use crate::shared_memory::SCALE_GROUP_BYTES;

/// Elements along K that share a scale.
pub const SCALE_ELEMENTS: u32 = 32;
/// K groups of an atom.
pub const SCALE_GROUP_COLUMNS: u32 = 4;
/// Elements along K that an atom covers; K is a multiple of it.
pub const SCALE_GROUP_K: u32 = SCALE_GROUP_COLUMNS * SCALE_ELEMENTS;
/// The scale of rows that do not exist.
pub const PADDING_SCALE: u8 = 0;

/// Rows of an atom that lie 16 bytes apart; the four blocks of so many rows are interleaved.
const INTERLEAVED_ROWS: u32 = 32;
/// Bytes of one such row: its four blocks, each with its four k groups.
const INTERLEAVED_BYTES: u32 = SCALE_GROUP_BYTES / INTERLEAVED_ROWS;

/// Bytes of the scales of an operand `[rows, k]`, padding included. `k` is a multiple of [`SCALE_GROUP_K`].
#[inline(always)]
pub const fn scale_layout_bytes(rows: u32, k: u32) -> u64 {
    ceil_div(rows, SCALE_ROWS) as u64 * row_of_atoms_bytes(k)
}

/// Byte of the scale of row `row` and k group `k_group`, which is element `k_group * 32` and the 31 after it.
#[inline(always)]
pub const fn scale_offset(row: u32, k_group: u32, k: u32) -> u64 {
    let atom = row / SCALE_ROWS;
    let row = row % SCALE_ROWS;
    atom as u64 * row_of_atoms_bytes(k)
        + (k_group / SCALE_GROUP_COLUMNS) as u64 * SCALE_GROUP_BYTES as u64
        + (row % INTERLEAVED_ROWS * INTERLEAVED_BYTES) as u64
        + (row / INTERLEAVED_ROWS * SCALE_GROUP_COLUMNS + k_group % SCALE_GROUP_COLUMNS) as u64
}

/// Bytes of the atoms of 128 rows.
#[inline(always)]
const fn row_of_atoms_bytes(k: u32) -> u64 {
    (k / SCALE_GROUP_K) as u64 * SCALE_GROUP_BYTES as u64
}

/// The scales of one operand: its shape, and which of its rows begin an atom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScaleLayout {
    rows: u32,
    k: u32,
    rows_per_group: u32,
}

impl ScaleLayout {
    /// The dense layout of an operand `[rows, k]`: every 128th row begins an atom. `k` is a multiple of
    /// [`SCALE_GROUP_K`].
    pub const fn dense(rows: u32, k: u32) -> Self {
        Self { rows, k, rows_per_group: SCALE_ROWS }
    }

    /// The layout for tiles of `rows_per_group` rows, each of which begins an atom: `ceil(rows / rows_per_group)`
    /// groups, all padded to the same whole number of atoms. A multiple of 128 gives the dense layout, where tiles
    /// begin atoms anyway; 0 counts as one.
    pub const fn grouped(rows: u32, k: u32, rows_per_group: u32) -> Self {
        if rows_per_group.is_multiple_of(SCALE_ROWS) {
            return Self::dense(rows, k);
        }
        Self { rows, k, rows_per_group }
    }

    /// Rows of the operand.
    pub const fn rows(self) -> u32 {
        self.rows
    }

    /// The operand's extent along K.
    pub const fn k(self) -> u32 {
        self.k
    }

    /// K groups: scales of a row.
    pub const fn k_groups(self) -> u32 {
        self.k / SCALE_ELEMENTS
    }

    /// Rows that a group takes in the layout, a multiple of 128: 256 for 224.
    pub const fn padded_rows_per_group(self) -> u32 {
        ceil_div(self.rows_per_group, SCALE_ROWS) * SCALE_ROWS
    }

    /// Rows of the whole layout, a multiple of 128.
    pub const fn padded_rows(self) -> u64 {
        ceil_div(self.rows, self.rows_per_group) as u64 * self.padded_rows_per_group() as u64
    }

    /// Bytes, padding included.
    pub const fn bytes(self) -> u64 {
        self.padded_rows() / (SCALE_ROWS as u64) * row_of_atoms_bytes(self.k)
    }

    /// Byte of the scale of row `row` and k group `k_group`.
    pub const fn offset(self, row: u32, k_group: u32) -> u64 {
        let (group, row) = div_rem(row, self.rows_per_group);
        let atoms_per_group = (self.padded_rows_per_group() / SCALE_ROWS) as u64;
        group as u64 * atoms_per_group * row_of_atoms_bytes(self.k) + scale_offset(row, k_group, self.k)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The byte of every scale, by the shape `[rows / 128, k / 128, 32, 4, 4]` and nothing else.
    fn by_the_shape(rows: u32, k: u32) -> Vec<(u32, u32)> {
        let mut places = vec![];
        for atom_row in 0..rows.div_ceil(128) {
            for atom_column in 0..k / 128 {
                for row in 0..32 {
                    for block in 0..4 {
                        for k_group in 0..4 {
                            places.push((atom_row * 128 + block * 32 + row, atom_column * 4 + k_group));
                        }
                    }
                }
            }
        }
        places
    }

    #[test]
    fn the_dense_layout_is_its_shape() {
        for (rows, k) in [(1, 128), (127, 384), (128, 128), (129, 256), (300, 1536), (512, 128)] {
            let places = by_the_shape(rows, k);
            assert_eq!(places.len() as u64, scale_layout_bytes(rows, k), "[{rows}, {k}]");
            for (byte, &(row, k_group)) in places.iter().enumerate() {
                assert_eq!(scale_offset(row, k_group, k), byte as u64, "[{rows}, {k}] at {row} {k_group}");
            }
        }
    }

    #[test]
    fn one_atom_as_the_hardware_reads_it() {
        assert_eq!(scale_offset(0, 3, 128), 3);
        assert_eq!(scale_offset(32, 0, 128), 4);
        assert_eq!(scale_offset(1, 0, 128), 16);
        assert_eq!(scale_offset(127, 3, 128), 511);
        assert_eq!(scale_offset(0, 4, 256), 512, "atoms follow each other along K");
        assert_eq!(scale_offset(128, 0, 256), 1024);
    }

    /// Every scale has a byte, no two the same one, and all other bytes are padding.
    #[test]
    fn scales_and_padding_share_out_the_bytes() {
        for rows_per_group in [1, 32, 64, 128, 192, 224, 256, 384] {
            for rows in [0, 1, 31, 32, 127, 128, 129, 223, 224, 225, 256, 300, 448, 700] {
                for k in [128, 384] {
                    let layout = ScaleLayout::grouped(rows, k, rows_per_group);
                    let mut owners = vec![0u32; layout.bytes() as usize];
                    for row in 0..rows {
                        for k_group in 0..layout.k_groups() {
                            owners[layout.offset(row, k_group) as usize] += 1;
                        }
                    }
                    let owned = owners.iter().filter(|&&owners| owners == 1).count();
                    assert_eq!(owned as u32, rows * layout.k_groups(), "{layout:?}");
                    assert!(owners.iter().all(|&owners| owners <= 1), "{layout:?}");
                    let padding = (layout.padded_rows() - u64::from(rows)) * u64::from(layout.k_groups());
                    assert_eq!(owners.len() as u64 - owned as u64, padding, "{layout:?}");
                }
            }
        }
    }

    #[test]
    fn every_tile_begins_an_atom() {
        for rows_per_group in [64, 128, 224, 256] {
            let layout = ScaleLayout::grouped(3 * rows_per_group, 384, rows_per_group);
            for tile in 0..3 {
                let atoms = u64::from(tile * rows_per_group.div_ceil(SCALE_ROWS));
                assert_eq!(layout.offset(tile * rows_per_group, 0), atoms * row_of_atoms_bytes(384), "{layout:?}");
            }
            assert_eq!(layout.bytes(), u64::from(3 * rows_per_group.div_ceil(SCALE_ROWS)) * row_of_atoms_bytes(384));
        }
    }

    #[test]
    fn groups_of_whole_atoms_are_the_dense_layout() {
        let dense = ScaleLayout::dense(700, 256);
        for rows_per_group in [128, 256, 384] {
            let grouped = ScaleLayout::grouped(700, 256, rows_per_group);
            assert_eq!(grouped.bytes(), dense.bytes());
            assert_eq!(grouped.bytes(), scale_layout_bytes(700, 256));
            for row in 0..700 {
                assert_eq!(grouped.offset(row, 5), dense.offset(row, 5));
                assert_eq!(grouped.offset(row, 5), scale_offset(row, 5, 256));
            }
        }
    }
}
