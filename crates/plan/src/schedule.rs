//! Which CTA computes which tile, who owns which rows, and how the reduction is cut into slices.

/// Rows and columns of an output tile, and the depth of one pipeline stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TileShape {
    /// Rows.
    pub m: u32,
    /// Columns.
    pub n: u32,
    /// Elements along K per stage.
    pub k: u32,
}

/// Rows of a communication slice. One warp reduces a slice with all its loads in flight at once: 16 rows of 128 BF16
/// columns are eight 16-byte loads per lane.
pub const SLICE_ROWS: u32 = 16;

/// A half-open range of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rows {
    /// First row.
    pub start: u32,
    /// One past the last row.
    pub end: u32,
}

impl Rows {
    /// Number of rows.
    #[inline(always)]
    pub const fn len(self) -> u32 {
        self.end - self.start
    }

    /// Whether there are none.
    #[inline(always)]
    pub const fn is_empty(self) -> bool {
        self.end == self.start
    }
}

/// `(a / b, a % b)` for a `b` that is not zero in any valid problem; zero counts as one. The check costs an instruction
/// and saves the kernels a panic path.
#[inline(always)]
pub const fn div_rem(a: u32, b: u32) -> (u32, u32) {
    let b = if b == 0 { 1 } else { b };
    (a / b, a % b)
}

/// `ceil(a / b)`, without the overflow of `a + b - 1`.
#[inline(always)]
pub const fn ceil_div(a: u32, b: u32) -> u32 {
    let (quotient, remainder) = div_rem(a, b);
    quotient + (remainder != 0) as u32
}

/// Rows that each rank owns, valid or not: `L = ceil(m / ranks)`.
#[inline(always)]
pub const fn shard_rows(m: u32, ranks: u32) -> u32 {
    ceil_div(m, ranks)
}

#[inline(always)]
const fn min(a: u32, b: u32) -> u32 {
    if a < b { a } else { b }
}

/// The valid rows that `rank` owns; empty for the last ranks when `m` is small.
#[inline(always)]
pub const fn owned_rows(m: u32, ranks: u32, rank: u32) -> Rows {
    let shard = shard_rows(m, ranks);
    // rank * shard < m + ranks * ranks, so it does not overflow for any m below 2^32 - 256.
    Rows { start: min(rank * shard, m), end: min((rank + 1) * shard, m) }
}

/// One GEMM tile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tile {
    /// Row of tiles.
    pub row: u32,
    /// Column of tiles.
    pub column: u32,
}

/// The tiles of a problem, M fastest: CTAs that run side by side share a column of W.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TileGrid {
    /// Rows of the problem.
    pub m: u32,
    /// Columns of the problem.
    pub n: u32,
    /// Tile shape.
    pub shape: TileShape,
    /// Tiles along M, a multiple of the cluster: the last may have no valid rows.
    pub rows: u32,
    /// Tiles along N; the last may be narrower.
    pub columns: u32,
}

impl TileGrid {
    /// Cuts an `[m, n]` result for clusters of `cluster` CTAs, which take tiles that lie below each other.
    #[inline(always)]
    pub const fn new(m: u32, n: u32, shape: TileShape, cluster: u32) -> Self {
        let rows = ceil_div(m, shape.m);
        Self { m, n, shape, rows: ceil_div(rows, cluster) * cluster, columns: ceil_div(n, shape.n) }
    }

    /// Number of tiles.
    #[inline(always)]
    pub const fn len(self) -> u32 {
        self.rows * self.columns
    }

    /// Whether there are none.
    pub const fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The tile with this index, which is also its index among the ready words.
    #[inline(always)]
    pub const fn tile(self, index: u32) -> Tile {
        let (column, row) = div_rem(index, self.rows);
        Tile { row, column }
    }

    /// Inverse of [`Self::tile`].
    #[inline(always)]
    pub const fn index(self, tile: Tile) -> u32 {
        tile.column * self.rows + tile.row
    }

    /// The valid rows of a tile.
    #[inline(always)]
    pub const fn tile_rows(self, tile: Tile) -> Rows {
        let start = min(tile.row * self.shape.m, self.m);
        Rows { start, end: min(start + self.shape.m, self.m) }
    }

    /// Columns of a tile.
    #[inline(always)]
    pub const fn tile_columns(self, tile: Tile) -> u32 {
        min(self.shape.n, self.n - tile.column * self.shape.n)
    }

    /// The ranks that own rows of a tile, as a half-open range.
    #[inline(always)]
    pub const fn tile_owners(self, tile: Tile, ranks: u32) -> (u32, u32) {
        let rows = self.tile_rows(tile);
        if rows.is_empty() {
            return (0, 0);
        }
        let shard = shard_rows(self.m, ranks);
        (div_rem(rows.start, shard).0, div_rem(rows.end - 1, shard).0 + 1)
    }
}

/// The reduction work of one rank: its rows, cut at tile boundaries and into slices of [`SLICE_ROWS`] rows of one
/// column tile, so that a slice waits for exactly one tile of each source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SliceGrid {
    tiles: TileGrid,
    rows: Rows,
    first_unit: u32,
    units: u32,
}

/// One slice of the reduction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slice {
    /// The tile it lies in.
    pub tile: Tile,
    /// Its rows, all owned by the rank and valid.
    pub rows: Rows,
}

impl SliceGrid {
    /// The slices of `rank`.
    ///
    /// Rows are cut at multiples of [`SLICE_ROWS`] of the whole problem. Tile boundaries are such multiples, so no
    /// slice spans two tiles; only the first and last slice of a rank can be short.
    #[inline(always)]
    pub const fn new(tiles: TileGrid, ranks: u32, rank: u32) -> Self {
        let rows = owned_rows(tiles.m, ranks, rank);
        let first_unit = rows.start / SLICE_ROWS;
        let units = if rows.is_empty() { 0 } else { ceil_div(rows.end, SLICE_ROWS) - first_unit };
        Self { tiles, rows, first_unit, units }
    }

    /// Number of slices.
    #[inline(always)]
    pub const fn len(self) -> u32 {
        self.units * self.tiles.columns
    }

    /// Whether the rank owns nothing.
    #[inline(always)]
    pub const fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The slice with this index, rows fastest, in the order in which tiles are computed.
    #[inline(always)]
    pub const fn slice(self, index: u32) -> Slice {
        let (column, unit) = div_rem(index, self.units);
        let start = (self.first_unit + unit) * SLICE_ROWS;
        let first = if start > self.rows.start { start } else { self.rows.start };
        let tile = Tile { row: start / self.tiles.shape.m, column };
        Slice { tile, rows: Rows { start: first, end: min(start + SLICE_ROWS, self.rows.end) } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: TileShape = TileShape { m: 128, n: 128, k: 64 };

    /// Every valid (row, column tile) is in exactly one slice of exactly one rank, and that rank is told about the tile.
    #[test]
    fn slices_cover_each_row_once() {
        for m in [1, 7, 15, 16, 17, 127, 128, 129, 173, 257, 1023, 1024, 4099] {
            for ranks in crate::MIN_RANKS..=crate::MAX_RANKS {
                let tiles = TileGrid::new(m, 384, SHAPE, 1 + m % 2);
                let mut seen = vec![0u8; (m * tiles.columns) as usize];
                for rank in 0..ranks {
                    let slices = SliceGrid::new(tiles, ranks, rank);
                    for index in 0..slices.len() {
                        let slice = slices.slice(index);
                        let tile_rows = tiles.tile_rows(slice.tile);
                        assert!(!slice.rows.is_empty() && slice.rows.len() <= SLICE_ROWS);
                        assert!(tile_rows.start <= slice.rows.start && slice.rows.end <= tile_rows.end);
                        let (first, end) = tiles.tile_owners(slice.tile, ranks);
                        assert!((first..end).contains(&rank), "m {m} ranks {ranks} rank {rank}");
                        for row in slice.rows.start..slice.rows.end {
                            seen[(row * tiles.columns + slice.tile.column) as usize] += 1;
                        }
                    }
                }
                assert!(seen.iter().all(|&count| count == 1), "m {m} ranks {ranks}");
            }
        }
    }

    #[test]
    fn tile_index_round_trips() {
        let tiles = TileGrid::new(300, 512, SHAPE, 1);
        assert_eq!(tiles.len(), 12);
        for index in 0..tiles.len() {
            assert_eq!(tiles.index(tiles.tile(index)), index);
        }
    }

    #[test]
    fn a_pair_takes_an_even_number_of_tiles_and_the_last_column_is_what_is_left() {
        let tiles = TileGrid::new(300, 512, TileShape { n: 224, ..SHAPE }, 2);
        assert_eq!((tiles.rows, tiles.columns), (4, 3));
        let last = Tile { row: 3, column: 2 };
        assert!(tiles.tile_rows(last).is_empty());
        assert_eq!(tiles.tile_owners(last, 2), (0, 0));
        assert_eq!(tiles.tile_columns(last), 64);
        assert_eq!(tiles.tile_columns(Tile { row: 0, column: 1 }), 224);
    }

    #[test]
    fn owners_of_a_tile_are_the_ranks_with_rows_in_it() {
        for m in [1, 5, 128, 200, 1000] {
            for ranks in 2..=16 {
                let tiles = TileGrid::new(m, 128, SHAPE, 2);
                for index in 0..tiles.len() {
                    let tile = tiles.tile(index);
                    let rows = tiles.tile_rows(tile);
                    let (first, end) = tiles.tile_owners(tile, ranks);
                    for rank in 0..ranks {
                        let owned = owned_rows(m, ranks, rank);
                        let overlaps = owned.start < rows.end && rows.start < owned.end;
                        assert_eq!(overlaps, (first..end).contains(&rank));
                    }
                }
            }
        }
    }
}
